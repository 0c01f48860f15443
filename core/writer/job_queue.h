/*
 * The queue of grading jobs, in memory. The rows in the store are the truth; the queue is built
 * from them when the writer starts.
 *
 * Workspaces take turns, and jobs that a request waits for go first. A host has at most two running
 * jobs over all auditors. All jobs of a host go to the same auditor as long as the set of auditors
 * stays the same.
 *
 * The server's own auditors belong to the set always: jobs wait until the next process of the same
 * index connects. Auditors of other nodes belong to it as long as they are connected.
 *
 * A workspace's share of an auditor follows the dynamic threshold of Choudhury and Hahne (1998): it
 * gets another slot only while it holds fewer than JOB_QUEUE_SHARE times the free ones, and the
 * last free slot goes only to a workspace that holds none. One workspace alone gets three quarters,
 * so a newcomer finds a free slot; the shares shrink, as jobs end, with each workspace that
 * competes.
 *
 * A running job counts (for its host, auditor and workspace) until the auditor returns it, even
 * when its report is deleted. Such a job is withdrawn: job_queue_find ignores it.
 *
 * A job whose auditor died runs again alone at its auditor, so a second death is its fault. When
 * the auditor could name the page that it was reading, only that one runs alone.
 */
#ifndef ASSAY_WRITER_JOB_QUEUE_H
#define ASSAY_WRITER_JOB_QUEUE_H

#include "store/bytes.h"

#define JOB_QUEUE_AUDITORS 256 /* in a cluster, over all nodes */
#define JOB_QUEUE_PER_HOST 2
#define JOB_QUEUE_SHARE 3

struct grading_job {
    uint64_t workspace, report;
    uint32_t attempt;
    int auditor;        /* index, or -1 while it waits */
    bool prioritized;   /* a request waits for it */
    uint64_t handed_us; /* when the caller sent it to its auditor, of CLOCK_MONOTONIC; 0: not yet */
    bool alone;         /* an auditor died while it graded this and others */
    bool suspected;     /* its auditor said that it dies of this one */
    bool spared_once;   /* an auditor died of another while it graded this */
    bool withdrawn;     /* its report is gone, and its auditor has not returned it yet */
    struct grading_job *next_same, *prev, *next;
    struct workspace_queue *owner;
    struct job_host *host;
    size_t url_size;
    char url[];
};

struct job_queue;

/*
 * job_queue_new(auditors, capacity, most): for ${auditors} auditors that take ${capacity} jobs
 * each. Those of other nodes have indexes from ${auditors} to ${most} - 1; ${most} is at most
 * JOB_QUEUE_AUDITORS.
 */
struct job_queue *job_queue_new(unsigned auditors, unsigned capacity, unsigned most);
void job_queue_free(struct job_queue *q);

/*
 * job_queue_add: add a job. A job of the same report with an older attempt is replaced; one with
 * the same or a newer attempt stays. False when memory is short.
 */
bool job_queue_add(struct job_queue *q, uint64_t workspace, uint64_t report, uint32_t attempt,
                   struct str url);
/* job_queue_prioritize(q, report): a request waits for this job. */
void job_queue_prioritize(struct job_queue *q, uint64_t report);
/* job_queue_find: the report's job, unless it is withdrawn; NULL: none. */
struct grading_job *job_queue_find(struct job_queue *q, uint64_t report);
/* job_queue_remove(q, job): it ended, and no auditor works on it. */
void job_queue_remove(struct job_queue *q, struct grading_job *job);
/*
 * job_queue_withdraw(q, job): its report is gone. A waiting job is removed. A running job stays
 * until its auditor returns it; then the result is true, and the caller must notify the auditor.
 */
bool job_queue_withdraw(struct job_queue *q, struct grading_job *job);
/* job_queue_withdrawn(q, workspace): number of its jobs that are withdrawn and still running. */
size_t job_queue_withdrawn(struct job_queue *q, uint64_t workspace);
/*
 * job_queue_find_running(q, index, report, attempt): this auditor's job, withdrawn or not; NULL:
 * none.
 */
struct grading_job *job_queue_find_running(struct job_queue *q, unsigned index, uint64_t report,
                                           uint64_t attempt);
/*
 * job_queue_each_running(q, each, arg): every running job that is not withdrawn. ${each} may
 * withdraw it and must not change the queue otherwise.
 */
typedef void job_queue_job_fn(void *arg, struct grading_job *job);
void job_queue_each_running(struct job_queue *q, job_queue_job_fn *each, void *arg);

/* job_queue_auditor_connected(q, index): this auditor of the server takes jobs. */
void job_queue_auditor_connected(struct job_queue *q, unsigned index);
/*
 * job_queue_auditor_joined(q, capacity): an auditor of another node takes ${capacity} jobs (0: as
 * many as the server's own); its index, or -1: there are too many.
 * job_queue_auditor_left(q, index): it ended, after job_queue_auditor_lost; the index is free.
 */
int job_queue_auditor_joined(struct job_queue *q, unsigned capacity);
void job_queue_auditor_left(struct job_queue *q, unsigned index);
/*
 * job_queue_auditor_lost(q, index, blame): it takes no more jobs, and its jobs wait again.
 * ${blame}: it died of one of them. Then those that ran together are marked alone; one that ran
 * alone is returned (still queued): this death counts against it. Otherwise the result is NULL.
 */
struct grading_job *job_queue_auditor_lost(struct job_queue *q, unsigned index, bool blame);
/*
 * job_queue_suspect(q, index, report): this auditor is about to die while it reads this report.
 * When it is lost, only this job is marked alone. A job that was spared once in this way is marked
 * by the next death, whichever job is suspected then.
 */
void job_queue_suspect(struct job_queue *q, unsigned index, uint64_t report);
/* job_queue_return(q, job): its auditor returned it; it waits again, or is removed if withdrawn. */
void job_queue_return(struct job_queue *q, struct grading_job *job);

/* job_queue_take(q): the next job that may run, marked with its auditor; NULL: none may. */
struct grading_job *job_queue_take(struct job_queue *q);

size_t job_queue_size(const struct job_queue *q);

#endif
