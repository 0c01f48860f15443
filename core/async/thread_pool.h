/*
 * A pool of one thread for work that is too long for the event loop: password hashes, large bodies.
 * A job that has more to do goes to the end of the queue.
 */
#ifndef ASSAY_ASYNC_THREAD_POOL_H
#define ASSAY_ASYNC_THREAD_POOL_H

#include "core/async/thread_jobs.h"

struct thread_pool;

struct pool_job {
    struct thread_job job;    /* for thread_pool.c */
    struct thread_pool *pool; /* for thread_pool.c */
    /* in the thread; true: not done, call it again */
    bool (*work)(struct pool_job *job);
    /* on the loop, exactly once; ${w} NULL: the request is gone, or the worker ends */
    void (*over)(struct pool_job *job, struct waiter *w);
};

/*
 * thread_pool_new(loop): NULL when memory, descriptors or threads are short.
 * thread_pool_free(pool): waits for the running job; the others are over without being done.
 */
struct thread_pool *thread_pool_new(struct loop *loop);
void thread_pool_free(struct thread_pool *pool);

/*
 * thread_pool_send(pool, job, w): queue ${job} for ${w}.
 * thread_pool_waiting(pool): jobs that are not over.
 */
void thread_pool_send(struct thread_pool *pool, struct pool_job *job, struct waiter *w);
size_t thread_pool_waiting(const struct thread_pool *pool);

#endif
