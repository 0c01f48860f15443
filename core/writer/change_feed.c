#include "core/writer/writer_internal.h"

#include "core/shm/request_stats.h"

/* findings that were kept; an auditor that died over a page left none */
static void note_graded(struct writer *w, const struct store_event *e, const struct item *items, size_t items_count)
{
    const struct item *at = items, *end = items + items_count;
    while (at < end && (at->change.kind != CHANGE_REPORT_FINISH || at->change.id != e->id))
        at++;
    if (at < end)
        request_stats_graded(w->process->request_stats, at->change.status == REPORT_DONE, clock_mono_us() - at->handed_us);
    else
        request_stats_graded(w->process->request_stats, false, REQUEST_STATS_UNTIMED);
}

static void tell_workers(struct writer *w, const struct store_event *e)
{
    for (size_t k = 0; k < w->clients_count; k++)
        if (w->clients[k]->role == ROLE_WORKER && !w->clients[k]->gone)
            channel_put(&w->clients[k]->channel, FRAME_EVENT, 0, 0, (struct str){(const char *)e, sizeof(*e)});
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
            background_thread_wake(answers_thread_loop(w->answers_thread));
        else if (e->kind == EVENT_MAINTENANCE)
            background_thread_wake(merge_thread_loop(w->merge_thread));
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
