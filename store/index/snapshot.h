/*
 * Index snapshot: the index of a workspace as one transaction shows it.
 *
 * It has the segments of the manifest and a tail: the rows of base and log, in memory. A row of a
 * segment that is dead, or that the log changed, has a tombstone; if the report exists, its row is
 * in the tail. Rows of projects that are being deleted (`deleting`) are left out of answers until
 * their heads are deleted.
 *
 * A struct store keeps the snapshots of recently used workspaces, and updates a snapshot with the
 * new records of the log. Nothing in it is borrowed from LMDB, so it outlives the transaction.
 */
#ifndef ASSAY_STORE_INDEX_SNAPSHOT_H
#define ASSAY_STORE_INDEX_SNAPSHOT_H

#include "store/index/bitmap_internal.h"
#include "store/index/segment_internal.h"

struct tail_row {
    uint64_t id, project;
    int64_t date;
    int8_t score;
    uint8_t class; /* CLASS_GONE: deleted */
};

struct snapshot_segment {
    struct segment segment;
    uint64_t number;
    struct segment_record record;
    uint64_t *tombstones; /* NULL: none */
    uint64_t *deleting;   /* NULL: none */
    uint32_t tombstone_count;
};

/* The rows of the tail in the order of a sort, ascending; updated when needed. */
struct tail_order {
    uint32_t *rows;
    size_t count;
    uint32_t *moved; /* rows that are new, or whose place changed */
    size_t moved_count, moved_cap;
};

struct index_snapshot {
    struct index_snapshot *next;
    uint64_t workspace, used;
    size_t snapshot; /* LMDB's transaction id that it shows */
    struct index_record record;
    uint64_t next_log; /* first record of the log that it does not have */
    struct snapshot_segment *segments;
    size_t segment_count;
    uint64_t *trigrams; /* a bit for each trigram code in the URLs of the tail */
    struct tail_row *rows;
    uint32_t row_count, row_cap;
    uint64_t made;     /* changes when the tail is rebuilt; until then rows are only added */
    struct buf text;   /* URLs, each ending in a NUL, and TEXT_PAD bytes */
    struct buf offset; /* of uint32_t: row_count + 1 */
    uint32_t *slots;   /* id -> row + 1, hashed */
    size_t slot_count;
    struct tail_order orders[4]; /* by enum report_sort */
    struct buf deleting;         /* of uint64_t: projects being deleted, ascending */
};

/*
 * index_snapshot_get(s, txn, workspace, out): that of the transaction ${txn}; valid until the next
 * index_snapshot_get of ${s}. STORE_REBUILDING: the index is being rebuilt. STORE_DAMAGED: the
 * segment store_lost_segment is missing or damaged. index_snapshot_query(s, txn, q, out): for a
 * query; STORE_AGAIN: it was stopped.
 */
enum store_status index_snapshot_get(struct store *s, MDB_txn *txn, uint64_t workspace,
                                     struct index_snapshot **out);
enum store_status index_snapshot_query(struct store *s, MDB_txn *txn,
                                       const struct store_list_query *q,
                                       struct index_snapshot **out);

/*
 * index_snapshot_verified(s, v): call after reading; STORE_DAMAGED: some of it was damaged, and
 * ${v} is freed.
 */
enum store_status index_snapshot_verified(struct store *s, struct index_snapshot *v);

/*
 * index_snapshot_forget(s): free all. index_snapshot_tidy(s): free those whose manifest has
 * changed, so that deleted files give back disk space, and verify some blocks of the others again;
 * false: none is kept.
 */
void index_snapshot_forget(struct store *s);
bool index_snapshot_tidy(struct store *s);

struct str index_snapshot_url(const struct index_snapshot *v, uint32_t row);
bool index_snapshot_is_deleting(const struct index_snapshot *v, uint64_t project);

/*
 * index_snapshot_tail_order(s, v, sort, out): the rows of the tail, also deleted ones, in that
 * order.
 */
enum store_status index_snapshot_tail_order(struct store *s, struct index_snapshot *v,
                                            unsigned sort, const struct tail_order **out);

/*
 * For snapshot.c and snapshot_rows.c. index_snapshot_tail_row(v, id): the row of that id in the
 * tail, deleted or not; row_count: none. index_snapshot_segment_find(v, id, in, row): the row of
 * that id in a segment, if it has no tombstone.
 */
uint32_t index_snapshot_tail_row(const struct index_snapshot *v, uint64_t id);
bool index_snapshot_segment_find(const struct index_snapshot *v, uint64_t id,
                                 struct snapshot_segment **in, uint32_t *row);

static inline bool index_snapshot_lives(const struct snapshot_segment *in, uint32_t row)
{
    return in->tombstones == NULL || !bit_test(in->tombstones, row);
}

/* index_snapshot_find(v, id, out): the live row of that id; its URL is borrowed. */
bool index_snapshot_find(const struct index_snapshot *v, uint64_t id, struct segment_row *out);

/*
 * index_snapshot_each(v, after, upto, each, arg): every live row with an id above ${after} and at
 * most ${upto}, also of projects that are being deleted, in no order, until ${each} returns false.
 * index_snapshot_each_id: the ids of one project; 0: of all.
 */
typedef bool index_snapshot_each_fn(void *arg, const struct segment_row *row);
void index_snapshot_each(const struct index_snapshot *v, uint64_t after, uint64_t upto,
                         index_snapshot_each_fn *each, void *arg);
typedef bool index_snapshot_id_fn(void *arg, uint64_t id);
void index_snapshot_each_id(const struct index_snapshot *v, uint64_t project,
                            index_snapshot_id_fn *each, void *arg);

#endif
