/*
 * Request statistics: how many requests were answered with which status and how quickly, and what
 * the writer and the auditors did. Counters in a file of run_dir that the master makes before it
 * forks; they live as long as the server. Each worker has rows of its own, so that no two wait for
 * one cache line; a reader sums them. Every counter is one atomic word, so a killed process leaves
 * nothing half-written.
 *
 * Times are microseconds. A route is counted by its index in the route table; requests without a
 * route count under routes_count.
 */
#ifndef ASSAY_SHM_REQUEST_STATS_H
#define ASSAY_SHM_REQUEST_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request_stats;

/*
 * request_stats_create(path): the master's: a new file, mapped; NULL with errno.
 * request_stats_open(path): map it read-only; NULL with errno, EPROTO: another version.
 */
struct request_stats *request_stats_create(const char *path);
const struct request_stats *request_stats_open(const char *path);
void request_stats_close(const struct request_stats *t);

/* ---- counting ---- */

/* a time that is not counted: of a stream, which lasts as long as its client wants */
#define REQUEST_STATS_UNTIMED UINT64_MAX

/* request_stats_count_request(t, worker, route, status, took): a request was answered. */
void request_stats_count_request(struct request_stats *t, unsigned worker, size_t route, int status,
                                 uint64_t took);

/*
 * request_stats_count_commit(t, changes, took): the writer committed so many changes.
 * request_stats_count_page(t, done, took): the grading of a page ended, or failed.
 */
void request_stats_count_commit(struct request_stats *t, uint64_t changes, uint64_t took);
void request_stats_count_page(struct request_stats *t, bool done, uint64_t took);

/* ---- reading ---- */

/* count[i]: took at most request_stats_bounds[i] and more than the bound before; the last: more */
#define REQUEST_STATS_BOUNDS 16
extern const uint64_t request_stats_bounds[REQUEST_STATS_BOUNDS];
struct request_stats_times {
    uint64_t count[REQUEST_STATS_BOUNDS + 1], sum;
};

/*
 * request_stats_status(i): the i-th status that has a counter; 0: all others; -1: past the end.
 * request_stats_answers(t, route, i): answers with it, of all workers.
 */
#define REQUEST_STATS_STATUSES 24
int request_stats_status(size_t i);
uint64_t request_stats_answers(const struct request_stats *t, size_t route, size_t i);
struct request_stats_times request_stats_route_times(const struct request_stats *t, size_t route);

/* workers whose indexes differ by a multiple of this share their counters */
#define REQUEST_STATS_WORKERS 32
struct request_stats_totals {
    uint64_t by_status[REQUEST_STATS_STATUSES];
    struct request_stats_times times;
};

/* request_stats_worker(t, worker): of all routes. request_stats_route(t, route): of all workers. */
struct request_stats_totals request_stats_worker(const struct request_stats *t, unsigned worker);
struct request_stats_totals request_stats_route(const struct request_stats *t, size_t route);

struct request_stats_work {
    uint64_t changes, done, failed;
    struct request_stats_times commits, pages;
};
struct request_stats_work request_stats_work(const struct request_stats *t);

#endif
