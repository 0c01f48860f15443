/*
 * The index of reports, from which lists are answered. Derived from the heads (SPACE_REPORT).
 *
 *   create, grade, delete -> log (one record for each transaction and workspace)
 *     -> merge (merge thread) -> segment files -> manifest
 *
 * The log of a workspace has the changes since the last merge. It grows by one key per transaction,
 * so a create costs the same at any size. A segment is an immutable file of up to 65,536 reports in
 * the order of their ids. The manifest is SPACE_INDEX and a row of SPACE_SEGMENT for each segment,
 * with a bitmap of its dead rows. A changed report gets a dead bit and a row in a later segment.
 * Invariant: each report has exactly one live row. A small workspace has no segments: its merge
 * writes SPACE_BASE.
 *
 * A merge builds the new files first; a small transaction installs them (install.c): it replaces
 * rows of the manifest and moves ${log_from} past the merged records. Files that no manifest names
 * are deleted when no reader can need them (sweep.c). Readers use an index snapshot (snapshot.h).
 *
 * After damage or a restore the manifest is emptied (INDEX_REBUILDING) and the segments are built
 * from the heads (rebuild.c). Lists answer STORE_REBUILDING meanwhile.
 */
#ifndef ASSAY_STORE_INDEX_INDEX_H
#define ASSAY_STORE_INDEX_INDEX_H

#include "store/engine/txn.h"

/* A row's class: result and status, or deleted. */
#define CLASS_GONE 0xff

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

/* ---- log: key: workspace, sequence; value: log_head, then entries ---- */

enum log_kind { LOG_ADD = 1, LOG_SET, LOG_GONE };

/*
 * An entry, cut after the members of its kind: all for LOG_ADD, followed by the URL; up to
 * generated_at for LOG_SET; id for LOG_GONE. SPACE_BASE has only LOG_ADD.
 */
struct PACKED log_entry {
    uint8_t kind;
    uint64_t id;
    uint8_t class;
    int8_t score;
    int64_t generated_at;
    uint64_t project;
    uint16_t url_n;
};

/*
 * index_entry(at, end, out, url): read an entry and advance; false: it is malformed. ${url} is
 * borrowed. index_entry_put(out, e, url): append an entry.
 */
bool index_entry(const uint8_t **at, const uint8_t *end, struct log_entry *out, struct str *url);
void index_entry_put(struct buf *out, const struct log_entry *e, struct str url);

/* ---- manifest ---- */

enum index_state { INDEX_READY, INDEX_REBUILDING };

struct PACKED index_record {
    uint8_t state;
    uint64_t version;     /* incremented by each change of the manifest */
    uint64_t log_from;    /* first record of the log that is not merged */
    struct log_head base; /* totals of the log before that record */
    uint64_t rows;        /* of base and segments */
    uint64_t rebuild_to;  /* INDEX_REBUILDING: later ids are in the log */
};

/* Followed, if ${dead} is not 0, by a bitmap of the dead rows in 64-bit words. */
struct PACKED segment_record {
    uint64_t bytes; /* of the file */
    uint64_t first_id, last_id;
    uint32_t rows, dead;
};

/* index_words(rows): words of a bitmap of that many rows. */
static inline uint32_t index_words(uint32_t rows)
{
    return (rows + 63) / 64;
}

/* index_read(s, txn, workspace, out): an empty record (log_from 1) if there is none. */
enum store_status index_read(struct store *s, MDB_txn *txn, uint64_t workspace,
                             struct index_record *out);
void index_record_put(struct store_txn *t, uint64_t workspace, const struct index_record *record);

/*
 * index_segment_read(s, v, out, dead): decode a row of SPACE_SEGMENT; *dead: its bitmap, borrowed,
 * or NULL.
 */
enum store_status index_segment_read(struct store *s, MDB_val v, struct segment_record *out,
                                     const uint8_t **dead);

/*
 * index_log(s, txn, workspace, record, next, head): the sequence after the last record of the log,
 * and the totals up to there.
 */
enum store_status index_log(struct store *s, MDB_txn *txn, uint64_t workspace,
                            const struct index_record *record, uint64_t *next,
                            struct log_head *head);

/* index_due(s, record, head): is the log long enough to be merged? */
bool index_due(const struct store *s, const struct index_record *record,
               const struct log_head *head);

/* ---- writing ---- */

/* What a transaction gathers for the log of one workspace. */
struct log_batch {
    uint64_t workspace, entries;
    struct buf bytes;
};

/* index_move(t, old, new): ${old} becomes ${new}; NULL: it did not exist, or is deleted. */
void index_move(struct store_txn *t, const struct store_report *old,
                const struct store_report *new);

/* index_write(t): by the commit: write what the transaction gathered. */
void index_write(struct store_txn *t);

/* index_mark_due(t, workspace): the merge thread will check it, also after a restart. */
void index_mark_due(struct store_txn *t, uint64_t workspace);

/*
 * index_empty(t, workspace, left): delete rows of manifest, base and log, at most ${*left}, which
 * decreases. Its reports are deleted.
 */
void index_empty(struct store_txn *t, uint64_t workspace, uint64_t *left);

/*
 * Data of CHANGE_INDEX_INSTALL: this head; the numbers of ${removed} segments; ${put} rows of
 * segments, each its number, its segment_record and, if dead is not 0, its bitmap; and ${pieces} of
 * the base, each its length (32 bits) and its bytes. They replace the whole base.
 */
struct PACKED index_install {
    uint64_t version;  /* of the manifest it was built from; STORE_STALE if that changed */
    uint64_t log_from; /* of the new manifest, as the next two */
    struct log_head base;
    uint64_t rows;
    uint32_t removed, put, pieces;
};

#endif
