/*
 * A batch: the changes that are applied in one transaction. batch_apply_arrived applies what was
 * added so far, while more arrives; batch_commit ends the transaction.
 */
#ifndef ASSAY_WRITER_BATCH_H
#define ASSAY_WRITER_BATCH_H

#include "core/writer/job_queue.h"
#include "core/writer/leading.h"
#include "core/writer/sequences.h"

struct item;
typedef void item_done_fn(void *arg, const struct item *item);

struct item {
    struct client *client; /* who gets the answer; NULL: the writer's own change */
    uint64_t sequence;
    struct store_change change;
    char *payload; /* the bytes that ${change} points at; freed with the item */
    struct store_answer answer;
    item_done_fn *done; /* called with the answer, where it is not NULL */
    void *done_arg;
    uint64_t handed_us; /* a grading result: when its auditor got the page */
};

struct batch {
    struct process *process;
    struct store *store;
    struct sequences *sequences;
    struct job_queue *queue;
    struct leading *leading;
    int epoll; /* readable: callers wait */
    struct item *items;
    size_t count, capacity;
    size_t bytes;             /* of the items of senders */
    size_t applied;           /* the first ${applied} items are in ${txn} */
    struct store_txn *txn;    /* from the first change on; NULL: not begun, or begin failed */
    enum store_status status; /* of that begin */
    /* the limit of background work in this transaction */
    uint64_t background_until_us;
    size_t background_records;
};

/* batch_add(b, client, sequence): a new item; the caller fills in its change. */
struct item *batch_add(struct batch *b, struct client *client, uint64_t sequence);

/* batch_is_full(b): senders of other nodes wait for the next batch. */
#define BATCH_FULL_BYTES (8u << 20)
static inline bool batch_is_full(const struct batch *b)
{
    return b->bytes >= BATCH_FULL_BYTES;
}

/* item_decode(item, payload): copy ${payload} and decode its change; false: it is none. */
bool item_decode(struct item *item, struct str payload);

/*
 * batch_apply_arrived(b): apply the items added since the last call.
 * batch_commit(b): commit the transaction, or undo it as a whole when a change failed.
 * batch_apply_some(b, from, count): apply and commit these items, after batch_commit failed.
 */
void batch_apply_arrived(struct batch *b);
enum store_status batch_commit(struct batch *b);
enum store_status batch_apply_some(struct batch *b, size_t from, size_t count);

void batch_free(struct batch *b);

#endif
