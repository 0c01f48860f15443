/*
 * A workspace's index as one snapshot shows it: its segments, and over them what its log says, as rows in memory. Private to store/.
 *
 * A process keeps the views of the workspaces it was asked about, and brings one up to a later snapshot by the records of the log that it
 * has not seen. A row that the log changed is taken out of its segment (`masked`) and is a row of the view. What belongs to a project that
 * is being deleted stays in the view and is left out of the answers (`hidden`), until its heads and so its rows go.
 */
#ifndef ASSAY_STORE_VIEW_H
#define ASSAY_STORE_VIEW_H

#include "segment.h"

struct view_row {
    uint64_t id, project;
    int64_t date;
    int8_t score;
    uint8_t class; /* CLASS_GONE: deleted */
};

struct view_segment {
    struct segment segment;
    uint64_t fixed, moving; /* its parts' numbers */
    uint64_t first_id, last_id;
    uint64_t *masked; /* rows that the log changed; NULL: none */
    uint64_t *hidden; /* rows of dying projects; NULL: none */
    uint32_t masked_count;
};

/* The view's own rows in the order of a sort, ascending; brought up to date when it is asked for. */
struct view_order {
    uint32_t *rows;
    size_t count;
    uint32_t *moved; /* rows that are new to it, or whose place changed */
    size_t moved_count, moved_cap;
    size_t lifted; /* so many of them are not in it, and no two are the same */
};

struct view {
    struct view *next;
    uint64_t workspace, used;
    size_t snapshot;     /* LMDB's number of the transaction it shows */
    bool writing;        /* that is the one being written, which may have grown since */
    bool dangling;       /* and its parts are that transaction's memory: they are looked up again */
    bool partial;        /* what is to be read is not read to its end: a pause came between */
    size_t hidden;       /* of the first so many segments the rows of dying projects are known */
    struct buf manifest; /* as it was read */
    uint64_t next_log;   /* the first record of the log not in it */
    struct view_segment *segments;
    size_t segment_count, opened; /* the first so many are open */
    uint64_t *grams; /* a bit for each code of three letters that comes in any of its texts; those of rows that went stay */
    struct view_row *rows;
    uint32_t row_count, row_cap;
    uint64_t made;     /* another number each time its rows begin anew; until then they only become more, and their URLs stay */
    struct buf text;   /* the rows' URLs, each ending in a NUL, and TEXT_PAD bytes */
    struct buf offset; /* of uint32_t: row_count + 1 */
    uint32_t *slots;   /* id → row + 1, hashed */
    size_t slot_count;
    struct view_order orders[4]; /* by enum report_sort */
    struct buf dying;            /* of uint64_t: projects being deleted, ascending */
};

/*
 * view_get(s, txn, workspace, out): the view that ${txn} shows; good until the next view_get, and borrowed no longer than ${txn}.
 * view_get_some(…, q, …): likewise; STORE_AGAIN when ${q} was stopped, and what was read by then is
 * kept for the next call.
 */
enum store_status view_get(struct store *s, MDB_txn *txn, uint64_t workspace, struct view **out);
enum store_status view_get_some(struct store *s, MDB_txn *txn, const struct store_list_query *q, struct view **out);

/*
 * view_forget(s): all of them: the map was made anew. view_undo(s): those of a transaction that was aborted. view_settle(s): one was committed; where
 * it wrote nothing its number goes to the next one, and what its views show is the one before.
 */
void view_forget(struct store *s);
void view_undo(struct store *s);
void view_settle(struct store *s);

struct str view_url(const struct view *v, uint32_t row);
bool view_is_dying(const struct view *v, uint64_t project);

/*
 * view_order(s, v, sort, q, order): its rows (deleted ones too) in that order, with the pauses of ${q}, unless NULL: STORE_AGAIN when one
 * came between.
 */
enum store_status view_order(struct store *s, struct view *v, unsigned sort, const struct store_list_query *q,
                             const struct view_order **out);

/*
 * For view.c and view_look.c. view_own_row(v, id): the view's own row of that id, deleted or not; row_count when there is none.
 * view_segment_find(v, id, in, row): the live row of that id that lies in a segment and that the log did not touch.
 * view_segment_row(g, row): what a segment says of a row.
 */
uint32_t view_own_row(const struct view *v, uint64_t id);
bool view_segment_find(const struct view *v, uint64_t id, struct view_segment **in, uint32_t *row);
struct segment_row view_segment_row(const struct segment *g, uint32_t row);

/* view_find(v, id, out): the live row of that id, wherever it lies, as a segment's row; its URL is borrowed. */
bool view_find(const struct view *v, uint64_t id, struct segment_row *out);

/*
 * view_each(v, after, upto, each, arg): every live row with an id above ${after} and not above ${upto}, those of dying projects too, a
 * segment's first and then the view's own, until ${each} returns false. view_each_of_project: likewise, all of that project.
 */
typedef bool view_each_fn(void *arg, const struct segment_row *row);
void view_each(const struct view *v, uint64_t after, uint64_t upto, view_each_fn *each, void *arg);
void view_each_of_project(const struct view *v, uint64_t project, view_each_fn *each, void *arg);
uint64_t view_count_of_project(const struct view *v, uint64_t project);

#endif
