/* Visitors of a chat. */
#ifndef ASSAY_STORE_VISITOR_H
#define ASSAY_STORE_VISITOR_H

#include "store/engine/txn.h"

bool schema_read_visitor(MDB_val value, const struct visitor_record **out);

/* visitor_there(s, txn, id): does the record exist? */
bool visitor_there(struct store *s, MDB_txn *txn, const struct ulid *id);
/* visitor_mark_lead(t, id): it left an address. */
void visitor_mark_lead(struct store_txn *t, const struct ulid *id);
/* visitor_remove(t, id): the record and its derived rows, if it exists. */
void visitor_remove(struct store_txn *t, const struct ulid *id);

#endif
