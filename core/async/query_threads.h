/*
 * Query threads of a worker: lists, searches and visitors' questions, whose cost grows with the
 * data, run here and not on the event loop. Each thread has a struct store of its own. The last of
 * several threads takes no searches, so slow searches delay only other searches. Workspaces take
 * turns, one query each.
 *
 * A query owns copies of all that its thread reads. Its thread touches neither h2o, the request,
 * the caches nor the limiter.
 */
#ifndef ASSAY_ASYNC_QUERY_THREADS_H
#define ASSAY_ASYNC_QUERY_THREADS_H

#include "core/async/thread_jobs.h"

#include <stdatomic.h>

#define QUERIES_QUEUED_MAX 4096        /* per worker; more are refused */
#define QUERIES_PER_WORKSPACE_MAX 1024 /* of them */
#define QUERY_WAIT_MS 30000            /* in the queue; then the query is refused */
#define QUERY_RUN_MS 30000             /* then the query is stopped */

struct query {
    struct thread_job job; /* for query_threads.c */
    uint64_t workspace;
    bool search; /* its cost has no small bound */
    /*
     * In a thread, in one snapshot of ${s}. False: it stopped early. Unless query_must_stop is true
     * it is called again, in another snapshot, and starts over.
     */
    bool (*run)(struct query *q, struct store *s);
    /*
     * On the loop, exactly once; it frees the query. ${w} NULL: the request is gone or refused, or
     * the worker ends.
     */
    void (*over)(struct query *q, struct waiter *w);
    bool done; /* ${run} returned true; false: it was stopped for good */
    /* for query_threads.c */
    uint64_t until_ms;   /* CLOCK_MONOTONIC: deadline in the queue, then of the run */
    atomic_bool stopped; /* the request is gone */
};

/* query_must_stop(q): a store_stop_fn: true when the request is gone or the deadline has passed. */
store_stop_fn query_must_stop;

struct queries;

/*
 * queries_new(loop): start conf->query_threads threads; with 0, queries run on the loop. NULL: it
 * failed, and the log says why.
 * queries_free(q): stop running queries and join the threads; all queries have ended.
 */
struct queries *queries_new(struct loop *loop);
void queries_free(struct queries *q);

/*
 * queries_tick(q): stop the queries of clients that hung up; once a turn of the loop.
 * queries_stuck(q): the last tick found a query that runs on after its deadline. The worker then
 * sends no heartbeat, and the master replaces it.
 */
void queries_tick(struct queries *q);
bool queries_stuck(const struct queries *q);

/*
 * queries_send(all, q, w): queue ${q} for ${w}. False: the queue is full, and ${q}->over was called
 * with NULL.
 */
bool queries_send(struct queries *all, struct query *q, struct waiter *w);

#endif
