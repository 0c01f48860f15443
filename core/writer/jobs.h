/*
 * Grading jobs between the store, the job queue and the auditors. A job is a row of the store; the
 * queue (job_queue.h) decides which auditor gets which job when.
 */
#ifndef ASSAY_WRITER_JOBS_H
#define ASSAY_WRITER_JOBS_H

#include "core/writer/deferred_results.h"

struct writer_jobs {
    struct process *process;
    struct store *store;
    struct clients *clients;
    struct job_queue *queue;
    const struct deferred_results *deferred;
};

/*
 * writer_jobs_add(j, event, at, end): queue the job of an EVENT_JOB_ADDED. The URL of a created
 * report is in the item that created it, which is searched from *at to ${end}; events come in the
 * order of their changes, so *at moves on to it.
 */
void writer_jobs_add(struct writer_jobs *j, const struct store_event *event, const struct item **at,
                     const struct item *end);

/* writer_jobs_sweep(j): queue the jobs in the store that are not queued, such as after a crash. */
void writer_jobs_sweep(struct writer_jobs *j);

/* writer_jobs_dispatch(j): send the jobs that may start to the auditors. */
void writer_jobs_dispatch(struct writer_jobs *j);

/*
 * writer_jobs_withdraw(j, job): its report is gone; the auditor that works on it is notified.
 * writer_jobs_withdraw_deleted(j): withdraw the running jobs of deleted projects and workspaces.
 * Their waiting jobs are dropped when their turn comes or when the purge reaches their report.
 */
void writer_jobs_withdraw(struct writer_jobs *j, struct grading_job *job);
void writer_jobs_withdraw_deleted(struct writer_jobs *j);

#endif
