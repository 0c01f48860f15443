/* Deletion, in batches, of items that a complete sync did not see, and of a deleted agent. */
#ifndef ASSAY_STORE_RECORDS_SYNC_PURGE_H
#define ASSAY_STORE_RECORDS_SYNC_PURGE_H

#include "store/engine/txn.h"

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
