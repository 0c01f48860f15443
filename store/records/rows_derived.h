/* Applying a row set (store/rows.h): rows of derived spaces, and what else follows from a row. */
#ifndef ASSAY_STORE_RECORDS_ROWS_DERIVED_H
#define ASSAY_STORE_RECORDS_ROWS_DERIVED_H

#include "store/engine/rows.h"

/* A row that is about to be applied: the stored value, and the new one. NULL: there is none. */
struct row_change {
    enum space space;
    struct key *key;
    const MDB_val *old, *new;
    struct buf before, after; /* scratch */
};

/* rows_well_formed(c): can everything that follows from the new value be computed? */
bool rows_well_formed(struct row_change *c);
/* rows_derived_drop(t, c): delete derived rows that the new value does not have. */
void rows_derived_drop(struct store_txn *t, struct row_change *c);
/* rows_derived_put(t, c): put the derived rows of the new value. */
void rows_derived_put(struct store_txn *t, struct row_change *c);

/*
 * rows_follow(t, c): raise its events, and write it to the log of an index of reports or of changed
 * documents. Before any row is written, for all rows but deletions of documents, and last for
 * these.
 */
void rows_follow(struct store_txn *t, const struct row_change *c);

#endif
