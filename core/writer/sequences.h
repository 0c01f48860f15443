/*
 * Each change is applied once, also when its sender sends it again after a lost connection or a
 * crash of the writer. A sender numbers its changes. The store keeps, for each sender, the highest
 * number applied and the answers that the sender has not confirmed; both are committed together
 * with the changes. A change with a number that was applied gets the same answer again.
 *
 * A sender that is gone may come back for a minute. After that the store drops it.
 *
 * Invariant: after that no change is executed that the sender sent before. A change may wait longer
 * in a socket: its writer sleeps or does not start, or its node is stopped with its clocks. So a
 * count decides, and no time. Each drop of a sender raises the count in the same transaction. A
 * sender notes the count of its own store before it first sends a change; later drops are not in
 * it. When it repeats changes, HELLO has the count of the first of them. A writer that does not
 * know the sender executes them if it has the same count. With a greater one it executes none,
 * since it may have, and answers STORE_AWAY: the outcome of a repeated change is then unknown.
 */
#ifndef ASSAY_WRITER_SEQUENCES_H
#define ASSAY_WRITER_SEQUENCES_H

#include "core/writer/clients.h"

/* a sender that left, and when */
struct departed_sender {
    uint64_t id, at_ms;
};

struct sequences {
    struct clients *clients;
    struct store *store;
    struct departed_sender *departed; /* the earliest first */
    size_t departed_count, departed_room;
    uint64_t *dropped; /* to be deleted from the store with the next commit */
    size_t dropped_count, dropped_room;
};

/*
 * sequences_load(s, txn, client): read the state of this sender, once per connection.
 * sequences_show(s): how many senders were dropped, to workers; at the start, and after entries of
 * the log. sequences_settle calls it too.
 */
void sequences_load(struct sequences *s, struct store_txn *txn, struct client *client);
void sequences_show(struct sequences *s);

/*
 * sequence_is_applied(client, sequence): was this change applied before?
 * sequence_answer(client, sequence): the answer it got; STORE_AWAY when it is not known.
 * sequence_record(client, sequence, answer): it was applied, or refused.
 * sequence_confirm(client, sequence): the sender has read the answers up to this one.
 */
bool sequence_is_applied(const struct client *client, uint64_t sequence);
struct store_answer sequence_answer(const struct client *client, uint64_t sequence);
void sequence_record(struct client *client, uint64_t sequence, const struct store_answer *answer);
void sequence_confirm(struct client *client, uint64_t sequence);

/*
 * sequences_save(s, txn): write what changed, before the commit.
 * sequences_settle(s, committed): after it: keep that, or go back to the state before.
 * sequences_pending(s): are there senders to delete?
 */
void sequences_save(struct sequences *s, struct store_txn *txn);
void sequences_settle(struct sequences *s, bool committed);
bool sequences_pending(const struct sequences *s);

/*
 * sequences_depart(s, id): its connection ended.
 * sequences_expire(s): drop the senders that left over a minute ago.
 * sequences_expire_unknown(s): drop the senders in the store that are not connected; once,
 * a minute after the writer's start.
 */
#define SENDER_EXPIRY_MS 60000
void sequences_depart(struct sequences *s, uint64_t id);
void sequences_expire(struct sequences *s, uint64_t now_ms);
void sequences_expire_unknown(struct sequences *s);

void sequences_free(struct sequences *s);

#endif
