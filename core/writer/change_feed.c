#include "core/writer/change_feed.h"

#include "core/shm/request_stats.h"

/* counted when a result was stored; an auditor that died over the page sent none */
static void count_page(struct change_feed *f, const struct store_event *e, const struct item *items,
                       size_t count)
{
    const struct item *at = items, *end = items + count;
    struct request_stats *stats = f->process->request_stats;
    while (at < end && (at->change.kind != CHANGE_REPORT_FINISH || at->change.id != e->id))
        at++;
    if (at < end)
        request_stats_count_page(stats, at->change.status == REPORT_DONE,
                                 clock_mono_us() - at->handed_us);
    else
        request_stats_count_page(stats, false, REQUEST_STATS_UNTIMED);
}

static bool is_for_workers(const struct store_event *e)
{
    return e->kind != EVENT_JOB_ADDED && e->kind != EVENT_ANSWERS && e->kind != EVENT_MAINTENANCE &&
           e->kind != EVENT_PURGE && e->kind != EVENT_SIGNING_KEYS;
}

void change_feed_position(struct change_feed *f)
{
    if (f->leading->thread != NULL)
        clients_tell_position(f->clients, leading_show(f->leading, NULL));
}

void change_feed_notify(struct change_feed *f)
{
    size_t count;
    change_feed_position(f);
    const struct store_event *events = store_events(f->store, &count);
    for (size_t i = 0; i < count; i++)
        if (is_for_workers(&events[i]))
            clients_notify(f->clients, &events[i]);
}

static void end_job(struct change_feed *f, const struct store_event *e, const struct item *items,
                    size_t count)
{
    if (!f->leading->leads)
        return;
    struct grading_job *job = job_queue_find(f->jobs->queue, e->id);
    if (e->kind == EVENT_REPORT_FINISHED)
        count_page(f, e, items, count);
    if (job != NULL)
        writer_jobs_withdraw(f->jobs, job);
}

void change_feed_follow(struct change_feed *f, const struct item *items, size_t items_count)
{
    size_t count;
    const struct store_event *events = store_events(f->store, &count);
    const struct item *at = items;
    bool deleted = false; /* a project or a workspace */
    for (size_t i = 0; i < count; i++) {
        const struct store_event *e = &events[i];
        if (e->kind == EVENT_JOB_ADDED && f->leading->leads)
            writer_jobs_add(f->jobs, e, &at, items + items_count);
        else if (e->kind == EVENT_ANSWERS)
            writer_threads_wake_answers(f->threads);
        else if (e->kind == EVENT_MAINTENANCE)
            writer_threads_wake_merge(f->threads);
        else if (e->kind == EVENT_SIGNING_KEYS)
            f->keys->changed = true;
        else if (e->kind == EVENT_PURGE)
            writer_maintenance_purge(f->maintenance);
        else if (e->kind == EVENT_PROJECT_DELETED || e->kind == EVENT_WORKSPACE_DELETED)
            deleted = true;
        else if (e->kind == EVENT_REPORT_DELETED || e->kind == EVENT_REPORT_FINISHED)
            end_job(f, e, items, items_count);
    }
    if (deleted)
        writer_jobs_withdraw_deleted(f->jobs);
}
