/*
 * Work off the event loop: a thread that does jobs, and hands each back to the loop. A job that has
 * more to do goes behind the others. Worker processes only.
 */
#ifndef ASSAY_AWAY_H
#define ASSAY_AWAY_H

#include "core/thread_jobs.h"

struct away;

struct away_job {
    struct thread_job job; /* away.c's */
    struct away *of;       /* away.c's */
    /* in the thread; true: there is more, and it is called again */
    bool (*work)(struct away_job *job);
    /* on the loop, once in any case; ${r} NULL: the request is gone, or the worker ends */
    void (*over)(struct away_job *job, struct request *r);
};

/* away_new(w): NULL when memory, descriptors or threads are short. */
struct away *away_new(struct worker *w);
/* away_free(a): waits for the job under way; all others are over undone. */
void away_free(struct away *a);
/* away_send(a, job, r): ${r} waits for it. away_waiting(a): how many jobs are not over. */
void away_send(struct away *a, struct away_job *job, struct request *r);
size_t away_waiting(const struct away *a);

#endif
