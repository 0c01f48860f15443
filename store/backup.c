#include "extent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)256 << 10)
#define SETTLE_BYTES ((uint64_t)4 << 20)
#define PATH_BYTES (4096 + 64)

static enum store_status why_errno(struct store *s, const char *what, const char *path)
{
    enum store_status status = store_fail(s, errno, what);
    size_t n = strlen(s->why);
    snprintf(s->why + n, sizeof(s->why) - n, " (%s)", path);
    return status;
}

int store_sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int rc = fsync(fd);
    close(fd);
    return rc;
}

static bool dir_is_empty(const char *dir)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return false;
    struct dirent *e;
    bool empty = true;
    while (empty && (e = readdir(d)) != NULL)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    closedir(d);
    return empty;
}

/* ---- backup: LMDB writes its copy into a pipe on a thread; here it is counted, written and synced ---- */

struct copier {
    MDB_env *env;
    int to, rc;
};

static void *copier_run(void *arg)
{
    struct copier *c = arg;
    c->rc = mdb_env_copyfd2(c->env, c->to, MDB_CP_COMPACT);
    close(c->to);
    return NULL;
}

struct progress {
    store_progress_fn *fn;
    void *arg;
    uint64_t done, total, page_bytes;
    uint64_t last_page; /* of the store when the backup began */
};

static bool report_progress(struct progress *p, size_t more)
{
    p->done += more;
    uint64_t total = p->total > p->done ? p->total : p->done;
    return p->fn == NULL || p->fn(p->arg, p->done / p->page_bytes, total / p->page_bytes);
}

/* The copy pins every page of its snapshot. Where that makes the writer run into the end of the map, the writer is worth more. */
static bool in_the_way(struct store *s, const struct progress *p)
{
    MDB_envinfo info;
    mdb_env_info(s->env, &info);
    uint64_t map = info.me_mapsize / p->page_bytes;
    return info.me_last_pgno > p->last_page && map - info.me_last_pgno < map / 20;
}

static bool write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t wrote = write(fd, p, n);
        if (wrote < 0 && errno != EINTR)
            return false;
        if (wrote > 0) {
            p += wrote;
            n -= (size_t)wrote;
        }
    }
    return true;
}

/*
 * What is written goes to the disk as it comes and leaves the page cache: else it would take the room of what readers read, and a commit of
 * the writer's would wait for all of it.
 */
static void settle(int to, uint64_t *from, uint64_t end)
{
    if (end - *from < SETTLE_BYTES)
        return;
    sync_file_range(to, (off_t)*from, (off_t)(end - *from), SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    posix_fadvise(to, (off_t)*from, (off_t)(end - *from), POSIX_FADV_DONTNEED);
    *from = end;
}

/* A damaged tree can lead the copy round in circles: it has no more than the file and the parts have. */
static bool is_endless(struct store *s, const struct progress *p)
{
    MDB_envinfo info;
    mdb_env_info(s->env, &info);
    return p->done > (info.me_last_pgno + 1) * p->page_bytes + p->total;
}

/* After each piece of a copy. */
static enum store_status go_on(struct store *s, struct progress *p, size_t more)
{
    if (!report_progress(p, more)) {
        snprintf(s->why, sizeof(s->why), "the copy was stopped before its end");
        return STORE_IO;
    }
    if (is_endless(s, p)) {
        snprintf(s->why, sizeof(s->why), "the copy is larger than the store, so pages of it are damaged");
        return STORE_CORRUPT;
    }
    if (!in_the_way(s, p))
        return STORE_OK;
    snprintf(s->why, sizeof(s->why), "the backup was given up: it holds the pages that the writer needs; raise store.map_size");
    return STORE_FULL;
}

/* Everything ${from} yields, into ${to}. */
static enum store_status pour(struct store *s, int from, int to, struct progress *p)
{
    enum store_status status = STORE_OK;
    uint64_t settled = 0;
    char *chunk = malloc(CHUNK_BYTES);
    if (chunk == NULL)
        return store_fail(s, ENOMEM, "copy the store");
    while (status == STORE_OK) {
        ssize_t got = read(from, chunk, CHUNK_BYTES);
        if (got == 0)
            break;
        if (got < 0) {
            if (errno != EINTR)
                status = store_fail(s, errno, "copy the store");
            continue;
        }
        if (write_all(to, chunk, (size_t)got))
            status = go_on(s, p, (size_t)got);
        else
            status = store_fail(s, errno, "write the copy");
        settle(to, &settled, p->done);
    }
    free(chunk);
    return status;
}

static enum store_status copy_through_pipe(struct store *s, int to, struct progress *p)
{
    int ends[2];
    pthread_t thread;
    struct copier c = {.env = s->env};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return store_fail(s, errno, "copy the store");
    c.to = ends[1];
    int rc = pthread_create(&thread, NULL, copier_run, &c);
    if (rc != 0) {
        close(ends[0]);
        close(ends[1]);
        return store_fail(s, rc, "copy the store");
    }
    enum store_status status = pour(s, ends[0], to, p);
    close(ends[0]); /* a copier that still writes ends with EPIPE; LMDB blocks the signal on its threads */
    pthread_join(thread, NULL);
    if (status == STORE_OK && c.rc != 0)
        status = store_fail(s, c.rc, "copy the store");
    return status;
}

struct copying {
    struct store *s;
    struct progress *p;
};

static enum store_status part_copied(void *arg, size_t bytes)
{
    const struct copying *c = arg;
    return go_on(c->s, c->p, bytes);
}

/* And what the store has in parts.dat goes into it. */
static enum store_status copy_whole(struct store *s, const char *path, int to, struct progress *p)
{
    MDB_txn *txn;
    enum store_status status = store_snapshot(s, &txn);
    store_begins(s, "the pages of data.mdb");
    if (status == STORE_OK)
        status = copy_through_pipe(s, to, p);
    store_begins(s, "parts.dat");
    if (status == STORE_OK)
        status = extent_inline(s, txn, path, part_copied, &(struct copying){s, p});
    store_read_end(s);
    return status;
}

/* A copy under another name until it is whole and on the disk. */
static enum store_status copy_to(struct store *s, const char *dir, struct progress *p)
{
    char part[PATH_BYTES], whole[PATH_BYTES];
    snprintf(part, sizeof(part), "%s/data.mdb.part", dir);
    snprintf(whole, sizeof(whole), "%s/data.mdb", dir);
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return why_errno(s, "make the copy", part);
    enum store_status status = copy_whole(s, part, fd, p);
    if (status == STORE_OK && fsync(fd) != 0)
        status = why_errno(s, "sync the copy", part);
    close(fd);
    if (status == STORE_OK && (rename(part, whole) != 0 || store_sync_dir(dir) != 0))
        status = why_errno(s, "put the copy in place", whole);
    if (status != STORE_OK)
        unlink(part);
    return status;
}

static enum store_status progress_of(struct store *s, store_progress_fn *progress, void *arg, struct progress *out)
{
    struct store_room room;
    MDB_stat stat_env;
    MDB_envinfo info;
    MDB_txn *txn;
    uint64_t parts = 0;
    enum store_status status = store_room(s, &room);
    if (status == STORE_OK && room.parts_bytes != 0 && (status = store_snapshot(s, &txn)) == STORE_OK)
        status = extent_bytes(s, txn, &parts);
    store_read_end(s);
    mdb_env_stat(s->env, &stat_env);
    mdb_env_info(s->env, &info);
    *out = (struct progress){
        .fn = progress, .arg = arg, .total = room.used_bytes + parts, .page_bytes = stat_env.ms_psize, .last_page = info.me_last_pgno};
    return status;
}

enum store_status store_backup(struct store *s, const char *dir, store_progress_fn *progress, void *arg)
{
    struct stat st;
    struct progress p;
    if (strlen(dir) >= 4096 || stat(dir, &st) != 0 || !S_ISDIR(st.st_mode) || !dir_is_empty(dir)) {
        snprintf(s->why, sizeof(s->why), "%.900s is not an empty directory: make one for each backup", dir);
        return STORE_INVALID;
    }
    enum store_status status = progress_of(s, progress, arg, &p);
    return status == STORE_OK ? copy_to(s, dir, &p) : status;
}

/* ---- restore ---- */

/* LMDB holds a lock on the first byte of lock.mdb for as long as a process has the environment open. */
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
    char tmp[PATH_BYTES]; /* a directory below ${to} where the copy is checked */
    store_progress_fn *progress;
    void *arg;
    char *why;
    size_t why_size;
    uint64_t problems;
};

static enum store_status refuse(struct restore *r, enum store_status status, const char *what, const char *path)
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
        good = got >= 0 && write_all(out, chunk, (size_t)got);
    }
    good = good && fsync(out) == 0;
    enum store_status status = good ? STORE_OK : refuse(r, errno == ENOSPC ? STORE_FULL : STORE_IO, strerror(errno), in < 0 ? from : to);
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
        snprintf(r->why, r->why_size, "the backup %s is damaged: %s; restore another backup", r->from, sentence);
}

/*
 * What r->why says is about the copy below ${to}, which the reader has not heard of, and advises to restore a backup: say it of the backup.
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
        end[-2] = '\0'; /* with the ": " or "; " before it */
    if (status == STORE_CORRUPT)
        snprintf(r->why, r->why_size, "the backup %s is damaged: %s; restore another backup", r->from, what);
    else if (prefixed)
        snprintf(r->why, r->why_size, "the backup %s: %s", r->from, what);
}

static bool pass_progress(void *arg, uint64_t done, uint64_t total)
{
    struct restore *r = arg;
    return r->progress == NULL || r->progress(r->arg, done, total);
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
    status = store_check(s, pass_progress, first_problem, r, NULL);
    if (status != STORE_OK && r->problems == 0) {
        snprintf(r->why, r->why_size, "%s", store_why(s));
        name_the_backup(r, status);
    }
    store_close(s);
    return status;
}

/* Answer files of the store that was there are not of this one. */
static enum store_status renew_id(struct restore *r)
{
    int rc = format_renew_id(r->tmp);
    return rc == 0 ? STORE_OK : refuse(r, STORE_IO, mdb_strerror(rc), r->tmp);
}

/* ${name} of the directory that is restored to gets a second name, if it is there. */
static enum store_status keep_before(struct restore *r, const char *name)
{
    char there[PATH_BYTES], before[PATH_BYTES];
    snprintf(there, sizeof(there), "%s/%s", r->to, name);
    snprintf(before, sizeof(before), "%s/%s.before-restore", r->to, name);
    unlink(before);
    return link(there, before) == 0 || errno == ENOENT ? STORE_OK : refuse(r, STORE_IO, strerror(errno), before);
}

/* What was there gets a second name first, so at every moment data.mdb is one of the two. A backup has its parts in data.mdb. */
static enum store_status put_in_place(struct restore *r)
{
    char made[PATH_BYTES * 2], there[PATH_BYTES], parts[PATH_BYTES], lock[PATH_BYTES];
    snprintf(made, sizeof(made), "%s/data.mdb", r->tmp);
    snprintf(there, sizeof(there), "%s/data.mdb", r->to);
    snprintf(parts, sizeof(parts), "%s/parts.dat", r->to);
    snprintf(lock, sizeof(lock), "%s/lock.mdb", r->to);
    enum store_status status = keep_before(r, "data.mdb");
    if (status == STORE_OK)
        status = keep_before(r, "parts.dat");
    if (status != STORE_OK)
        return status;
    if (rename(made, there) != 0 || store_sync_dir(r->to) != 0)
        return refuse(r, STORE_IO, strerror(errno), there);
    unlink(parts);
    unlink(lock);
    return STORE_OK;
}

static void remove_tmp(const struct restore *r)
{
    static const char *const names[] = {"data.mdb", "lock.mdb"};
    char path[PATH_BYTES * 2];
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", r->tmp, names[i]);
        unlink(path);
    }
    rmdir(r->tmp);
}

void store_restore_clear(const char *to)
{
    struct restore r = {.to = to};
    if ((size_t)snprintf(r.tmp, sizeof(r.tmp), "%s/restore.part", to) < sizeof(r.tmp))
        remove_tmp(&r);
}

enum store_status store_restore(const char *from, const char *to, store_progress_fn *progress, void *arg, char *why, size_t why_size)
{
    struct restore r = {.from = from, .to = to, .progress = progress, .arg = arg, .why = why, .why_size = why_size};
    char source[PATH_BYTES], copy[PATH_BYTES * 2];
    struct stat st;
    if (strlen(from) >= 4096 || strlen(to) >= 4096)
        return refuse(&r, STORE_INVALID, "the name is too long", from);
    if (stat(to, &st) != 0 || !S_ISDIR(st.st_mode))
        return refuse(&r, STORE_NOT_FOUND, "is not a directory: create the data directory first (mode 0700)", to);
    snprintf(source, sizeof(source), "%s/data.mdb", from);
    if (stat(source, &st) != 0 || st.st_size == 0)
        return refuse(&r, STORE_NOT_FOUND, "there is no backup: name the directory that assay backup wrote", source);
    if (in_use(to))
        return refuse(&r, STORE_BUSY, "the store is in use: stop assayd first", to);
    snprintf(r.tmp, sizeof(r.tmp), "%s/restore.part", to);
    if (rmdir(r.tmp) != 0 && errno == ENOTEMPTY) /* of one that was killed */
        remove_tmp(&r);
    if (mkdir(r.tmp, 0700) != 0)
        return refuse(&r, STORE_IO, strerror(errno), r.tmp);
    snprintf(copy, sizeof(copy), "%s/data.mdb", r.tmp);
    enum store_status status = copy_file(&r, source, copy);
    if (status == STORE_OK)
        status = check_copy(&r);
    if (status == STORE_OK)
        status = renew_id(&r);
    if (status == STORE_OK)
        status = put_in_place(&r);
    remove_tmp(&r);
    return status;
}
