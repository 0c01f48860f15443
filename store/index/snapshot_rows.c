#include "store/engine/errors.h"
#include "store/index/bitmap_internal.h"
#include "store/index/index.h"
#include "store/index/segment_internal.h"
#include "store/index/snapshot.h"

#include <errno.h>
#include <stdlib.h>

/* ---- the orders of the tail ---- */

struct sorting {
    const struct index_snapshot *snapshot;
    unsigned by;
};

static int compare_rows(const void *a, const void *b, void *arg)
{
    const struct sorting *sorting = arg;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct tail_row *x = &sorting->snapshot->rows[i], *y = &sorting->snapshot->rows[j];
    if (sorting->by == REPORT_BY_GENERATED_AT && x->date != y->date)
        return x->date < y->date ? -1 : 1;
    if (sorting->by == REPORT_BY_SCORE && x->score != y->score)
        return x->score < y->score ? -1 : 1;
    if (sorting->by == REPORT_BY_URL) {
        int by = url_compare(index_snapshot_url(sorting->snapshot, i),
                             index_snapshot_url(sorting->snapshot, j));
        if (by != 0)
            return by;
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool remove_moved(struct index_snapshot *v, struct tail_order *o)
{
    uint64_t *out = calloc((v->row_count + 63) / 64, sizeof(*out));
    size_t n = 0;
    if (out == NULL)
        return false;
    for (size_t i = 0; i < o->moved_count; i++) {
        if (!bit_test(out, o->moved[i]))
            o->moved[n++] = o->moved[i];
        bit_set(out, o->moved[i]);
    }
    o->moved_count = n;
    n = 0;
    for (size_t i = 0; i < o->count; i++)
        if (!bit_test(out, o->rows[i]))
            o->rows[n++] = o->rows[i];
    o->count = n;
    free(out);
    return true;
}

/* Both are sorted. */
static uint32_t *merge_moved(const struct tail_order *o, struct sorting *sorting)
{
    uint32_t *rows = malloc((o->count + o->moved_count + 1) * sizeof(*rows));
    size_t i = 0, j = 0;
    while (rows != NULL && i + j < o->count + o->moved_count) {
        bool first = j == o->moved_count ||
                     (i < o->count && compare_rows(&o->rows[i], &o->moved[j], sorting) < 0);
        rows[i + j] = first ? o->rows[i] : o->moved[j];
        i += first;
        j += !first;
    }
    return rows;
}

/* Remove all moved rows from the order first, so that the rest is sorted by the current values. */
enum store_status index_snapshot_tail_order(struct store *s, struct index_snapshot *v,
                                            unsigned sort, const struct tail_order **out)
{
    struct tail_order *o = &v->orders[sort];
    struct sorting sorting = {v, sort};
    *out = o;
    if (o->moved_count == 0)
        return STORE_OK;
    if (!remove_moved(v, o))
        return store_fail(s, ENOMEM, "order reports");
    qsort_r(o->moved, o->moved_count, sizeof(*o->moved), compare_rows, &sorting);
    uint32_t *rows = merge_moved(o, &sorting);
    if (rows == NULL)
        return store_fail(s, ENOMEM, "order reports");
    free(o->rows);
    o->rows = rows;
    o->count += o->moved_count;
    o->moved_count = 0;
    return STORE_OK;
}

/* ---- single rows ---- */

static struct segment_row own_row_at(const struct index_snapshot *v, uint32_t row)
{
    const struct tail_row *r = &v->rows[row];
    return (struct segment_row){r->id,    r->project, r->date,
                                r->score, r->class,   index_snapshot_url(v, row)};
}

bool index_snapshot_find(const struct index_snapshot *v, uint64_t id, struct segment_row *out)
{
    struct snapshot_segment *g;
    uint32_t row = index_snapshot_tail_row(v, id);
    if (row < v->row_count) {
        *out = own_row_at(v, row);
        return out->class != CLASS_GONE;
    }
    if (!index_snapshot_segment_find(v, id, &g, &row))
        return false;
    *out = segment_row(&g->segment, row);
    return true;
}

/* The first row of a segment with an id above ${after}. */
static uint32_t row_after(const struct segment *g, uint64_t after)
{
    return after == UINT64_MAX ? g->rows : ids_below(g->ids, g->rows, after + 1);
}

static bool each_in_segment(const struct snapshot_segment *in, uint64_t after, uint64_t upto,
                            index_snapshot_each_fn *each, void *arg)
{
    const struct segment *g = &in->segment;
    for (uint32_t row = row_after(g, after); row < g->rows && g->ids[row] <= upto; row++) {
        if (!index_snapshot_lives(in, row))
            continue;
        struct segment_row r = segment_row(g, row);
        if (!each(arg, &r))
            return false;
    }
    return true;
}

void index_snapshot_each(const struct index_snapshot *v, uint64_t after, uint64_t upto,
                         index_snapshot_each_fn *each, void *arg)
{
    for (size_t i = 0; i < v->segment_count; i++)
        if (!each_in_segment(&v->segments[i], after, upto, each, arg))
            return;
    for (uint32_t row = 0; row < v->row_count; row++) {
        struct segment_row r = own_row_at(v, row);
        if (r.class != CLASS_GONE && r.id > after && r.id <= upto && !each(arg, &r))
            return;
    }
}

static bool each_id_in_segment(const struct snapshot_segment *in, uint64_t project,
                               index_snapshot_id_fn *each, void *arg)
{
    const struct segment *g = &in->segment;
    uint32_t count = g->rows;
    const uint16_t *rows = project == 0 ? NULL : segment_project(g, project, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = rows == NULL ? i : rows[i];
        if (index_snapshot_lives(in, row) && !each(arg, g->ids[row]))
            return false;
    }
    return true;
}

void index_snapshot_each_id(const struct index_snapshot *v, uint64_t project,
                            index_snapshot_id_fn *each, void *arg)
{
    for (size_t i = 0; i < v->segment_count; i++)
        if (!each_id_in_segment(&v->segments[i], project, each, arg))
            return;
    for (uint32_t row = 0; row < v->row_count; row++) {
        const struct tail_row *r = &v->rows[row];
        if (r->class != CLASS_GONE && (project == 0 || r->project == project) && !each(arg, r->id))
            return;
    }
}
