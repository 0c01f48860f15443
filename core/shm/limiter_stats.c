#include "core/shm/limiter_stats.h"

#include "ratelimit/ratelimit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x41736c6du
#ifndef LIMITERS_BOARD_VERSION
#define LIMITERS_BOARD_VERSION 1u
#endif
_Static_assert(LIMITERS_COUNTERS <= RATELIMIT_TAGS, "the table tells every counter's limiter apart");

#define WORKERS 64 /* rows of counters; workers beyond share them */

struct counters {
    _Atomic uint64_t of[LIMITER_COUNTS];
};

struct logged {
    _Atomic uint64_t interval; /* number of the interval, and in the low 16 bits its lines */
    _Atomic uint64_t left_out;
};

struct limiter_stats {
    _Atomic uint32_t magic, format;
    _Atomic uint64_t version; /* odd while ${limits} is being written */
    struct limiters limits;
    char names[LIMITERS_COUNTERS][LIMITER_NAME_MAX + 1];
    struct logged logged[LIMITERS_COUNTERS];
    struct counters counters[WORKERS][LIMITERS_COUNTERS] __attribute__((aligned(64)));
};

/* ---- the file ---- */

static struct limiter_stats *map(int fd, int protection)
{
    void *p = mmap(NULL, sizeof(struct limiter_stats), protection, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

struct limiter_stats *limiter_stats_create(const char *path, const struct limiters *limits)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return NULL;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    /* all its room is taken now: a page that a full file system cannot give later kills whoever counts in it */
    struct limiter_stats *board = NULL;
    int error = posix_fallocate(fd, 0, sizeof(struct limiter_stats));
    if (error == 0 && (board = map(fd, PROT_READ | PROT_WRITE)) == NULL)
        error = errno;
    close(fd);
    if (board == NULL) {
        unlink(path);
        errno = error;
        return NULL;
    }
    atomic_store(&board->format, LIMITERS_BOARD_VERSION);
    limiter_stats_publish(board, limits);
    atomic_store(&board->magic, MAGIC);
    return board;
}

const struct limiter_stats *limiter_stats_open(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    bool whole = fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(struct limiter_stats);
    struct limiter_stats *board = whole ? map(fd, PROT_READ) : NULL;
    close(fd);
    if (board != NULL && atomic_load(&board->magic) == MAGIC && atomic_load(&board->format) == LIMITERS_BOARD_VERSION)
        return board;
    limiter_stats_close(board);
    errno = EPROTO;
    return NULL;
}

void limiter_stats_close(const struct limiter_stats *board)
{
    if (board != NULL)
        munmap((void *)(uintptr_t)board, sizeof(*board));
}

/* ---- the limits ---- */

int limiter_stats_counter(const struct limiter_stats *board, const char *name)
{
    for (int i = 0; i < LIMITERS_COUNTERS; i++)
        if (strcmp(board->names[i], name) == 0)
            return i;
    return -1;
}

/* a counter whose name is none of those in force any more, from 0 again */
static unsigned reuse_counter(struct limiter_stats *board, const struct limiters *limits)
{
    unsigned i = 0;
    while (board->names[i][0] != '\0' && limiters_find(limits, board->names[i]) != LIMITER_NONE)
        i++;
    for (unsigned w = 0; w < WORKERS; w++)
        for (unsigned k = 0; k < LIMITER_COUNTS; k++)
            atomic_store(&board->counters[w][i].of[k], 0);
    return i;
}

static unsigned counter_for(struct limiter_stats *board, const struct limiters *limits, const char *name)
{
    int there = limiter_stats_counter(board, name);
    if (there < 0)
        there = limiter_stats_counter(board, ""); /* one that is free */
    if (there < 0)
        there = (int)reuse_counter(board, limits);
    snprintf(board->names[there], sizeof(board->names[there]), "%s", name);
    return (unsigned)there;
}

void limiter_stats_publish(struct limiter_stats *board, const struct limiters *limits)
{
    uint64_t version = atomic_load(&board->version);
    atomic_store(&board->version, version + 1);
    atomic_thread_fence(memory_order_release);
    memcpy(&board->limits, limits, sizeof(*limits));
    for (unsigned i = 1; i < limits->count; i++)
        board->limits.rows[i].counter = counter_for(board, limits, limits->rows[i].name);
    atomic_store_explicit(&board->version, version + 2, memory_order_release);
}

uint64_t limiter_stats_version(const struct limiter_stats *board)
{
    return atomic_load_explicit(&board->version, memory_order_acquire);
}

bool limiter_stats_read(const struct limiter_stats *board, struct limiters *out, uint64_t *version)
{
    for (int look = 0; look < 2; look++) {
        uint64_t before = limiter_stats_version(board);
        if (before % 2 != 0)
            continue;
        memcpy(out, &board->limits, sizeof(*out));
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&board->version, memory_order_relaxed) == before) {
            *version = before;
            return true;
        }
    }
    return false;
}

/* ---- counting ---- */

void limiter_stats_count(struct limiter_stats *board, unsigned worker, unsigned counter, enum limiter_count what)
{
    atomic_fetch_add_explicit(&board->counters[worker % WORKERS][counter].of[what], 1, memory_order_relaxed);
}

uint64_t limiter_stats_total(const struct limiter_stats *board, unsigned counter, enum limiter_count what)
{
    uint64_t total = 0;
    for (unsigned w = 0; w < WORKERS; w++)
        total += atomic_load_explicit(&board->counters[w][counter].of[what], memory_order_relaxed);
    return total;
}

bool limiter_stats_may_log(struct limiter_stats *board, unsigned counter, int64_t now)
{
    struct logged *logged = &board->logged[counter];
    uint64_t interval = (uint64_t)(now / LIMITER_LOG_SECONDS) << 16, seen = atomic_load_explicit(&logged->interval, memory_order_relaxed);
    for (;;) {
        uint64_t next = seen >> 16 == interval >> 16 ? seen + 1 : interval + 1;
        if ((next & 0xffff) > LIMITER_LOG_LINES)
            break;
        if (atomic_compare_exchange_weak_explicit(&logged->interval, &seen, next, memory_order_relaxed, memory_order_relaxed))
            return true;
    }
    atomic_fetch_add_explicit(&logged->left_out, 1, memory_order_relaxed);
    return false;
}

uint64_t limiter_stats_left_out(struct limiter_stats *board, unsigned counter, int64_t now)
{
    struct logged *logged = &board->logged[counter];
    uint64_t interval = (uint64_t)(now / LIMITER_LOG_SECONDS);
    if (atomic_load_explicit(&logged->left_out, memory_order_relaxed) == 0 ||
        atomic_load_explicit(&logged->interval, memory_order_relaxed) >> 16 == interval)
        return 0;
    return atomic_exchange_explicit(&logged->left_out, 0, memory_order_relaxed);
}
