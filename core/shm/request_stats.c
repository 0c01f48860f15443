#include "core/shm/request_stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x41737466u
#ifndef REQUEST_STATS_VERSION
#define REQUEST_STATS_VERSION 1u
#endif
#define WORKERS REQUEST_STATS_WORKERS /* rows of counters; workers beyond share them */
#define ROUTES 128 /* ROUTES_MAX and what met none */

static const int statuses[] = {0,   200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 406, 408,
                               409, 412, 413, 415, 417, 422, 429, 431, 500, 503, 507};
#define STATUSES (sizeof(statuses) / sizeof(statuses[0]))
_Static_assert(STATUSES == REQUEST_STATS_STATUSES, "the header's number");

const uint64_t request_stats_bounds[REQUEST_STATS_BOUNDS] = {100,   250,    500,    1000,   2500,    5000,    10000,   25000,
                                                 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000};

struct times {
    _Atomic uint64_t count[REQUEST_STATS_BOUNDS + 1], sum;
};

struct route_row {
    _Atomic uint64_t answers[STATUSES];
    struct times times;
} __attribute__((aligned(64)));

struct request_stats {
    _Atomic uint32_t magic, version;
    /* the writer's alone */
    _Atomic uint64_t changes, done, failed;
    struct times commits, pages;
    struct route_row rows[WORKERS][ROUTES];
};

/* ---- the file ---- */

static struct request_stats *map(int fd, int protection)
{
    void *p = mmap(NULL, sizeof(struct request_stats), protection, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

struct request_stats *request_stats_create(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return NULL;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    /* all its room is taken now: a page that a full file system cannot give later kills whoever counts in it */
    struct request_stats *t = NULL;
    int error = posix_fallocate(fd, 0, sizeof(struct request_stats));
    if (error == 0 && (t = map(fd, PROT_READ | PROT_WRITE)) == NULL)
        error = errno;
    close(fd);
    if (t == NULL) {
        unlink(path);
        errno = error;
        return NULL;
    }
    atomic_store(&t->version, REQUEST_STATS_VERSION);
    atomic_store(&t->magic, MAGIC);
    return t;
}

const struct request_stats *request_stats_open(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    bool whole = fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(struct request_stats);
    struct request_stats *t = whole ? map(fd, PROT_READ) : NULL;
    close(fd);
    if (t != NULL && atomic_load(&t->magic) == MAGIC && atomic_load(&t->version) == REQUEST_STATS_VERSION)
        return t;
    request_stats_close(t);
    errno = EPROTO;
    return NULL;
}

void request_stats_close(const struct request_stats *t)
{
    if (t != NULL)
        munmap((void *)t, sizeof(*t));
}

/* ---- counting ---- */

static void add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void add_time(struct times *times, uint64_t took)
{
    size_t i = 0;
    while (i < REQUEST_STATS_BOUNDS && took > request_stats_bounds[i])
        i++;
    add(&times->count[i], 1);
    add(&times->sum, took);
}

static size_t place_of(int status)
{
    for (size_t i = 1; i < STATUSES; i++)
        if (statuses[i] == status)
            return i;
    return 0;
}

void request_stats_answered(struct request_stats *t, unsigned worker, size_t route, int status, uint64_t took)
{
    struct route_row *row = &t->rows[worker % WORKERS][route < ROUTES ? route : ROUTES - 1];
    add(&row->answers[place_of(status)], 1);
    if (took != REQUEST_STATS_UNTIMED)
        add_time(&row->times, took);
}

void request_stats_committed(struct request_stats *t, uint64_t changes, uint64_t took)
{
    add(&t->changes, changes);
    add_time(&t->commits, took);
}

void request_stats_graded(struct request_stats *t, bool done, uint64_t took)
{
    add(done ? &t->done : &t->failed, 1);
    if (took != REQUEST_STATS_UNTIMED)
        add_time(&t->pages, took);
}

/* ---- reading ---- */

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void sum_times(struct request_stats_times *sum, const struct times *times)
{
    for (size_t i = 0; i <= REQUEST_STATS_BOUNDS; i++)
        sum->count[i] += get(&times->count[i]);
    sum->sum += get(&times->sum);
}

int request_stats_status(size_t i)
{
    return i < STATUSES ? statuses[i] : -1;
}

uint64_t request_stats_answers(const struct request_stats *t, size_t route, size_t i)
{
    uint64_t sum = 0;
    for (size_t w = 0; w < WORKERS; w++)
        sum += get(&t->rows[w][route].answers[i]);
    return sum;
}

struct request_stats_times request_stats_route_times(const struct request_stats *t, size_t route)
{
    struct request_stats_times sum = {.sum = 0};
    for (size_t w = 0; w < WORKERS; w++)
        sum_times(&sum, &t->rows[w][route].times);
    return sum;
}

struct request_stats_answered request_stats_route(const struct request_stats *t, size_t route)
{
    struct request_stats_answered sum = {.times = request_stats_route_times(t, route)};
    for (size_t i = 0; i < STATUSES; i++)
        sum.by_status[i] = request_stats_answers(t, route, i);
    return sum;
}

struct request_stats_answered request_stats_worker(const struct request_stats *t, unsigned worker)
{
    struct request_stats_answered sum = {.by_status = {0}};
    for (size_t route = 0; route < ROUTES; route++) {
        const struct route_row *row = &t->rows[worker % WORKERS][route];
        for (size_t i = 0; i < STATUSES; i++)
            sum.by_status[i] += get(&row->answers[i]);
        sum_times(&sum.times, &row->times);
    }
    return sum;
}

struct request_stats_work request_stats_work(const struct request_stats *t)
{
    struct request_stats_work work = {.changes = get(&t->changes), .done = get(&t->done), .failed = get(&t->failed)};
    sum_times(&work.commits, &t->commits);
    sum_times(&work.pages, &t->pages);
    return work;
}
