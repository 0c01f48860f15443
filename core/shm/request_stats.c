#include "core/shm/request_stats.h"

#include "core/shm/shm_file.h"

#include <errno.h>
#include <stdatomic.h>

#define MAGIC 0x41737466u
#ifndef REQUEST_STATS_VERSION
#define REQUEST_STATS_VERSION 1u
#endif
#define WORKERS REQUEST_STATS_WORKERS /* rows of counters; more workers share them */
#define ROUTES 128                    /* ROUTES_MAX, and one for requests without a route */

static const int statuses[] = {0,   200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 406,
                               408, 409, 412, 413, 415, 417, 422, 429, 431, 500, 503, 507};
#define STATUSES (sizeof(statuses) / sizeof(statuses[0]))
_Static_assert(STATUSES == REQUEST_STATS_STATUSES, "the header's number");

const uint64_t request_stats_bounds[REQUEST_STATS_BOUNDS] = {
    100,   250,    500,    1000,   2500,    5000,    10000,   25000,
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
    /* written by the writer */
    _Atomic uint64_t changes, done, failed;
    struct times commits, pages;
    struct route_row rows[WORKERS][ROUTES];
};

/* ---- the file ---- */

struct request_stats *request_stats_create(const char *path)
{
    struct request_stats *t = shm_file_create(path, sizeof(*t), 0600);
    if (t == NULL)
        return NULL;
    atomic_store(&t->version, REQUEST_STATS_VERSION);
    atomic_store(&t->magic, MAGIC);
    return t;
}

const struct request_stats *request_stats_open(const char *path)
{
    struct request_stats *t = shm_file_open(path, sizeof(*t));
    if (t == NULL ||
        (atomic_load(&t->magic) == MAGIC && atomic_load(&t->version) == REQUEST_STATS_VERSION))
        return t;
    request_stats_close(t);
    errno = EPROTO;
    return NULL;
}

void request_stats_close(const struct request_stats *t)
{
    shm_file_close(t, sizeof(*t));
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

static size_t status_index(int status)
{
    for (size_t i = 1; i < STATUSES; i++)
        if (statuses[i] == status)
            return i;
    return 0;
}

void request_stats_count_request(struct request_stats *t, unsigned worker, size_t route, int status,
                                 uint64_t took)
{
    struct route_row *row = &t->rows[worker % WORKERS][route < ROUTES ? route : ROUTES - 1];
    add(&row->answers[status_index(status)], 1);
    if (took != REQUEST_STATS_UNTIMED)
        add_time(&row->times, took);
}

void request_stats_count_commit(struct request_stats *t, uint64_t changes, uint64_t took)
{
    add(&t->changes, changes);
    add_time(&t->commits, took);
}

void request_stats_count_page(struct request_stats *t, bool done, uint64_t took)
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

struct request_stats_totals request_stats_route(const struct request_stats *t, size_t route)
{
    struct request_stats_totals sum = {.times = request_stats_route_times(t, route)};
    for (size_t i = 0; i < STATUSES; i++)
        sum.by_status[i] = request_stats_answers(t, route, i);
    return sum;
}

struct request_stats_totals request_stats_worker(const struct request_stats *t, unsigned worker)
{
    struct request_stats_totals sum = {.by_status = {0}};
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
    struct request_stats_work work = {
        .changes = get(&t->changes), .done = get(&t->done), .failed = get(&t->failed)};
    sum_times(&work.commits, &t->commits);
    sum_times(&work.pages, &t->pages);
    return work;
}
