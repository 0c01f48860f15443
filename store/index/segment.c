#include "store/index/segment_internal.h"

#include "store/engine/errors.h"
#include "store/engine/schema.h"
#include "store/index/bitmap_internal.h"
#include "store/index/index.h"
#include "store/index/ngram_block_internal.h"
#include "store/index/search_internal.h"
#include "store/index/segment_file_internal.h"

#include <errno.h>
#include <stdlib.h>

/* ---- reading ---- */

static void read_rows(struct part_reader *r, struct segment *g)
{
    for (int i = 0; i < CLASSES; i++)
        g->result_bits[i] = part_take(r, g->words * sizeof(uint64_t));
    for (int i = 0; i < STATUSES; i++)
        g->status_bits[i] = part_take(r, g->words * sizeof(uint64_t));
    g->ids = part_take(r, g->rows * sizeof(*g->ids));
    g->project = part_take(r, g->projects * sizeof(*g->project));
    g->project_at = part_take(r, ((size_t)g->projects + 1) * sizeof(*g->project_at));
    g->project_row = part_take(r, g->rows * sizeof(*g->project_row));
    g->row_project = part_take(r, g->rows * sizeof(*g->row_project));
}

static void read_order(struct part_reader *r, const struct segment *g, struct order *out)
{
    out->row = part_take(r, g->rows * sizeof(*out->row));
    out->rank = part_take(r, g->rows * sizeof(*out->rank));
}

static void read_parts(struct part_reader *r, struct segment *g)
{
    g->part_at[PART_ROWS] = r->at;
    read_rows(r, g);
    g->part_at[PART_SCORES] = r->at;
    g->scores = part_take(r, g->rows);
    read_order(r, g, &g->score);
    g->part_at[PART_DATES] = r->at;
    g->dates = part_take(r, g->rows * sizeof(*g->dates));
    read_order(r, g, &g->date);
    g->part_at[PART_TRIGRAMS] = r->at;
    g->trigrams = part_take(r, TRIGRAM_CODES / 8);
    g->part_at[PART_URLS] = r->at;
    read_order(r, g, &g->url);
    g->part_at[SEGMENT_PARTS] = r->at;
}

static bool read_head(struct part_reader *r, struct segment *g)
{
    const struct segment_head *head = part_take(r, sizeof(*head));
    if (head == NULL || !segment_file_verified(g->file, head, sizeof(*head)) || head->rows == 0 ||
        head->rows > SEGMENT_ROWS || head->ngram_block_shift < 6 ||
        head->ngram_block_shift > NGRAM_BLOCK_ROWS_SHIFT ||
        head->ngram_blocks != ((head->rows - 1) >> head->ngram_block_shift) + 1)
        return false;
    g->rows = head->rows;
    g->words = index_words(g->rows);
    g->projects = head->projects;
    g->ngram_block_count = head->ngram_blocks;
    g->ngram_block_shift = head->ngram_block_shift;
    size_t bytes = ((size_t)g->ngram_block_count + 1) * sizeof(*g->ngram_block_at);
    g->ngram_block_at = part_take(r, bytes);
    return g->ngram_block_at != NULL && segment_file_verified(g->file, g->ngram_block_at, bytes);
}

static bool read_all(struct segment *g)
{
    struct part_reader r = {g->file->data, g->file->data + g->file->data_bytes, false};
    if (!read_head(&r, g))
        return false;
    read_parts(&r, g);
    return !r.bad && segment_need(g, PART_ROWS);
}

enum store_status segment_open(struct store *s, uint64_t workspace, uint64_t number, uint64_t bytes,
                               struct segment *out)
{
    *out = (struct segment){0};
    enum store_status status = segment_file_open(s, workspace, number, bytes, &out->file);
    if (status == STORE_OK && !read_all(out))
        status = segment_is_damaged(s, out->file);
    if (status == STORE_OK &&
        (out->ngram_blocks = calloc(out->ngram_block_count, sizeof(*out->ngram_blocks))) == NULL)
        status = store_fail(s, ENOMEM, "hold a segment");
    if (status != STORE_OK)
        segment_close(s, out);
    return status;
}

void segment_close(struct store *s, struct segment *g)
{
    segment_file_close(s, g->file);
    free(g->ngram_blocks);
    *g = (struct segment){0};
}

bool segment_need(const struct segment *g, enum segment_part part)
{
    const uint8_t *at = g->part_at[part];
    return segment_file_verified(g->file, at, (size_t)(g->part_at[part + 1] - at));
}

/* ---- n-gram blocks ---- */

static struct part_reader ngram_block_reader(const struct segment *g, uint32_t i)
{
    const uint8_t *data = g->file->data;
    uint64_t from = g->ngram_block_at[i], to = g->ngram_block_at[i + 1];
    bool inside = from <= to && to <= g->file->data_bytes;
    return (struct part_reader){data + (inside ? from : 0), data + (inside ? to : 0), false};
}

/* Only its head is verified. */
static const struct ngram_block *ngram_block_at(const struct segment *g, uint32_t i)
{
    struct ngram_block *c = &g->ngram_blocks[i];
    if (c->head != NULL)
        return c;
    struct part_reader r = ngram_block_reader(g, i);
    uint32_t rows = g->rows - (i << g->ngram_block_shift), most = 1u << g->ngram_block_shift;
    struct ngram_block read;
    if (!segment_file_verified(g->file, r.at, sizeof(struct ngram_block_head)))
        return NULL;
    if (!ngram_block_read(&r, &read) || read.head->rows != (rows < most ? rows : most)) {
        atomic_store(&g->file->damaged, true);
        return NULL;
    }
    *c = read;
    return c;
}

const struct ngram_block *segment_ngram_block(const struct segment *g, uint32_t i)
{
    struct part_reader r = ngram_block_reader(g, i);
    if (!segment_file_verified(g->file, r.at, (size_t)(r.end - r.at)))
        return NULL;
    return ngram_block_at(g, i);
}

struct str segment_url(const struct segment *g, uint32_t row)
{
    const struct ngram_block *c = ngram_block_at(g, row >> g->ngram_block_shift);
    uint32_t at = row & ((1u << g->ngram_block_shift) - 1);
    if (c == NULL || !segment_file_verified(g->file, c->offset + at, 2 * sizeof(*c->offset)))
        return STR("");
    uint32_t from = c->offset[at], n = c->offset[at + 1] - from;
    if (!segment_file_verified(g->file, c->text + from, n))
        return STR("");
    return (struct str){(const char *)c->text + from, n - 1};
}

/* ---- rows ---- */

uint32_t segment_find(const struct segment *g, uint64_t id)
{
    uint32_t row = ids_below(g->ids, g->rows, id);
    return row < g->rows && g->ids[row] == id ? row : g->rows;
}

/* The bitmap that has the row; ${count}: none. */
static unsigned bitmap_of(const uint64_t *const *bits, unsigned count, uint32_t row)
{
    unsigned at = 0;
    while (at < count && !bit_test(bits[at], row))
        at++;
    return at;
}

static uint8_t segment_class(const struct segment *g, uint32_t row)
{
    unsigned result = bitmap_of(g->result_bits, CLASSES, row);
    unsigned status = bitmap_of(g->status_bits, STATUSES, row);
    return result == CLASSES || status == STATUSES ? CLASS_GONE : class_of(result, status);
}

struct segment_row segment_row(const struct segment *g, uint32_t row)
{
    if (!segment_need(g, PART_SCORES) || !segment_need(g, PART_DATES))
        return (struct segment_row){.class = CLASS_GONE, .url = STR("")};
    return (struct segment_row){g->ids[row],           g->project[g->row_project[row]],
                                g->dates[row],         g->scores[row],
                                segment_class(g, row), segment_url(g, row)};
}

const uint16_t *segment_project(const struct segment *g, uint64_t project, uint32_t *count)
{
    uint32_t at = ids_below(g->project, g->projects, project);
    bool found = at < g->projects && g->project[at] == project;
    *count = found ? g->project_at[at + 1] - g->project_at[at] : 0;
    return found ? g->project_row + g->project_at[at] : NULL;
}
