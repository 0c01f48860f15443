#include "view.h"

#include <stdlib.h>

/* ---- its orders ---- */

static struct view *sorting; /* qsort has no argument for these; a process reads with one thread */
static unsigned sorting_by;

static int compare_rows(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct view_row *x = &sorting->rows[i], *y = &sorting->rows[j];
    if (sorting_by == REPORT_BY_GENERATED_AT && x->date != y->date)
        return x->date < y->date ? -1 : 1;
    if (sorting_by == REPORT_BY_SCORE && x->score != y->score)
        return x->score < y->score ? -1 : 1;
    if (sorting_by == REPORT_BY_URL) {
        struct str p = view_url(sorting, i), q = view_url(sorting, j);
        int by = memcmp(p.p, q.p, (p.n < q.n ? p.n : q.n) + 1); /* the NUL at the end decides where one begins the other */
        if (by != 0)
            return by;
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Those that moved leave the order, and are merged into it again at their new places. */
static bool order_merge(struct view *v, struct view_order *o)
{
    uint64_t *out = calloc((v->row_count + 63) / 64, sizeof(*out));
    uint32_t *rows = malloc((o->count + o->moved_count) * sizeof(*rows));
    size_t come = 0, n = 0;
    if (out == NULL || rows == NULL) {
        free(out);
        free(rows);
        return false;
    }
    for (size_t i = 0; i < o->moved_count; i++) {
        if (!bit_test(out, o->moved[i]))
            o->moved[come++] = o->moved[i];
        bit_set(out, o->moved[i]);
    }
    qsort(o->moved, come, sizeof(*o->moved), compare_rows);
    for (size_t i = 0, j = 0; i < o->count || j < come;) {
        if (i < o->count && bit_test(out, o->rows[i]))
            i++;
        else if (j == come || (i < o->count && compare_rows(&o->rows[i], &o->moved[j]) < 0))
            rows[n++] = o->rows[i++];
        else
            rows[n++] = o->moved[j++];
    }
    free(out);
    free(o->rows);
    o->rows = rows;
    o->count = n;
    o->moved_count = 0;
    return true;
}

bool view_order(struct view *v, unsigned sort, const struct view_order **out)
{
    struct view_order *o = &v->orders[sort];
    sorting = v;
    sorting_by = sort;
    *out = o;
    return o->moved_count == 0 || order_merge(v, o);
}

/* ---- looking at rows one by one ---- */

bool view_find(const struct view *v, uint64_t id, struct segment_row *out)
{
    struct view_segment *g;
    uint32_t row = view_own_row(v, id);
    if (row < v->row_count) {
        const struct view_row *r = &v->rows[row];
        *out = (struct segment_row){r->id, r->project, r->date, r->score, r->class, view_url(v, row)};
        return r->class != CLASS_GONE;
    }
    if (!view_segment_find(v, id, &g, &row))
        return false;
    *out = view_segment_row(&g->segment, row);
    return true;
}

static bool live_in(const struct view_segment *g, uint32_t row)
{
    return bit_test(g->segment.live_bits, row) && (g->masked == NULL || !bit_test(g->masked, row));
}

static bool each_in_segment(const struct view_segment *in, uint64_t after, uint64_t upto, view_each_fn *each, void *arg)
{
    const struct segment *g = &in->segment;
    for (uint32_t row = 0; in->last_id > after && in->first_id <= upto && row < g->rows; row++) {
        if (g->ids[row] <= after || g->ids[row] > upto || !live_in(in, row))
            continue;
        struct segment_row r = view_segment_row(g, row);
        if (!each(arg, &r))
            return false;
    }
    return true;
}

static struct segment_row own_row_at(const struct view *v, uint32_t row)
{
    const struct view_row *r = &v->rows[row];
    return (struct segment_row){r->id, r->project, r->date, r->score, r->class, view_url(v, row)};
}

void view_each(const struct view *v, uint64_t after, uint64_t upto, view_each_fn *each, void *arg)
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

void view_each_of_project(const struct view *v, uint64_t project, view_each_fn *each, void *arg)
{
    for (size_t i = 0; i < v->segment_count; i++) {
        uint32_t count;
        const uint16_t *rows = segment_project(&v->segments[i].segment, project, &count);
        for (uint32_t j = 0; j < count; j++) {
            if (!live_in(&v->segments[i], rows[j]))
                continue;
            struct segment_row r = view_segment_row(&v->segments[i].segment, rows[j]);
            if (!each(arg, &r))
                return;
        }
    }
    for (uint32_t row = 0; row < v->row_count; row++) {
        struct segment_row r = own_row_at(v, row);
        if (r.project == project && r.class != CLASS_GONE && !each(arg, &r))
            return;
    }
}

uint64_t view_count_of_project(const struct view *v, uint64_t project)
{
    uint64_t n = 0;
    for (size_t i = 0; i < v->segment_count; i++) {
        uint32_t count;
        const uint16_t *rows = segment_project(&v->segments[i].segment, project, &count);
        for (uint32_t j = 0; j < count; j++)
            n += live_in(&v->segments[i], rows[j]);
    }
    for (uint32_t row = 0; row < v->row_count; row++)
        n += v->rows[row].project == project && v->rows[row].class != CLASS_GONE;
    return n;
}
