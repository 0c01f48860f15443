/*
 * Jobs of a worker's threads (thread_pool.h, query_threads.h) and their way back to the event loop.
 */
#ifndef ASSAY_ASYNC_THREAD_JOBS_H
#define ASSAY_ASYNC_THREAD_JOBS_H

#include "core/async/waiter.h"
#include "core/base/thread.h"

/* A job owns all that its thread touches: the request may end first. */
struct thread_job {
    struct pending pending; /* the request that waits for it */
    struct thread_job *next;
    /* on the loop, exactly once; ${w} NULL: the request is gone, or the worker ends */
    void (*over)(struct thread_job *job, struct waiter *w);
};

/* A queue of jobs, first in, first out. */
struct job_list {
    struct thread_job *first, **end;
};
void job_list_init(struct job_list *list);
void job_list_add(struct job_list *list, struct thread_job *job);
struct thread_job *job_list_take(struct job_list *list); /* the first; NULL: empty */

/*
 * Completed jobs on their way to the loop.
 * completion_queue_new(loop): NULL when memory or descriptors are short.
 * completion_queue_add(q, job): from any thread. The loop then calls ${job}->over.
 * completion_queue_free(q): after all threads have ended; drops the jobs in it.
 */
struct completion_queue;
struct completion_queue *completion_queue_new(struct loop *loop);
void completion_queue_add(struct completion_queue *q, struct thread_job *job);
void completion_queue_free(struct completion_queue *q);

/* thread_job_drop(job): call over without a waiter. On the loop. */
void thread_job_drop(struct thread_job *job);

#endif
