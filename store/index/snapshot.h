/*
 * A view: the index of a workspace as one snapshot shows it. Private to store/.
 *
 * Its segments, and over them what base and log say, as rows in memory. A row of a segment that is
 * dead, or that the log changed, is `tombstones`; where it lives on, it is a row of the view. Rows
 * of projects that are being deleted stay in the view and are left out of answers (`hidden`), until
 * their heads are deleted.
 *
 * A struct store keeps the views of the workspaces it was asked about lately, and brings a view up
 * to a later snapshot by the records of the log that it has not seen. Nothing in a view is borrowed
 * from LMDB, so it outlives its snapshot.
 */
#ifndef ASSAY_STORE_VIEW_H
#define ASSAY_STORE_VIEW_H

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

/* The view's own rows in the order of a sort, ascending; brought up to date when asked for. */
struct tail_order {
    uint32_t *rows;
    size_t count;
    uint32_t *moved; /* rows that are new to it, or whose place changed */
    size_t moved_count, moved_cap;
};

struct index_snapshot {
    struct index_snapshot *next;
    uint64_t workspace, used;
    size_t snapshot; /* LMDB's number of the transaction it shows */
    struct index_record record;
    uint64_t next_log; /* the first record of the log not in it */
    struct snapshot_segment *segments;
    size_t segment_count;
    uint64_t *trigrams; /* a bit for each code of three letters in URLs of its rows */
    struct tail_row *rows;
    uint32_t row_count, row_cap;
    uint64_t made;     /* changes when its rows begin anew; until then rows are only added */
    struct buf text;   /* the rows' URLs, each ending in a NUL, and TEXT_PAD bytes */
    struct buf offset; /* of uint32_t: row_count + 1 */
    uint32_t *slots;   /* id -> row + 1, hashed */
    size_t slot_count;
    struct tail_order orders[4]; /* by enum report_sort */
    struct buf deleting;         /* of uint64_t: projects being deleted, ascending */
};

/*
 * index_snapshot_get(s, txn, workspace, out): the view of the snapshot ${txn}; good until the next
 * index_snapshot_get of ${s}. STORE_REBUILDING: the index is being built. STORE_DAMAGED: a segment
 * is missing or damaged; s->lost_segment is its number. index_snapshot_query(s, txn, q, out): the
 * same for a query; STORE_AGAIN when it is stopped.
 */
enum store_status index_snapshot_get(struct store *s, MDB_txn *txn, uint64_t workspace,
                                     struct index_snapshot **out);
enum store_status index_snapshot_query(struct store *s, MDB_txn *txn,
                                       const struct store_list_query *q,
                                       struct index_snapshot **out);

/*
 * index_snapshot_verified(s, v): after what was read of it; STORE_DAMAGED: some of it was damaged,
 * and the view is gone.
 */
enum store_status index_snapshot_verified(struct store *s, struct index_snapshot *v);

/*
 * index_snapshot_forget(s): all of them. index_snapshot_tidy(s): those whose segments the newest
 * manifest does not name any more, so that their disk space is free; false: none is kept.
 */
void index_snapshot_forget(struct store *s);
bool index_snapshot_tidy(struct store *s);

struct str index_snapshot_url(const struct index_snapshot *v, uint32_t row);
bool index_snapshot_is_deleting(const struct index_snapshot *v, uint64_t project);

/* index_snapshot_tail_order(s, v, sort, out): its rows, deleted ones too, in that order. */
enum store_status index_snapshot_tail_order(struct store *s, struct index_snapshot *v,
                                            unsigned sort, const struct tail_order **out);

/*
 * For view.c and view_look.c. index_snapshot_tail_row(v, id): its own row of that id, deleted or
 * not; row_count when there is none. index_snapshot_segment_find(v, id, in, row): the row of that
 * id that lies in a segment and is not tombstones.
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
 * index_snapshot_each(v, after, upto, each, arg): every live row with an id above ${after} and not
 * above ${upto}, those of dying projects too, in no order, until ${each} says false.
 * index_snapshot_each_id: the same, the ids of one project, 0: of all.
 */
typedef bool index_snapshot_each_fn(void *arg, const struct segment_row *row);
void index_snapshot_each(const struct index_snapshot *v, uint64_t after, uint64_t upto,
                         index_snapshot_each_fn *each, void *arg);
typedef bool index_snapshot_id_fn(void *arg, uint64_t id);
void index_snapshot_each_id(const struct index_snapshot *v, uint64_t project,
                            index_snapshot_id_fn *each, void *arg);
uint64_t index_snapshot_count_of_project(const struct index_snapshot *v, uint64_t project);

#endif
