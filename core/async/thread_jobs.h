/*
 * What the threads of a worker share (thread_pool.h, query_threads.h): the way of a finished job back to the event
 * loop. Worker processes only.
 */
#ifndef ASSAY_ASYNC_THREAD_JOBS_H
#define ASSAY_ASYNC_THREAD_JOBS_H

#include "core/async/waiter.h"
#include "core/base/thread.h"

/* A job owns all that its thread touches: the request may be gone before. */
struct thread_job {
    struct pending pending; /* whom it is for */
    struct thread_job *next;
    /* on the loop, once in any case; ${w} NULL: it is gone, or the worker ends */
    void (*over)(struct thread_job *job, struct waiter *w);
};

/* Jobs in order. */
struct job_list {
    struct thread_job *first, **end;
};
void job_list_init(struct job_list *list);
void job_list_add(struct job_list *list, struct thread_job *job);
struct thread_job *job_list_take(struct job_list *list);     /* the first; NULL: none */
struct thread_job *job_list_take_all(struct job_list *list); /* linked by next */

/*
 * Finished jobs on their way to the loop.
 * finished_new(loop): NULL when memory or descriptors are short.
 */
struct finished;
struct finished *finished_new(struct loop *loop);
/* finished_add(f, job): any thread. The loop calls ${job}->over. */
void finished_add(struct finished *f, struct thread_job *job);
/* finished_free(f): when no thread adds any more; jobs that are there are dropped. */
void finished_free(struct finished *f);

/* thread_job_drop(job): over without its waiter. On the loop. */
void thread_job_drop(struct thread_job *job);

#endif
