#include "core/writer/jobs.h"

#include "core/base/log.h"

#define DELETED_MAX 256 /* jobs of deleted projects and workspaces that one dispatch drops */

static const struct store_change *created_by(const struct store_event *e, const struct item **at,
                                             const struct item *end)
{
    for (; *at < end; ++*at) {
        const struct item *item = *at;
        if (item->change.kind == CHANGE_REPORT_CREATE && item->answer.id == e->id &&
            item->answer.status == STORE_OK)
            return &item->change;
    }
    return NULL;
}

static void add(struct writer_jobs *j, const struct store_job *job)
{
    if (!job_queue_add(j->queue, job->workspace, job->report, job->attempt, job->url))
        log_error("out of memory: report %llu is graded after the next sweep of pending jobs",
                  (unsigned long long)job->report);
}

void writer_jobs_add(struct writer_jobs *j, const struct store_event *e, const struct item **at,
                     const struct item *end)
{
    const struct item *from = *at;
    const struct store_change *created = created_by(e, at, end);
    *at = created == NULL ? from : *at;
    struct store_job job = {
        .workspace = e->workspace, .report = e->id, .attempt = (uint32_t)e->value};
    if (created != NULL)
        job.url = created->url;
    else if (!store_job_get(j->store, e->id, &job))
        return;
    add(j, &job);
    store_read_end(j->store);
}

/* false when its project or workspace is deleted, whose reports are purged later */
static bool is_wanted(struct writer_jobs *j, const struct grading_job *job)
{
    struct store_job unused;
    bool wanted = store_job_get(j->store, job->report, &unused);
    store_read_end(j->store);
    return wanted;
}

void writer_jobs_withdraw(struct writer_jobs *j, struct grading_job *job)
{
    unsigned index = (unsigned)job->auditor;
    uint64_t report = job->report;
    uint32_t attempt = job->attempt;
    if (!job_queue_withdraw(j->queue, job))
        return;
    struct client *auditor = clients_auditor(j->clients, index);
    if (auditor != NULL) /* NULL: the auditor drains or has died, which also ends the job */
        channel_put(&auditor->channel, FRAME_WITHDRAW, report, attempt, (struct str){0});
}

static void withdraw_unwanted(void *arg, struct grading_job *job)
{
    struct writer_jobs *j = arg;
    if (!is_wanted(j, job))
        writer_jobs_withdraw(j, job);
}

void writer_jobs_withdraw_deleted(struct writer_jobs *j)
{
    job_queue_each_running(j->queue, withdraw_unwanted, j);
}

void writer_jobs_dispatch(struct writer_jobs *j)
{
    struct grading_job *job;
    size_t dropped = 0;
    while (dropped < DELETED_MAX && (job = job_queue_take(j->queue)) != NULL) {
        if (!is_wanted(j, job)) {
            job_queue_remove(j->queue, job);
            dropped++;
            continue;
        }
        unsigned index = (unsigned)job->auditor;
        struct client *auditor = clients_auditor(j->clients, index);
        if (auditor == NULL) { /* it drains: no job is sent until the next auditor connects */
            job_queue_return(j->queue, job);
            job_queue_auditor_lost(j->queue, index, false);
            continue;
        }
        job->handed_us = clock_mono_us();
        channel_put(&auditor->channel, FRAME_JOB, job->report, job->attempt,
                    (struct str){job->url, job->url_size});
    }
    score_set(j->process->score->pending, job_queue_size(j->queue));
}

static void add_unless_deferred(void *arg, const struct store_job *job)
{
    struct writer_jobs *j = arg;
    /* a newer attempt is queued when the store refuses the deferred result */
    if (!deferred_has(j->deferred, job->report))
        add(j, job);
}

void writer_jobs_sweep(struct writer_jobs *j)
{
    enum store_status status = store_job_each(j->store, add_unless_deferred, j);
    store_read_end(j->store);
    if (status != STORE_OK)
        log_error("the pending jobs cannot be read: %s", store_why(j->store));
}
