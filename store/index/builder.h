/*
 * Builds segment files or a base from the rows of a workspace, and the data of
 * CHANGE_INDEX_INSTALL. For merge.c and rebuild.c.
 */
#ifndef ASSAY_STORE_INDEX_BUILDER_H
#define ASSAY_STORE_INDEX_BUILDER_H

#include "store/index/segment_internal.h"

struct builder {
    struct store *s;
    uint64_t workspace;
    struct segment_row *rows; /* not written yet; their URLs lie in ${text} */
    size_t count, cap;
    struct buf text;
    uint64_t total;                /* all rows so far, also written ones */
    struct buf removed, put, base; /* for struct index_install */
    struct buf made;               /* numbers of the written files */
    uint32_t put_count, piece_count;
    bool failed; /* out of memory */
};

/* builder_init(b, s, workspace). builder_free(b) keeps the files. */
void builder_init(struct builder *b, struct store *s, uint64_t workspace);
void builder_free(struct builder *b);

/* builder_undo(b): delete the written files, which will not be installed. */
void builder_undo(struct builder *b);

/* builder_add(b, row): add a row, with a copy of its URL. */
void builder_add(struct builder *b, const struct segment_row *row);
/* builder_bytes(b): memory of the rows that are not written yet. */
size_t builder_bytes(const struct builder *b);

/*
 * builder_remove(b, number): the segment is removed. builder_put(b, number, record, dead): it gets
 * this row.
 */
void builder_remove(struct builder *b, uint64_t number);
void builder_put(struct builder *b, uint64_t number, const struct segment_record *record,
                 const uint64_t *dead);

/* builder_write(b): write the rows as segment files. */
enum store_status builder_write(struct builder *b);

/*
 * builder_end(b, head, out): write the remaining rows, as a base if all rows are few and no segment
 * is kept (${kept} rows), and append the data of CHANGE_INDEX_INSTALL; ${head} has version,
 * log_from and base.
 */
enum store_status builder_end(struct builder *b, struct index_install head, uint64_t kept,
                              struct buf *out);

#endif
