/* Visitors of a chat. */
#ifndef ASSAY_STORE_RECORDS_VISITOR_H
#define ASSAY_STORE_RECORDS_VISITOR_H

#include "store/engine/txn.h"

bool schema_read_visitor(MDB_val value, const struct visitor_record **out);

/* visitor_there(s, txn, id): does the record exist? */
bool visitor_there(struct store *s, MDB_txn *txn, const struct ulid *id);
/*
 * visitor_secret_key(k, agent, hash): the key of the visitor with the secret of that digest.
 * visitor_load(t, id, out): a copy of the record, with its page context in t->copy; false: it does
 * not exist. visitor_write(t, v, about): write it, with that page context.
 */
void visitor_secret_key(struct key *k, const struct ulid *agent, const void *hash);
bool visitor_load(struct store_txn *t, const struct ulid *id, struct visitor_record *out);
void visitor_write(struct store_txn *t, const struct visitor_record *v, struct str about);
/* visitor_mark_lead(t, id): it left an address. */
void visitor_mark_lead(struct store_txn *t, const struct ulid *id);
/* visitor_remove(t, id): the record and its derived rows, if it exists. */
void visitor_remove(struct store_txn *t, const struct ulid *id);

#endif
