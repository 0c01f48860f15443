/* A library for LD_PRELOAD that wraps the C library's file functions: see power_recorder.h. */
#define _GNU_SOURCE
#include "t/kit/power_recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *names[FDS]; /* of open files below the directory, relative to it */
static bool durable[FDS];
static int out = -1;
static const char *dir;
static size_t dir_n;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* ---- the log ---- */

static bool recording(void)
{
    if (dir == NULL) {
        const char *path = getenv("POWER_LOG");
        dir = getenv("POWER_DIR") == NULL ? "" : getenv("POWER_DIR");
        dir_n = strlen(dir);
        if (path != NULL)
            out = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    return out >= 0;
}

/* What happens and its record are one for all threads and processes. */
static void enter(void)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    pthread_mutex_lock(&lock);
    if (recording())
        fcntl(out, F_SETLKW, &whole);
}

static void leave(void)
{
    int error = errno;
    struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    if (out >= 0)
        fcntl(out, F_SETLK, &whole);
    pthread_mutex_unlock(&lock);
    errno = error;
}

static void put(const struct iovec *parts, int count)
{
    size_t all = 0;
    for (int i = 0; i < count; i++)
        all += parts[i].iov_len;
    if (REAL(writev)(out, parts, count) != (ssize_t)all)
        abort();
}

static void note(enum power_kind kind, bool by_itself, const char *a, const char *b, uint64_t at,
                 const struct iovec *bytes, int count, size_t n)
{
    int error = errno;
    struct power_record r = {(uint8_t)kind,
                             by_itself,
                             (uint16_t)strlen(a),
                             (uint16_t)(b == NULL ? 0 : strlen(b)),
                             at,
                             n};
    struct iovec parts[64] = {{&r, sizeof(r)}, {(void *)a, r.a_n}, {(void *)b, r.b_n}};
    int used = 3;
    for (int i = 0; i < count && n > 0; i++) { /* as much as was written */
        size_t take = bytes[i].iov_len < n ? bytes[i].iov_len : n;
        parts[used++] = (struct iovec){bytes[i].iov_base, take};
        n -= take;
        if (used == 64) {
            put(parts, used);
            used = 0;
        }
    }
    if (used != 0)
        put(parts, used);
    errno = error;
}

/* ---- names ---- */

static void absolute(int at, const char *path, char full[PATH_MAX])
{
    char link[64], base[PATH_MAX];
    if (path[0] == '/') {
        snprintf(full, PATH_MAX, "%s", path);
        return;
    }
    ssize_t n = -1;
    if (at == AT_FDCWD) {
        n = getcwd(base, sizeof(base)) == NULL ? -1 : (ssize_t)strlen(base);
    } else {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
        n = readlink(link, base, sizeof(base) - 1);
    }
    snprintf(full, PATH_MAX, "%.*s/%s", n < 0 ? 0 : (int)n, base, path);
}

/* Relative to the directory; NULL: not below it, or nothing that lasts. */
static const char *inside(int at, const char *path, char full[PATH_MAX])
{
    absolute(at, path, full);
    if (!recording() || strncmp(full, dir, dir_n) != 0 ||
        (full[dir_n] != '/' && full[dir_n] != '\0'))
        return NULL;
    const char *name = full + dir_n + (full[dir_n] == '/');
    if (strstr(name, "lock") != NULL || strstr(name, "-shm") != NULL)
        return NULL;
    return name;
}

static const char *name_of(int fd)
{
    return fd >= 0 && fd < FDS ? names[fd] : NULL;
}

/* ---- opening ---- */

static int open_at(int at, const char *path, int flags, mode_t mode)
{
    char full[PATH_MAX];
    struct stat st;
    enter();
    const char *name = inside(at, path, full);
    bool there = name != NULL && fstatat(at, path, &st, 0) == 0;
    int fd = REAL(openat)(at, path, flags, mode);
    if (fd >= 0 && fd < FDS && name != NULL) {
        free(names[fd]);
        names[fd] = strdup(name);
        durable[fd] = (flags & O_DSYNC) != 0;
        if (!there)
            note(POWER_CREATE, false, name, NULL, 0, NULL, 0, 0);
        else if ((flags & O_TRUNC) != 0)
            note(POWER_TRUNCATE, false, name, NULL, 0, NULL, 0, 0);
    }
    leave();
    return fd;
}

static mode_t mode_of(int flags, va_list args)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
}

#define OPENS(name)                                                                                \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = mode_of(flags, args);                                                        \
        va_end(args);                                                                              \
        return open_at(AT_FDCWD, path, flags, mode);                                               \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                                             \
    int name(int at, const char *path, int flags, ...)                                             \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = mode_of(flags, args);                                                        \
        va_end(args);                                                                              \
        return open_at(at, path, flags, mode);                                                     \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

int close(int fd)
{
    if (fd == out && out >= 0)
        return 0;
    enter();
    if (fd >= 0 && fd < FDS) {
        free(names[fd]);
        names[fd] = NULL;
    }
    int rc = REAL(close)(fd);
    leave();
    return rc;
}

/* ---- writing ---- */

static void wrote(int fd, const struct iovec *bytes, int count, off_t at, ssize_t n)
{
    if (n > 0)
        note(POWER_WRITE, durable[fd], names[fd], NULL, (uint64_t)at, bytes, count, (size_t)n);
}

static off_t place_of(int fd)
{
    struct stat st;
    if ((fcntl(fd, F_GETFL) & O_APPEND) != 0 && fstat(fd, &st) == 0)
        return st.st_size;
    return lseek(fd, 0, SEEK_CUR);
}

ssize_t write(int fd, const void *p, size_t n)
{
    if (name_of(fd) == NULL)
        return REAL(write)(fd, p, n);
    enter();
    off_t at = place_of(fd);
    ssize_t done = REAL(write)(fd, p, n);
    wrote(fd, &(struct iovec){(void *)p, n}, 1, at, done);
    leave();
    return done;
}

ssize_t writev(int fd, const struct iovec *v, int count)
{
    if (name_of(fd) == NULL)
        return REAL(writev)(fd, v, count);
    enter();
    off_t at = place_of(fd);
    ssize_t done = REAL(writev)(fd, v, count);
    wrote(fd, v, count, at, done);
    leave();
    return done;
}

#define PWRITES(name)                                                                              \
    ssize_t name(int fd, const void *p, size_t n, off_t at)                                        \
    {                                                                                              \
        if (name_of(fd) == NULL)                                                                   \
            return REAL(name)(fd, p, n, at);                                                       \
        enter();                                                                                   \
        ssize_t done = REAL(name)(fd, p, n, at);                                                   \
        wrote(fd, &(struct iovec){(void *)p, n}, 1, at, done);                                     \
        leave();                                                                                   \
        return done;                                                                               \
    }
PWRITES(pwrite)
PWRITES(pwrite64)

#define PWRITEVS(name)                                                                             \
    ssize_t name(int fd, const struct iovec *v, int count, off_t at)                               \
    {                                                                                              \
        if (name_of(fd) == NULL)                                                                   \
            return REAL(name)(fd, v, count, at);                                                   \
        enter();                                                                                   \
        ssize_t done = REAL(name)(fd, v, count, at);                                               \
        wrote(fd, v, count, at, done);                                                             \
        leave();                                                                                   \
        return done;                                                                               \
    }
PWRITEVS(pwritev)
PWRITEVS(pwritev64)

#define TRUNCATES(name)                                                                            \
    int name(int fd, off_t n)                                                                      \
    {                                                                                              \
        if (name_of(fd) == NULL)                                                                   \
            return REAL(name)(fd, n);                                                              \
        enter();                                                                                   \
        int rc = REAL(name)(fd, n);                                                                \
        if (rc == 0)                                                                               \
            note(POWER_TRUNCATE, false, names[fd], NULL, (uint64_t)n, NULL, 0, 0);                 \
        leave();                                                                                   \
        return rc;                                                                                 \
    }
TRUNCATES(ftruncate)
TRUNCATES(ftruncate64)

/* ---- syncing ---- */

#define SYNCS(name)                                                                                \
    int name(int fd)                                                                               \
    {                                                                                              \
        if (name_of(fd) == NULL)                                                                   \
            return REAL(name)(fd);                                                                 \
        enter();                                                                                   \
        int rc = REAL(name)(fd);                                                                   \
        if (rc == 0)                                                                               \
            note(POWER_SYNC, true, names[fd], NULL, 0, NULL, 0, 0);                                \
        leave();                                                                                   \
        return rc;                                                                                 \
    }
SYNCS(fsync)
SYNCS(fdatasync)

/* ---- directories ---- */

static void renamed(const char *a, const char *b)
{
    for (int fd = 0; fd < FDS; fd++)
        if (names[fd] != NULL && strcmp(names[fd], a) == 0) {
            free(names[fd]);
            names[fd] = strdup(b);
        }
}

int rename(const char *from, const char *to)
{
    char a[PATH_MAX], b[PATH_MAX];
    enter();
    const char *old = inside(AT_FDCWD, from, a), *new = inside(AT_FDCWD, to, b);
    int rc = REAL(rename)(from, to);
    if (rc == 0 && old != NULL && new != NULL) {
        note(POWER_RENAME, false, old, new, 0, NULL, 0, 0);
        renamed(old, new);
    }
    leave();
    return rc;
}

int link(const char *from, const char *to)
{
    char a[PATH_MAX], b[PATH_MAX];
    enter();
    const char *old = inside(AT_FDCWD, from, a), *new = inside(AT_FDCWD, to, b);
    int rc = REAL(link)(from, to);
    if (rc == 0 && old != NULL && new != NULL)
        note(POWER_LINK, false, old, new, 0, NULL, 0, 0);
    leave();
    return rc;
}

static void removed(int rc, const char *name)
{
    if (rc == 0 && name != NULL)
        note(POWER_UNLINK, false, name, NULL, 0, NULL, 0, 0);
}

int unlink(const char *path)
{
    char full[PATH_MAX];
    enter();
    const char *name = inside(AT_FDCWD, path, full);
    int rc = REAL(unlink)(path);
    removed(rc, name);
    leave();
    return rc;
}

int unlinkat(int at, const char *path, int flags)
{
    char full[PATH_MAX];
    enter();
    const char *name = inside(at, path, full);
    int rc = REAL(unlinkat)(at, path, flags);
    removed(rc, name);
    leave();
    return rc;
}

int rmdir(const char *path)
{
    char full[PATH_MAX];
    enter();
    const char *name = inside(AT_FDCWD, path, full);
    int rc = REAL(rmdir)(path);
    removed(rc, name);
    leave();
    return rc;
}

int mkdir(const char *path, mode_t mode)
{
    char full[PATH_MAX];
    enter();
    const char *name = inside(AT_FDCWD, path, full);
    int rc = REAL(mkdir)(path, mode);
    if (rc == 0 && name != NULL)
        note(POWER_MKDIR, false, name, NULL, 0, NULL, 0, 0);
    leave();
    return rc;
}
