/*
 * The tail of an index snapshot: the rows of base and log, in memory. A row that the log changed
 * gets a tombstone in its segment.
 */
#ifndef ASSAY_STORE_INDEX_TAIL_INTERNAL_H
#define ASSAY_STORE_INDEX_TAIL_INTERNAL_H

#include "store/index/snapshot.h"

/* tail_clear(s, v): make it empty; false: out of memory. */
bool tail_clear(struct store *s, struct index_snapshot *v);

/*
 * tail_replay_base(s, txn, v): add the rows of the base. tail_replay_log(s, txn, v, q): apply the
 * records of the log that ${v} does not have; STORE_AGAIN: ${q}, which may be NULL, was stopped.
 */
enum store_status tail_replay_base(struct store *s, MDB_txn *txn, struct index_snapshot *v);
enum store_status tail_replay_log(struct store *s, MDB_txn *txn, struct index_snapshot *v,
                                  const struct store_list_query *q);

#endif
