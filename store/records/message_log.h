/*
 * Message log with skip pointers. Messages of all conversations lie in one sequence in the order of
 * their creation, so that the writes of a commit are adjacent: 64 messages of 64 conversations are
 * a dozen pages. Each message has its place in its conversation (1, 2, …), a pointer to the
 * previous one and a pointer further back, by which a place or an id is found in a logarithmic
 * number of steps. The conversation's record points to the last message. Messages are only added
 * and removed at the end.
 */
#ifndef ASSAY_STORE_RECORDS_MESSAGE_LOG_H
#define ASSAY_STORE_RECORDS_MESSAGE_LOG_H

#include "store/engine/txn.h"

/* A stored message; borrowed until the next write or the end of the snapshot. */
struct logged_message {
    struct ulid id;
    const struct message_record *record;
};

/* message_log_bytes(r): bytes of its texts, which follow the record. */
static inline size_t message_log_bytes(const struct message_record *r)
{
    return (size_t)r->text_n + r->citations_n + r->client_n + r->url_n + r->context_n;
}

/* message_log_look(k, v, out): is that key and value a message? */
bool message_log_look(MDB_val k, MDB_val v, struct logged_message *out);

/*
 * message_log_get(s, txn, conversation, id, out): STORE_NOT_FOUND also if it belongs to another
 * conversation.
 */
enum store_status message_log_get(struct store *s, MDB_txn *txn, const struct ulid *conversation,
                                  const struct ulid *id, struct logged_message *out);

/*
 * Move ${at} back; its value is undefined after any status but STORE_OK. message_log_before: by
 * one; STORE_NOT_FOUND: it is the first. message_log_at: to that place, at least 1.
 * message_log_below: to the newest message with an id below ${bound}, which may be ${at} itself;
 * STORE_NOT_FOUND: there is none.
 */
enum store_status message_log_before(struct store *s, MDB_txn *txn, struct logged_message *at);
enum store_status message_log_at(struct store *s, MDB_txn *txn, struct logged_message *at,
                                 uint64_t place);
enum store_status message_log_below(struct store *s, MDB_txn *txn, struct logged_message *at,
                                    const struct ulid *bound);

/*
 * The end of a conversation: its last message (place 0: it has none), and the target of that
 * message's jump.
 */
struct message_log_end {
    struct ulid id;
    struct message_record last, back;
};

/*
 * message_log_end(t, conversation, last, out): ${last} may be none. message_log_next(end, out):
 * place and pointers of the next message; the rest of ${out} is zero. message_log_follow(t, end,
 * id, r): the message was put and is the new end. message_log_put(t, id, r): put it; returns where
 * its texts go, message_log_bytes(r) of them, to be filled before anything else is written. False,
 * or NULL, after an error.
 */
bool message_log_end(struct store_txn *t, const struct ulid *conversation, const struct ulid *last,
                     struct message_log_end *out);
void message_log_next(const struct message_log_end *end, struct message_record *out);
bool message_log_follow(struct store_txn *t, struct message_log_end *end, const struct ulid *id,
                        const struct message_record *r);
char *message_log_put(struct store_txn *t, const struct ulid *id, const struct message_record *r);

/*
 * message_log_remove(t, c, left): remove the newest messages, at most ${*left}. c->last and
 * c->messages change; the caller writes the record.
 */
void message_log_remove(struct store_txn *t, struct store_conversation *c, uint64_t *left);

#endif
