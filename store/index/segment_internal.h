/*
 * A segment: up to 65,536 reports of one workspace in an immutable file.
 *
 * Rows are numbered from 0 in the order of their ids. The data of the file is:
 *
 *   head, offsets of the n-gram blocks
 *   rows      a bitmap for each result and each status; ids; projects and their rows
 *   scores    and their order
 *   dates     and their order
 *   trigrams  a bit for each code that any n-gram block has
 *   urls      the order of the URLs
 *   blocks    the URLs with their posting lists: ngram_block_internal.h
 *
 * An order is two permutations: from rank to row, and from row to rank. Equal values are in the
 * order of their ids.
 */
#ifndef ASSAY_STORE_INDEX_SEGMENT_INTERNAL_H
#define ASSAY_STORE_INDEX_SEGMENT_INTERNAL_H

#include "store/index/ngram_block_internal.h"
#include "store/index/segment_file_internal.h"

#define SEGMENT_ROWS 65536
#define SEGMENT_TEXT_BYTES ((size_t)32 << 20) /* of URLs */
#define LOG_ENTRIES 4096
#define SMALL_ROWS 4096 /* workspaces with fewer have no segment */

struct order {
    const uint16_t *row, *rank;
};

struct segment_head {
    uint32_t rows, projects, ngram_blocks, ngram_block_shift;
};

enum segment_part { PART_ROWS, PART_SCORES, PART_DATES, PART_TRIGRAMS, PART_URLS, SEGMENT_PARTS };

struct segment {
    struct segment_file *file;
    uint32_t rows, words; /* words: of a bitmap of rows */
    uint32_t projects, ngram_block_count, ngram_block_shift;
    const uint64_t *ngram_block_at; /* ngram_block_count + 1: offsets in the data */
    const uint64_t *result_bits[CLASSES];
    const uint64_t *status_bits[STATUSES];
    const uint64_t *ids;
    const uint64_t *project;     /* ascending */
    const uint32_t *project_at;  /* projects + 1: where their rows begin */
    const uint16_t *project_row; /* rows of each project, ascending */
    const uint16_t *row_project; /* index of each row's project */
    const int8_t *scores;
    const int64_t *dates;
    const uint64_t *trigrams;
    struct order score, date, url;
    const uint8_t *part_at[SEGMENT_PARTS + 1]; /* where each part begins, and the last one ends */
    struct ngram_block *ngram_blocks;          /* allocated; those that were read */
};

/*
 * segment_open(s, workspace, number, bytes, out): STORE_DAMAGED: the file is missing or damaged.
 * PART_ROWS is verified. segment_close(s, g): also of a zeroed one.
 */
enum store_status segment_open(struct store *s, uint64_t workspace, uint64_t number, uint64_t bytes,
                               struct segment *out);
void segment_close(struct store *s, struct segment *g);

/*
 * Verify before reading. On failure the file is marked as damaged (segment_damaged), and results
 * are meaningless. segment_need(g, part): verify a whole part. segment_ngram_block(g, i): a
 * verified block; NULL: damaged. segment_url(g, row): empty if damaged.
 */
bool segment_need(const struct segment *g, enum segment_part part);
const struct ngram_block *segment_ngram_block(const struct segment *g, uint32_t i);
struct str segment_url(const struct segment *g, uint32_t row);

static inline bool segment_damaged(const struct segment *g)
{
    return atomic_load_explicit(&g->file->damaged, memory_order_relaxed);
}

/* ids_below(ids, count, id): how many of ${count} ascending ids are below ${id}. */
static inline uint32_t ids_below(const uint64_t *ids, uint32_t count, uint64_t id)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* segment_find(g, id): the row of that id; g->rows: none. */
uint32_t segment_find(const struct segment *g, uint64_t id);

/* segment_project(g, project, count): its rows, ascending. */
const uint16_t *segment_project(const struct segment *g, uint64_t project, uint32_t *count);

struct segment_row {
    uint64_t id, project;
    int64_t date;
    int8_t score;
    uint8_t class;
    struct str url; /* a NUL follows it */
};

/* segment_row(g, row): all columns of a row; PART_SCORES and PART_DATES must be verified. */
struct segment_row segment_row(const struct segment *g, uint32_t row);

/*
 * segment_data(rows, count, ngram_block_shift, out): the data of a segment of ${count} rows,
 * ascending by id. out->failed: out of memory.
 */
void segment_data(const struct segment_row *rows, uint32_t count, unsigned ngram_block_shift,
                  struct buf *out);

/* url_compare(a, b): memcmp's order of URLs that are followed by a NUL. */
static inline int url_compare(struct str a, struct str b)
{
    return memcmp(a.p, b.p, (a.n < b.n ? a.n : b.n) + 1);
}

#endif
