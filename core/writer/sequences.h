/*
 * Each change is applied once, also when its sender sends it again after a lost connection or a
 * crash of the writer. A sender numbers its changes. The store keeps, for each sender, the highest
 * number applied and the answers that the sender has not confirmed; both are committed together
 * with the changes. A change with a number that was applied gets the same answer again.
 *
 * A sender that is gone may come back for a minute. After that the store forgets it.
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
    struct departed_sender *departed; /* the earliest first */
    size_t departed_count, departed_room;
    uint64_t *dropped; /* to be deleted from the store with the next commit */
    size_t dropped_count, dropped_room;
};

/* sequences_load(s, txn, client): read the state of this sender, once per connection. */
void sequences_load(struct sequences *s, struct store_txn *txn, struct client *client);

/*
 * sequence_is_applied(client, sequence): was this change applied before?
 * sequence_answer(client, sequence): the answer it got; STORE_INVALID when it was confirmed.
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
 * sequences_expire_unknown(s, store): drop the senders in the store that are not connected; once,
 * a minute after the writer's start.
 */
#define SENDER_EXPIRY_MS 60000
void sequences_depart(struct sequences *s, uint64_t id);
void sequences_expire(struct sequences *s, uint64_t now_ms);
void sequences_expire_unknown(struct sequences *s, struct store *store);

void sequences_free(struct sequences *s);

#endif
