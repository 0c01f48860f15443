/*
 * The writer: the only process that changes the store.
 *
 *   sockets → frames → a batch (all that waits, of everybody) → one transaction → commit, fsync → answers, events → jobs out → loop
 *
 * While it syncs, the next batch gathers in the sockets. A batch that fails half-way is undone and applied again one change at a time, so
 * that a change that fails undoes only itself.
 */
#include "writer.h"

#include "log.h"
#include "slice.h"
#include "traffic.h"
#include "api/render.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define PURGE_HOLD_US 3000 /* that work in the background should hold a transaction, beside what a commit of next to nothing takes */
#define PURGE_WORK_US 1500 /* of them, before the commit */
#define PURGE_LONG_US 20000 /* one that took longer, for others have the disk or the cores, is followed by a rest as long */
#define PURGE_AHEAD_US 3000 /* what is read for it between two transactions, in up to so many turns */
#define PURGE_AHEAD_TURNS 16
#define GATHER_MAX_US 2000
#define IDLE_US 250000
#define TRAVEL_US 16 /* a caller's answer there and its next change back, workers and callers on the cores beside */
#define SMALL_BATCH 4
#define FULL_EVERY_MS 60000
#define BROUGHT_UP_EVERY_MS 5000
#define UPKEEP_SAID_MS 5000
#define UPKEEP_EVERY_MS 1000
#define PURGE_EVERY_MS 60000
#define SWEEP_EVERY_MS 30000
#define SWEEP_FULL_MS 300000
#define STALE_CHANNEL_MS 60000

static uint64_t mono_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* ---- the batch ---- */

/* the channel's earlier connection, gone in this very batch: what it has in the transaction is not noted there yet */
static struct peer *earlier_of(const struct writer *w, const struct peer *p)
{
    for (size_t i = 0; i < w->peers_count; i++)
        if (w->peers[i] != p && w->peers[i]->id == p->id && w->peers[i]->loaded)
            return w->peers[i];
    return NULL;
}

/* where the channel stands; of two connections the later goes on from where the earlier is, and notes it */
static void load_channel(struct writer *w, struct store_txn *t, struct peer *p)
{
    struct str answers;
    struct peer *earlier = earlier_of(w, p);
    p->loaded = true;
    if (earlier != NULL) {
        buf_free(&p->kept);
        p->kept = earlier->kept;
        p->kept_committed = earlier->kept_committed;
        p->sequence = earlier->sequence;
        p->sequence_committed = earlier->sequence_committed;
        earlier->kept = (struct buf){0};
        earlier->kept_committed = 0;
        earlier->id = 0;
        earlier->sequence = earlier->sequence_committed = UINT64_MAX; /* nothing of it is applied or noted any more */
    } else if (store_channel_get(t, p->id, &p->sequence, &answers) == STORE_OK) {
        buf_str(&p->kept, answers);
        p->kept_committed = p->kept.n / sizeof(struct kept);
        p->sequence_committed = p->sequence;
    }
}

/* committed before: the same answer */
static void answer_again(struct item *item)
{
    const struct kept *kept = (const struct kept *)(const void *)item->peer->kept.p;
    item->answer = (struct store_answer){.status = STORE_INVALID}; /* confirmed, then: nobody waits for it */
    for (size_t i = 0; i < item->peer->kept.n / sizeof(*kept); i++)
        if (kept[i].sequence == item->sequence)
            item->answer = kept[i].answer;
}

static void apply(struct writer *w, struct store_txn *t, struct item *item, int64_t now_ms)
{
    struct peer *p = item->peer;
    if (p != NULL && !p->loaded)
        load_channel(w, t, p);
    if (p != NULL && item->sequence <= p->sequence) {
        answer_again(item);
        return;
    }
    item->answer = (struct store_answer){0};
    store_apply(t, &item->change, now_ms, &item->answer);
    if (p == NULL)
        return;
    struct kept kept = {item->sequence, item->answer};
    p->sequence = item->sequence;
    buf_add(&p->kept, &kept, sizeof(kept));
}

static bool is_open(const struct writer *w, uint64_t channel)
{
    for (size_t i = 0; i < w->peers_count; i++)
        if (w->peers[i]->id == channel && !w->peers[i]->gone)
            return true;
    return false;
}

static void note_channels(struct writer *w, struct store_txn *t)
{
    for (size_t i = 0; i < w->peers_count; i++) {
        struct peer *p = w->peers[i];
        if (p->sequence != p->sequence_committed)
            store_channel_note(t, p->id, p->sequence, buf_view(&p->kept));
    }
    for (size_t i = 0; i < w->dropped_count; i++)
        if (!is_open(w, w->dropped[i])) /* it may have come back meanwhile */
            store_channel_drop(t, w->dropped[i]);
}

static void settle_channels(struct writer *w, bool committed)
{
    for (size_t i = 0; i < w->peers_count; i++) {
        struct peer *p = w->peers[i];
        if (committed) {
            p->sequence_committed = p->sequence;
            p->kept_committed = p->kept.n / sizeof(struct kept);
        } else {
            p->sequence = p->sequence_committed;
            p->kept.n = p->kept_committed * sizeof(struct kept);
        }
    }
    if (committed)
        w->dropped_count = 0;
}

static enum store_status commit(struct writer *w, struct store_txn *t)
{
    score_set(w->process->score->phase, PHASE_SYNCING);
    uint64_t began = mono_us();
    enum store_status status = store_commit(t);
    traffic_committed(w->process->traffic, w->applied > 0 ? w->applied : 1, mono_us() - began);
    process_beat(w->process); /* before it counts as busy again: the disk's time is not ours */
    score_set(w->process->score->phase, PHASE_READY);
    score_add(w->process->score->batches, 1);
    return status;
}

static bool is_late(void *arg)
{
    const struct writer *w = arg;
    return mono_us() >= w->patience.until_us;
}

/* work in the background, which callers do not wait for: it goes on a little where some are there, and no longer */
static bool is_over(void *arg)
{
    struct writer *w = arg;
    struct pollfd waiting = {w->epoll, POLLIN, 0};
    return is_late(w) || (++w->patience.asked >= SLICE_RECORDS_MIN && poll(&waiting, 1, 0) > 0);
}

static void be_patient(struct writer *w, uint64_t us)
{
    w->patience.until_us = mono_us() + us;
    w->patience.asked = 0;
}

static void begin(struct writer *w)
{
    w->status = store_begin(w->store, &w->txn);
    if (w->status != STORE_OK)
        w->txn = NULL;
    else
        store_txn_pause(w->txn, is_over, w);
    be_patient(w, PURGE_WORK_US);
}

/* put what has come into the batch's transaction, while more is on its way */
static void apply_arrived(struct writer *w)
{
    if (w->txn == NULL && w->status == STORE_OK)
        begin(w);
    int64_t now_ms = clock_wall_ms();
    for (; w->txn != NULL && w->applied < w->batch_count && store_txn_error(w->txn) == STORE_OK; w->applied++) {
        apply(w, w->txn, &w->batch[w->applied], now_ms);
        process_beat(w->process); /* a hundred large documents take a second, and many such may wait */
    }
}

/* commit the batch's transaction, or undo it as a whole */
static enum store_status end_batch(struct writer *w)
{
    enum store_status status = w->status;
    if (w->txn != NULL) {
        note_channels(w, w->txn);
        status = store_txn_error(w->txn);
        if (status == STORE_OK)
            status = commit(w, w->txn);
        else
            store_abort(w->txn);
        settle_channels(w, status == STORE_OK);
    }
    w->txn = NULL;
    w->status = STORE_OK;
    w->applied = 0;
    return status;
}

static void after_commit(struct writer *w, const struct item *items, size_t items_count);

/* an operator must see a full store in the log, but not once per refused request */
static void report_full(struct writer *w)
{
    uint64_t now = clock_mono_ms();
    for (size_t i = 0; i < w->batch_count; i++)
        if (w->batch[i].answer.status == STORE_FULL && now >= w->full_said_ms + FULL_EVERY_MS) {
            w->full_said_ms = now;
            log_error(
                "the store is full, creates are refused while reads and deletes go on: make room on the disk, or raise store.map_size (%s)",
                store_why(w->store));
        }
}

/* nothing was committed, but the answer must be the same if it is asked for again: the next commit notes it */
static void refuse(struct item *item, enum store_status status)
{
    struct peer *p = item->peer;
    item->answer = (struct store_answer){.status = status};
    if (p == NULL || item->sequence <= p->sequence)
        return;
    struct kept kept = {item->sequence, item->answer};
    p->sequence = item->sequence;
    buf_add(&p->kept, &kept, sizeof(kept));
}

static void flush(struct writer *w)
{
    for (size_t i = 0; i < w->peers_count; i++)
        peer_flush(w, w->peers[i]);
}

/* Callers wait for their answers, nobody for what a commit sets off: that comes after them. */
static void answer_batch(struct writer *w)
{
    for (size_t i = 0; i < w->batch_count; i++) {
        struct item *item = &w->batch[i];
        if (item->peer != NULL)
            channel_put(&item->peer->channel, FRAME_ANSWER, item->sequence, 0,
                        (struct str){(const char *)&item->answer, sizeof(item->answer)});
        else if (item->change.kind == CHANGE_PURGE)
            w->purging = item->answer.status == STORE_OK;
        else if (item->change.kind == CHANGE_RETAIN && item->answer.status != STORE_OK)
            w->retaining &= ~item->change.fields;
    }
    flush(w);
}

static enum store_status try_one(struct writer *w, struct item *item)
{
    begin(w);
    if (w->status == STORE_OK)
        apply(w, w->txn, item, clock_wall_ms());
    return end_batch(w);
}

/* A batch that failed half-way was undone: each of its changes in a transaction of its own. */
static enum store_status apply_singly(struct writer *w)
{
    enum store_status status = STORE_OK;
    for (size_t i = 0; status != STORE_IO && i < w->batch_count; i++) {
        process_beat(w->process);
        status = try_one(w, &w->batch[i]);
        if (status == STORE_OK)
            after_commit(w, &w->batch[i], 1);
        else
            refuse(&w->batch[i], status);
    }
    return status;
}

/* nobody would send findings again that found no room */
static void end_items(struct writer *w)
{
    bool full = false;
    for (size_t i = 0; i < w->batch_count; i++) {
        struct item *item = &w->batch[i];
        bool homeless = item->change.kind == CHANGE_REPORT_FINISH && item->answer.status == STORE_FULL;
        if (!homeless || !held_add(w, item))
            free(item->payload);
        full = full || homeless;
    }
    held_settle(w, full);
    w->batch_count = 0;
}

static void apply_batch(struct writer *w)
{
    if (w->batch_count == 0 && w->dropped_count == 0)
        return;
    score_set(w->process->score->busy_since_ms, clock_mono_ms());
    apply_arrived(w);
    enum store_status status = end_batch(w);
    bool together = status == STORE_OK;
    if (!together && status != STORE_IO)
        status = apply_singly(w);
    if (status == STORE_IO) {
        /* what was answered is safe; what was not is sent again to the writer that follows, which opens the store anew */
        log_error("the store cannot be written, the writer starts again: %s", store_why(w->store));
        exit(EXIT_START);
    }
    answer_batch(w);
    if (together)
        after_commit(w, w->batch, w->batch_count);
    score_add(w->process->score->requests, w->batch_count);
    report_full(w);
    end_items(w);
}

/* ---- what a commit sets off ---- */

/* a created report's URL is still in the change that made it; events come in the order of their changes */
static const struct store_change *change_behind(const struct store_event *e, const struct item **at, const struct item *end)
{
    for (; *at < end; ++*at)
        if ((*at)->change.kind == CHANGE_REPORT_CREATE && (*at)->answer.id == e->id && (*at)->answer.status == STORE_OK)
            return &(*at)->change;
    return NULL;
}

static void job_added(struct writer *w, const struct store_event *e, const struct store_change *created)
{
    struct store_job job = {.workspace = e->workspace, .report = e->id, .attempt = (uint32_t)e->value};
    if (created != NULL)
        job.url = created->url;
    else if (!store_job_get(w->store, e->id, &job))
        return;
    if (!queue_add(w->queue, job.workspace, job.report, job.attempt, job.url))
        log_error("out of memory: report %llu waits for the next sweep", (unsigned long long)e->id);
    store_read_end(w->store);
}

/* findings that were kept; an auditor that died over a page left none */
static void note_graded(struct writer *w, const struct store_event *e, const struct item *items, size_t items_count)
{
    const struct item *at = items, *end = items + items_count;
    while (at < end && (at->change.kind != CHANGE_REPORT_FINISH || at->change.id != e->id))
        at++;
    if (at < end)
        traffic_graded(w->process->traffic, at->change.status == REPORT_DONE, mono_us() - at->handed_us);
    else
        traffic_graded(w->process->traffic, false, TRAFFIC_UNTIMED);
}

static void tell_workers(struct writer *w, const struct store_event *e)
{
    for (size_t k = 0; k < w->peers_count; k++)
        if (w->peers[k]->role == ROLE_WORKER && !w->peers[k]->gone)
            channel_put(&w->peers[k]->channel, FRAME_EVENT, 0, 0, (struct str){(const char *)e, sizeof(*e)});
}

static void after_commit(struct writer *w, const struct item *items, size_t items_count)
{
    size_t count;
    const struct store_event *events = store_events(w->store, &count);
    const struct item *at = items;
    for (size_t i = 0; i < count; i++) {
        const struct store_event *e = &events[i];
        if (e->kind == EVENT_JOB_ADDED) {
            const struct item *from = at;
            const struct store_change *created = change_behind(e, &at, items + items_count);
            at = created == NULL ? from : at;
            job_added(w, e, created);
            continue;
        }
        if (e->kind == EVENT_PURGE)
            w->purging = true;
        if (e->kind == EVENT_REPORT_DELETED || e->kind == EVENT_REPORT_FINISHED) {
            struct queue_job *job = queue_find(w->queue, e->id);
            if (e->kind == EVENT_REPORT_FINISHED)
                note_graded(w, e, items, items_count);
            if (job != NULL)
                queue_remove(w->queue, job);
        }
        tell_workers(w, e);
    }
}

static struct peer *auditor_at(struct writer *w, int index)
{
    for (size_t i = 0; i < w->peers_count; i++)
        if (w->peers[i]->role == ROLE_AUDITOR && w->peers[i]->greeted && !w->peers[i]->gone && !w->peers[i]->drained &&
            (int)w->peers[i]->index == index)
            return w->peers[i];
    return NULL;
}

static void hand_out(struct writer *w)
{
    struct queue_job *job;
    while ((job = queue_next(w->queue)) != NULL) {
        struct peer *p = auditor_at(w, job->auditor);
        if (p == NULL) { /* it drains: its place is not there until the next one greets */
            unsigned index = (unsigned)job->auditor;
            queue_back(w->queue, job);
            queue_auditor_went(w->queue, index, false);
            continue;
        }
        job->handed_us = mono_us();
        channel_put(&p->channel, FRAME_JOB, job->report, job->attempt, (struct str){job->url, job->url_size});
    }
    score_set(w->process->score->pending, queue_size(w->queue));
}

/* ---- what time brings ---- */

static void take_job(void *arg, const struct store_job *job)
{
    struct writer *w = arg;
    if (held_has(w, job->report)) /* or a newer attempt of it: that is found when the old findings are refused */
        return;
    if (!queue_add(w->queue, job->workspace, job->report, job->attempt, job->url))
        log_error("out of memory: report %llu waits for the next sweep", (unsigned long long)job->report);
}

/* jobs are rows of the store: whatever a crash left there is found here */
static void sweep_jobs(struct writer *w)
{
    enum store_status status = store_job_each(w->store, take_job, w);
    store_read_end(w->store);
    if (status != STORE_OK)
        log_error("the pending jobs cannot be read: %s", store_why(w->store));
}

static void note_stale(void *arg, uint64_t channel, uint64_t sequence)
{
    struct writer *w = arg;
    (void)sequence;
    if (!is_open(w, channel))
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

static void on_time(struct writer *w)
{
    uint64_t now = clock_mono_ms();
    if (now >= w->purge_at_ms) {
        w->purge_at_ms = now + PURGE_EVERY_MS;
        w->purging = true;
        w->retaining = RETAIN_EVENTS | RETAIN_CONVERSATIONS;
        store_reader_check(w->store);
    }
    if (now >= w->sweep_at_ms) {
        /* findings that found no room left their jobs behind: no page is fetched for a store that stays full */
        bool full = w->full_said_ms != 0 && now - w->full_said_ms < SWEEP_FULL_MS;
        w->sweep_at_ms = now + SWEEP_EVERY_MS;
        if (!full)
            sweep_jobs(w);
    }
    if (w->stale_at_ms != 0 && now >= w->stale_at_ms) {
        w->stale_at_ms = 0;
        drop_stale_channels(w);
    }
}

/*
 * While no transaction is under way. What a slow disk has not brought yet may come in the next turns, and all of it is deleted at once. It ends by
 * the clock alone: ended by callers, it would seem to wait for the disk for as long as some are there.
 */
static void look_ahead(struct writer *w)
{
    be_patient(w, PURGE_AHEAD_US);
    w->purge_ready = w->purging ? store_purge_ahead(w->store, w->purge_slice, is_late, w) : 0;
    if (w->purge_ready == w->purge_slice || !w->purging)
        w->purge_waited = 0;
    else if (w->purge_waited++ % PURGE_AHEAD_TURNS != 0)
        w->purge_ready = 0;
}

/* ${us}, ${cpu_us}: what a transaction of work in the background took, the commit included */
static void note_hold(struct writer *w, uint64_t us, uint64_t cpu_us)
{
    struct score *score = w->process->score;
    if (us > score_get(score->stretch_us))
        score_set(score->stretch_us, us);
    if (cpu_us > score_get(score->stretch_cpu_us))
        score_set(score->stretch_cpu_us, cpu_us);
    w->purge_slice = slice_next(w->purge_slice, us, w->small_commit_us + PURGE_HOLD_US);
    w->rest_until_us = us > PURGE_LONG_US ? mono_us() + us : 0;
}

/* what goes on in the background: on the scoreboard, and in the log when it begins, every few seconds, and at its end */
static void tell_upkeep(struct writer *w)
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

/* ---- its life ---- */

/* what is ready within ${timeout_us}; false: nothing is */
static bool read_ready(struct writer *w, uint64_t timeout_us)
{
    struct epoll_event events[64];
    struct timespec most = {(time_t)(timeout_us / 1000000), (long)(timeout_us % 1000000) * 1000};
    struct pollfd ready = {w->epoll, POLLIN, 0};
    if (timeout_us > 0 && ppoll(&ready, 1, &most, NULL) <= 0) /* epoll_wait knows milliseconds only */
        return false;
    int n = epoll_wait(w->epoll, events, 64, 0);
    for (int i = 0; i < n; i++) {
        struct peer *p = events[i].data.ptr;
        if (p == NULL)
            peers_accept(w);
        else if (!p->gone && (events[i].events & EPOLLOUT) != 0)
            peer_flush(w, p);
        if (p != NULL && !p->gone && (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
            peer_read(w, p);
    }
    return n > 0;
}

/* how many are at it: those of the last batch, and those who came while it was committed. Who left is forgotten bit by bit. */
static void count_callers(struct writer *w)
{
    size_t now = w->last_size + w->batch_count, before = w->callers - w->callers / 16;
    w->callers = now > before ? now : before;
    w->last_size = 0;
}

/* for how long there is nothing to do but for callers */
static uint64_t upkeep_rests_us(const struct writer *w)
{
    uint64_t now = mono_us();
    if (!w->purging && w->retaining == 0)
        return IDLE_US;
    return now >= w->rest_until_us ? 0 : w->rest_until_us - now < IDLE_US ? w->rest_until_us - now : IDLE_US;
}

static void wait_and_read(struct writer *w)
{
    score_set(w->process->score->busy_since_ms, 0);
    read_ready(w, 0);
    if (w->last_size > 0)
        count_callers(w);
    uint64_t most = upkeep_rests_us(w);
    if (most > 0 && w->batch_count == 0)
        read_ready(w, most);
    process_beat(w->process);
}

/*
 * Who waits for an answer sends nothing, so a commit that takes everybody leaves the workers idle, and then waits for them itself. With half
 * of the callers in it, the other half travels meanwhile. That costs a second commit, so it pays where a commit of next to nothing is
 * quicker than the travel it hides; on a slower disk everybody shares one. A lone caller never waits for others.
 */
static size_t batch_wanted(const struct writer *w)
{
    return w->small_commit_us > w->callers * TRAVEL_US ? w->callers : (w->callers + 1) / 2;
}

/* for no longer than a commit takes; what comes is applied meanwhile */
static void gather(struct writer *w)
{
    size_t wanted = batch_wanted(w);
    uint64_t until = mono_us() + (w->commit_us < GATHER_MAX_US ? w->commit_us : GATHER_MAX_US), now;
    while (w->batch_count > 0 && w->batch_count < wanted && (now = mono_us()) < until) {
        apply_arrived(w);
        if (!read_ready(w, until - now))
            break;
    }
}

static uint64_t cpu_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void work(struct writer *w)
{
    size_t size = w->batch_count;
    uint64_t began = mono_us();
    apply_batch(w);
    if (size == 0)
        return;
    w->commit_us = mono_us() - began;
    if (size <= SMALL_BATCH) /* one that had to wait for a core or a busy disk says little */
        w->small_commit_us =
            w->commit_us < w->small_commit_us ? w->commit_us : w->small_commit_us + (w->commit_us - w->small_commit_us) / 8;
    w->last_size = size;
}

static char stage_now[4300]; /* what is under way before the store can be used */

static void stage_begins(void *arg, const char *what)
{
    (void)arg;
    snprintf(stage_now, sizeof(stage_now), "%s", what);
    log_info("%s", what);
}

/*
 * In a transaction of its own, and after the callers' is committed and answered: who comes meanwhile waits for no more than one slice, which
 * is short then. Both have a transaction each turn, so neither waits for the other's end.
 */
static void upkeep(struct writer *w)
{
    if (upkeep_rests_us(w) > 0)
        return;
    look_ahead(w);
    w->retained = w->retaining != 0 && (w->purge_ready == 0 || !w->retained);
    if (w->retained)
        retain(w);
    else if (w->purge_ready != 0)
        writer_batch_add(w, NULL, 0)->change = (struct store_change){.kind = CHANGE_PURGE, .limit = w->purge_ready};
    if (w->batch_count == 0)
        return;
    uint64_t began = mono_us(), cpu = cpu_us();
    apply_batch(w);
    note_hold(w, mono_us() - began, cpu_us() - cpu);
}

/* What an older format lacks is made before anybody can be served: minutes for millions, so it is seen in `assay stats` and in the log. */
static bool brought_up(void *arg, uint64_t done, uint64_t total)
{
    static uint64_t said_ms;
    struct process *p = arg;
    uint64_t now = clock_mono_ms();
    process_beat(p);
    score_set(p->score->requests, done);
    score_set(p->score->pending, total - done);
    if (now >= said_ms + BROUGHT_UP_EVERY_MS)
        log_info("%s: %llu of about %llu", stage_now, (unsigned long long)done, (unsigned long long)total);
    said_ms = now >= said_ms + BROUGHT_UP_EVERY_MS ? now : said_ms;
    return !process_stopping;
}

static struct store *open_store(struct process *p)
{
    char why[512];
    struct store *store;
    struct store_options options = {.dir = p->conf->data_dir,
                                    .map_size = p->conf->store_map_size,
                                    .max_readers = 16 * p->conf->workers + 256,
                                    .mode = STORE_WRITE,
                                    .must_exist = p->store_known,
                                    .renderer = &render_records,
                                    .good = p->conf->reports_good,
                                    .decent = p->conf->reports_decent,
                                    .without_copy = !p->conf->store_copy_before_upgrade,
                                    .now_ms = clock_wall_ms(),
                                    .progress = brought_up,
                                    .stage = stage_begins,
                                    .progress_arg = p};
    if (store_open(&options, &store, why, sizeof(why)) != STORE_OK) {
        if (process_stopping)
            exit(EXIT_STOPPED);
        log_error("data_dir: %s", why);
        exit(EXIT_START);
    }
    score_set(p->score->requests, 0);
    score_set(p->score->pending, 0);
    return store;
}

/*
 * No two writers at any moment: a lock of a file in data_dir, which ends with whoever has it. The one before may just be ending, or dying, and
 * the master that made it may be another.
 */
static void wait_for_store(struct process *p)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/writer.lock", p->conf->data_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), got = -1;
    while (fd >= 0 && (got = flock(fd, LOCK_EX | LOCK_NB)) != 0 && errno == EWOULDBLOCK) {
        if (process_stopping)
            exit(EXIT_STOPPED);
        process_beat(p);
        poll(NULL, 0, 2);
    }
    if (got != 0) {
        log_error("data_dir %s cannot be locked for its writer: %s", p->conf->data_dir, strerror(errno));
        exit(EXIT_START);
    }
}

int writer_run(struct process *p)
{
    wait_for_store(p);
    struct writer w = {.process = p,
                       .store = open_store(p),
                       .queue = queue_new(p->conf->auditors, p->conf->audit_concurrency),
                       .epoll = epoll_create1(EPOLL_CLOEXEC),
                       .upkeep = "",
                       .purge_slice = SLICE_RECORDS_MAX,
                       .purging = true};
    struct epoll_event listen = {.events = EPOLLIN, .data.ptr = NULL};
    if (w.queue == NULL || w.epoll < 0 || epoll_ctl(w.epoll, EPOLL_CTL_ADD, p->writer_fd, &listen) != 0) {
        log_error("the writer cannot start: %s", strerror(errno));
        return EXIT_START;
    }
    sweep_jobs(&w);
    uint64_t now = clock_mono_ms();
    w.sweep_at_ms = now + SWEEP_EVERY_MS;
    w.stale_at_ms = now + STALE_CHANNEL_MS;
    process_phase(p, PHASE_READY);
    while (!process_stopping) {
        wait_and_read(&w);
        on_time(&w);
        held_retry(&w);
        gather(&w);
        work(&w);
        hand_out(&w);
        flush(&w);
        upkeep(&w);
        if (w.purging ? clock_mono_ms() >= w.upkeep_at_ms : w.upkeep[0] != '\0') {
            w.upkeep_at_ms = clock_mono_ms() + UPKEEP_EVERY_MS;
            tell_upkeep(&w);
        }
        flush(&w);
        peers_remove_gone(&w);
    }
    /* not answered is not lost: senders ask the next writer */
    for (size_t i = 0; i < w.peers_count; i++)
        peer_free(w.peers[i]);
    free(w.peers);
    free(w.batch);
    held_free(&w);
    free(w.dropped);
    queue_free(w.queue);
    close(w.epoll);
    store_close(w.store);
    return EXIT_STOPPED;
}
