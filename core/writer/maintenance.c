#include "core/writer/writer_internal.h"

#include "core/base/log.h"

#include <poll.h>
#include <string.h>

#define SLICE_US 1500 /* of work in the background in a transaction, before its commit */
#define SLICE_RECORDS 100 /* at most: where they are scattered, the commit writes two pages for each */
#define SLICE_RECORDS_LEAST 25 /* before it ends because callers wait: it ends one day, however many come */
#define UPKEEP_SAID_MS 5000
#define UPKEEP_EVERY_MS 1000
#define PURGE_EVERY_MS 60000
#define SWEEP_EVERY_MS 30000
#define SWEEP_FULL_MS 1000
#define STALE_CHANNEL_MS 60000

static bool concurrent_callers_wait(const struct writer *w)
{
    struct pollfd waiting = {w->epoll, POLLIN, 0};
    return poll(&waiting, 1, 0) > 0;
}

static bool is_over(void *arg)
{
    struct writer *w = arg;
    return clock_mono_us() >= w->slice.until_us ||
           (++w->slice.asked >= SLICE_RECORDS_LEAST && concurrent_callers_wait(w));
}

void writer_maintenance_bound(struct writer *w)
{
    store_txn_pause(w->txn, is_over, w);
    w->slice.until_us = clock_mono_us() + SLICE_US;
    w->slice.asked = 0;
}

void writer_maintenance_begin(struct writer *w)
{
    uint64_t now = clock_mono_ms();
    w->sweep_at_ms = now + SWEEP_EVERY_MS;
    w->stale_at_ms = now + STALE_CHANNEL_MS;
}

static void note_stale(void *arg, uint64_t channel, uint64_t sequence)
{
    struct writer *w = arg;
    (void)sequence;
    if (!client_is_open(w, channel))
        writer_drop_channel(w, channel);
}

/* channels of senders that did not come back after this writer's start */
static void drop_stale_channels(struct writer *w)
{
    struct store_txn *t;
    if (store_begin(w->store, &t) != STORE_OK)
        return;
    store_channel_each(t, note_stale, w);
    store_abort(t);
}

/* those of senders that left so long ago that they do not come back for an answer */
static void drop_left_channels(struct writer *w, uint64_t now)
{
    size_t due = 0;
    for (; due < w->left_count && now - w->left[due].at_ms >= STALE_CHANNEL_MS; due++)
        note_stale(w, w->left[due].channel, 0);
    w->left_count -= due;
    if (due != 0)
        memmove(w->left, w->left + due, w->left_count * sizeof(*w->left));
}

/* what is older than it is to be kept, a slice a turn */
static void retain(struct writer *w)
{
    const struct conf *conf = w->process->conf;
    const struct {
        uint32_t what;
        uint64_t age_ms;
    } rows[] = {{RETAIN_EVENTS, conf->retention_events_ms}, {RETAIN_CONVERSATIONS, conf->retention_conversations_ms}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].age_ms == 0)
            w->retaining &= ~rows[i].what;
        if ((w->retaining & rows[i].what) != 0)
            writer_batch_add(w, NULL, 0)->change = (struct store_change){
                .kind = CHANGE_RETAIN, .fields = rows[i].what, .expires_at = clock_wall_ms() - (int64_t)rows[i].age_ms, .limit = SLICE_RECORDS};
    }
}

void writer_maintenance_on_time(struct writer *w)
{
    uint64_t now = clock_mono_ms();
    if (now >= w->purge_at_ms) {
        w->purge_at_ms = now + PURGE_EVERY_MS;
        w->purging = true;
        w->retaining = RETAIN_EVENTS | RETAIN_CONVERSATIONS;
        store_reader_check(w->store);
    }
    if (now >= w->sweep_at_ms) {
        /* Jobs whose results were dropped are graded again, but not for a store without room. */
        bool full = w->deferred_count != 0 || store_is_full(w->store);
        w->sweep_at_ms = now + (full ? SWEEP_FULL_MS : SWEEP_EVERY_MS);
        if (!full)
            writer_jobs_sweep(w);
    }
    if (w->stale_at_ms != 0 && now >= w->stale_at_ms) {
        w->stale_at_ms = 0;
        drop_stale_channels(w);
    }
    drop_left_channels(w, now);
}

/* The change that a thread hands over, if one waits. */
static void take_change(struct writer *w, struct background_thread *t)
{
    struct store_change change;
    if (!background_thread_take(t, &change))
        return;
    if (change.limit == 0)
        change.limit = SLICE_RECORDS;
    struct item *item = writer_batch_add(w, NULL, 0);
    item->thread = t;
    item->change = change;
}

static void take_changes(struct writer *w)
{
    if (!w->threads_wait)
        return;
    w->threads_wait = false;
    take_change(w, answers_thread_loop(w->answers_thread));
    take_change(w, merge_thread_loop(w->merge_thread));
}

bool writer_maintenance_is_due(const struct writer *w)
{
    return w->purging || w->retaining != 0 || w->threads_wait;
}

void writer_maintenance_step(struct writer *w)
{
    struct score *score = w->process->score;
    take_changes(w);
    retain(w);
    if (w->purging)
        writer_batch_add(w, NULL, 0)->change =
            (struct store_change){.kind = CHANGE_PURGE, .limit = SLICE_RECORDS};
    if (w->batch_count == 0)
        return;
    uint64_t began = clock_mono_us(), cpu = clock_thread_us();
    batch_apply(w);
    score_raise(&score->stretch_us, clock_mono_us() - began);
    score_raise(&score->stretch_cpu_us, clock_thread_us() - cpu);
}

static struct store_maintenance_status progress(struct writer *w)
{
    struct store_maintenance_status now;
    if (store_maintenance_status(w->store, &now) != STORE_OK)
        now.what = w->upkeep;
    store_read_end(w->store);
    if (now.what[0] == '\0')
        merge_thread_progress(w->merge_thread, &now);
    if (strcmp(now.what, "merging") == 0) /* which is not worth a line */
        now = (struct store_maintenance_status){.what = ""};
    return now;
}

/* what goes on in the background: on the scoreboard, and in the log when it begins, every few seconds, and at its end */
static void tell(struct writer *w)
{
    struct store_maintenance_status now = progress(w);
    score_set(w->process->score->upkeep, now.total - now.done);
    bool other = strcmp(now.what, w->upkeep) != 0;
    uint64_t at = clock_mono_ms();
    if (other && w->upkeep[0] != '\0')
        log_info("%s reports: done", w->upkeep);
    if (now.what[0] != '\0' && (other || at >= w->maintenance_said_ms + UPKEEP_SAID_MS)) {
        w->maintenance_said_ms = at;
        if (now.total == 0)
            log_info("%s reports", now.what);
        else
            log_info("%s reports: %llu of %llu", now.what, (unsigned long long)now.done, (unsigned long long)now.total);
    }
    w->upkeep = now.what;
}

void writer_maintenance_tell(struct writer *w)
{
    bool ended = !w->purging && w->upkeep[0] != '\0';
    if (!ended && clock_mono_ms() < w->maintenance_at_ms)
        return;
    w->maintenance_at_ms = clock_mono_ms() + UPKEEP_EVERY_MS;
    tell(w);
}
