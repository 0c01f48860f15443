#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/index/bitmap_internal.h"
#include "store/index/index.h"
#include "store/index/lists.h"
#include "store/index/match_cache_internal.h"
#include "store/index/ngram_block_internal.h"
#include "store/index/page_internal.h"
#include "store/index/search_internal.h"
#include "store/index/segment_file_internal.h"
#include "store/index/segment_internal.h"
#include "store/index/select_internal.h"
#include "store/index/snapshot.h"

#include <errno.h>
#include <stdlib.h>

#define FEW_ROWS 256 /* so few rows are compared one by one instead of with the whole segment */
#define FEW_STEP 16  /* rows between two calls of ${stop}; each may be a read from the disk */

struct report_list {
    struct store *s;
    MDB_txn *txn;
    const struct store_list_query *q;
    struct page page;
    struct search search;
    struct match_cache_entry *cached; /* NULL: without a search */
    struct index_snapshot *snapshot;
    struct run *runs;
    uint64_t *matches; /* of all segments, concatenated */
    uint32_t *tail;    /* matching rows of the tail */
    uint32_t *few;     /* for segments with few rows to compare */
};

static uint32_t count_bits(const uint64_t *bits, uint32_t words)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < words; i++)
        n += bit_count(bits[i]);
    return n;
}

static void all_bits(uint64_t *bits, uint32_t rows)
{
    memset(bits, 0xff, index_words(rows) * sizeof(*bits));
    if (rows % 64 != 0)
        bits[rows / 64] = (1ull << rows % 64) - 1;
}

static void and_bits(uint64_t *bits, const uint64_t *other, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        bits[i] &= other[i];
}

static void and_not_bits(uint64_t *bits, const uint64_t *other, uint32_t words)
{
    for (uint32_t i = 0; other != NULL && i < words; i++)
        bits[i] &= ~other[i];
}

/* Columns: enum report_sort, the part of a segment that has its order. */
static const enum segment_part part_of_sort[] = {
    [REPORT_BY_ID] = PART_ROWS,
    [REPORT_BY_GENERATED_AT] = PART_DATES,
    [REPORT_BY_URL] = PART_URLS,
    [REPORT_BY_SCORE] = PART_SCORES,
};

static const uint16_t *ranks_of(const struct segment *g, unsigned sort)
{
    switch (sort) {
    case REPORT_BY_GENERATED_AT:
        return g->date.rank;
    case REPORT_BY_URL:
        return g->url.rank;
    case REPORT_BY_SCORE:
        return g->score.rank;
    default:
        return NULL;
    }
}

/* The rows of a segment that match the query except for the search. */
static uint32_t filter_segment(const struct store_list_query *q, const struct snapshot_segment *in,
                               uint64_t *bits)
{
    const struct segment *g = &in->segment;
    if (q->project == 0) {
        all_bits(bits, g->rows);
    } else {
        uint32_t count;
        const uint16_t *rows = segment_project(g, q->project, &count);
        memset(bits, 0, g->words * sizeof(*bits));
        for (uint32_t i = 0; i < count; i++)
            bit_set(bits, rows[i]);
    }
    if (q->result != RESULT_NONE)
        and_bits(bits, g->result_bits[q->result], g->words);
    if (q->status != 0)
        and_bits(bits, g->status_bits[q->status - 1], g->words);
    and_not_bits(bits, in->tombstones, g->words);
    and_not_bits(bits, in->deleting, g->words);
    if (q->project == 0 && q->result == RESULT_NONE && q->status == 0 && in->deleting == NULL)
        return g->rows - in->tombstone_count;
    return count_bits(bits, g->words);
}

/* ---- searching a segment ---- */

static enum store_status search_blocks(struct report_list *l, const struct segment *g,
                                       uint64_t *bits)
{
    uint32_t words = 1u << (g->ngram_block_shift - 6);
    for (uint32_t i = 0; i < g->ngram_block_count; i++) {
        const struct ngram_block *c = segment_ngram_block(g, i);
        if (c == NULL)
            return segment_is_damaged(l->s, g->file);
        if (!l->search.ordered)
            ngram_block_order(c, &l->search);
        if (search_stops(&l->search) || !ngram_block_match(c, &l->search, bits + i * words))
            return STORE_AGAIN;
    }
    return STORE_OK;
}

/* Search the whole segment and keep the matches. */
static enum store_status search_whole(struct report_list *l, const struct snapshot_segment *in,
                                      const uint64_t **out)
{
    const struct segment *g = &in->segment;
    uint64_t *bits = calloc(g->words, sizeof(*bits));
    enum store_status status =
        bits == NULL ? store_fail(l->s, ENOMEM, "search") : search_blocks(l, g, bits);
    *out = bits;
    if (status != STORE_OK)
        free(bits);
    else if (!match_cache_add(l->s, l->cached, in->number, bits, g->words))
        status = store_fail(l->s, ENOMEM, "search");
    return status;
}

/* Keep the matching rows of ${rows}. */
static enum store_status search_few(struct report_list *l, const struct snapshot_segment *in,
                                    uint16_t *rows, uint32_t *count)
{
    uint32_t n = 0;
    if (l->cached == NULL)
        return STORE_OK;
    const uint64_t *known = match_cache_segment(l->cached, in->number);
    for (uint32_t i = 0; i < *count; i++) {
        if (known != NULL ? bit_test(known, rows[i])
                          : search_matches(&l->search, segment_url(&in->segment, rows[i])))
            rows[n++] = rows[i];
        if (known == NULL && i % FEW_STEP == FEW_STEP - 1 && search_stops(&l->search))
            return STORE_AGAIN;
    }
    *count = n;
    return STORE_OK;
}

static enum store_status search_few_bits(struct report_list *l, const struct snapshot_segment *in,
                                         uint64_t *bits)
{
    uint16_t rows[FEW_ROWS];
    uint32_t n = 0;
    for (uint32_t word = 0; word < in->segment.words; word++)
        for (uint64_t left = bits[word]; left != 0; left &= left - 1)
            rows[n++] = (uint16_t)(word * 64 + (uint32_t)__builtin_ctzll(left));
    enum store_status status = search_few(l, in, rows, &n);
    memset(bits, 0, in->segment.words * sizeof(*bits));
    for (uint32_t i = 0; i < n; i++)
        bit_set(bits, rows[i]);
    return status;
}

/* Keep the matching rows of ${bits} (${count} of them). */
static enum store_status search_segment(struct report_list *l, const struct snapshot_segment *in,
                                        uint64_t *bits, uint32_t *count)
{
    const struct segment *g = &in->segment;
    enum store_status status = STORE_OK;
    if (l->cached == NULL || *count == 0)
        return STORE_OK;
    const uint64_t *known = match_cache_segment(l->cached, in->number);
    if (known == NULL && *count <= FEW_ROWS) {
        status = search_few_bits(l, in, bits);
    } else {
        status = known == NULL ? search_whole(l, in, &known) : STORE_OK;
        if (status == STORE_OK)
            and_bits(bits, known, g->words);
    }
    *count = count_bits(bits, g->words);
    return status;
}

/* ---- a small project's rows of a segment ---- */

/*
 * They cost less than a pass over all bits of the segment, of which such a page would take several.
 */
static bool few_of_project(const struct store_list_query *q, const struct segment *g,
                           const uint16_t **rows, uint32_t *count)
{
    if (q->project == 0)
        return false;
    *rows = segment_project(g, q->project, count);
    return *count <= FEW_ROWS && *count <= g->rows / 4;
}

static bool few_pass(const struct store_list_query *q, const struct snapshot_segment *in,
                     uint32_t row)
{
    const struct segment *g = &in->segment;
    return (q->result == RESULT_NONE || bit_test(g->result_bits[q->result], row)) &&
           (q->status == 0 || bit_test(g->status_bits[q->status - 1], row)) &&
           index_snapshot_lives(in, row) && (in->deleting == NULL || !bit_test(in->deleting, row));
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The matching rows become the run, in the order of the sort. */
static enum store_status match_few(struct report_list *l, const struct snapshot_segment *in,
                                   const uint16_t *rows, uint32_t count, struct run *run)
{
    const uint16_t *rank = ranks_of(&in->segment, l->q->sort);
    uint16_t passing[FEW_ROWS];
    uint32_t *out = l->few, n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (few_pass(l->q, in, rows[i]))
            passing[n++] = rows[i];
    enum store_status status = search_few(l, in, passing, &n);
    for (uint32_t i = 0; i < n; i++)
        out[i] = (rank == NULL ? 0 : (uint32_t)rank[passing[i]]) << 16 | passing[i];
    if (rank != NULL)
        qsort(out, n, sizeof(*out), compare_u32);
    for (uint32_t i = 0; i < n; i++)
        out[i] &= 0xffff;
    run->rows = out;
    run->ranks = run->count = n;
    l->few += n;
    return status;
}

/* ---- the tail ---- */

static bool row_passes(const struct report_list *l, const struct tail_row *r)
{
    const struct store_list_query *q = l->q;
    return r->class != CLASS_GONE && (q->project == 0 || r->project == q->project) &&
           (q->result == RESULT_NONE || class_result(r->class) == q->result) &&
           (q->status == 0 || class_status(r->class) == q->status - 1) &&
           !index_snapshot_is_deleting(l->snapshot, r->project);
}

/* The matching rows; earlier matches are kept, since rows are only added. */
static enum store_status search_tail(struct report_list *l, const uint64_t **out)
{
    const struct index_snapshot *v = l->snapshot;
    const uint8_t *text = (const uint8_t *)v->text.p;
    struct match_cache_rows *own = &l->cached->tail;
    const uint32_t *offset = (const uint32_t *)(const void *)v->offset.p;
    uint64_t *bits = match_cache_rows(l->s, l->cached, own, v->made, v->row_count);
    if (bits == NULL)
        return store_fail(l->s, ENOMEM, "search");
    if (!search_rows(&l->search, text, offset, own->looked, v->row_count, bits))
        return STORE_AGAIN;
    own->looked = v->row_count;
    *out = bits;
    return STORE_OK;
}

static enum store_status match_tail(struct report_list *l, struct run *run)
{
    const struct tail_order *order;
    struct index_snapshot *v = l->snapshot;
    const uint64_t *bits = NULL;
    if (v->row_count == 0)
        return STORE_OK;
    enum store_status status = index_snapshot_tail_order(l->s, v, l->q->sort, &order);
    if (status == STORE_OK && l->cached != NULL)
        status = search_tail(l, &bits);
    if (status != STORE_OK)
        return status;
    for (size_t i = 0; i < order->count; i++) {
        uint32_t row = order->rows[i];
        if ((bits == NULL || bit_test(bits, row)) && row_passes(l, &v->rows[row]))
            l->tail[run->count++] = row;
    }
    run->rows = l->tail;
    run->ranks = run->count;
    return STORE_OK;
}

/* ---- the page ---- */

/* Convert bits by row to bits by rank, going through the rarer of ones and zeros. */
static void bits_to_ranks(const uint64_t *bits, uint32_t count, const struct segment *g,
                          const uint16_t *rank, uint64_t *out)
{
    bool rare = count <= g->rows / 2;
    memset(out, rare ? 0 : 0xff, g->words * sizeof(*out));
    for (uint32_t word = 0; word < g->words; word++) {
        uint64_t left = rare ? bits[word] : ~bits[word];
        if (word == g->words - 1 && g->rows % 64 != 0)
            left &= (1ull << g->rows % 64) - 1;
        for (; left != 0; left &= left - 1) {
            uint32_t at = rank[word * 64 + (uint32_t)__builtin_ctzll(left)];
            out[at / 64] ^= 1ull << at % 64;
        }
    }
    if (g->rows % 64 != 0)
        out[g->words - 1] &= (1ull << g->rows % 64) - 1;
}

/* The matches of a segment by rank. If all or none match, the bits are the same in any order. */
static void order_run(struct report_list *l, struct snapshot_segment *in, struct run *run,
                      const uint64_t *bits, uint64_t *turned)
{
    const struct segment *g = &in->segment;
    const uint16_t *rank =
        run->count != 0 && run->count != g->rows ? ranks_of(g, l->q->sort) : NULL;
    if (rank != NULL)
        bits_to_ranks(bits, run->count, g, rank, turned);
    run->bits = rank != NULL ? turned : bits;
    if (run->count == 0)
        run->words = run->ranks = 0;
    run_of_bits(run);
}

static enum store_status take_page(struct report_list *l, uint64_t total)
{
    struct index_snapshot *v = l->snapshot;
    uint64_t left = total - l->page.skip, ids[STORE_PER_PAGE_MAX];
    size_t want = left < l->page.want ? (size_t)left : l->page.want;
    uint64_t *bits = l->matches, *turned = l->matches;
    for (size_t i = 0; i < v->segment_count; i++)
        turned += v->segments[i].segment.words;
    for (size_t i = 0; i < v->segment_count; i++) {
        if (l->runs[i].rows == NULL)
            order_run(l, &v->segments[i], &l->runs[i], bits, turned);
        bits += v->segments[i].segment.words;
        turned += v->segments[i].segment.words;
    }
    const struct selection from_all = {v, l->runs, v->segment_count + 1, l->q->sort};
    enum store_status status = STORE_OK;
    select_page(&from_all, l->q->ascending ? l->page.skip : left - want, want, ids);
    for (size_t i = 0; i < want && status == STORE_OK; i++)
        status = page_take(&l->page, ids[l->q->ascending ? i : want - 1 - i]);
    return status;
}

/*
 * Memory of the whole list: matches by row, matches by rank, counts of the latter, runs, tail rows,
 * rows of small projects.
 */
static bool make_room(struct report_list *l)
{
    struct index_snapshot *v = l->snapshot;
    size_t words = 0, count = v->segment_count + 1;
    for (size_t i = 0; i < v->segment_count; i++)
        words += v->segments[i].segment.words;
    size_t bytes = count * sizeof(*l->runs) + 2 * words * sizeof(uint64_t) +
                   (words + count + v->row_count) * sizeof(uint32_t) +
                   (l->q->project != 0 ? v->segment_count * FEW_ROWS * sizeof(uint32_t) : 0);
    buf_reset(&l->s->scratch);
    char *p = buf_reserve(&l->s->scratch, bytes);
    if (p == NULL)
        return false;
    l->runs = (struct run *)(void *)p;
    l->matches = (uint64_t *)(void *)(l->runs + count);
    uint32_t *before = (uint32_t *)(l->matches + 2 * words);
    for (size_t i = 0; i < v->segment_count; i++) {
        const struct segment *g = &v->segments[i].segment;
        l->runs[i] =
            (struct run){.segment = g, .words = g->words, .ranks = g->rows, .before = before};
        before += g->words + 1;
    }
    l->runs[count - 1] = (struct run){0};
    l->tail = before;
    l->few = l->tail + v->row_count;
    return true;
}

static enum store_status match_all(struct report_list *l, uint64_t *total)
{
    struct index_snapshot *v = l->snapshot;
    uint64_t *bits = l->matches;
    enum store_status status = STORE_OK;
    for (size_t i = 0; i < v->segment_count && status == STORE_OK; i++) {
        struct run *run = &l->runs[i];
        const uint16_t *rows;
        uint32_t few;
        if (search_stops(&l->search))
            return STORE_AGAIN;
        if (l->cached == NULL || !search_lacks(&l->search, run->segment->trigrams)) {
            if (few_of_project(l->q, run->segment, &rows, &few)) {
                status = match_few(l, &v->segments[i], rows, few, run);
            } else {
                run->count = filter_segment(l->q, &v->segments[i], bits);
                status = search_segment(l, &v->segments[i], bits, &run->count);
            }
        }
        bits += run->words;
        *total += run->count;
    }
    if (status == STORE_OK)
        status = match_tail(l, &l->runs[v->segment_count]);
    *total += l->runs[v->segment_count].count;
    return status;
}

static enum store_status verify_parts(struct report_list *l)
{
    const struct index_snapshot *v = l->snapshot;
    for (size_t i = 0; i < v->segment_count; i++) {
        const struct segment *g = &v->segments[i].segment;
        if (!segment_need(g, part_of_sort[l->q->sort]) ||
            (l->q->search.n != 0 && !segment_need(g, PART_TRIGRAMS)))
            return index_snapshot_verified(l->s, l->snapshot);
        if (search_stops(&l->search))
            return STORE_AGAIN;
    }
    return STORE_OK;
}

/* Has the pattern a trigram that no URL has? */
static bool is_nowhere(const struct report_list *l)
{
    const struct index_snapshot *v = l->snapshot;
    if (l->q->search.n == 0)
        return false;
    bool lacks = search_lacks(&l->search, v->trigrams);
    for (size_t i = 0; i < v->segment_count && lacks; i++)
        lacks = search_lacks(&l->search, v->segments[i].segment.trigrams);
    return lacks;
}

static enum store_status report_list(struct report_list *l, uint64_t *total)
{
    enum store_status status = index_snapshot_query(l->s, l->txn, l->q, &l->snapshot);
    if (status == STORE_OK)
        status = verify_parts(l);
    if (status != STORE_OK || is_nowhere(l))
        return status;
    if (l->q->search.n != 0)
        l->cached = match_cache_get(l->s, l->q->workspace, search_key(&l->search));
    if (l->cached != NULL)
        match_cache_drop_merged(l->s, l->cached, l->snapshot);
    if ((l->q->search.n != 0 && l->cached == NULL) || !make_room(l))
        return store_fail(l->s, ENOMEM, "list reports");
    status = match_all(l, total);
    if (status == STORE_OK && l->page.skip < *total)
        status = take_page(l, *total);
    enum store_status verified = index_snapshot_verified(l->s, l->snapshot);
    return verified == STORE_OK ? status : verified;
}

enum store_status list_reports(struct store *s, MDB_txn *txn, const struct store_list_query *q,
                               list_take_fn *take, void *arg, uint64_t *total)
{
    struct report_list l = {.s = s, .txn = txn, .q = q, .page = page_of(s, q, take, arg)};
    *total = 0;
    if (!search_begin_url(&l.search, q->search))
        return store_fail(s, ENOMEM, "search");
    l.search.stop = page_stopped;
    l.search.stop_arg = &l.page;
    enum store_status status = report_list(&l, total);
    search_end(&l.search);
    return status;
}
