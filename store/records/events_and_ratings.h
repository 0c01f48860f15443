/* Events and ratings of visitors, and lists of all records of the chat. */
#ifndef ASSAY_STORE_RECORDS_EVENTS_AND_RATINGS_H
#define ASSAY_STORE_RECORDS_EVENTS_AND_RATINGS_H

#include "store/records/list_entries.h"

void event_remove(struct store_txn *t, enum list_entry_kind kind, const struct ulid *id);

/*
 * rows_cursor(s, txn, w, rows, q, visitor): move to the first entry of the list that ${q} asks for;
 * with ${visitor}, of that visitor alone, in all agents and classes. STORE_NOT_FOUND: there is
 * none.
 */
enum store_status rows_cursor(struct store *s, MDB_txn *txn, struct cursor *w, enum store_rows rows,
                              const struct store_rows_query *q, const struct ulid *visitor);

/* rows_owners(rows, value, agent, visitor): of a listed record; false: it is malformed. */
bool rows_owners(enum store_rows rows, MDB_val value, struct ulid *agent, struct ulid *visitor);

#endif
