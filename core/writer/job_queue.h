/*
 * The writer's queue of jobs, in memory. The rows in the store are the truth; the queue is built
 * from them when the writer starts.
 *
 * Workspaces take turns, and jobs that a request waits for go first. A host has at most two jobs
 * out, and all its jobs go to the same auditor, so the limit holds over all auditors.
 *
 * A workspace's share of an auditor follows the dynamic threshold of Choudhury and Hahne (1998): it
 * takes another place only while it holds fewer than QUEUE_SHARE times the free ones, and the last
 * free place goes only to a workspace that holds none. One workspace alone gets three quarters, so
 * a newcomer finds a free place; the shares shrink, as jobs end, with each workspace that competes.
 *
 * A job that is out counts (for its host, auditor and workspace) until the auditor gives it back,
 * even when its report is deleted meanwhile. Such a job is withdrawn: queue_find ignores it.
 *
 * A job whose auditor died runs again alone: nothing else is out at that auditor meanwhile, so a
 * second death is its own. Where the auditor could name the page it was reading, only that one does.
 */
#ifndef ASSAY_WRITER_JOB_QUEUE_H
#define ASSAY_WRITER_JOB_QUEUE_H

#include "store/bytes.h"

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
    bool withdrawn; /* its report is gone, and its auditor has not given it back yet */
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
/* queue_remove(q, job): it ended, and no auditor works on it. */
void queue_remove(struct queue *q, struct queue_job *job);
/*
 * queue_withdraw(q, job): its report is gone. A waiting job is removed. A job that is out stays
 * until its auditor gives it back; then the result is true, and the auditor must be told.
 */
bool queue_withdraw(struct queue *q, struct queue_job *job);
/* queue_withdrawn(q, workspace): number of its jobs that are withdrawn and still out. */
size_t queue_withdrawn(struct queue *q, uint64_t workspace);
/* queue_out(q, index, report, attempt): this auditor's job, withdrawn or not; NULL: none. */
struct queue_job *queue_out(struct queue *q, unsigned index, uint64_t report, uint64_t attempt);
/*
 * queue_each_out(q, each, arg): every job that is out and not withdrawn. ${each} may withdraw it and
 * must not change the queue otherwise.
 */
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
/* queue_back(q, job): given back without blame. It waits again; a withdrawn one is removed. */
void queue_back(struct queue *q, struct queue_job *job);

/* queue_next(q): the next job that may go out now, marked with its auditor; NULL when none may. */
struct queue_job *queue_next(struct queue *q);

size_t queue_size(const struct queue *q);

#endif
