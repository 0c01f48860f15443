/*
 * The making of an index: rows of a workspace become segment files or a base, and what
 * CHANGE_INDEX_INSTALL takes. Private to store/index; used by merge.c and rebuild.c.
 */
#ifndef ASSAY_STORE_BUILDER_H
#define ASSAY_STORE_BUILDER_H

#include "store/index/segment_internal.h"

struct builder {
    struct store *s;
    uint64_t workspace;
    struct segment_row *rows; /* not written yet; their URLs lie in ${text} */
    size_t count, cap;
    struct buf text;
    uint64_t total;                /* rows so far, also those that were written */
    struct buf removed, put, base; /* what index_install has of them */
    struct buf made;               /* numbers of the files that were written */
    uint32_t put_count, piece_count;
    bool failed; /* memory is short */
};

/* builder_init(b, s, workspace); builder_free(b): the files stay. */
void builder_init(struct builder *b, struct store *s, uint64_t workspace);
void builder_free(struct builder *b);

/* builder_undo(b): delete the files that were written: they will not be installed. */
void builder_undo(struct builder *b);

/* builder_add(b, row): a row, with a copy of its URL. */
void builder_add(struct builder *b, const struct segment_row *row);
/* builder_bytes(b): memory of the rows that are not written yet. */
size_t builder_bytes(const struct builder *b);

/* builder_remove(b, number), builder_put(b, number, record, dead): a segment goes, or has this. */
void builder_remove(struct builder *b, uint64_t number);
void builder_put(struct builder *b, uint64_t number, const struct segment_record *record,
                 const uint64_t *dead);

/* builder_write(b): write the rows as segment files. */
enum store_status builder_write(struct builder *b);

/*
 * builder_end(b, head, out): write what is left, as a base where all rows are few and no segment
 * is kept (${kept} rows), and append what CHANGE_INDEX_INSTALL takes; ${head} has version, log_from
 * and base.
 */
enum store_status builder_end(struct builder *b, struct index_install head, uint64_t kept,
                              struct buf *out);

#endif
