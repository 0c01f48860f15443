#include "core/writer/writer_internal.h"

#include "core/base/log.h"

#define UNWANTED_MAX 256 /* jobs of deleted projects and workspaces dropped in one turn */

/* a created report's URL is still in the change that made it; events come in the order of their changes */
static const struct store_change *change_behind(const struct store_event *e, const struct item **at, const struct item *end)
{
    for (; *at < end; ++*at)
        if ((*at)->change.kind == CHANGE_REPORT_CREATE && (*at)->answer.id == e->id && (*at)->answer.status == STORE_OK)
            return &(*at)->change;
    return NULL;
}

void writer_jobs_add(struct writer *w, const struct store_event *e, const struct item **at, const struct item *end)
{
    const struct item *from = *at;
    const struct store_change *created = change_behind(e, at, end);
    *at = created == NULL ? from : *at;
    struct store_job job = {.workspace = e->workspace, .report = e->id, .attempt = (uint32_t)e->value};
    if (created != NULL)
        job.url = created->url;
    else if (!store_job_get(w->store, e->id, &job))
        return;
    if (!queue_add(w->queue, job.workspace, job.report, job.attempt, job.url))
        log_error("out of memory: report %llu waits for the next sweep", (unsigned long long)e->id);
    store_read_end(w->store);
}

static struct client *auditor_at(struct writer *w, int index)
{
    for (size_t i = 0; i < w->clients_count; i++)
        if (w->clients[i]->role == ROLE_AUDITOR && w->clients[i]->greeted && !w->clients[i]->gone && !w->clients[i]->drained &&
            (int)w->clients[i]->index == index)
            return w->clients[i];
    return NULL;
}

/* false when its project or workspace is deleted, whose reports are purged in slices */
static bool is_wanted(struct writer *w, const struct queue_job *job)
{
    struct store_job unused;
    bool wanted = store_job_get(w->store, job->report, &unused);
    store_read_end(w->store);
    return wanted;
}

void writer_jobs_withdraw(struct writer *w, struct queue_job *job)
{
    unsigned index = (unsigned)job->auditor;
    uint64_t report = job->report;
    uint32_t attempt = job->attempt;
    if (!queue_withdraw(w->queue, job))
        return;
    struct client *p = auditor_at(w, (int)index);
    if (p != NULL) /* NULL: the auditor drains or has died, which ends the job too */
        channel_put(&p->channel, FRAME_WITHDRAW, report, attempt, (struct str){0});
}

static void withdraw_unwanted(void *arg, struct queue_job *job)
{
    struct writer *w = arg;
    if (!is_wanted(w, job))
        writer_jobs_withdraw(w, job);
}

void writer_jobs_withdraw_out(struct writer *w)
{
    queue_each_out(w->queue, withdraw_unwanted, w);
}

void writer_jobs_hand_out(struct writer *w)
{
    struct queue_job *job;
    size_t unwanted = 0;
    while (unwanted < UNWANTED_MAX && (job = queue_next(w->queue)) != NULL) {
        if (!is_wanted(w, job)) {
            queue_remove(w->queue, job);
            unwanted++;
            continue;
        }
        struct client *p = auditor_at(w, job->auditor);
        if (p == NULL) { /* it drains: its place is not there until the next one greets */
            unsigned index = (unsigned)job->auditor;
            queue_back(w->queue, job);
            queue_auditor_went(w->queue, index, false);
            continue;
        }
        job->handed_us = clock_mono_us();
        channel_put(&p->channel, FRAME_JOB, job->report, job->attempt, (struct str){job->url, job->url_size});
    }
    score_set(w->process->score->pending, queue_size(w->queue));
}

static void take_job(void *arg, const struct store_job *job)
{
    struct writer *w = arg;
    if (deferred_has(w, job->report)) /* or a newer attempt of it: that is found when the old findings are refused */
        return;
    if (!queue_add(w->queue, job->workspace, job->report, job->attempt, job->url))
        log_error("out of memory: report %llu waits for the next sweep", (unsigned long long)job->report);
}

void writer_jobs_sweep(struct writer *w)
{
    enum store_status status = store_job_each(w->store, take_job, w);
    store_read_end(w->store);
    if (status != STORE_OK)
        log_error("the pending jobs cannot be read: %s", store_why(w->store));
}
