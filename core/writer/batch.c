#include "core/writer/batch.h"

#include "core/shm/request_stats.h"
#include "core/writer/grow.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define BACKGROUND_US 1500        /* of background work in a transaction, before its commit */
#define BACKGROUND_RECORDS_MIN 25 /* applied even while callers wait, so that the work ends */

/* ---- items ---- */

struct item *batch_add(struct batch *b, struct client *client, uint64_t sequence)
{
    b->items = array_grow(b->items, b->count, &b->capacity, sizeof(*b->items));
    struct item *item = &b->items[b->count++];
    *item = (struct item){.client = client, .sequence = sequence};
    return item;
}

/* a copy, since a channel's buffer moves with the next read */
bool item_decode(struct item *item, struct str payload)
{
    item->payload = malloc(payload.n + 1);
    if (item->payload == NULL)
        return false;
    memcpy(item->payload, payload.p, payload.n);
    return change_decode((struct str){item->payload, payload.n}, &item->change);
}

/* ---- background work in the transaction ---- */

static bool callers_wait(const struct batch *b)
{
    struct pollfd waiting = {b->epoll, POLLIN, 0};
    return poll(&waiting, 1, 0) > 0;
}

static bool is_background_over(void *arg)
{
    struct batch *b = arg;
    return clock_mono_us() >= b->background_until_us ||
           (++b->background_records >= BACKGROUND_RECORDS_MIN && callers_wait(b));
}

/* ---- the transaction ---- */

static void begin(struct batch *b)
{
    b->status = store_begin(b->store, &b->txn);
    if (b->status != STORE_OK) {
        b->txn = NULL;
        return;
    }
    store_txn_stop_when(b->txn, is_background_over, b);
    b->background_until_us = clock_mono_us() + BACKGROUND_US;
    b->background_records = 0;
}

static void apply(struct batch *b, struct item *item, int64_t now_ms)
{
    struct client *client = item->client;
    if (client != NULL)
        sequences_load(b->sequences, b->txn, client);
    if (client != NULL && sequence_is_applied(client, item->sequence)) {
        item->answer = sequence_answer(client, item->sequence);
        return;
    }
    item->answer = (struct store_answer){0};
    item->change.beside =
        item->change.limit == 0 ? 0 : job_queue_withdrawn(b->queue, item->change.workspace);
    store_apply(b->txn, &item->change, now_ms, &item->answer);
    if (client != NULL)
        sequence_record(client, item->sequence, &item->answer);
}

void batch_apply_arrived(struct batch *b)
{
    if (b->txn == NULL && b->status == STORE_OK)
        begin(b);
    int64_t now_ms = leading_now_ms(b->leading);
    while (b->txn != NULL && b->applied < b->count && store_txn_error(b->txn) == STORE_OK) {
        apply(b, &b->items[b->applied++], now_ms);
        process_heartbeat(b->process); /* a hundred large documents take a second */
    }
}

static enum store_status commit(struct batch *b)
{
    score_set(b->process->score->phase, PHASE_SYNCING);
    uint64_t began = clock_mono_us();
    enum store_status status = store_commit(b->txn);
    request_stats_count_commit(b->process->request_stats, b->applied > 0 ? b->applied : 1,
                               clock_mono_us() - began);
    process_heartbeat(b->process); /* the time of the disk does not count against the writer */
    score_set(b->process->score->phase, PHASE_READY);
    score_add(b->process->score->batches, 1);
    return status;
}

enum store_status batch_commit(struct batch *b)
{
    enum store_status status = b->status;
    if (b->txn != NULL) {
        sequences_save(b->sequences, b->txn);
        status = store_txn_error(b->txn);
        if (status == STORE_OK && b->leading->thread != NULL && b->leading->leads)
            status = leading_log(b->leading, b->txn, b->applied > 1);
        if (status == STORE_OK)
            status = commit(b);
        else
            store_abort(b->txn);
        leading_settle(b->leading, status);
        sequences_settle(b->sequences, status == STORE_OK);
    }
    b->txn = NULL;
    b->status = STORE_OK;
    b->applied = 0;
    return status;
}

enum store_status batch_apply_some(struct batch *b, size_t from, size_t count)
{
    int64_t now_ms = leading_now_ms(b->leading);
    begin(b);
    for (; b->applied < count && b->status == STORE_OK && store_txn_error(b->txn) == STORE_OK;
         b->applied++)
        apply(b, &b->items[from + b->applied], now_ms);
    return batch_commit(b);
}

void batch_free(struct batch *b)
{
    free(b->items);
}
