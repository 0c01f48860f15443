#include "core/writer/commit.h"

#include "core/base/log.h"

#include <stdlib.h>

#define FULL_LOG_MS 60000 /* between two lines of the log about a full store */

/* the next commit saves the answer, so that the change gets the same one when it is sent again */
static void refuse(struct item *item, enum store_status status)
{
    struct client *client = item->client;
    item->answer = (struct store_answer){.status = status};
    if (client != NULL && !sequence_is_applied(client, item->sequence))
        sequence_record(client, item->sequence, &item->answer);
}

static enum store_status apply_each_alone(struct committer *c)
{
    struct batch *b = c->batch;
    enum store_status status = STORE_OK;
    for (size_t i = 0; status != STORE_IO && i < b->count; i++) {
        process_heartbeat(c->process);
        status = batch_apply_alone(b, &b->items[i]);
        if (status == STORE_OK) {
            change_feed_notify(c->change_feed);
            change_feed_follow(c->change_feed, &b->items[i], 1);
        } else
            refuse(&b->items[i], status);
    }
    return status;
}

/*
 * Answers and events go out in one send, since each wakes a worker. The rest of the change feed
 * follows later: no caller waits for it.
 */
static void answer(struct committer *c, bool whole)
{
    for (size_t i = 0; i < c->batch->count; i++) {
        struct item *item = &c->batch->items[i];
        const struct str payload = {(const char *)&item->answer, sizeof(item->answer)};
        if (item->client != NULL)
            channel_put(&item->client->channel, FRAME_ANSWER, item->sequence, 0, payload);
        else if (item->done != NULL)
            item->done(item->done_arg, item);
    }
    if (whole)
        change_feed_notify(c->change_feed);
    clients_flush(c->clients);
}

static void log_if_full(struct committer *c)
{
    uint64_t now = clock_mono_ms();
    for (size_t i = 0; i < c->batch->count; i++)
        if (c->batch->items[i].answer.status == STORE_FULL &&
            now >= c->full_logged_ms + FULL_LOG_MS) {
            c->full_logged_ms = now;
            log_error("store full: creates are refused, reads and deletes continue: %s",
                      store_why(c->store));
        }
}

/* free the items, and defer the grading results that did not fit */
static void empty_batch(struct committer *c)
{
    bool full = false;
    for (size_t i = 0; i < c->batch->count; i++) {
        struct item *item = &c->batch->items[i];
        bool refused =
            item->change.kind == CHANGE_REPORT_FINISH && item->answer.status == STORE_FULL;
        bool deferred = refused && deferred_add(c->deferred, item);
        if (refused && !deferred)
            writer_maintenance_sweep(c->maintenance);
        if (!deferred)
            free(item->payload);
        full = full || refused;
    }
    deferred_settle(c->deferred, full);
    c->batch->count = 0;
}

void commit_batch(struct committer *c)
{
    struct batch *b = c->batch;
    if (b->count == 0 && !sequences_pending(c->sequences))
        return;
    score_set(c->process->score->busy_since_ms, clock_mono_ms());
    batch_apply_arrived(b);
    enum store_status status = batch_commit(b);
    bool whole = status == STORE_OK;
    if (!whole && status != STORE_IO)
        status = apply_each_alone(c);
    if (status == STORE_IO) {
        log_error("the store cannot be written: restarting the writer: %s", store_why(c->store));
        exit(EXIT_START);
    }
    answer(c, whole);
    if (whole)
        change_feed_follow(c->change_feed, b->items, b->count);
    score_add(c->process->score->requests, b->count);
    log_if_full(c);
    empty_batch(c);
}
