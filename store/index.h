/*
 * The index of reports: what lists are answered from, whatever they search, filter and sort by. Private to store/.
 *
 *   create, grade, delete → log (a row for each transaction and workspace, several where it is long) → segments (made in the background) → manifest
 *
 * The heads are the truth, and the index follows them in the same transactions: the live rows of a workspace's index are its heads, no
 * more and no fewer (store_check proves it). Creates put keys in sequence only, a head by its id and a row of the log, so what they cost
 * does not grow with what is there.
 *
 * The log of a workspace has what happened since its segments were made: a report came (with all that lists need of it), has another
 * grade or status, or went. Each record says how much the log has held since its beginning, so its length is known from its last record.
 *
 * A segment (segment.h) is up to 65,536 reports of a workspace, in the order of their ids, and never changes: columns, orders and a
 * filter for searches. What may change (grades, deaths) is a part of its own, so that grading again rewrites a tenth. Segments of a
 * workspace follow each other by id, small ones at the end, which merge as they become more. The manifest names the segments, and the
 * first record of the log that is not in them; replacing it is what makes a merge be there, whole, for every later snapshot. Parts that no
 * manifest names are left by a merge that did not end, and are swept (tend.c).
 *
 * A list (list.c, view.h) lays the log over the segments in memory: rows that the log touched are taken out of their segment by a bit,
 * and are rows of the view instead. What matches is a bitmap for each segment, its size the total; the page is found by selection over
 * the orders (select.h). So an answer costs some passes over bits, and a search one over the text that its filter does not rule out;
 * text found in a segment is remembered (found.h), since a segment never changes.
 */
#ifndef ASSAY_STORE_INDEX_H
#define ASSAY_STORE_INDEX_H

#include "internal.h"

/* A row's class: its result and its status, or that the report is gone. */
#define CLASS_GONE 0xff
#define STATUSES 3 /* enum report_status */

static inline uint8_t class_of(unsigned result, unsigned status)
{
    return (uint8_t)(result | status << 2);
}

static inline unsigned class_result(uint8_t class)
{
    return class & 3;
}

static inline unsigned class_status(uint8_t class)
{
    return class >> 2;
}

/* ---- the log: key: workspace, sequence; value: log_head and then entries ---- */

struct PACKED log_head {
    uint64_t entries, bytes; /* in all records of the workspace up to this one's end, ever */
};

enum log_kind { LOG_ADD = 1, LOG_SET, LOG_GONE };

/* An entry, cut after what its kind uses: all for LOG_ADD, with the URL behind it; up to generated_at for LOG_SET; id for LOG_GONE. */
struct PACKED log_entry {
    uint8_t kind;
    uint64_t id;
    uint8_t class;
    int8_t score;
    int64_t generated_at;
    uint64_t project;
    uint16_t url_n;
};

/* index_entry(at, end, out, url): read an entry and step over it; false when it is not one. ${url} is borrowed. */
bool index_entry(const uint8_t **at, const uint8_t *end, struct log_entry *out, struct str *url);

/* ---- the manifest: key: workspace ---- */

struct PACKED manifest_segment {
    uint64_t fixed, moving; /* numbers of its parts */
    uint64_t first_id, last_id;
    uint32_t rows, live;
};

struct PACKED manifest_head {
    uint64_t log_from;    /* the first record that is not in the segments */
    struct log_head base; /* what the log had held before it */
    uint64_t next_part;
};

struct manifest {
    struct manifest_head head;
    const struct manifest_segment *segments; /* borrowed */
    size_t count;
};

/* index_manifest(s, txn, workspace, out): an empty one (log_from 1) where there is none. */
enum store_status index_manifest(struct store *s, MDB_txn *txn, uint64_t workspace, struct manifest *out);

/* index_names(m, part): is that one of its parts? */
bool index_names(const struct manifest *m, uint64_t part);

/* index_log(s, txn, workspace, manifest, next, head): the sequence after the log's last record, and what the log had held up to there. */
enum store_status index_log(struct store *s, MDB_txn *txn, uint64_t workspace, const struct manifest *m, uint64_t *next,
                            struct log_head *head);

/* ---- writing (also index_move, in internal.h) ---- */

/* index_write(t): put what the transaction gathered for the log. Before a view of the transaction is taken, and by the commit. */
void index_write(struct store_txn *t);

/* index_due(s, m, head): has the log grown enough to be merged? */
bool index_due(const struct store *s, const struct manifest *m, const struct log_head *head);

#endif
