/*
 * The messages of a conversation. They lie among all others in the order in which they came, so that what a commit brings lies together, at
 * the end, however many conversations it is of: 64 messages of 64 conversations are a dozen pages. Each knows its place in its conversation
 * (1, 2, …), the one before it, and one further back, by which a place or an id is found in a logarithm of steps; the conversation's record
 * knows the last. Nothing is ever put between, and what goes, goes from the end. Private to store/.
 */
#ifndef ASSAY_STORE_CHAIN_H
#define ASSAY_STORE_CHAIN_H

#include "store/engine/txn.h"

/* A message where it lies; borrowed until the next write or the snapshot's end. */
struct chained {
    struct ulid id;
    const struct message_record *record;
};

/* chain_bytes(r): of its texts, which follow the record. */
static inline size_t chain_bytes(const struct message_record *r)
{
    return (size_t)r->text_n + r->citations_n + r->client_n + r->url_n + r->context_n;
}

/* chain_look(k, v, out): is that key and value a message? */
bool chain_look(MDB_val k, MDB_val v, struct chained *out);

/* chain_get(s, txn, conversation, id, out): STORE_NOT_FOUND where it is not there, or another conversation's. */
enum store_status chain_get(struct store *s, MDB_txn *txn, const struct ulid *conversation,
                            const struct ulid *id, struct chained *out);

/*
 * From ${at} on back; it is anywhere after anything but STORE_OK. chain_before: by one; STORE_NOT_FOUND: it is the first. chain_at: to that
 * place, 1 at least. chain_below: to the newest with an id below ${bound}, which may be ${at} itself; STORE_NOT_FOUND: all are above.
 */
enum store_status chain_before(struct store *s, MDB_txn *txn, struct chained *at);
enum store_status chain_at(struct store *s, MDB_txn *txn, struct chained *at, uint64_t place);
enum store_status chain_below(struct store *s, MDB_txn *txn, struct chained *at,
                              const struct ulid *bound);

/* Where a conversation ends: its last message (place 0: it has none), and the one that that jumps to. */
struct chain_end {
    struct ulid id;
    struct message_record last, back;
};

/*
 * chain_end(t, conversation, last, out): ${last} may be none. chain_next(end, out): where the next message goes; the rest of ${out} is zero.
 * chain_follow(t, end, id, r): it was put there, and is the end now. chain_put(t, id, r): put it; returns where its
 * texts go, chain_bytes(r) of them, to be filled before anything else is written. False, or NULL, after an error.
 */
bool chain_end(struct store_txn *t, const struct ulid *conversation, const struct ulid *last,
               struct chain_end *out);
void chain_next(const struct chain_end *end, struct message_record *out);
bool chain_follow(struct store_txn *t, struct chain_end *end, const struct ulid *id,
                  const struct message_record *r);
char *chain_put(struct store_txn *t, const struct ulid *id, const struct message_record *r);

/* chain_remove(t, c, left): the newest ones, at most *left; c->last and c->messages follow and are the caller's to put. */
void chain_remove(struct store_txn *t, struct store_conversation *c, uint64_t *left);

#endif
