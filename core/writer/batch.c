#include "core/writer/writer_internal.h"

#include "core/base/log.h"
#include "core/shm/request_stats.h"

#include <stdlib.h>

#define FULL_EVERY_MS 60000

/* the channel's earlier connection, gone in this very batch: what it has in the transaction is not noted there yet */
static struct client *earlier_of(const struct writer *w, const struct client *p)
{
    for (size_t i = 0; i < w->clients_count; i++)
        if (w->clients[i] != p && w->clients[i]->id == p->id && w->clients[i]->loaded)
            return w->clients[i];
    return NULL;
}

/* where the channel stands; of two connections the later goes on from where the earlier is, and notes it */
static void load_channel(struct writer *w, struct store_txn *t, struct client *p)
{
    struct str answers;
    struct client *earlier = earlier_of(w, p);
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
    const struct kept *kept = (const struct kept *)(const void *)item->client->kept.p;
    item->answer = (struct store_answer){.status = STORE_INVALID}; /* confirmed, then: nobody waits for it */
    for (size_t i = 0; i < item->client->kept.n / sizeof(*kept); i++)
        if (kept[i].sequence == item->sequence)
            item->answer = kept[i].answer;
}

static void apply(struct writer *w, struct store_txn *t, struct item *item, int64_t now_ms)
{
    struct client *p = item->client;
    if (p != NULL && !p->loaded)
        load_channel(w, t, p);
    if (p != NULL && item->sequence <= p->sequence) {
        answer_again(item);
        return;
    }
    item->answer = (struct store_answer){0};
    item->change.beside =
        item->change.limit == 0 ? 0 : queue_withdrawn(w->queue, item->change.workspace);
    store_apply(t, &item->change, now_ms, &item->answer);
    if (p == NULL)
        return;
    struct kept kept = {item->sequence, item->answer};
    p->sequence = item->sequence;
    buf_add(&p->kept, &kept, sizeof(kept));
}
static void note_channels(struct writer *w, struct store_txn *t)
{
    for (size_t i = 0; i < w->clients_count; i++) {
        struct client *p = w->clients[i];
        if (p->sequence != p->sequence_committed)
            store_channel_note(t, p->id, p->sequence, buf_view(&p->kept));
    }
    for (size_t i = 0; i < w->dropped_count; i++)
        if (!client_is_open(w, w->dropped[i])) /* it may have come back meanwhile */
            store_channel_drop(t, w->dropped[i]);
}

static void settle_channels(struct writer *w, bool committed)
{
    for (size_t i = 0; i < w->clients_count; i++) {
        struct client *p = w->clients[i];
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

void writer_synced(struct writer *w)
{
    process_beat(w->process); /* before it counts as busy again: the disk's time is not ours */
    score_set(w->process->score->phase, PHASE_READY);
}

static enum store_status commit(struct writer *w, struct store_txn *t)
{
    score_set(w->process->score->phase, PHASE_SYNCING);
    uint64_t began = clock_mono_us();
    enum store_status status = store_commit(t);
    request_stats_committed(w->process->request_stats, w->applied > 0 ? w->applied : 1, clock_mono_us() - began);
    writer_synced(w);
    score_add(w->process->score->batches, 1);
    return status;
}

static void begin(struct writer *w)
{
    w->status = store_begin(w->store, &w->txn);
    if (w->status != STORE_OK)
        w->txn = NULL;
    else
        writer_maintenance_bound(w);
}

void batch_apply_arrived(struct writer *w)
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

/* an operator must see a full store in the log, but not once per refused request */
static void report_full(struct writer *w)
{
    uint64_t now = clock_mono_ms();
    for (size_t i = 0; i < w->batch_count; i++)
        if (w->batch[i].answer.status == STORE_FULL && now >= w->full_said_ms + FULL_EVERY_MS) {
            w->full_said_ms = now;
            log_error("the store is full, creates are refused while reads and deletes go on: %s", store_why(w->store));
        }
}

/* nothing was committed, but the answer must be the same if it is asked for again: the next commit notes it */
static void refuse(struct item *item, enum store_status status)
{
    struct client *p = item->client;
    item->answer = (struct store_answer){.status = status};
    if (p == NULL || item->sequence <= p->sequence)
        return;
    struct kept kept = {item->sequence, item->answer};
    p->sequence = item->sequence;
    buf_add(&p->kept, &kept, sizeof(kept));
}

/*
 * Callers wait for their answers, and what else workers are told goes with them, since each sending wakes them; nobody waits for what a commit sets
 * off here: that comes after.
 */
static void answer_batch(struct writer *w, bool together)
{
    for (size_t i = 0; i < w->batch_count; i++) {
        struct item *item = &w->batch[i];
        if (item->client != NULL)
            channel_put(&item->client->channel, FRAME_ANSWER, item->sequence, 0,
                        (struct str){(const char *)&item->answer, sizeof(item->answer)});
        else if (item->thread != NULL)
            background_thread_done(item->thread, &item->answer);
        else if (item->change.kind == CHANGE_PURGE)
            w->purging = item->answer.status == STORE_OK;
        else if (item->change.kind == CHANGE_RETAIN && item->answer.status != STORE_OK)
            w->retaining &= ~item->change.fields;
    }
    if (together)
        events_tell(w);
    clients_flush(w);
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
        if (status == STORE_OK) {
            events_tell(w);
            events_follow(w, &w->batch[i], 1);
        } else
            refuse(&w->batch[i], status);
    }
    return status;
}

/* Nobody sends results again that did not fit: hold them, or sweep their jobs when there is room. */
static void end_items(struct writer *w)
{
    bool full = false;
    for (size_t i = 0; i < w->batch_count; i++) {
        struct item *item = &w->batch[i];
        bool homeless = item->change.kind == CHANGE_REPORT_FINISH && item->answer.status == STORE_FULL;
        bool held = homeless && deferred_add(w, item);
        if (homeless && !held)
            w->sweep_at_ms = clock_mono_ms();
        if (!held)
            free(item->payload);
        full = full || homeless;
    }
    deferred_settle(w, full);
    w->batch_count = 0;
}

/* what was answered is safe; what was not is sent again to the writer that follows */
void writer_reopens(struct writer *w)
{
    log_error("the store cannot be written, the writer starts again: %s", store_why(w->store));
    exit(EXIT_START);
}

void batch_apply(struct writer *w)
{
    if (w->batch_count == 0 && w->dropped_count == 0)
        return;
    score_set(w->process->score->busy_since_ms, clock_mono_ms());
    batch_apply_arrived(w);
    enum store_status status = end_batch(w);
    bool together = status == STORE_OK;
    if (!together && status != STORE_IO)
        status = apply_singly(w);
    if (status == STORE_IO)
        writer_reopens(w);
    answer_batch(w, together);
    if (together)
        events_follow(w, w->batch, w->batch_count);
    score_add(w->process->score->requests, w->batch_count);
    report_full(w);
    end_items(w);
}
