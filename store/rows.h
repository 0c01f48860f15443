/*
 * Row sets: what a transaction wrote, to repeat it in another store without executing its changes
 * again. Part of store.h, whose rules about transactions apply. For the writer.
 *
 * A row set has the final value or the deletion of each key of a replicated space (SPACES in
 * engine/schema.h) that the transaction put or deleted. Rows of local spaces are not in it: the
 * other store derives them when it applies the row set. It also raises the events of the changes.
 *
 *   first store:  store_rows_collect, once
 *                 store_begin -> store_apply... -> store_rows_take -> store_commit
 *   other stores: store_begin -> store_rows_apply... -> store_commit
 *
 * Both stores begin empty, or one begins with a backup of the other. All row sets are applied once
 * and in order. A store that applies row sets executes only changes of local spaces: CHANGE_ANSWERS
 * and CHANGE_INDEX_....
 *
 * Encoding: a head, then the rows in ascending order of sub-database and key. All numbers are in
 * native byte order, as in the records themselves.
 *
 *   head   4 bytes  "rows"
 *          2 bytes  format, 1
 *          4 bytes  STORE_FORMAT_VERSION
 *          4 bytes  STORE_LAYOUT
 *          8 bytes  number of rows
 *          8 bytes  bytes of all rows
 *          8 bytes  XXH3 of the rows, seeded with the XXH3 of the head up to here
 *   row    1 byte   sub-database; 0x80 is added for a deletion
 *          2 bytes  length of the key
 *          4 bytes  length of the value; a deletion has none
 *          key, value
 */
#ifndef ASSAY_STORE_ROWS_H
#define ASSAY_STORE_ROWS_H

#include "store/store.h"

/*
 * The formats of row sets that this version of Assay writes and applies: the newest one, and the
 * one before it, which the version before this one knows. core/cluster/README.md says how to add
 * one. store_rows_reads(format): is it one of them?
 */
struct rows_formats {
    uint32_t oldest, newest;
};
extern const struct rows_formats store_rows_formats;
static inline bool store_rows_reads(uint32_t format)
{
    return format >= store_rows_formats.oldest && format <= store_rows_formats.newest;
}

/*
 * store_rows_collect(s, collect): collect the rows of later transactions. While it is off, a put
 * costs one branch more.
 */
void store_rows_collect(struct store *s, bool collect);

/*
 * store_rows_take(t, format, out): append the row set of ${t} to ${out}, which the caller frees.
 * The transaction is complete then: store_apply returns STORE_INVALID, and only the disk or the
 * system can make its commit fail. STORE_INVALID: its rows are not collected, or ${format} is none
 * of store_rows_formats. Another status is that of store_commit: abort the transaction.
 */
enum store_status store_rows_take(struct store_txn *t, uint32_t format, struct buf *out)
    __attribute__((warn_unused_result));

/*
 * store_rows_apply(t, rows): put and delete the rows, and bring local spaces up to date. ${rows} is
 * exactly one row set, and needed until it returns. The transaction may apply more row sets, but no
 * changes; STORE_INVALID: it has applied changes.
 * STORE_OTHER_FORMAT: its format is none of store_rows_formats, or it is of another store format.
 * STORE_CORRUPT: it is truncated or altered, and nothing was written; or it does not fit the store.
 * After STORE_CORRUPT, STORE_FULL or STORE_IO the commit fails: abort, and nothing was applied.
 */
enum store_status store_rows_apply(struct store_txn *t, struct str rows)
    __attribute__((warn_unused_result));

/*
 * store_rows_count(rows): the number of rows in a row set of store_rows_take.
 */
uint64_t store_rows_count(struct str rows);

/* store_rows_are_none(rows): a row set without rows. It marks a position in a log. */
bool store_rows_are_none(struct str rows);

/*
 * store_rows_hash(s, stop, arg, out): hash of all rows of replicated spaces in the open or a new
 * snapshot: equal in stores with the same rows. STORE_AGAIN: ${stop} returned true, or the size of
 * the map is to change. STORE_FULL: the snapshot keeps pages in use that the writer needs.
 * XXH3 of 128 bits: it finds faults, and nobody chooses rows so that they collide. SHA-256 would
 * take several times as long as reading the rows.
 */
#define STORE_HASH_BYTES 16
enum store_status store_rows_hash(struct store *s, store_stop_fn *stop, void *arg,
                                  uint8_t out[STORE_HASH_BYTES])
    __attribute__((warn_unused_result));

/*
 * store_follow(s, follow): from now on the environment of ${s} only applies row sets. store_apply
 * refuses changes of replicated spaces with STORE_INVALID, and maintenance_step purges nothing.
 */
void store_follow(struct store *s, bool follow);

/* store_change_is_local(kind): does it change local spaces alone? */
bool store_change_is_local(uint32_t kind);

/* store_id(s, out): the random id of this store. A copy of its files has it; a restored one not. */
#define STORE_ID_BYTES 16
enum store_status store_id(struct store *s, uint8_t out[STORE_ID_BYTES]);

/*
 * The position of a store in a log of row sets: the last row set that the store contains.
 * ${chain}: hash of that row set and all before it (core/cluster/chain.h).
 */
#define STORE_LOG_BYTES 16
#define STORE_CHAIN_BYTES 32
struct store_position {
    uint8_t log[STORE_LOG_BYTES]; /* its UUID */
    uint64_t sequence;            /* 0: none; the first one has 1 */
    uint8_t chain[STORE_CHAIN_BYTES];
};

/*
 * store_position_get(s, out): from a snapshot. STORE_NOT_FOUND: the store follows no log.
 * store_position_set(t, position): committed with ${t}. Also after store_rows_take, if ${t} has set
 * it before: the row then has its place.
 * store_mark_in_log(t): the log has the rows of ${t}, durably. The commit then syncs once: a power
 * cut may undo the last transaction, and the store gets it from the log.
 * store_position_forget(t): the store follows no log from that commit on.
 * store_is_empty(s): does the store have what a new one has? False also after an error.
 */
enum store_status store_position_get(struct store *s, struct store_position *out);
void store_position_set(struct store_txn *t, const struct store_position *position);
void store_mark_in_log(struct store_txn *t);
void store_position_forget(struct store_txn *t);
bool store_is_empty(struct store *s);

#endif
