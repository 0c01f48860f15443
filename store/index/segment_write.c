#include "store/engine/schema.h"
#include "store/index/bitmap_internal.h"
#include "store/index/index.h"
#include "store/index/ngram_block_internal.h"
#include "store/index/search_internal.h"
#include "store/index/segment_internal.h"

#include <stdlib.h>

/* Builds the data of a segment. */

static void put_order(struct buf *out, const uint16_t *row, uint32_t count)
{
    part_put(out, row, count * sizeof(*row));
    uint16_t *rank = part_space(out, count * sizeof(*rank));
    for (uint32_t i = 0; rank != NULL && i < count; i++)
        rank[row[i]] = (uint16_t)i;
}

/* ---- rows ---- */

static void put_bits(const struct segment_row *rows, uint32_t count, struct buf *out)
{
    uint32_t words = index_words(count);
    size_t bitmap = ((size_t)words * sizeof(uint64_t) + 7) & ~(size_t)7;
    uint64_t *bits = part_space(out, (CLASSES + STATUSES) * bitmap);
    for (uint32_t i = 0; bits != NULL && i < count; i++) {
        bit_set(bits + (size_t)class_result(rows[i].class) * words, i);
        bit_set(bits + (size_t)(CLASSES + class_status(rows[i].class)) * words, i);
    }
}

static int by_project(const void *a, const void *b, void *at)
{
    const struct segment_row *rows = at;
    uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;
    uint64_t p = rows[x].project, q = rows[y].project;
    return p != q ? (p < q ? -1 : 1) : x < y ? -1 : x > y;
}

static bool begins_project(const struct segment_row *rows, const uint16_t *by, uint32_t i)
{
    return i == 0 || rows[by[i]].project != rows[by[i - 1]].project;
}

static uint32_t count_projects(const struct segment_row *rows, const uint16_t *by, uint32_t count)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        n += begins_project(rows, by, i);
    return n;
}

static void put_projects(const struct segment_row *rows, const uint16_t *by, uint32_t count,
                         uint32_t projects, struct buf *out)
{
    uint64_t *project = part_space(out, projects * sizeof(*project));
    for (uint32_t i = 0, n = 0; project != NULL && i < count; i++)
        if (begins_project(rows, by, i))
            project[n++] = rows[by[i]].project;
    uint32_t *at = part_space(out, ((size_t)projects + 1) * sizeof(*at));
    for (uint32_t i = 0, n = 0; at != NULL && i < count; i++)
        if (begins_project(rows, by, i))
            at[n++] = i;
    if (at != NULL)
        at[projects] = count;
    part_put(out, by, count * sizeof(*by));
    uint16_t *of = part_space(out, count * sizeof(*of));
    for (uint32_t i = 0, n = 0; of != NULL && i < count; i++) {
        n += i != 0 && begins_project(rows, by, i);
        of[by[i]] = (uint16_t)n;
    }
}

/* ---- scores and dates ---- */

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

/* One pass of a stable radix sort; false: all keys share the digit, and nothing was done. */
static bool radix_pass(const uint64_t *keys, uint32_t count, unsigned shift, const uint16_t *from,
                       uint16_t *to)
{
    uint32_t at[DIGITS] = {0};
    for (uint32_t i = 0; i < count; i++)
        at[keys[i] >> shift & (DIGITS - 1)]++;
    if (at[keys[0] >> shift & (DIGITS - 1)] == count)
        return false;
    for (uint32_t i = 0, sum = 0; i < DIGITS; i++) {
        uint32_t n = at[i];
        at[i] = sum;
        sum += n;
    }
    for (uint32_t i = 0; i < count; i++)
        to[at[keys[from[i]] >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

/*
 * Sort rows by their keys; equal keys stay in the order of their ids. ${a}, ${b}: memory for the
 * rows. Returns the one that has the result.
 */
static uint16_t *radix_sort(const uint64_t *keys, uint32_t count, uint16_t *a, uint16_t *b)
{
    for (uint32_t i = 0; i < count; i++)
        a[i] = (uint16_t)i;
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (!radix_pass(keys, count, shift, a, b))
            continue;
        uint16_t *swap = a;
        a = b;
        b = swap;
    }
    return a;
}

static int64_t value_of(const struct segment_row *row, bool score)
{
    return score ? row->score : row->date;
}

static void put_sorted(const struct segment_row *rows, uint32_t count, bool score, struct buf *out)
{
    uint64_t *keys = malloc((count + 1) * (sizeof(*keys) + 2 * sizeof(uint16_t)));
    if (keys == NULL) {
        out->failed = true;
        return;
    }
    uint16_t *scratch = (uint16_t *)(void *)(keys + count);
    /* flip the sign bit, so that unsigned order is signed order */
    for (uint32_t i = 0; i < count; i++)
        keys[i] = (uint64_t)value_of(&rows[i], score) ^ 1ull << 63;
    put_order(out, radix_sort(keys, count, scratch, scratch + count), count);
    free(keys);
}

static void put_scores(const struct segment_row *rows, uint32_t count, struct buf *out)
{
    int8_t *scores = part_space(out, count);
    for (uint32_t i = 0; scores != NULL && i < count; i++)
        scores[i] = rows[i].score;
    put_sorted(rows, count, true, out);
}

static void put_dates(const struct segment_row *rows, uint32_t count, struct buf *out)
{
    int64_t *dates = part_space(out, count * sizeof(*dates));
    for (uint32_t i = 0; dates != NULL && i < count; i++)
        dates[i] = rows[i].date;
    put_sorted(rows, count, false, out);
}

/* ---- URLs ---- */

static int by_url(const void *a, const void *b, void *at)
{
    const struct segment_row *rows = at;
    uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;
    int by = url_compare(rows[x].url, rows[y].url);
    return by != 0 ? by : x < y ? -1 : x > y;
}

/* Offsets go to ${at} and trigram codes to ${trigrams}, which move with ${out}. */
static void put_ngram_blocks(const struct segment_row *rows, uint32_t count,
                             unsigned ngram_block_shift, size_t at, size_t trigrams,
                             struct buf *out)
{
    uint32_t most = 1u << ngram_block_shift;
    for (uint32_t i = 0, from = 0; from < count && buf_ok(out); i++, from += most) {
        uint64_t begin = out->n;
        struct ngram_block c;
        ngram_block_make(&rows[from].url, count - from < most ? count - from : most, sizeof(*rows),
                         out);
        struct part_reader r = {(const uint8_t *)out->p + begin, (const uint8_t *)out->p + out->n,
                                !buf_ok(out)};
        if (!ngram_block_read(&r, &c)) {
            out->failed = true;
            return;
        }
        uint64_t *all = (uint64_t *)(void *)(out->p + trigrams);
        for (uint32_t word = 0; word < TRIGRAM_CODES / 64; word++)
            all[word] |= c.present[word];
        uint64_t *offsets = (uint64_t *)(void *)(out->p + at);
        offsets[i] = begin;
        offsets[i + 1] = out->n;
    }
}

/* ---- the segment ---- */

static void put_all(const struct segment_row *rows, uint32_t count, unsigned ngram_block_shift,
                    uint16_t *by, struct buf *out)
{
    struct segment_head head = {.rows = count,
                                .ngram_blocks = ((count - 1) >> ngram_block_shift) + 1,
                                .ngram_block_shift = ngram_block_shift};
    for (uint32_t i = 0; i < count; i++)
        by[i] = (uint16_t)i;
    qsort_r(by, count, sizeof(*by), by_project, (void *)(uintptr_t)rows);
    head.projects = count_projects(rows, by, count);
    part_put(out, &head, sizeof(head));
    size_t at = out->n;
    part_space(out, ((size_t)head.ngram_blocks + 1) * sizeof(uint64_t));
    put_bits(rows, count, out);
    uint64_t *ids = part_space(out, count * sizeof(*ids));
    for (uint32_t i = 0; ids != NULL && i < count; i++)
        ids[i] = rows[i].id;
    put_projects(rows, by, count, head.projects, out);
    put_scores(rows, count, out);
    put_dates(rows, count, out);
    size_t trigrams = out->n;
    part_space(out, TRIGRAM_CODES / 8);
    qsort_r(by, count, sizeof(*by), by_url, (void *)(uintptr_t)rows);
    put_order(out, by, count);
    put_ngram_blocks(rows, count, ngram_block_shift, at, trigrams, out);
}

void segment_data(const struct segment_row *rows, uint32_t count, unsigned ngram_block_shift,
                  struct buf *out)
{
    uint16_t *by = malloc(count * sizeof(*by));
    if (by == NULL) {
        out->failed = true;
        return;
    }
    put_all(rows, count, ngram_block_shift, by, out);
    free(by);
}
