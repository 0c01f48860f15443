#include "writer.h"

#include "log.h"
#include "slice.h"

#include <poll.h>
#include <string.h>

#define PURGE_HOLD_US 3000 /* that work in the background should hold a transaction, beside what a commit of next to nothing takes */
#define PURGE_WORK_US 1500 /* of them, before the commit */
#define PURGE_LONG_US 20000 /* one that took longer, for others have the disk or the cores, is followed by a rest as long */
#define PURGE_AHEAD_US 3000 /* what is read for it between two transactions, in up to so many turns */
#define PURGE_AHEAD_TURNS 16
#define UPKEEP_SAID_MS 5000
#define IDLE_US 250000
#define QUIET_US 3000 /* work in the background lets a burst of changes pass, until none came for so long, */
#define PATIENCE_MS 2000 /* but not for longer since there is some of it; then it goes on beside them until all is done */
#define UPKEEP_EVERY_MS 1000
#define PURGE_EVERY_MS 60000
#define SWEEP_EVERY_MS 30000
#define SWEEP_FULL_MS 1000
#define STALE_CHANNEL_MS 60000

static bool is_late(void *arg)
{
    const struct writer *w = arg;
    return clock_mono_us() >= w->patience.until_us;
}

static bool callers_wait(const struct writer *w)
{
    struct pollfd waiting = {w->epoll, POLLIN, 0};
    return poll(&waiting, 1, 0) > 0;
}

/* work in the background, which callers do not wait for: it goes on a little where some are there, and no longer */
static bool is_over(void *arg)
{
    struct writer *w = arg;
    return is_late(w) || (++w->patience.asked >= SLICE_RECORDS_MIN && callers_wait(w));
}

static void be_patient(struct writer *w, uint64_t us)
{
    w->patience.until_us = clock_mono_us() + us;
    w->patience.asked = 0;
}

void upkeep_bound(struct writer *w)
{
    store_txn_pause(w->txn, is_over, w);
    be_patient(w, PURGE_WORK_US);
}

void upkeep_begin(struct writer *w)
{
    uint64_t now = clock_mono_ms();
    w->sweep_at_ms = now + SWEEP_EVERY_MS;
    w->stale_at_ms = now + STALE_CHANNEL_MS;
}

static void note_stale(void *arg, uint64_t channel, uint64_t sequence)
{
    struct writer *w = arg;
    (void)sequence;
    if (!peer_is_open(w, channel))
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
                .kind = CHANGE_RETAIN, .fields = rows[i].what, .expires_at = clock_wall_ms() - (int64_t)rows[i].age_ms, .limit = w->purge_slice};
    }
}

void upkeep_on_time(struct writer *w)
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
        bool full = w->held_count != 0 || store_is_full(w->store);
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

/* That takes as long as a turn may, and all the time of a disk that stalls. */
static bool disk_is_readied(struct writer *w)
{
    bool waited;
    score_set(w->process->score->busy_since_ms, clock_mono_ms());
    score_set(w->process->score->phase, PHASE_SYNCING);
    enum store_status status = store_file_ahead(w->store, &waited);
    writer_synced(w);
    score_set(w->process->score->busy_since_ms, 0);
    if (status != STORE_OK)
        writer_reopens(w);
    return waited;
}

/*
 * While no transaction is under way. What a slow disk has not brought yet may come in the next turns, and all of it is deleted at once. It ends by
 * the clock alone: ended by callers, it would seem to wait for the disk for as long as some are there.
 */
static void look_ahead(struct writer *w)
{
    be_patient(w, PURGE_AHEAD_US);
    w->purge_ready = w->purging && !disk_is_readied(w) ? store_purge_ahead(w->store, w->purge_slice, is_late, w) : 0;
    if (w->purge_ready == w->purge_slice || !w->purging)
        w->purge_waited = 0;
    else if (w->purge_waited++ % PURGE_AHEAD_TURNS != 0)
        w->purge_ready = 0;
}

/* ${us}, ${cpu_us}: what a transaction of work in the background took, the commit included */
static void note_hold(struct writer *w, uint64_t us, uint64_t cpu_us)
{
    struct score *score = w->process->score;
    score_raise(&score->stretch_us, us);
    score_raise(&score->stretch_cpu_us, cpu_us);
    w->purge_slice = slice_next(w->purge_slice, us, w->small_commit_us + PURGE_HOLD_US);
    w->rest_until_us = us > PURGE_LONG_US ? clock_mono_us() + us : 0;
}

uint64_t upkeep_rest_us(struct writer *w)
{
    uint64_t now = clock_mono_us(), quiet = now - w->answered_us;
    if (!w->purging && w->retaining == 0) {
        w->upkeep_since_us = 0;
        return IDLE_US;
    }
    if (w->upkeep_since_us == 0)
        w->upkeep_since_us = now;
    if (now < w->rest_until_us)
        return w->rest_until_us - now < IDLE_US ? w->rest_until_us - now : IDLE_US;
    return quiet >= QUIET_US || now >= w->upkeep_since_us + PATIENCE_MS * 1000 ? 0 : QUIET_US - quiet;
}

/*
 * In a transaction of its own, and after the callers' is committed and answered: who comes meanwhile waits for no more than one slice, which
 * is short then. Who came before it begins goes first, even where it was looked ahead for, which may have made a part of an index or waited for
 * the disk. Where callers never end, each slice has a turn after two of theirs, so neither waits for the other's end.
 */
void upkeep_step(struct writer *w)
{
    if (upkeep_rest_us(w) > 0 || slice_yields(&w->yields, callers_wait(w)))
        return;
    look_ahead(w);
    if (slice_yields(&w->yields, callers_wait(w))) {
        if (w->purge_ready != 0) /* that turn is not over */
            w->purge_waited = 0;
        return;
    }
    w->retained = w->retaining != 0 && (w->purge_ready == 0 || !w->retained);
    if (w->retained)
        retain(w);
    else if (w->purge_ready != 0)
        writer_batch_add(w, NULL, 0)->change = (struct store_change){.kind = CHANGE_PURGE, .limit = w->purge_ready};
    w->yields = 0;
    if (w->batch_count == 0)
        return;
    uint64_t began = clock_mono_us(), cpu = clock_thread_us();
    batch_apply(w);
    note_hold(w, clock_mono_us() - began, clock_thread_us() - cpu);
}

/* what goes on in the background: on the scoreboard, and in the log when it begins, every few seconds, and at its end */
static void tell(struct writer *w)
{
    struct store_upkeep now = {.what = ""};
    if (w->purging && store_upkeep(w->store, &now) != STORE_OK)
        now.what = w->upkeep;
    store_read_end(w->store);
    score_set(w->process->score->upkeep, now.total - now.done);
    bool other = strcmp(now.what, w->upkeep) != 0, merges = strcmp(now.what, "merging") == 0 || strcmp(w->upkeep, "merging") == 0;
    uint64_t at = clock_mono_ms();
    if (!merges && other && w->upkeep[0] != '\0')
        log_info("%s reports: done", w->upkeep);
    if (!merges && now.what[0] != '\0' && (other || at >= w->upkeep_said_ms + UPKEEP_SAID_MS)) {
        w->upkeep_said_ms = at;
        log_info("%s reports: %llu of %llu", now.what, (unsigned long long)now.done, (unsigned long long)now.total);
    }
    w->upkeep = now.what;
}

void upkeep_tell(struct writer *w)
{
    if (w->purging ? clock_mono_ms() < w->upkeep_at_ms : w->upkeep[0] == '\0')
        return;
    w->upkeep_at_ms = clock_mono_ms() + UPKEEP_EVERY_MS;
    tell(w);
}
