#include "core/writer/maintenance.h"

#include "core/base/log.h"

#include <string.h>

#define RECORDS_MAX 100 /* in one transaction: scattered ones cost the commit two pages each */
#define LOG_MS 5000
#define PROGRESS_MS 1000
#define PURGE_MS 60000
#define SWEEP_MS 30000
#define SWEEP_FULL_MS 1000

void writer_maintenance_start(struct writer_maintenance *m)
{
    uint64_t now = clock_mono_ms();
    m->purging = true;
    m->sweep_at_ms = now + SWEEP_MS;
    m->expire_at_ms = now + SENDER_EXPIRY_MS;
}

void writer_maintenance_purge(struct writer_maintenance *m)
{
    m->purging = true;
}

void writer_maintenance_sweep(struct writer_maintenance *m)
{
    m->sweep_at_ms = clock_mono_ms();
}

void writer_maintenance_on_time(struct writer_maintenance *m)
{
    uint64_t now = clock_mono_ms();
    if (!m->leading->leads)
        return;
    if (now >= m->purge_at_ms) {
        m->purge_at_ms = now + PURGE_MS;
        m->purging = true;
        m->retaining = RETAIN_EVENTS | RETAIN_CONVERSATIONS;
        store_reader_check(m->store);
    }
    if (now >= m->sweep_at_ms) {
        /* Pages whose results were dropped are graded again, but not while the store is full. */
        bool full = m->deferred->count != 0 || store_is_full(m->store);
        m->sweep_at_ms = now + (full ? SWEEP_FULL_MS : SWEEP_MS);
        if (!full)
            writer_jobs_sweep(m->jobs);
    }
    if (m->expire_at_ms != 0 && now >= m->expire_at_ms) {
        m->expire_at_ms = 0;
        sequences_expire_unknown(m->sequences);
    }
    sequences_expire(m->sequences, now);
}

bool writer_maintenance_is_due(const struct writer_maintenance *m)
{
    return m->threads->change_waits || (m->leading->leads && (m->purging || m->retaining != 0));
}

/* ---- changes ---- */

static void on_retained(void *arg, const struct item *item)
{
    struct writer_maintenance *m = arg;
    if (item->answer.status != STORE_OK)
        m->retaining &= ~item->change.fields;
}

static void on_purged(void *arg, const struct item *item)
{
    struct writer_maintenance *m = arg;
    m->purging = item->answer.status == STORE_OK;
}

static void add(struct writer_maintenance *m, struct store_change change, item_done_fn *done)
{
    struct item *item = batch_add(m->batch, NULL, 0);
    change.limit = RECORDS_MAX;
    item->change = change;
    item->done = done;
    item->done_arg = m;
}

static void add_retention(struct writer_maintenance *m)
{
    const struct conf *conf = m->process->conf;
    const struct {
        uint32_t what;
        uint64_t age_ms;
    } rows[] = {
        {RETAIN_EVENTS, conf->retention_events_ms},
        {RETAIN_CONVERSATIONS, conf->retention_conversations_ms},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].age_ms == 0)
            m->retaining &= ~rows[i].what;
        if ((m->retaining & rows[i].what) != 0)
            add(m,
                (struct store_change){.kind = CHANGE_RETAIN,
                                      .fields = rows[i].what,
                                      .expires_at =
                                          leading_now_ms(m->leading) - (int64_t)rows[i].age_ms},
                on_retained);
    }
}

void writer_maintenance_add(struct writer_maintenance *m)
{
    writer_threads_take(m->threads, m->batch, RECORDS_MAX);
    if (!m->leading->leads)
        return;
    add_retention(m);
    if (m->purging)
        add(m, (struct store_change){.kind = CHANGE_PURGE}, on_purged);
}

/* ---- progress ---- */

static struct store_maintenance_status progress_of(struct writer_maintenance *m)
{
    struct store_maintenance_status now = {.what = ""};
    if (m->leading->leads && store_maintenance_status(m->store, &now) != STORE_OK)
        now.what = m->progress;
    store_read_end(m->store);
    if (now.what[0] == '\0')
        merge_thread_progress(m->threads->merge, &now);
    if (strcmp(now.what, "merging") == 0) /* routine: not logged */
        now = (struct store_maintenance_status){.what = ""};
    return now;
}

/* logged when it begins, every few seconds, and at its end */
static void log_progress(struct writer_maintenance *m, const struct store_maintenance_status *now)
{
    bool changed = strcmp(now->what, m->progress) != 0;
    uint64_t at = clock_mono_ms();
    if (changed && m->progress[0] != '\0')
        log_info("%s reports: done", m->progress);
    if (now->what[0] == '\0' || (!changed && at < m->logged_ms + LOG_MS))
        return;
    m->logged_ms = at;
    if (now->total == 0)
        log_info("%s reports", now->what);
    else
        log_info("%s reports: %llu of %llu", now->what, (unsigned long long)now->done,
                 (unsigned long long)now->total);
}

void writer_maintenance_publish(struct writer_maintenance *m)
{
    bool ended = !m->purging && m->progress[0] != '\0';
    if (!ended && clock_mono_ms() < m->progress_at_ms)
        return;
    m->progress_at_ms = clock_mono_ms() + PROGRESS_MS;
    struct store_maintenance_status now = progress_of(m);
    score_set(m->process->score->maintenance_left, now.total - now.done);
    log_progress(m, &now);
    m->progress = now.what;
}
