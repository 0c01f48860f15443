#include "store/engine/files.h"
#include "store/engine/format.h"
#include "store/engine/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)256 << 10)
#define PATH_BYTES (4096 + 64)

/* LMDB locks the first byte of lock.mdb while a process has the environment open. */
static bool in_use(const char *dir)
{
    char path[PATH_BYTES];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    snprintf(path, sizeof(path), "%s/lock.mdb", dir);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool used = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return used;
}

struct restore {
    const char *from, *to;
    char tmp[PATH_BYTES]; /* directory below ${to} where the copy is checked */
    store_progress_fn *progress;
    void *arg;
    uint64_t done, total; /* of the check */
    char *why;
    size_t why_size;
    uint64_t problems;
};

static enum store_status refuse(struct restore *r, enum store_status status, const char *what,
                                const char *path)
{
    snprintf(r->why, r->why_size, "%s: %s", path, what);
    return status;
}

static enum store_status copy_file(struct restore *r, const char *from, const char *to)
{
    char *chunk = malloc(CHUNK_BYTES);
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t got = 1;
    bool good = chunk != NULL && out >= 0;
    while (good && got > 0) {
        got = read(in, chunk, CHUNK_BYTES);
        good = got >= 0 && store_write_all(out, chunk, (size_t)got);
    }
    good = good && fsync(out) == 0;
    enum store_status status = good ? STORE_OK
                                    : refuse(r, errno == ENOSPC ? STORE_FULL : STORE_IO,
                                             strerror(errno), in < 0 ? from : to);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    free(chunk);
    return status;
}

static void first_problem(void *arg, const char *sentence)
{
    struct restore *r = arg;
    if (r->problems++ == 0)
        snprintf(r->why, r->why_size, "the backup %s is damaged: %s; restore another backup",
                 r->from, sentence);
}

/*
 * r->why is about the copy below ${to}, which the operator does not know, and advises to restore a
 * backup: make it about the backup.
 */
static void name_the_backup(struct restore *r, enum store_status status)
{
    static const char advice[] = "restore a backup";
    char what[512];
    const size_t n = strlen(r->tmp);
    const bool prefixed = strncmp(r->why, r->tmp, n) == 0 && strncmp(r->why + n, ": ", 2) == 0;
    if (r->problems > 0)
        return;
    snprintf(what, sizeof(what), "%s", r->why + (prefixed ? n + 2 : 0));
    char *end = strstr(what, advice);
    if (end != NULL && end - what > 2)
        end[-2] = '\0'; /* including the ": " or "; " before it */
    if (status == STORE_CORRUPT)
        snprintf(r->why, r->why_size, "the backup %s is damaged: %s; restore another backup",
                 r->from, what);
    else if (prefixed)
        snprintf(r->why, r->why_size, "the backup %s: %s", r->from, what);
}

static bool pass_progress(void *arg, uint64_t done, uint64_t total)
{
    struct restore *r = arg;
    r->done = done;
    r->total = total;
    return r->progress == NULL || r->progress(r->arg, done, total);
}

/* Building the indexes takes an unknown number of steps: progress stays at the end of the check. */
static bool goes_on(void *arg, uint64_t steps, uint64_t total)
{
    struct restore *r = arg;
    (void)steps;
    (void)total;
    return pass_progress(arg, r->done, r->total);
}

static enum store_status check_copy(struct restore *r)
{
    struct store *s;
    const struct store_options options = {.dir = r->tmp, .mode = STORE_READ};
    enum store_status status = store_open(&options, &s, r->why, r->why_size);
    if (status != STORE_OK) {
        name_the_backup(r, status);
        return status;
    }
    status = store_check_records(s, pass_progress, first_problem, r, NULL);
    if (status != STORE_OK && r->problems == 0) {
        snprintf(r->why, r->why_size, "%s", store_why(s));
        name_the_backup(r, status);
    }
    store_close(s);
    return status;
}

/* The copy has no segment files: build them from its reports. */
static enum store_status build_indexes(struct restore *r)
{
    struct store *s;
    const struct store_options options = {.dir = r->tmp, .mode = STORE_WRITE};
    enum store_status status = store_open(&options, &s, r->why, r->why_size);
    if (status != STORE_OK)
        return status;
    status = store_rebuild(s, false, goes_on, r);
    if (status != STORE_OK)
        snprintf(r->why, r->why_size, "%s", store_why(s));
    store_close(s);
    return status;
}

/* Until data.mdb is in place, no manifest names these files, and a server deletes them. */
static enum store_status move_files(struct restore *r)
{
    int rc = 0;
    for (size_t i = 0; layers[i] != NULL && rc == 0; i++)
        if (layers[i]->files_move != NULL)
            rc = layers[i]->files_move(r->tmp, r->to);
    return rc == 0 ? STORE_OK : refuse(r, STORE_IO, strerror(rc), r->to);
}

/* Answer files of the replaced store do not belong to the new one. */
static enum store_status renew_id(struct restore *r)
{
    int rc = format_renew_id(r->tmp);
    return rc == 0 ? STORE_OK : refuse(r, STORE_IO, mdb_strerror(rc), r->tmp);
}

/* Rename the file that an earlier restore kept under this name. */
static int free_name(const char *name)
{
    char older[PATH_BYTES + 32];
    int rc = EEXIST;
    for (unsigned n = 1; rc == EEXIST; n++) {
        snprintf(older, sizeof(older), "%s-%u", name, n);
        rc = link(name, older) == 0 ? 0 : errno;
    }
    return rc == 0 && unlink(name) != 0 ? errno : rc;
}

int store_keep_replaced(const char *path)
{
    char before[PATH_BYTES + 16];
    snprintf(before, sizeof(before), "%s.before-restore", path);
    int rc = link(path, before) == 0 ? 0 : errno;
    if (rc == EEXIST && (rc = free_name(before)) == 0)
        rc = link(path, before) == 0 ? 0 : errno;
    return rc == ENOENT ? 0 : rc;
}

/* The old data.mdb gets a second name first: at every moment data.mdb is one of the two. */
static enum store_status put_in_place(struct restore *r)
{
    char made[PATH_BYTES * 2], there[PATH_BYTES], lock[PATH_BYTES];
    snprintf(made, sizeof(made), "%s/data.mdb", r->tmp);
    snprintf(there, sizeof(there), "%s/data.mdb", r->to);
    snprintf(lock, sizeof(lock), "%s/lock.mdb", r->to);
    enum store_status status = move_files(r);
    if (status != STORE_OK)
        return status;
    int rc = store_keep_replaced(there);
    if (rc != 0)
        return refuse(r, STORE_IO, strerror(rc), there);
    if (rename(made, there) != 0 || store_sync_dir(r->to) != 0)
        return refuse(r, STORE_IO, strerror(errno), there);
    unlink(lock);
    return STORE_OK;
}

static void remove_tmp(struct restore *r)
{
    static const char *const names[] = {"data.mdb", "lock.mdb"};
    char path[PATH_BYTES * 2];
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", r->tmp, names[i]);
        unlink(path);
    }
    for (size_t i = 0; layers[i] != NULL; i++)
        if (layers[i]->files_delete != NULL)
            layers[i]->files_delete(r->tmp);
    rmdir(r->tmp);
}

void store_restore_clear(const char *to)
{
    struct restore r = {.to = to};
    if ((size_t)snprintf(r.tmp, sizeof(r.tmp), "%s/restore.part", to) < sizeof(r.tmp))
        remove_tmp(&r);
}

/* Make r->tmp. */
static enum store_status prepare(struct restore *r)
{
    struct stat st;
    if (stat(r->to, &st) != 0 || !S_ISDIR(st.st_mode))
        return refuse(r, STORE_NOT_FOUND,
                      "is not a directory: create the data directory first (mode 0700)", r->to);
    if (in_use(r->to))
        return refuse(r, STORE_BUSY, "the store is in use: stop assayd first", r->to);
    snprintf(r->tmp, sizeof(r->tmp), "%s/restore.part", r->to);
    if (rmdir(r->tmp) != 0 && errno == ENOTEMPTY) /* of a killed restore */
        remove_tmp(r);
    return mkdir(r->tmp, 0700) == 0 ? STORE_OK : refuse(r, STORE_IO, strerror(errno), r->tmp);
}

/* The copy is in r->tmp. */
static enum store_status install(struct restore *r)
{
    enum store_status status = check_copy(r);
    if (status == STORE_OK)
        status = build_indexes(r);
    if (status == STORE_OK)
        status = renew_id(r);
    if (status == STORE_OK)
        status = put_in_place(r);
    remove_tmp(r);
    return status;
}

static enum store_status copy_backup(struct restore *r, const char *source)
{
    char copy[PATH_BYTES * 2];
    snprintf(copy, sizeof(copy), "%s/data.mdb", r->tmp);
    enum store_status status = copy_file(r, source, copy);
    if (status == STORE_OK)
        return install(r);
    remove_tmp(r);
    return status;
}

enum store_status store_restore(const char *from, const char *to, store_progress_fn *progress,
                                void *arg, char *why, size_t why_size)
{
    struct restore r = {
        .from = from, .to = to, .progress = progress, .arg = arg, .why = why, .why_size = why_size};
    char source[PATH_BYTES];
    struct stat st;
    if (strlen(from) >= 4096 || strlen(to) >= 4096)
        return refuse(&r, STORE_INVALID, "the name is too long", from);
    snprintf(source, sizeof(source), "%s/data.mdb", from);
    if (stat(source, &st) != 0 || st.st_size == 0)
        return refuse(&r, STORE_NOT_FOUND,
                      "contains no backup: name a directory that assay backup wrote", source);
    enum store_status status = prepare(&r);
    return status == STORE_OK ? copy_backup(&r, source) : status;
}

enum store_status store_receive(const char *to, char path[STORE_PATH_BYTES], char *why,
                                size_t why_size)
{
    struct restore r = {.to = to, .why = why, .why_size = why_size};
    if (strlen(to) >= 4096)
        return refuse(&r, STORE_INVALID, "the name is too long", to);
    snprintf(path, STORE_PATH_BYTES, "%s/restore.part/data.mdb", to);
    return prepare(&r);
}

enum store_status store_received(const char *from, const char *to, store_progress_fn *progress,
                                 void *arg, char *why, size_t why_size)
{
    struct restore r = {
        .from = from, .to = to, .progress = progress, .arg = arg, .why = why, .why_size = why_size};
    snprintf(r.tmp, sizeof(r.tmp), "%s/restore.part", to);
    return install(&r);
}
