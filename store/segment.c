#include "segment.h"

#include "extent.h"

#include <errno.h>
#include <stdlib.h>

void segment_part_key(struct key *k, uint64_t workspace, uint64_t part, uint64_t piece)
{
    key_id(k, SPACE_PART, workspace);
    key_u64(k, part);
    key_u64(k, piece);
}

/* ---- reading ---- */

static enum store_status part_get(struct store *s, MDB_txn *txn, uint64_t workspace, uint64_t part, uint64_t piece, struct part_reader *out)
{
    struct key k;
    MDB_val v;
    segment_part_key(&k, workspace, part, piece);
    enum store_status status = extent_get(s, txn, SPACE_PART, &k, &v);
    *out = (struct part_reader){v.mv_data, status == STORE_OK ? (const uint8_t *)v.mv_data + v.mv_size : NULL, status != STORE_OK};
    return status == STORE_NOT_FOUND ? store_corrupt(s, "a segment of the reports' index") : status;
}

static bool read_fixed(struct part_reader *r, struct segment *g)
{
    const struct segment_fixed_head *head = part_take(r, sizeof(*head));
    if (head == NULL || head->rows == 0 || head->rows > SEGMENT_ROWS || head->chunk_shift < 6 || head->chunk_shift > CHUNK_ROWS_SHIFT)
        return false;
    g->rows = head->rows;
    g->words = (g->rows + 63) / 64;
    g->projects = head->projects;
    g->chunk_count = head->chunks;
    g->chunk_shift = head->chunk_shift;
    g->ids = part_take(r, g->rows * sizeof(*g->ids));
    g->project = part_take(r, g->projects * sizeof(*g->project));
    g->project_at = part_take(r, ((size_t)g->projects + 1) * sizeof(*g->project_at));
    g->project_row = part_take(r, g->rows * sizeof(*g->project_row));
    g->row_project = part_take(r, g->rows * sizeof(*g->row_project));
    g->grams = part_take(r, GRAM_CODES / 8);
    g->url.row = part_take(r, g->rows * sizeof(*g->url.row));
    g->url.rank = part_take(r, g->rows * sizeof(*g->url.rank));
    return !r->bad && g->chunk_count == ((g->rows - 1) >> g->chunk_shift) + 1;
}

static bool read_moving(struct part_reader *r, struct segment *g)
{
    const struct segment_moving_head *head = part_take(r, sizeof(*head));
    if (head == NULL || head->rows != g->rows)
        return false;
    g->live = head->live;
    g->dates = part_take(r, g->rows * sizeof(*g->dates));
    g->date.row = part_take(r, g->rows * sizeof(*g->date.row));
    g->date.rank = part_take(r, g->rows * sizeof(*g->date.rank));
    g->score.row = part_take(r, g->rows * sizeof(*g->score.row));
    g->score.rank = part_take(r, g->rows * sizeof(*g->score.rank));
    g->live_bits = part_take(r, g->words * sizeof(uint64_t));
    for (int i = 0; i < CLASSES; i++)
        g->result_bits[i] = part_take(r, g->words * sizeof(uint64_t));
    for (int i = 0; i < STATUSES; i++)
        g->status_bits[i] = part_take(r, g->words * sizeof(uint64_t));
    g->scores = part_take(r, g->rows);
    return !r->bad;
}

static enum store_status open_chunk(struct store *s, MDB_txn *txn, uint64_t workspace, uint64_t part, struct segment *g)
{
    struct part_reader r;
    uint32_t i = g->chunks_open, rows = g->rows - (i << g->chunk_shift), most = 1u << g->chunk_shift;
    enum store_status status = part_get(s, txn, workspace, part, i + 1, &r);
    if (status != STORE_OK)
        return status;
    if (!chunk_read(&r, &g->chunks[i]) || g->chunks[i].head->rows != (rows < most ? rows : most))
        return store_corrupt(s, "a segment of the reports' index");
    g->chunks_open++;
    return STORE_OK;
}

enum store_status segment_open_moving(struct store *s, MDB_txn *txn, uint64_t workspace, uint64_t part, struct segment *out)
{
    struct part_reader r;
    enum store_status status = part_get(s, txn, workspace, part, 0, &r);
    return status == STORE_OK && !read_moving(&r, out) ? store_corrupt(s, "a segment of the reports' index") : status;
}

/* All but the chunks. */
static enum store_status open_columns(struct store *s, MDB_txn *txn, uint64_t workspace, const struct manifest_segment *m,
                                      struct segment *out)
{
    struct part_reader r;
    *out = (struct segment){0};
    enum store_status status = part_get(s, txn, workspace, m->fixed, 0, &r);
    if (status == STORE_OK && !read_fixed(&r, out))
        status = store_corrupt(s, "a segment of the reports' index");
    if (status == STORE_OK)
        status = segment_open_moving(s, txn, workspace, m->moving, out);
    if (status == STORE_OK && (out->chunks = calloc(out->chunk_count, sizeof(*out->chunks))) == NULL)
        status = store_fail(s, ENOMEM, "hold a segment");
    return status;
}

enum store_status segment_open(struct store *s, MDB_txn *txn, const struct store_list_query *q, uint64_t workspace,
                               const struct manifest_segment *m, struct segment *out)
{
    bool worked = out->chunks == NULL;
    enum store_status status = worked ? open_columns(s, txn, workspace, m, out) : STORE_OK;
    for (; status == STORE_OK && out->chunks_open < out->chunk_count; worked = true) {
        if (worked && store_paused(s, q))
            return STORE_AGAIN;
        status = open_chunk(s, txn, workspace, m->fixed, out);
    }
    if (status != STORE_OK)
        segment_close(out);
    return status;
}

void segment_close(struct segment *g)
{
    free(g->chunks);
    *g = (struct segment){0};
}

uint32_t segment_row(const struct segment *g, uint64_t id)
{
    uint32_t low = 0, high = g->rows;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (g->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < g->rows && g->ids[low] == id ? low : g->rows;
}

struct str segment_url(const struct segment *g, uint32_t row)
{
    const struct chunk *c = &g->chunks[row >> g->chunk_shift];
    uint32_t at = row & ((1u << g->chunk_shift) - 1);
    return (struct str){(const char *)c->text + c->offset[at], c->offset[at + 1] - c->offset[at] - 1};
}

/* The bitmap of the row; ${count}: none of them. */
static unsigned bitmap_of(const uint64_t *const *bits, unsigned count, uint32_t row)
{
    unsigned at = 0;
    while (at < count && !bit_test(bits[at], row))
        at++;
    return at;
}

uint8_t segment_class(const struct segment *g, uint32_t row)
{
    unsigned result = bitmap_of(g->result_bits, CLASSES, row);
    unsigned status = bitmap_of(g->status_bits, STATUSES, row);
    return result == CLASSES || status == STATUSES ? CLASS_GONE : class_of(result, status);
}

const uint16_t *segment_project(const struct segment *g, uint64_t project, uint32_t *count)
{
    uint32_t low = 0, high = g->projects;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (g->project[middle] < project)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < g->projects && g->project[low] == project;
    *count = found ? g->project_at[low + 1] - g->project_at[low] : 0;
    return found ? g->project_row + g->project_at[low] : NULL;
}
