/*
 * Work off the event loop: a thread that does jobs, and hands each back to the loop. A job that has
 * more to do goes behind the others. Worker processes only.
 */
#ifndef ASSAY_ASYNC_THREAD_POOL_H
#define ASSAY_ASYNC_THREAD_POOL_H

#include "core/async/thread_jobs.h"

struct thread_pool;

struct pool_job {
    struct thread_job job; /* thread_pool.c's */
    struct thread_pool *of;       /* thread_pool.c's */
    /* in the thread; true: there is more, and it is called again */
    bool (*work)(struct pool_job *job);
    /* on the loop, once in any case; ${w} NULL: it is gone, or the worker ends */
    void (*over)(struct pool_job *job, struct waiter *w);
};

/* thread_pool_new(loop): NULL when memory, descriptors or threads are short. */
struct thread_pool *thread_pool_new(struct loop *loop);
/* thread_pool_free(a): waits for the job under way; all others are over undone. */
void thread_pool_free(struct thread_pool *a);
/* thread_pool_send(a, job, w): ${w} waits for it. thread_pool_waiting(a): how many jobs are not over. */
void thread_pool_send(struct thread_pool *a, struct pool_job *job, struct waiter *w);
size_t thread_pool_waiting(const struct thread_pool *a);

#endif
