/* Workspaces and API keys. */
#ifndef ASSAY_STORE_RECORDS_WORKSPACE_H
#define ASSAY_STORE_RECORDS_WORKSPACE_H

#include "store/engine/txn.h"

/* workspace_read(s, txn, id, out, counts): one that is not being deleted; ${out} may be NULL. */
enum store_status workspace_read(struct store *s, MDB_txn *txn, uint64_t id,
                                 struct store_workspace *out, struct counts *counts);

/* key_remove(t, workspace, id): the key and its derived rows. key.c */
void key_remove(struct store_txn *t, uint64_t workspace, uint64_t id);

#endif
