/*
 * The writer's queue of jobs, in memory; the rows in the store are the truth, and the queue is made from them at the writer's start.
 *
 * Fair: workspaces take turns, and jobs somebody waits for go before the others. A host has at most two jobs out at once and its jobs
 * always go to the same auditor, so that the two hold over all auditors. A job whose auditor died is run again alone: nothing else is out
 * at that auditor meanwhile, so a second death is its own. Where the auditor could say which page it was reading, only that one is.
 */
#ifndef ASSAY_QUEUE_H
#define ASSAY_QUEUE_H

#include "../store/bytes.h"

#define QUEUE_AUDITORS 64
#define QUEUE_PER_HOST 2

struct queue_job {
    uint64_t workspace, report;
    uint32_t attempt;
    uint32_t host; /* hash of the URL's host */
    int auditor;   /* index, or -1 while it waits */
    bool hurried;  /* somebody waits for it */
    uint64_t handed_us; /* the caller's note of when its auditor got it, of CLOCK_MONOTONIC; 0: not yet */
    bool alone;    /* an auditor died while it held this and others */
    bool named;    /* its auditor said that it dies of this one */
    bool shaken;   /* an auditor died of another while it held this */
    struct queue_job *next_same, *prev, *next;
    struct queue_lane *lane;
    size_t url_size;
    char url[];
};

struct queue;

/* queue_new(auditors, capacity): for ${auditors} auditors that take ${capacity} jobs each. */
struct queue *queue_new(unsigned auditors, unsigned capacity);
void queue_free(struct queue *q);

/*
 * queue_add: a job; one of the same report already there is replaced when its attempt is older, and otherwise kept as it is. False when
 * memory is short.
 */
bool queue_add(struct queue *q, uint64_t workspace, uint64_t report, uint32_t attempt, struct str url);
void queue_hurry(struct queue *q, uint64_t report);
/* queue_find: NULL when there is none. */
struct queue_job *queue_find(struct queue *q, uint64_t report);
/* queue_remove(q, job): it ended, or its report is gone. */
void queue_remove(struct queue *q, struct queue_job *job);

/*
 * queue_auditor(q, index, there): an auditor came or went. When it went, its jobs wait again; those it held together with others are marked
 * alone.
 */
void queue_auditor_came(struct queue *q, unsigned index);
/*
 * queue_auditor_went(q, index): it went. A job it held alone is returned (still queued, marked alone) when ${blame}: its death counts;
 * otherwise NULL.
 */
struct queue_job *queue_auditor_went(struct queue *q, unsigned index, bool blame);
/*
 * queue_suspect(q, index, report): that auditor is about to die while it reads this one. When it went, this one is marked alone, and what it
 * held besides waits as before; but a job that was spared so once is marked by the next death, whatever is named then.
 */
void queue_suspect(struct queue *q, unsigned index, uint64_t report);
/* queue_back(q, job): given back by an auditor that drains; no blame. */
void queue_back(struct queue *q, struct queue_job *job);

/* queue_next(q): the next job that may go out now, marked with its auditor; NULL when none may. */
struct queue_job *queue_next(struct queue *q);

size_t queue_size(const struct queue *q);

#endif
