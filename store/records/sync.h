/* Items of a collection, and the deletion of those that a complete sync did not see. */
#ifndef ASSAY_STORE_SYNC_H
#define ASSAY_STORE_SYNC_H

#include "store/engine/txn.h"

void item_key(struct key *k, uint64_t collection, uint64_t wp_id);
bool schema_read_item(MDB_val value, struct item_record *out);

/* item_there(i, complete): it has a document and was seen in the last complete sync or later. */
static inline bool item_there(const struct item_record *i, uint64_t complete)
{
    return i->document != 0 && i->generation >= complete;
}

/* ---- sync_purge.c ---- */

/* unseen_mark(t, c): delete what its last complete sync did not see, in later batches. */
void unseen_mark(struct store_txn *t, const struct collection_record *c);
/* over_mark(t, c): a sync began: if many old generations are closed, delete them later: true. */
bool over_mark(struct store_txn *t, const struct collection_record *c);
bool unseen_well_formed(MDB_val value);
/* unseen_batch(t, left): one batch; ${*left} decreases. */
void unseen_batch(struct store_txn *t, uint64_t *left);
/* synced_erase(t, agent, left): all synced records of an agent; true: nothing is left. */
bool synced_erase(struct store_txn *t, const struct ulid *agent, uint64_t *left);

#endif
