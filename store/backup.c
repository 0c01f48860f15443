#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/engine/files.h"
#include "store/engine/free_space.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
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

static enum store_status why_busy(struct store *s, const char *dir)
{
    enum store_status status = store_fail(s, EBUSY, "make the copy");
    snprintf(s->why, sizeof(s->why),
             "another backup writes to %s: wait until it ends, or name another directory", dir);
    return status;
}

#define PART "data.mdb.part" /* the copy until it is complete; left by a killed backup */

/* But for what a killed backup left. */
static bool dir_is_empty(const char *dir)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return false;
    struct dirent *e;
    bool empty = true;
    while (empty && (e = readdir(d)) != NULL)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
                strcmp(e->d_name, PART) == 0;
    closedir(d);
    return empty;
}

/*
 * A backup holds a lock of its file until it has renamed it, so the lock of one that has still its
 * name is free only if its backup was killed.
 */
static bool is_ours(int fd, const char *part)
{
    struct stat file, named;
    bool ours = flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &file) == 0 &&
                lstat(part, &named) == 0 && file.st_ino == named.st_ino &&
                file.st_dev == named.st_dev && S_ISREG(file.st_mode) && file.st_nlink == 1;
    if (!ours)
        errno = EBUSY;
    return ours && ftruncate(fd, 0) == 0;
}

static int open_part(const char *part)
{
    int fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0 || is_ours(fd, part))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* LMDB writes its copy into a pipe on a thread; this side counts its pieces and passes them on. */

struct copier {
    struct shared_env *shared;
    int to, rc;
};

static void *copier_run(void *arg)
{
    struct copier *c = arg;
    pthread_rwlock_rdlock(&c->shared->map);
    c->rc = mdb_env_copyfd2(c->shared->env, c->to, MDB_CP_COMPACT);
    pthread_rwlock_unlock(&c->shared->map);
    close(c->to);
    return NULL;
}

struct progress {
    store_progress_fn *fn; /* may be NULL */
    void *arg;
    store_copy_fn *put;
    void *put_arg;
    uint64_t done, total, page_bytes;
    uint64_t pages_min; /* free pages that the writer keeps */
};

static bool report_progress(struct progress *p, size_t more)
{
    p->done += more;
    uint64_t total = p->total > p->done ? p->total : p->done;
    return p->fn == NULL || p->fn(p->arg, p->done / p->page_bytes, total / p->page_bytes);
}

static bool in_the_way(struct store *s, const struct progress *p)
{
    uint64_t reserve;
    return store_pages_left(s, &reserve) < p->pages_min;
}

/*
 * Write out and drop the page cache as the copy grows. Otherwise it displaces cached pages of
 * readers, and a commit of the writer waits for all of it.
 */
static void settle(int to, uint64_t *from, uint64_t end)
{
    if (end - *from < SETTLE_BYTES)
        return;
    sync_file_range(to, (off_t)*from, (off_t)(end - *from),
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                        SYNC_FILE_RANGE_WAIT_AFTER);
    posix_fadvise(to, (off_t)*from, (off_t)(end - *from), POSIX_FADV_DONTNEED);
    *from = end;
}

/* A damaged tree can make the copy endless: it cannot be longer than the file. */
static bool is_endless(struct store *s, const struct progress *p)
{
    MDB_envinfo info;
    mdb_env_info(s->env, &info);
    return p->done > (info.me_last_pgno + 1) * p->page_bytes + p->total;
}

/* After each piece of the copy. */
static enum store_status go_on(struct store *s, struct progress *p, size_t more)
{
    if (!report_progress(p, more)) {
        snprintf(s->why, sizeof(s->why), "the copy was stopped");
        return STORE_IO;
    }
    if (is_endless(s, p)) {
        snprintf(s->why, sizeof(s->why),
                 "the copy is larger than the store, so pages of it are damaged");
        return STORE_CORRUPT;
    }
    if (!in_the_way(s, p))
        return STORE_OK;
    snprintf(s->why, sizeof(s->why),
             "the backup was cancelled: it kept pages in use that the writer needs; raise "
             "store.map_size");
    return STORE_FULL;
}

/* A thread of this process waits to change the size of the map, which the copy uses. */
static bool holds_up(const struct store *s)
{
    return atomic_load_explicit(&s->shared->waiting, memory_order_relaxed) != 0;
}

static enum store_status pass_on(struct store *s, struct progress *p, const char *piece, size_t n)
{
    int rc = holds_up(s) ? EBUSY : p->put(p->put_arg, piece, n);
    return rc == 0 ? go_on(s, p, n) : store_fail(s, rc, "write the copy");
}

/* Copy ${from} to its end. */
static enum store_status copy_all(struct store *s, int from, struct progress *p)
{
    enum store_status status = STORE_OK;
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
        status = pass_on(s, p, chunk, (size_t)got);
    }
    free(chunk);
    return status;
}

static enum store_status copy_through_pipe(struct store *s, struct progress *p)
{
    int ends[2];
    pthread_t thread;
    struct copier c = {.shared = s->shared};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return store_fail(s, errno, "copy the store");
    c.to = ends[1];
    int rc = pthread_create(&thread, NULL, copier_run, &c);
    if (rc != 0) {
        close(ends[0]);
        close(ends[1]);
        return store_fail(s, rc, "copy the store");
    }
    enum store_status status = copy_all(s, ends[0], p);
    close(
        ends[0]); /* a copier that still writes gets EPIPE; LMDB blocks the signal on its threads */
    pthread_join(thread, NULL);
    if (status == STORE_OK && c.rc != 0)
        status = store_fail(s, c.rc, "copy the store");
    return status;
}

struct copy_file {
    int fd;
    uint64_t size, settled;
};

static int write_piece(void *arg, const void *piece, size_t n)
{
    struct copy_file *f = arg;
    if (!store_write_all(f->fd, piece, n))
        return errno;
    f->size += n;
    settle(f->fd, &f->settled, f->size);
    return 0;
}

/* Copy under a temporary name until it is complete and synced. */
static enum store_status copy_to(struct store *s, const char *dir, struct progress *p)
{
    char part[PATH_BYTES], whole[PATH_BYTES];
    snprintf(part, sizeof(part), "%s/" PART, dir);
    snprintf(whole, sizeof(whole), "%s/data.mdb", dir);
    int fd = open_part(part);
    if (fd < 0 && errno == EBUSY)
        return why_busy(s, dir);
    if (fd < 0)
        return why_errno(s, "make the copy", part);
    struct copy_file f = {.fd = fd};
    p->put = write_piece;
    p->put_arg = &f;
    store_stage_begins(s, "the pages of data.mdb");
    enum store_status status = copy_through_pipe(s, p);
    p->put_arg = NULL;
    if (status == STORE_OK && fsync(fd) != 0)
        status = why_errno(s, "sync the copy", part);
    if (status == STORE_OK && (rename(part, whole) != 0 || store_sync_dir(dir) != 0))
        status = why_errno(s, "put the copy in place", whole);
    if (status != STORE_OK)
        unlink(part);
    close(fd);
    return status;
}

static enum store_status progress_of(struct store *s, store_progress_fn *progress, void *arg,
                                     struct progress *out)
{
    struct store_space space;
    MDB_stat stat_env;
    enum store_status status = store_space(s, &space);
    store_read_end(s);
    mdb_env_stat(s->env, &stat_env);
    *out = (struct progress){.fn = progress,
                             .arg = arg,
                             .total = space.used_bytes,
                             .page_bytes = stat_env.ms_psize,
                             .pages_min = store_pages_to_leave(s)};
    return status;
}

enum store_status store_backup(struct store *s, const char *dir, store_progress_fn *progress,
                               void *arg)
{
    struct stat st;
    struct progress p;
    if (strlen(dir) >= 4096 || stat(dir, &st) != 0 || !S_ISDIR(st.st_mode) || !dir_is_empty(dir)) {
        snprintf(s->why, sizeof(s->why),
                 "%.900s is not an empty directory: make one for each backup", dir);
        return STORE_INVALID;
    }
    enum store_status status = progress_of(s, progress, arg, &p);
    return status == STORE_OK ? copy_to(s, dir, &p) : status;
}

enum store_status store_copy(struct store *s, store_copy_fn *put, void *arg)
{
    struct progress p;
    enum store_status status = progress_of(s, NULL, NULL, &p);
    p.put = put;
    p.put_arg = arg;
    return status == STORE_OK ? copy_through_pipe(s, &p) : status;
}
