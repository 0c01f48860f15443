/*
 * What was answered, how quickly, and what the writer and the auditors did: counters in a file of run_dir that the master makes before it forks. They live as
 * long as the server: over reloads and deaths of workers. Each worker adds to rows of its own, so that no two of them wait for one cache line; every counter
 * is one atomic word, so that a process killed at any instruction leaves nothing half-written, and a reader sums the rows.
 *
 * Times are microseconds. Routes are told apart by their place in the route table; what met no route counts under routes_count.
 */
#ifndef ASSAY_TRAFFIC_H
#define ASSAY_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct traffic;

/* traffic_create(path): make the file anew and map it; NULL with errno. traffic_open(path): map one that is there, read-only; EPROTO: of another version. */
struct traffic *traffic_create(const char *path);
const struct traffic *traffic_open(const char *path);
void traffic_close(const struct traffic *t);

/* ---- who counts ---- */

/* traffic_answered(t, worker, route, status, took): a request was answered. ${took} TRAFFIC_UNTIMED: a stream, whose length says nothing of us. */
#define TRAFFIC_UNTIMED UINT64_MAX
void traffic_answered(struct traffic *t, unsigned worker, size_t route, int status, uint64_t took);

/* traffic_committed(t, changes, took): the writer's transaction of so many changes is durable. traffic_graded(t, done, took): a page ended, graded or failed. */
void traffic_committed(struct traffic *t, uint64_t changes, uint64_t took);
void traffic_graded(struct traffic *t, bool done, uint64_t took);

/* ---- who reads ---- */

/* times in buckets: how many took at most traffic_bounds[i], the last bucket being without a bound; not cumulative */
#define TRAFFIC_BOUNDS 16
extern const uint64_t traffic_bounds[TRAFFIC_BOUNDS];
struct traffic_times {
    uint64_t count[TRAFFIC_BOUNDS + 1], sum;
};

/* traffic_status(i): the i-th status that is told apart; 0: all others together; -1 past the end. traffic_answers(t, route, i): answers with it, of all workers. */
#define TRAFFIC_STATUSES 24
int traffic_status(size_t i);
uint64_t traffic_answers(const struct traffic *t, size_t route, size_t i);
struct traffic_times traffic_route_times(const struct traffic *t, size_t route);

/* traffic_worker(t, worker): what it answered over all routes, by status, and how quickly. Workers TRAFFIC_WORKERS apart share their counters. */
#define TRAFFIC_WORKERS 32
struct traffic_answered {
    uint64_t by_status[TRAFFIC_STATUSES];
    struct traffic_times times;
};
struct traffic_answered traffic_worker(const struct traffic *t, unsigned worker);
struct traffic_answered traffic_route(const struct traffic *t, size_t route);

struct traffic_work {
    uint64_t changes, done, failed;
    struct traffic_times commits, pages;
};
struct traffic_work traffic_work(const struct traffic *t);

#endif
