/*
 * Work off the event loop: a thread that does jobs, and brings each back to the loop. One that has more to do goes behind the others. A job owns all that its work touches:
 * the request it is for may be gone before. Worker processes.
 */
#ifndef ASSAY_AWAY_H
#define ASSAY_AWAY_H

#include "worker.h"
#include "link.h"

struct away_job {
    struct pending pending; /* whom it is for; request NULL: gone */
    struct away_job *next;
    bool (*work)(struct away_job *job);                    /* in the thread; true: there is more, it is to be called again */
    void (*over)(struct away_job *job, struct request *r); /* on the loop, in any case, once; ${r} NULL: the request is gone, or the worker ends */
};

struct away *away_new(struct worker *w);
/* away_free(a): waits for the job under way; all others are over undone. */
void away_free(struct away *a);
/* away_send(a, job, r): ${r} waits for it. away_waiting(a): how many jobs are not over. */
void away_send(struct away *a, struct away_job *job, struct request *r);
size_t away_waiting(const struct away *a);

#endif
