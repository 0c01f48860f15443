#include "core/writer/commit.h"

#include "core/base/log.h"

#include <stdlib.h>
#include <unistd.h>

#define FULL_LOG_MS 60000 /* between two lines of the log about a full store */
#define FULL_WAIT_MS 2000 /* that deletes of a batch wait for free pages */
#define FULL_RETRY_US 1000

/* the next commit saves the answer, so that the change gets the same one when it is sent again */
static void refuse(struct item *item, enum store_status status)
{
    struct client *client = item->client;
    item->answer = (struct store_answer){.status = status};
    if (client != NULL && !sequence_is_applied(client, item->sequence))
        sequence_record(client, item->sequence, &item->answer);
}

/* A delete needs free pages. Wait for the end of snapshots that keep them. */
static enum store_status apply_one(struct committer *c, size_t i)
{
    enum store_status status = batch_apply_some(c->batch, i, 1);
    while (status == STORE_FULL && c->batch->items[i].client != NULL &&
           clock_mono_ms() < c->wait_until_ms && store_release_pages(c->store)) {
        usleep(FULL_RETRY_US);
        process_heartbeat(c->process);
        status = batch_apply_some(c->batch, i, 1);
    }
    return status;
}

/* Halve the items until those that fail are alone. Returns STORE_IO or STORE_OK. */
static enum store_status apply_in_parts(struct committer *c, size_t from, size_t count)
{
    struct item *items = c->batch->items + from;
    process_heartbeat(c->process);
    enum store_status status =
        count == 1 ? apply_one(c, from) : batch_apply_some(c->batch, from, count);
    if (status == STORE_OK) {
        change_feed_notify(c->change_feed);
        change_feed_follow(c->change_feed, items, count);
        return STORE_OK;
    }
    if (status == STORE_IO)
        return STORE_IO;
    if (count == 1) {
        refuse(items, status);
        return STORE_OK;
    }
    status = apply_in_parts(c, from, count / 2);
    return status == STORE_IO ? STORE_IO : apply_in_parts(c, from + count / 2, count - count / 2);
}

/*
 * Answers and events go out in one send, since each wakes a worker. The rest of the change feed
 * follows later: no caller waits for it.
 */
static void answer(struct committer *c, bool whole)
{
    for (size_t i = 0; i < c->batch->count; i++) {
        struct item *item = &c->batch->items[i];
        if (item->client != NULL)
            client_answer(item->client, item->sequence, c->leading->position.sequence,
                          &item->answer);
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
    c->batch->count = c->batch->bytes = 0;
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
    if (!whole && status != STORE_IO) {
        c->wait_until_ms = clock_mono_ms() + FULL_WAIT_MS;
        status = b->count == 0 ? STORE_OK : apply_in_parts(c, 0, b->count);
    }
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
