#include "core/writer.h"

#include "core/traffic.h"

/* findings that were kept; an auditor that died over a page left none */
static void note_graded(struct writer *w, const struct store_event *e, const struct item *items, size_t items_count)
{
    const struct item *at = items, *end = items + items_count;
    while (at < end && (at->change.kind != CHANGE_REPORT_FINISH || at->change.id != e->id))
        at++;
    if (at < end)
        traffic_graded(w->process->traffic, at->change.status == REPORT_DONE, clock_mono_us() - at->handed_us);
    else
        traffic_graded(w->process->traffic, false, TRAFFIC_UNTIMED);
}

static void tell_workers(struct writer *w, const struct store_event *e)
{
    for (size_t k = 0; k < w->peers_count; k++)
        if (w->peers[k]->role == ROLE_WORKER && !w->peers[k]->gone)
            channel_put(&w->peers[k]->channel, FRAME_EVENT, 0, 0, (struct str){(const char *)e, sizeof(*e)});
}

static bool is_for_workers(const struct store_event *e)
{
    return e->kind != EVENT_JOB_ADDED && e->kind != EVENT_ANSWERS && e->kind != EVENT_MAINTENANCE &&
           e->kind != EVENT_PURGE;
}

void events_tell(struct writer *w)
{
    size_t count;
    const struct store_event *events = store_events(w->store, &count);
    for (size_t i = 0; i < count; i++)
        if (is_for_workers(&events[i]))
            tell_workers(w, &events[i]);
}

static void end_job(struct writer *w, const struct store_event *e, const struct item *items, size_t items_count)
{
    struct queue_job *job = queue_find(w->queue, e->id);
    if (e->kind == EVENT_REPORT_FINISHED)
        note_graded(w, e, items, items_count);
    if (job != NULL)
        writer_jobs_withdraw(w, job);
}

void events_follow(struct writer *w, const struct item *items, size_t items_count)
{
    size_t count;
    const struct store_event *events = store_events(w->store, &count);
    const struct item *at = items;
    bool deleted = false; /* a project or a workspace */
    for (size_t i = 0; i < count; i++) {
        const struct store_event *e = &events[i];
        if (e->kind == EVENT_JOB_ADDED)
            writer_jobs_add(w, e, &at, items + items_count);
        else if (e->kind == EVENT_ANSWERS)
            writer_thread_wake(indexer_thread(w->indexer));
        else if (e->kind == EVENT_MAINTENANCE)
            writer_thread_wake(maintainer_thread(w->maintainer));
        else if (e->kind == EVENT_PURGE)
            w->purging = true;
        else if (e->kind == EVENT_PROJECT_DELETED || e->kind == EVENT_WORKSPACE_DELETED)
            deleted = true;
        else if (e->kind == EVENT_REPORT_DELETED || e->kind == EVENT_REPORT_FINISHED)
            end_job(w, e, items, items_count);
    }
    if (deleted)
        writer_jobs_withdraw_out(w);
}
