/*
 * The writer's queue of jobs, in memory. The rows in the store are the truth; the queue is made from them at the writer's start.
 *
 * Workspaces take turns, and jobs somebody waits for go before the others. A host has at most two jobs out at once, and its jobs always
 * go to the same auditor, so that the two hold over all auditors.
 *
 * A workspace's share of an auditor follows the dynamic threshold of Choudhury and Hahne (1998): it takes another place while it holds
 * fewer than QUEUE_SHARE times the free ones, and the last free place goes only to one that holds none. One workspace alone gets three
 * quarters of the places, so a newcomer finds a free one; each further workspace that wants as many shrinks everybody's share as jobs end.
 *
 * A job that is out counts (for its host, its auditor, its workspace) until the auditor gives it back, also when its report is deleted
 * meanwhile: it is withdrawn then, and nobody finds it by its report any more.
 *
 * A job whose auditor died is run again alone: nothing else is out at that auditor meanwhile, so a second death is its own. Where the
 * auditor could say which page it was reading, only that one is.
 */
#ifndef ASSAY_QUEUE_H
#define ASSAY_QUEUE_H

#include "../store/bytes.h"

#define QUEUE_AUDITORS 64
#define QUEUE_PER_HOST 2
#define QUEUE_SHARE 3

struct queue_job {
    uint64_t workspace, report;
    uint32_t attempt;
    int auditor;   /* index, or -1 while it waits */
    bool hurried;  /* somebody waits for it */
    uint64_t handed_us; /* the caller's note of when its auditor got it, of CLOCK_MONOTONIC; 0: not yet */
    bool alone;    /* an auditor died while it held this and others */
    bool named;    /* its auditor said that it dies of this one */
    bool shaken;   /* an auditor died of another while it held this */
    bool withdrawn; /* its report is gone: it is out, and its auditor gives it back */
    struct queue_job *next_same, *prev, *next;
    struct queue_lane *lane;
    struct queue_host *host;
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
/* queue_find: the report's job, unless it is withdrawn; NULL when there is none. */
struct queue_job *queue_find(struct queue *q, uint64_t report);
/* queue_remove(q, job): it ended, and no auditor has it. */
void queue_remove(struct queue *q, struct queue_job *job);
/*
 * queue_withdraw(q, job): its report is gone. A job that waits is removed. One that is out stays until its auditor gives it back: true,
 * and the auditor must be told.
 */
bool queue_withdraw(struct queue *q, struct queue_job *job);
/* queue_withdrawn(q, workspace): how many jobs of that workspace are withdrawn and still out. */
size_t queue_withdrawn(struct queue *q, uint64_t workspace);
/* queue_out(q, index, report, attempt): the job that this auditor has, withdrawn or not; NULL when it has none. */
struct queue_job *queue_out(struct queue *q, unsigned index, uint64_t report, uint64_t attempt);
/* queue_each_out(q, each, arg): every job that is out and not withdrawn; ${each} may withdraw it, and change nothing else. */
typedef void queue_job_fn(void *arg, struct queue_job *job);
void queue_each_out(struct queue *q, queue_job_fn *each, void *arg);

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
/* queue_back(q, job): its auditor gave it back, without blame: it waits again, or is removed where it is withdrawn. */
void queue_back(struct queue *q, struct queue_job *job);

/* queue_next(q): the next job that may go out now, marked with its auditor; NULL when none may. */
struct queue_job *queue_next(struct queue *q);

size_t queue_size(const struct queue *q);

#endif
