/*
 * What was answered, how quickly, and what the writer and the auditors did: counters in a file of run_dir that the master makes before it forks. They live as
 * long as the server: over reloads and deaths of workers. Each worker adds to rows of its own, so that no two of them wait for one cache line; every counter
 * is one atomic word, so that a process killed at any instruction leaves nothing half-written, and a reader sums the rows.
 *
 * Times are microseconds. Routes are told apart by their place in the route table; what met no route counts under routes_count.
 */
#ifndef ASSAY_SHM_REQUEST_STATS_H
#define ASSAY_SHM_REQUEST_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request_stats;

/* request_stats_create(path): make the file anew and map it; NULL with errno. request_stats_open(path): map one that is there, read-only; EPROTO: of another version. */
struct request_stats *request_stats_create(const char *path);
const struct request_stats *request_stats_open(const char *path);
void request_stats_close(const struct request_stats *t);

/* ---- who counts ---- */

/* request_stats_answered(t, worker, route, status, took): a request was answered. ${took} REQUEST_STATS_UNTIMED: a stream, whose length says nothing of us. */
#define REQUEST_STATS_UNTIMED UINT64_MAX
void request_stats_answered(struct request_stats *t, unsigned worker, size_t route, int status, uint64_t took);

/* request_stats_committed(t, changes, took): the writer's transaction of so many changes is durable. request_stats_graded(t, done, took): a page ended, graded or failed. */
void request_stats_committed(struct request_stats *t, uint64_t changes, uint64_t took);
void request_stats_graded(struct request_stats *t, bool done, uint64_t took);

/* ---- who reads ---- */

/* times in buckets: how many took at most request_stats_bounds[i], the last bucket being without a bound; not cumulative */
#define REQUEST_STATS_BOUNDS 16
extern const uint64_t request_stats_bounds[REQUEST_STATS_BOUNDS];
struct request_stats_times {
    uint64_t count[REQUEST_STATS_BOUNDS + 1], sum;
};

/* request_stats_status(i): the i-th status that is told apart; 0: all others together; -1 past the end. request_stats_answers(t, route, i): answers with it, of all workers. */
#define REQUEST_STATS_STATUSES 24
int request_stats_status(size_t i);
uint64_t request_stats_answers(const struct request_stats *t, size_t route, size_t i);
struct request_stats_times request_stats_route_times(const struct request_stats *t, size_t route);

/* request_stats_worker(t, worker): what it answered over all routes, by status, and how quickly. Workers REQUEST_STATS_WORKERS apart share their counters. */
#define REQUEST_STATS_WORKERS 32
struct request_stats_answered {
    uint64_t by_status[REQUEST_STATS_STATUSES];
    struct request_stats_times times;
};
struct request_stats_answered request_stats_worker(const struct request_stats *t, unsigned worker);
struct request_stats_answered request_stats_route(const struct request_stats *t, size_t route);

struct request_stats_work {
    uint64_t changes, done, failed;
    struct request_stats_times commits, pages;
};
struct request_stats_work request_stats_work(const struct request_stats *t);

#endif
