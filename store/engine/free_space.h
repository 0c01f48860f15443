/*
 * Free space of the map and of the disk, and how much of it each kind of change may use. Creates
 * and re-rating are refused first, then results; deletes always have some. Used by the writer.
 */
#ifndef ASSAY_STORE_ENGINE_FREE_SPACE_H
#define ASSAY_STORE_ENGINE_FREE_SPACE_H

#include "store/engine/schema.h"

struct store_txn;

/* Bytes of the disk, or of the longest file allowed, that are kept for deletes. */
#define STORE_DISK_RESERVE ((uint64_t)16 << 20)

/*
 * store_bytes_ahead(s, why): bytes by which data.mdb may grow. ${*why}: what limits them: ENOSPC
 * (the disk) or EFBIG (the process's limit of file sizes).
 */
uint64_t store_bytes_ahead(const struct store *s, int *why);

/* store_growth_bytes(s): that creates may still use; a lower bound while there are many. */
uint64_t store_growth_bytes(struct store *s);

/* store_free_pages(s, txn, out): free pages within the file. ${txn} is a read transaction. */
enum store_status store_free_pages(struct store *s, MDB_txn *txn, uint64_t *out);
/* store_usable_pages(s, txn, out): free pages that no open snapshot can show. */
enum store_status store_usable_pages(struct store *s, MDB_txn *txn, uint64_t *out);
/* store_oldest_snapshot(s): the transaction of the oldest open snapshot of any process; SIZE_MAX:
 * none is open. */
size_t store_oldest_snapshot(struct store *s);
/* store_count_readers(s): used slots of the reader table. */
unsigned store_count_readers(struct store *s);

/*
 * store_pages_left(s, reserve): pages that the next transaction may use; a lower bound if it is
 * more than twice the reserve. ${*reserve}: those that creates leave.
 */
uint64_t store_pages_left(struct store *s, uint64_t *reserve);

/*
 * store_pages_to_leave(s): a long snapshot keeps pages in use. It gives up when store_pages_left is
 * less than this: of a store that is full already it leaves the writer half.
 */
uint64_t store_pages_to_leave(struct store *s);

/* txn_is_full(t): must creates be refused? */
bool txn_is_full(struct store_txn *t);
/*
 * txn_results_fit(t, results_bytes): is there space for results and a grading of that size, or for
 * what a merge made?
 */
bool txn_results_fit(struct store_txn *t, size_t results_bytes);
/*
 * txn_leaves_space(t): before the commit: does ${t} leave the reserve, and free pages for the next
 * transaction? If not, its changes may fit one by one.
 */
bool txn_leaves_space(struct store_txn *t);

/*
 * txn_batch_limit(t, limit): how many records, at most ${limit}, one transaction may delete in the
 * free space; at least one. txn_spend(t, left): count one such record: ${*left} decreases by one,
 * or becomes 0 when background work must stop. txn_must_stop(t): must it? Never true for a caller's
 * change.
 */
uint64_t txn_batch_limit(struct store_txn *t, uint64_t limit);
void txn_spend(struct store_txn *t, uint64_t *left);
bool txn_must_stop(const struct store_txn *t);

#endif
