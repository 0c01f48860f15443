/*
 * A view: the index of a workspace as one snapshot shows it. Private to store/.
 *
 * Its segments, and over them what base and log say, as rows in memory. A row of a segment that is
 * dead, or that the log changed, is `masked`; where it lives on, it is a row of the view. Rows of
 * projects that are being deleted stay in the view and are left out of answers (`hidden`), until
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

struct view_row {
    uint64_t id, project;
    int64_t date;
    int8_t score;
    uint8_t class; /* CLASS_GONE: deleted */
};

struct view_segment {
    struct segment segment;
    uint64_t number;
    struct segment_record record;
    uint64_t *masked; /* NULL: none */
    uint64_t *hidden; /* NULL: none */
    uint32_t masked_count;
};

/* The view's own rows in the order of a sort, ascending; brought up to date when asked for. */
struct view_order {
    uint32_t *rows;
    size_t count;
    uint32_t *moved; /* rows that are new to it, or whose place changed */
    size_t moved_count, moved_cap;
};

struct view {
    struct view *next;
    uint64_t workspace, used;
    size_t snapshot; /* LMDB's number of the transaction it shows */
    struct index_record record;
    uint64_t next_log; /* the first record of the log not in it */
    struct view_segment *segments;
    size_t segment_count;
    uint64_t *grams; /* a bit for each code of three letters in URLs of its rows */
    struct view_row *rows;
    uint32_t row_count, row_cap;
    uint64_t made;     /* changes when its rows begin anew; until then rows are only added */
    struct buf text;   /* the rows' URLs, each ending in a NUL, and TEXT_PAD bytes */
    struct buf offset; /* of uint32_t: row_count + 1 */
    uint32_t *slots;   /* id -> row + 1, hashed */
    size_t slot_count;
    struct view_order orders[4]; /* by enum report_sort */
    struct buf dying;            /* of uint64_t: projects being deleted, ascending */
};

/*
 * view_get(s, txn, workspace, out): the view of the snapshot ${txn}; good until the next view_get
 * of ${s}. STORE_REBUILDING: the index is being built. STORE_DAMAGED: a segment is missing or
 * damaged; s->lost_segment is its number. view_query(s, txn, q, out): the same for a query;
 * STORE_AGAIN when it is stopped.
 */
enum store_status view_get(struct store *s, MDB_txn *txn, uint64_t workspace, struct view **out);
enum store_status view_query(struct store *s, MDB_txn *txn, const struct store_list_query *q,
                             struct view **out);

/*
 * view_verified(s, v): after what was read of it; STORE_DAMAGED: some of it was damaged, and the
 * view is gone.
 */
enum store_status view_verified(struct store *s, struct view *v);

/*
 * view_forget(s): all of them. view_tidy(s): those whose segments the newest manifest does not name
 * any more, so that their disk space is free; false: none is kept.
 */
void view_forget(struct store *s);
bool view_tidy(struct store *s);

struct str view_url(const struct view *v, uint32_t row);
bool view_is_dying(const struct view *v, uint64_t project);

/* view_order(s, v, sort, out): its rows, deleted ones too, in that order. */
enum store_status view_order(struct store *s, struct view *v, unsigned sort,
                             const struct view_order **out);

/*
 * For view.c and view_look.c. view_own_row(v, id): its own row of that id, deleted or not;
 * row_count when there is none. view_segment_find(v, id, in, row): the row of that id that lies in
 * a segment and is not masked.
 */
uint32_t view_own_row(const struct view *v, uint64_t id);
bool view_segment_find(const struct view *v, uint64_t id, struct view_segment **in, uint32_t *row);

static inline bool view_lives(const struct view_segment *in, uint32_t row)
{
    return in->masked == NULL || !bit_test(in->masked, row);
}

/* view_find(v, id, out): the live row of that id; its URL is borrowed. */
bool view_find(const struct view *v, uint64_t id, struct segment_row *out);

/*
 * view_each(v, after, upto, each, arg): every live row with an id above ${after} and not above
 * ${upto}, those of dying projects too, in no order, until ${each} says false.
 * view_each_id: the same, the ids of one project, 0: of all.
 */
typedef bool view_each_fn(void *arg, const struct segment_row *row);
void view_each(const struct view *v, uint64_t after, uint64_t upto, view_each_fn *each, void *arg);
typedef bool view_id_fn(void *arg, uint64_t id);
void view_each_id(const struct view *v, uint64_t project, view_id_fn *each, void *arg);
uint64_t view_count_of_project(const struct view *v, uint64_t project);

#endif
