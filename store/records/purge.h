/*
 * Deletion of projects and workspaces. A row in SPACE_DELETING hides it from readers at once. Its
 * records are deleted in batches: first its reports, which the merge thread finds by the
 * index, then the rest.
 */
#ifndef ASSAY_STORE_RECORDS_PURGE_H
#define ASSAY_STORE_RECORDS_PURGE_H

#include "store/engine/schema.h"

struct deleting {
    uint64_t workspace, project; /* project 0: the workspace itself */
};

/*
 * deleting_next(s, txn, from, out): what to delete next, of workspace ${from} or a later one; a
 * workspace's projects come before itself. False: nothing.
 */
bool deleting_next(struct store *s, MDB_txn *txn, uint64_t from, struct deleting *out);

#endif
