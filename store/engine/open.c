#include "store/engine/errors.h"
#include "store/engine/files.h"
#include "store/engine/format.h"
#include "store/engine/layers.h"
#include "store/engine/pages_internal.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Check the directory first: LMDB's own messages are less helpful. */
static enum store_status dir_look(const char *dir, enum store_mode mode, char *why, size_t why_size)
{
    struct stat st;
    if (strlen(dir) > sizeof(((struct store *)0)->dir) - 64) {
        snprintf(why, why_size, "the name of the data directory is too long");
        return STORE_INVALID;
    }
    if (stat(dir, &st) != 0) {
        bool missing = errno == ENOENT;
        snprintf(why, why_size,
                 missing ? "%s does not exist: create it with mode 0700, or set data_dir"
                         : "%s cannot be reached: %s",
                 dir, strerror(errno));
        return missing ? STORE_NOT_FOUND : STORE_IO;
    }
    if (!S_ISDIR(st.st_mode)) {
        snprintf(why, why_size, "%s is not a directory: set data_dir to one", dir);
        return STORE_INVALID;
    }
    if (faccessat(AT_FDCWD, dir, mode == STORE_WRITE ? R_OK | W_OK | X_OK : R_OK | X_OK,
                  AT_EACCESS) != 0) {
        snprintf(why, why_size, "%s cannot be %s: %s; run as its owner, or set its mode to 0700",
                 dir, mode == STORE_WRITE ? "written to" : "read", strerror(errno));
        return STORE_IO;
    }
    return STORE_OK;
}

/*
 * Handles stay valid for the life of the environment if the transaction that opened them commits.
 */
static int open_databases(struct store *s)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(s->env, NULL, s->mode == STORE_WRITE ? 0 : MDB_RDONLY, &txn);
    if (rc == MDB_MAP_RESIZED) {
        rc = mdb_env_set_mapsize(s->env, 0);
        if (rc == 0)
            rc = mdb_txn_begin(s->env, NULL, s->mode == STORE_WRITE ? 0 : MDB_RDONLY, &txn);
    }
    if (rc != 0)
        return rc;
    for (int i = 0; i < DB_COUNT && rc == 0; i++)
        rc = mdb_dbi_open(txn, schema_db_names[i], s->mode == STORE_WRITE ? MDB_CREATE : 0,
                          &s->dbi[i]);
    if (rc == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

static int open_environment(struct store *s, const struct store_options *o,
                            const struct pages_facts *facts)
{
    int rc = mdb_env_create(&s->shared->env);
    s->env = s->shared->env;
    if (rc == 0)
        rc = mdb_env_set_maxdbs(s->env, DB_COUNT);
    if (rc == 0 && o->max_readers != 0)
        rc = mdb_env_set_maxreaders(s->env, o->max_readers);
    uint64_t map_bytes = o->map_size > facts->map_bytes ? o->map_size : facts->map_bytes;
    if (rc == 0 && s->mode == STORE_WRITE && map_bytes != 0)
        rc = mdb_env_set_mapsize(s->env, map_bytes);
    if (rc == 0)
        rc = mdb_env_open(s->env, o->dir, MDB_NOTLS | (s->mode == STORE_READ ? MDB_RDONLY : 0U),
                          0600);
    return rc;
}

/* A new store gets its format record and counters. Readers see it after that commit. */
static enum store_status open_all(struct store *s, const struct store_options *o, char *why,
                                  size_t why_size)
{
    struct pages_facts facts = {0};
    enum store_status status = dir_look(o->dir, o->mode, why, why_size);
    if (status == STORE_OK)
        status = pages_open_look(o->dir, &facts, why, why_size);
    if (status == STORE_NOT_FOUND && facts.bytes == 0 && why[0] == '\0') {
        if (o->mode == STORE_WRITE)
            status = STORE_OK;
        else
            snprintf(why, why_size, "%s has no store yet: start assayd or create a workspace first",
                     o->dir);
    }
    if (status != STORE_OK)
        return status;
    int rc = open_environment(s, o, &facts);
    if (rc == 0)
        status = format_look(s, why, why_size);
    if (rc == 0 && status == STORE_OK)
        rc = open_databases(s);
    if (rc != 0) {
        status = rc == MDB_NOTFOUND ? STORE_CORRUPT : store_fail(s, rc, "open the store");
        snprintf(why, why_size, "%s: %s", o->dir,
                 rc == MDB_NOTFOUND ? "data.mdb is not a store of Assay" : s->why);
        return status;
    }
    if (status == STORE_OK && o->mode == STORE_WRITE)
        status = format_make(s, why, why_size);
    if (status == STORE_OK && o->mode == STORE_WRITE &&
        store_sync_dir(o->dir) != 0) { /* the name of a new file */
        status = store_fail(s, errno, "sync the data directory");
        snprintf(why, why_size, "%s: %s", o->dir, s->why);
    }
    if (status == STORE_OK && o->mode == STORE_WRITE)
        txn_keep_file_ahead(s);
    return status;
}

static bool has_store(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/data.mdb", dir);
    return access(path, F_OK) == 0;
}

void store_on_stage(struct store *s, store_stage_fn *stage, void *arg)
{
    s->stage = stage;
    s->stage_arg = arg;
}

void store_on_lost(struct store *s, store_lost_fn *lost, void *arg)
{
    s->lost = lost;
    s->lost_arg = arg;
}

void store_stage_begins(struct store *s, const char *what)
{
    if (s->stage != NULL)
        s->stage(s->stage_arg, what);
}

/* Writers go first: a change of the size of the map must not wait for ever new snapshots. */
static struct shared_env *shared_new(void)
{
    struct shared_env *shared = calloc(1, sizeof(*shared));
    pthread_rwlockattr_t first;
    if (shared == NULL)
        return NULL;
    for (size_t i = 0; layers[i] != NULL; i++) {
        if (layers[i]->share != NULL && !layers[i]->share(shared)) {
            free(shared);
            return NULL;
        }
    }
    pthread_rwlockattr_init(&first);
    pthread_rwlockattr_setkind_np(&first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&shared->map, &first);
    pthread_rwlockattr_destroy(&first);
    return shared;
}

static void shared_leave(struct shared_env *shared)
{
    if (shared == NULL || atomic_fetch_sub(&shared->readers, 1) > 1)
        return;
    if (shared->env != NULL)
        mdb_env_close(shared->env);
    pthread_rwlock_destroy(&shared->map);
    for (size_t i = 0; layers[i] != NULL; i++)
        if (layers[i]->unshare != NULL)
            layers[i]->unshare(shared);
    free(shared);
}

static void close_layers(struct store *s, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (layers[i]->close != NULL)
            layers[i]->close(s);
}

static bool open_layers(struct store *s, const struct store_options *options)
{
    for (size_t i = 0; layers[i] != NULL; i++) {
        if (layers[i]->open != NULL && !layers[i]->open(s, options)) {
            close_layers(s, i);
            return false;
        }
    }
    return true;
}

/* A struct store of ${shared}; NULL: of a new environment. */
static struct store *store_new(struct shared_env *shared, const struct store_options *options)
{
    struct store *s = calloc(1, sizeof(*s));
    if (s == NULL || (s->shared = shared != NULL ? shared : shared_new()) == NULL) {
        free(s);
        return NULL;
    }
    atomic_fetch_add(&s->shared->readers, 1);
    s->env = s->shared->env;
    s->maps = atomic_load(&s->shared->maps);
    s->mode = options->mode;
    if (s->mode == STORE_WRITE)
        s->shared->writes = true;
    s->txn.s = s;
    s->deleting_snapshot = (size_t)-1;
    snprintf(s->dir, sizeof(s->dir), "%s", options->dir);
    s->options = *options;
    s->options.dir = s->dir;
    if (open_layers(s, options))
        return s;
    shared_leave(s->shared);
    free(s);
    return NULL;
}

/* Take its slot of the reader table now, which it keeps, however many others come later. */
static void take_slot(struct store *s)
{
    MDB_txn *unused;
    if (store_snapshot(s, &unused) == STORE_OK)
        store_read_end(s);
}

enum store_status store_open(const struct store_options *options, struct store **out, char *why,
                             size_t why_size)
{
    *out = NULL;
    if (why_size != 0)
        why[0] = '\0';
    struct store *s = store_new(NULL, options);
    if (s == NULL) {
        snprintf(why, why_size, "out of memory");
        return STORE_IO;
    }
    enum store_status status =
        options->must_exist && !has_store(options->dir) ? STORE_NOT_FOUND : STORE_OK;
    if (status != STORE_OK)
        snprintf(why, why_size, "%s has no store: mount its disk again, or restore a backup",
                 options->dir);
    else
        status = open_all(s, options, why, why_size);
    if (status != STORE_OK) {
        store_close(s);
        return status;
    }
    take_slot(s);
    *out = s;
    return STORE_OK;
}

enum store_status store_share(struct store *s, struct store **out, char *why, size_t why_size)
{
    struct store_options same = s->options;
    same.mode = STORE_READ;
    same.rates = false;
    *out = NULL;
    struct store *other = store_new(s->shared, &same);
    if (other == NULL) {
        snprintf(why, why_size, "out of memory");
        return STORE_IO;
    }
    memcpy(other->dbi, s->dbi, sizeof(other->dbi));
    take_slot(other);
    *out = other;
    return STORE_OK;
}

void store_close(struct store *s)
{
    if (s == NULL)
        return;
    if (s->txn.mdb != NULL)
        store_abort(&s->txn);
    store_read_end(s);
    if (s->read != NULL)
        mdb_txn_abort(s->read);
    txn_free(&s->txn);
    size_t count = 0;
    while (layers[count] != NULL)
        count++;
    close_layers(s, count);
    buf_free(&s->scratch);
    free(s->events);
    shared_leave(s->shared);
    free(s);
}

bool store_tidy(struct store *s)
{
    bool open = false;
    for (size_t i = 0; layers[i] != NULL; i++)
        if (layers[i]->tidy != NULL && layers[i]->tidy(s))
            open = true;
    return open;
}
