/* Conversations. Their messages: message_log.h. */
#ifndef ASSAY_STORE_RECORDS_CONVERSATION_H
#define ASSAY_STORE_RECORDS_CONVERSATION_H

#include "store/engine/txn.h"

bool schema_read_conversation(MDB_val value, struct store_conversation *out);

/* conversation_read(s, txn, id, out): if its workspace, agent and visitor exist; borrowed. */
enum store_status conversation_read(struct store *s, MDB_txn *txn, const struct ulid *id,
                                    struct store_conversation *out);

/*
 * conversation_open(t, c, out): the conversation of a change, as a copy in t->copy, if it belongs
 * to the visitor or to the operator's workspace.
 * conversation_write(t, old_status, c): write it with the next version, its list entries and the
 * event. ${old_status} CONVERSATION_STATUSES: it is new.
 * conversation_remove(t, id, left): messages first, then the record; at most ${*left} records.
 */
enum store_status conversation_open(struct store_txn *t, const struct store_change *c,
                                    struct store_conversation *out);
void conversation_write(struct store_txn *t, enum conversation_status old_status,
                        struct store_conversation *c);
void conversation_remove(struct store_txn *t, const struct ulid *id, uint64_t *left);

#endif
