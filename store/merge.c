#include "extent.h"
#include "tend.h"

#include <errno.h>
#include <stdlib.h>

/* Carrying out what merge_plan.c found to do: a step makes and puts one part. */

/* Put what was prepared. */
static void piece_put(struct store_txn *t, struct tend *tend, uint64_t part, uint64_t piece)
{
    struct key k;
    struct buf *b = &tend->part;
    tend->cramped = tend->cramped || !txn_upkeep_fits(t, b->n);
    segment_part_key(&k, tend->workspace, part, piece);
    if (!buf_ok(b))
        txn_fail(t, ENOMEM, "make a segment");
    else if (!tend->cramped)
        extent_put(t, SPACE_PART, &k, &(struct str){b->p, b->n}, 1);
    buf_free(b);
    tend->prepared = false;
}

static bool url_below(const struct segment_row *a, const struct segment_row *b)
{
    int by = memcmp(a->url.p, b->url.p, (a->url.n < b->url.n ? a->url.n : b->url.n) + 1);
    return by != 0 ? by < 0 : a->id < b->id;
}

static int compare_lengths(const void *a, const void *b)
{
    const struct sequence *x = a, *y = b;
    return x->count > y->count ? -1 : x->count < y->count;
}

/* The shortest two become one; false when memory is short. */
static bool order_some(struct tend *tend)
{
    qsort(tend->sequences, tend->sequence_count, sizeof(*tend->sequences), compare_lengths);
    struct sequence *a = &tend->sequences[tend->sequence_count - 2], *b = a + 1;
    uint32_t *rows = malloc((a->count + b->count + 1) * sizeof(*rows)), n = 0;
    if (rows == NULL)
        return false;
    for (uint32_t i = 0, j = 0; i < a->count || j < b->count;) {
        bool first = j == b->count || (i < a->count && url_below(&tend->rows[a->rows[i]], &tend->rows[b->rows[j]]));
        rows[n++] = first ? a->rows[i++] : b->rows[j++];
    }
    free(a->rows);
    free(b->rows);
    *a = (struct sequence){rows, n};
    tend->sequence_count--;
    return true;
}

void merge_order(struct store_txn *t, struct tend *tend)
{
    if (tend->prepared)
        tend->prepared = false;
    else if (tend->sequence_count > 1 && !order_some(tend))
        txn_fail(t, ENOMEM, "merge the reports' index");
    else if (tend->sequence_count == 1)
        tend->phase = TEND_CHUNKS;
}

static uint32_t present_rows(const struct store *s, const struct tend *tend)
{
    uint32_t left = tend->count - tend->done;
    return left < s->segment_rows ? left : s->segment_rows;
}

/* Which letters by three come in the segment: those of its chunks together. */
static void note_grams(struct store_txn *t, struct tend *tend, const struct buf *made)
{
    struct chunk c;
    struct part_reader r = {(const uint8_t *)made->p, (const uint8_t *)made->p + made->n, !buf_ok(made)};
    if (tend->grams == NULL)
        tend->grams = calloc(GRAM_CODES / 64, sizeof(*tend->grams));
    if (tend->grams == NULL || !chunk_read(&r, &c)) {
        txn_fail(t, ENOMEM, "make a segment");
        return;
    }
    if (tend->chunk == 0)
        memset(tend->grams, 0, GRAM_CODES / 8);
    for (uint32_t i = 0; i < GRAM_CODES / 64; i++)
        tend->grams[i] |= c.present[i];
}

static uint32_t chunk_rows(const struct store *s, const struct tend *tend)
{
    uint32_t left = present_rows(s, tend) - (tend->chunk << s->chunk_shift), size = 1u << s->chunk_shift;
    return left < size ? left : size;
}

static void make_chunk(struct store *s, struct tend *tend)
{
    uint32_t from = tend->done + (tend->chunk << s->chunk_shift);
    chunk_make(&tend->rows[from].url, chunk_rows(s, tend), sizeof(*tend->rows), &tend->part);
}

void merge_chunk(struct store_txn *t, struct tend *tend)
{
    uint32_t upto = (tend->chunk << t->s->chunk_shift) + chunk_rows(t->s, tend);
    if (!tend->prepared)
        make_chunk(t->s, tend);
    if (tend->chunk == 0)
        tend->made[tend->made_count].fixed = tend->head.next_part++;
    note_grams(t, tend, &tend->part);
    piece_put(t, tend, tend->made[tend->made_count].fixed, ++tend->chunk);
    if (upto == present_rows(t->s, tend))
        tend->phase = TEND_FIXED;
}

static void make_fixed(struct store *s, struct tend *tend)
{
    uint32_t rows = present_rows(s, tend), n = 0;
    uint16_t *order = malloc(rows * sizeof(*order));
    if (order == NULL) {
        tend->part.failed = true;
        return;
    }
    for (uint32_t i = 0; i < tend->count; i++) {
        uint32_t at = tend->sequences[0].rows[i];
        if (at >= tend->done && at - tend->done < rows)
            order[n++] = (uint16_t)(at - tend->done);
    }
    segment_make_fixed(tend->rows + tend->done, rows, order, tend->grams, s->chunk_shift, &tend->part);
    free(order);
}

void merge_fixed(struct store_txn *t, struct tend *tend)
{
    if (!tend->prepared)
        make_fixed(t->s, tend);
    piece_put(t, tend, tend->made[tend->made_count].fixed, 0);
    tend->phase = TEND_MOVING;
}

static void make_moving(struct store *s, struct tend *tend)
{
    segment_make_moving(tend->rows + tend->done, present_rows(s, tend), &tend->part);
}

void merge_moving(struct store_txn *t, struct tend *tend)
{
    uint32_t rows = present_rows(t->s, tend);
    struct manifest_segment *m = &tend->made[tend->made_count++];
    if (!tend->prepared)
        make_moving(t->s, tend);
    m->moving = tend->head.next_part++;
    m->first_id = tend->rows[tend->done].id;
    m->last_id = tend->rows[tend->done + rows - 1].id;
    m->rows = m->live = rows;
    piece_put(t, tend, m->moving, 0);
    tend->done += rows;
    tend->chunk = 0;
    tend->phase = tend->done < tend->count ? TEND_CHUNKS : TEND_TOUCHED;
}

/* The rows of a segment as they are now, for its moving part. */
static uint32_t rows_now(const struct view *v, const struct view_segment *in, struct segment_row *rows)
{
    const struct segment *g = &in->segment;
    uint32_t live = 0;
    for (uint32_t row = 0; row < g->rows; row++) {
        struct segment_row *r = &rows[row];
        *r = (struct segment_row){.id = g->ids[row], .date = g->dates[row], .score = g->scores[row], .class = CLASS_GONE};
        if (in->masked != NULL && bit_test(in->masked, row)) {
            if (!view_find(v, r->id, r))
                r->class = CLASS_GONE;
        } else if (bit_test(g->live_bits, row)) {
            r->class = (uint8_t)segment_class(g, row);
        }
        live += r->class != CLASS_GONE;
    }
    return live;
}

/* The next segment that the log touched and that is not merged; false: there is none. */
static bool next_touched(struct tend *tend, const struct view *v)
{
    for (; tend->touched < v->segment_count; tend->touched++)
        if (v->segments[tend->touched].masked_count != 0 && (tend->touched < tend->first || tend->touched >= tend->last))
            return true;
    return false;
}

static void make_touched(struct tend *tend, const struct view *v)
{
    const struct view_segment *in = &v->segments[tend->touched];
    struct segment_row *rows = malloc(in->segment.rows * sizeof(*rows));
    if (rows == NULL) {
        tend->part.failed = true;
        return;
    }
    tend->part_live = rows_now(v, in, rows);
    segment_make_moving(rows, in->segment.rows, &tend->part);
    free(rows);
}

/* What the log got since the plan was made may be in the part: it is said twice. */
void merge_touched(struct store_txn *t, struct tend *tend)
{
    struct view *v;
    if (!tend->prepared && view_get(t->s, t->mdb, tend->workspace, &v) != STORE_OK) {
        txn_fail(t, 0, "the reports' index");
        return;
    }
    if (!tend->prepared && !next_touched(tend, v)) {
        tend->phase = TEND_INSTALL;
        return;
    }
    if (!tend->prepared)
        make_touched(tend, v);
    struct manifest_segment *m = &tend->kept[tend->touched++];
    m->live = tend->part_live;
    m->moving = tend->head.next_part++;
    piece_put(t, tend, m->moving, 0); /* where nothing is left of it, it is swept with what the manifest does not name */
}

void merge_prepare(struct store *s, MDB_txn *txn, struct tend *tend)
{
    struct view *v;
    if (tend->prepared)
        return;
    switch (tend->phase) {
    case TEND_ORDER:
        tend->prepared = tend->sequence_count > 1 && order_some(tend);
        return;
    case TEND_CHUNKS:
        make_chunk(s, tend);
        break;
    case TEND_FIXED:
        make_fixed(s, tend);
        break;
    case TEND_MOVING:
        make_moving(s, tend);
        break;
    case TEND_TOUCHED:
        if (view_get(s, txn, tend->workspace, &v) != STORE_OK || !next_touched(tend, v))
            return;
        make_touched(tend, v);
        break;
    default:
        return;
    }
    tend->prepared = buf_ok(&tend->part);
    if (!tend->prepared)
        buf_free(&tend->part);
}

void merge_install(struct store_txn *t, struct tend *tend)
{
    struct buf b = {0};
    struct key k;
    buf_add(&b, &tend->head, sizeof(tend->head));
    for (size_t i = 0; i <= tend->kept_count; i++) {
        if (i == tend->first)
            buf_add(&b, tend->made, tend->made_count * sizeof(*tend->made));
        if (i < tend->kept_count && (i < tend->first || i >= tend->last) && tend->kept[i].live != 0)
            buf_add(&b, &tend->kept[i], sizeof(*tend->kept));
    }
    key_id(&k, SPACE_MANIFEST, tend->workspace);
    if (buf_ok(&b))
        txn_put(t, SPACE_MANIFEST, &k, b.p, b.n);
    else
        txn_fail(t, ENOMEM, "merge the reports' index");
    buf_free(&b);
    uint64_t workspace = tend->workspace;
    t->installed = true;
    tend_forget_plan(tend);
    tend_due_add(tend, workspace); /* what it replaced is swept next */
}
