/*
 * The messages of a conversation. They lie among all others in the order in which they came, so
 * that what a commit brings lies together, at the end, however many conversations it is of: 64
 * messages of 64 conversations are a dozen pages. Each knows its place in its conversation (1, 2,
 * …), the one before it, and one further back, by which a place or an id is found in a logarithm of
 * steps; the conversation's record knows the last. Nothing is ever put between, and what goes, goes
 * from the end. Private to store/.
 */
#ifndef ASSAY_STORE_CHAIN_H
#define ASSAY_STORE_CHAIN_H

#include "store/engine/txn.h"

/* A message where it lies; borrowed until the next write or the snapshot's end. */
struct logged_message {
    struct ulid id;
    const struct message_record *record;
};

/* message_log_bytes(r): of its texts, which follow the record. */
static inline size_t message_log_bytes(const struct message_record *r)
{
    return (size_t)r->text_n + r->citations_n + r->client_n + r->url_n + r->context_n;
}

/* message_log_look(k, v, out): is that key and value a message? */
bool message_log_look(MDB_val k, MDB_val v, struct logged_message *out);

/*
 * message_log_get(s, txn, conversation, id, out): STORE_NOT_FOUND where it is not there, or another
 * conversation's.
 */
enum store_status message_log_get(struct store *s, MDB_txn *txn, const struct ulid *conversation,
                                  const struct ulid *id, struct logged_message *out);

/*
 * From ${at} on back; it is anywhere after anything but STORE_OK. message_log_before: by one;
 * STORE_NOT_FOUND: it is the first. message_log_at: to that place, 1 at least. message_log_below:
 * to the newest with an id below ${bound}, which may be ${at} itself; STORE_NOT_FOUND: all are
 * above.
 */
enum store_status message_log_before(struct store *s, MDB_txn *txn, struct logged_message *at);
enum store_status message_log_at(struct store *s, MDB_txn *txn, struct logged_message *at,
                                 uint64_t place);
enum store_status message_log_below(struct store *s, MDB_txn *txn, struct logged_message *at,
                                    const struct ulid *bound);

/*
 * Where a conversation ends: its last message (place 0: it has none), and the one that that jumps
 * to.
 */
struct message_log_end {
    struct ulid id;
    struct message_record last, back;
};

/*
 * message_log_end(t, conversation, last, out): ${last} may be none. message_log_next(end, out):
 * where the next message goes; the rest of ${out} is zero. message_log_follow(t, end, id, r): it
 * was put there, and is the end now. message_log_put(t, id, r): put it; returns where its texts go,
 * message_log_bytes(r) of them, to be filled before anything else is written. False, or NULL, after
 * an error.
 */
bool message_log_end(struct store_txn *t, const struct ulid *conversation, const struct ulid *last,
                     struct message_log_end *out);
void message_log_next(const struct message_log_end *end, struct message_record *out);
bool message_log_follow(struct store_txn *t, struct message_log_end *end, const struct ulid *id,
                        const struct message_record *r);
char *message_log_put(struct store_txn *t, const struct ulid *id, const struct message_record *r);

/*
 * message_log_remove(t, c, left): the newest ones, at most *left; c->last and c->messages follow
 * and are the caller's to put.
 */
void message_log_remove(struct store_txn *t, struct store_conversation *c, uint64_t *left);

#endif
