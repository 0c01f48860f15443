/*
 * Query threads of a worker: lists and searches, whose cost grows with the data, run here and not
 * on the event loop. Each thread has a struct store of its own. The last of several threads takes
 * no searches, so slow searches delay other searches alone. Workspaces take turns, one query each.
 * Worker processes only.
 *
 * A query owns copies of all that its thread reads. Its thread touches neither h2o, the request,
 * the response cache nor the limiter.
 */
#ifndef ASSAY_ASYNC_QUERY_THREADS_H
#define ASSAY_ASYNC_QUERY_THREADS_H

#include "core/async/thread_jobs.h"

#include <stdatomic.h>

#define QUERIES_WAITING 4096        /* of a worker; more are refused */
#define QUERIES_OF_A_WORKSPACE 1024 /* of them */
#define QUERY_WAIT_MS 30000         /* a query that has not begun after that is refused */
#define QUERY_RUN_MS 30000          /* a query that has not ended after that is stopped */

struct query {
    struct thread_job job; /* query_threads.c's */
    uint64_t workspace;
    bool search; /* its cost has no small bound */
    /*
     * In a thread, in one snapshot of ${s}. False: it was stopped, and unless query_pause says true
     * it is run again from its beginning, in another snapshot.
     */
    bool (*run)(struct query *q, struct store *s);
    /*
     * On the loop, once in any case. ${w} NULL: it is gone or refused, or the worker ends. It frees
     * the query.
     */
    void (*over)(struct query *q, struct waiter *w);
    bool done; /* ${run} came to its end; false: it was stopped for good */
    /* of query_threads.c */
    uint64_t until_ms;   /* CLOCK_MONOTONIC; of the wait, then of the run */
    atomic_bool stopped; /* nobody wants it any more */
};

/*
 * query_pause(q): a store_pause_fn: true when nobody wants the query any more, or its time is over.
 * Then it stops for good.
 */
store_pause_fn query_pause;

struct queries;

/*
 * queries_new(loop): with conf->query_threads threads. With none, queries run on the loop. NULL: it
 * cannot start, and the log says why.
 */
struct queries *queries_new(struct loop *loop);
/* queries_free(q): stop what runs, wait for the threads; all queries are over. */
void queries_free(struct queries *q);

/*
 * queries_tick(q): stop the queries of clients that are gone; once a turn of the loop.
 * queries_stuck(q): did the last tick find a query that runs on although its time is over? Then the
 * worker sends no heartbeat, and the master replaces it.
 */
void queries_tick(struct queries *q);
bool queries_stuck(const struct queries *q);

/*
 * queries_send(all, q, w): ${w} waits for ${q}, and ${q}->over is called. False: too many wait, and
 * ${q}->over was called with NULL.
 */
bool queries_send(struct queries *all, struct query *q, struct waiter *w);

#endif
