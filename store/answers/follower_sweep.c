#include "store/answers/follower_internal.h"
#include "store/answers/path.h"
#include "store/engine/cursor.h"
#include "store/engine/environment.h"
#include "store/engine/format.h"
#include "store/engine/snapshot.h"
#include "store/records/answers_log.h"
#include "store/records/ulid_keys.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOST_AT_ONCE 64

/* Once after a start: delete files that no record names, and note records without a file. */

static enum store_status state_of(struct follower *f, const struct ulid *agent,
                                  struct store_answers *out)
{
    MDB_txn *txn;
    enum store_status status = store_snapshot(f->s, &txn);
    if (status == STORE_OK)
        status = answers_read(f->s, txn, agent, out);
    store_read_end(f->s);
    return status;
}

static bool is_named(struct follower *f, const struct answers_name *name)
{
    struct store_answers state;
    enum store_status status = memcmp(name->store_id, f->store_id, STORE_ID_BYTES) != 0
                                   ? STORE_NOT_FOUND
                                   : state_of(f, &name->agent, &state);
    if (status != STORE_OK)
        return status != STORE_NOT_FOUND;
    return name->generation == state.generation || name->generation == state.serving;
}

static enum store_status sweep_files(struct follower *f)
{
    char path[ANSWERS_PATH_BYTES];
    struct answers_name name;
    struct dirent *e;
    snprintf(path, sizeof(path), "%s/answers", f->s->dir);
    DIR *dir = mkdir(path, 0700) != 0 && errno != EEXIST ? NULL : opendir(path);
    if (dir == NULL)
        return follower_fail(f, STORE_IO, path, strerror(errno));
    while ((e = readdir(dir)) != NULL)
        if (answers_name_read(e->d_name, &name) && !is_named(f, &name))
            answers_unlink(f->s->dir, &name);
    closedir(dir);
    return STORE_OK;
}

static bool is_missing(struct follower *f, const struct answers_name *name)
{
    char path[ANSWERS_PATH_BYTES];
    answers_path(path, f->s->dir, name);
    return access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* Agents after ${after} whose file is missing; ${after} becomes the last agent checked. */
static enum store_status find_missing(struct follower *f, struct ulid *after,
                                      struct answers_name *missing, size_t *count)
{
    struct cursor w = {0};
    struct key from;
    struct store_answers state;
    MDB_txn *txn;
    enum store_status status = store_snapshot(f->s, &txn);
    *count = 0;
    key_space(&w.prefix, SPACE_ANSWER_FILE);
    key_of(&from, SPACE_ANSWER_FILE, after);
    key_bytes(&from, "", 1);
    if (status == STORE_OK)
        status = cursor_from(f->s, txn, &w, DB_WIDGET, &from);
    for (unsigned looked = 0; status == STORE_OK && looked < 1000 && *count < LOST_AT_ONCE;
         status = cursor_next(&w), looked++) {
        struct answers_name *name = &missing[*count];
        if (w.k.mv_size != 1 + ULID_BYTES || !schema_read_answer_file(w.v, &state))
            continue;
        memcpy(after->b, (const uint8_t *)w.k.mv_data + 1, ULID_BYTES);
        *name = (struct answers_name){.agent = *after, .generation = state.generation};
        memcpy(name->store_id, f->store_id, STORE_ID_BYTES);
        *count += state.state == ANSWERS_BUILT && is_missing(f, name);
    }
    cursor_end(&w);
    store_read_end(f->s);
    return status;
}

/* Check a batch of the records. */
enum store_status follower_sweep_records(struct follower *f)
{
    struct answers_name missing[LOST_AT_ONCE];
    size_t count;
    enum store_status status = find_missing(f, &f->swept, missing, &count), noted = STORE_OK;
    for (size_t i = 0; i < count && noted == STORE_OK; i++) {
        follower_fail(f, STORE_NOT_FOUND, f->s->dir, "The answer file is missing.");
        noted = follower_note(&(struct step){.f = f, .name = missing[i]}, ANSWERS_NOTE_LOST, 0);
    }
    f->swept_records = status == STORE_NOT_FOUND && noted == STORE_OK;
    if (status != STORE_OK && status != STORE_NOT_FOUND)
        return follower_fail_store(f, status);
    return noted;
}

enum store_status follower_sweep(struct follower *f)
{
    enum store_status status = format_id(f->s, f->store_id);
    store_read_end(f->s);
    if (status != STORE_OK)
        return follower_fail_store(f, status);
    status = sweep_files(f);
    f->swept_files = status == STORE_OK;
    return status;
}
