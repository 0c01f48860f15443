/*
 * What was deleted as a whole is gone for readers at once, by its row among the dying
 * (SPACE_DELETING). Its records follow, some in each transaction: its reports, which the
 * maintenance thread finds by the index, then the rest. Private to store/.
 */
#ifndef ASSAY_STORE_PURGE_H
#define ASSAY_STORE_PURGE_H

#include "store/engine/schema.h"

struct deleting {
    uint64_t workspace, project; /* project 0: the workspace itself */
};

/*
 * deleting_first(s, txn, out): what is to be purged first; the projects of a workspace come before
 * the workspace itself. False: nothing is dying.
 */
bool deleting_first(struct store *s, MDB_txn *txn, struct deleting *out);

#endif
