/*
 * A segment: up to 65,536 reports of one workspace, immutable. Private to store/.
 *
 * Rows are numbered from 0 in the order of their ids. It lies in parts, each one value that LMDB keeps on pages of its own (it is at least
 * a page long), so that pointers into it stay good for as long as a manifest names it and the map is not made anew:
 *
 *   fixed     ids, projects and their rows, the order of URLs
 *   chunks    the URLs, and what searching them takes: chunk.h
 *   moving    dates and scores with their orders, results, statuses; replaced as a whole where the log changed many of them
 *
 * An order is two permutations: from rank to row, and from row to rank.
 */
#ifndef ASSAY_STORE_SEGMENT_H
#define ASSAY_STORE_SEGMENT_H

#include "index.h"
#include "chunk.h"

#define SEGMENT_ROWS 65536
#define LOG_ENTRIES 4096

struct order {
    const uint16_t *row, *rank;
};

struct segment_fixed_head {
    uint32_t rows, projects, chunks, chunk_shift;
};

struct segment_moving_head {
    uint32_t rows, live;
};

struct segment {
    uint32_t rows, live, words; /* words of 64 rows */
    uint32_t projects, chunk_count, chunk_shift;
    const uint64_t *ids;
    const uint64_t *project;     /* ascending */
    const uint32_t *project_at;  /* projects + 1: where their rows begin */
    const uint16_t *project_row; /* each project's ascending */
    const uint16_t *row_project; /* of each row: which of them */
    const uint64_t *grams;       /* a bit for each code of three letters that comes in any chunk */
    struct order url, date, score;
    const int64_t *dates;
    const int8_t *scores;
    const uint64_t *result_bits[CLASSES];
    const uint64_t *status_bits[STATUSES];
    const uint64_t *live_bits;
    struct chunk *chunks; /* allocated */
    uint32_t chunks_open; /* the first so many are */
};

/*
 * segment_open(s, txn, q, workspace, m, out): borrow all of it; ${out} is zeroed, or what an earlier call left that answered STORE_AGAIN,
 * for a pause of ${q} (or NULL) came between. segment_close frees what is allocated; safe on a zeroed one.
 */
enum store_status segment_open(struct store *s, MDB_txn *txn, const struct store_list_query *q, uint64_t workspace,
                               const struct manifest_segment *m, struct segment *out);
enum store_status segment_open_moving(struct store *s, MDB_txn *txn, uint64_t workspace, uint64_t part, struct segment *out);
void segment_close(struct segment *g);

/* segment_row(g, id): the row of that id, g->rows when there is none. segment_url, segment_class: of a row (CLASS_GONE: none). */
uint32_t segment_row(const struct segment *g, uint64_t id);
struct str segment_url(const struct segment *g, uint32_t row);
uint8_t segment_class(const struct segment *g, uint32_t row);

/* segment_project(g, project, count): its rows, ascending. */
const uint16_t *segment_project(const struct segment *g, uint64_t project, uint32_t *count);

/* ---- making one ---- */

struct segment_row {
    uint64_t id, project;
    int64_t date;
    int8_t score;
    uint8_t class;
    struct str url;
};

/*
 * segment_make_…: append the part to ${out}, not padded. ${url_row}: rows by rank. ${grams}: of all its chunks. ${rows} are ascending by id.
 */
void segment_make_fixed(const struct segment_row *rows, uint32_t count, const uint16_t *url_row, const uint64_t *grams,
                        unsigned chunk_shift, struct buf *out);
void segment_make_moving(const struct segment_row *rows, uint32_t count, struct buf *out);

/* segment_part_key(k, workspace, part, piece): pieces 1… of a fixed part are its chunks. */
void segment_part_key(struct key *k, uint64_t workspace, uint64_t part, uint64_t piece);

#endif
