#include "segment.h"

#include <stdlib.h>

/* An order from its rows by rank. */
static void put_order(struct buf *out, const uint16_t *row, uint32_t count)
{
    part_put(out, row, count * sizeof(*row));
    uint16_t *rank = part_space(out, count * sizeof(*rank));
    for (uint32_t i = 0; rank != NULL && i < count; i++)
        rank[row[i]] = (uint16_t)i;
}

/* ---- what never changes ---- */

static const struct segment_row *sorted_rows; /* qsort has no argument for it; one thread makes segments */

static int by_project(const void *a, const void *b)
{
    uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;
    uint64_t p = sorted_rows[x].project, q = sorted_rows[y].project;
    return p != q ? (p < q ? -1 : 1) : x < y ? -1 : x > y;
}

static void put_projects(const struct segment_row *rows, const uint16_t *by, uint32_t count, uint32_t projects, struct buf *out)
{
    uint64_t *project = part_space(out, projects * sizeof(*project));
    if (project == NULL)
        return;
    for (uint32_t i = 0, n = 0; i < count; i++)
        if (i == 0 || rows[by[i]].project != rows[by[i - 1]].project)
            project[n++] = rows[by[i]].project;
    uint32_t *at = part_space(out, ((size_t)projects + 1) * sizeof(*at));
    if (at == NULL)
        return;
    for (uint32_t i = 0, n = 0; i < count; i++)
        if (i == 0 || rows[by[i]].project != rows[by[i - 1]].project)
            at[n++] = i;
    at[projects] = count;
    part_put(out, by, count * sizeof(*by));
    uint16_t *of = part_space(out, count * sizeof(*of));
    for (uint32_t i = 0, n = 0; of != NULL && i < count; i++) {
        n += i != 0 && rows[by[i]].project != rows[by[i - 1]].project;
        of[by[i]] = (uint16_t)n;
    }
}

void segment_make_fixed(const struct segment_row *rows, uint32_t count, const uint16_t *url_row, const uint64_t *grams,
                        unsigned chunk_shift, struct buf *out)
{
    uint16_t *by = malloc(count * sizeof(*by));
    if (by == NULL) {
        out->failed = true;
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        by[i] = (uint16_t)i;
    sorted_rows = rows;
    qsort(by, count, sizeof(*by), by_project);
    struct segment_fixed_head head = {.rows = count, .chunks = ((count - 1) >> chunk_shift) + 1, .chunk_shift = chunk_shift};
    for (uint32_t i = 0; i < count; i++)
        head.projects += i == 0 || rows[by[i]].project != rows[by[i - 1]].project;
    part_put(out, &head, sizeof(head));
    uint64_t *ids = part_space(out, count * sizeof(*ids));
    for (uint32_t i = 0; ids != NULL && i < count; i++)
        ids[i] = rows[i].id;
    put_projects(rows, by, count, head.projects, out);
    part_put(out, grams, GRAM_CODES / 8);
    put_order(out, url_row, count);
    free(by);
}

/* ---- what may change ---- */

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

/* One pass of a stable radix sort; false where all keys share the digit, and nothing was done. */
static bool radix_pass(const uint64_t *keys, uint32_t count, unsigned shift, const uint16_t *from, uint16_t *to)
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

/* The rows in the order of their keys; equal ones stay in the order of their ids. ${a}, ${b}: room for the rows; which has them? */
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

static void put_sorted(const struct segment_row *rows, uint32_t count, bool by_score, struct buf *out)
{
    uint64_t *keys = malloc((count + 1) * (sizeof(*keys) + 2 * sizeof(uint16_t)));
    if (keys == NULL) {
        out->failed = true;
        return;
    }
    uint16_t *room = (uint16_t *)(void *)(keys + count);
    for (uint32_t i = 0; i < count; i++) /* a sign bit turned over makes signed numbers sort as unsigned ones */
        keys[i] = (uint64_t)(by_score ? rows[i].score : rows[i].date) ^ 1ull << 63;
    put_order(out, radix_sort(keys, count, room, room + count), count);
    free(keys);
}

void segment_make_moving(const struct segment_row *rows, uint32_t count, struct buf *out)
{
    struct segment_moving_head head = {.rows = count};
    uint32_t words = (count + 63) / 64;
    for (uint32_t i = 0; i < count; i++)
        head.live += rows[i].class != CLASS_GONE;
    part_put(out, &head, sizeof(head));
    int64_t *dates = part_space(out, count * sizeof(*dates));
    for (uint32_t i = 0; dates != NULL && i < count; i++)
        dates[i] = rows[i].date;
    put_sorted(rows, count, false, out);
    put_sorted(rows, count, true, out);
    /* live, then each result, then each status */
    uint64_t *bits = part_space(out, (size_t)(1 + CLASSES + STATUSES) * words * sizeof(*bits));
    for (uint32_t i = 0; bits != NULL && i < count; i++) {
        if (rows[i].class == CLASS_GONE)
            continue;
        bit_set(bits, i);
        bit_set(bits + (size_t)(1 + class_result(rows[i].class)) * words, i);
        bit_set(bits + (size_t)(1 + CLASSES + class_status(rows[i].class)) * words, i);
    }
    char *scores = part_space(out, count);
    for (uint32_t i = 0; scores != NULL && i < count; i++)
        scores[i] = rows[i].score;
}
