#include "view.h"

#include <errno.h>
#include <stdlib.h>

/* ---- its orders ---- */

struct sorting {
    const struct view *view;
    unsigned by;
};

static int compare_rows(const void *a, const void *b, void *arg)
{
    const struct sorting *sorting = arg;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct view_row *x = &sorting->view->rows[i], *y = &sorting->view->rows[j];
    if (sorting->by == REPORT_BY_GENERATED_AT && x->date != y->date)
        return x->date < y->date ? -1 : 1;
    if (sorting->by == REPORT_BY_SCORE && x->score != y->score)
        return x->score < y->score ? -1 : 1;
    if (sorting->by == REPORT_BY_URL) {
        struct str p = view_url(sorting->view, i), q = view_url(sorting->view, j);
        int by = memcmp(p.p, q.p, (p.n < q.n ? p.n : q.n) + 1); /* the NUL at the end decides where one begins the other */
        if (by != 0)
            return by;
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

/*
 * Rows that moved leave the order first, all of them, so that what stays is in order by what the rows are now. Then they come back at their
 * new places, some at a time.
 */
#define ORDER_STEP 512

static bool lift(struct view *v, struct view_order *o)
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
    o->moved_count = o->lifted = n;
    n = 0;
    for (size_t i = 0; i < o->count; i++)
        if (!bit_test(out, o->rows[i]))
            o->rows[n++] = o->rows[i];
    o->count = n;
    free(out);
    return true;
}

/* The first place from ${from} on whose row is not below ${row}: it is near, as places of many rows are looked for in their order. */
static size_t place_of(const struct view_order *o, size_t from, const uint32_t *row, struct sorting *sorting)
{
    size_t step = 1, low = from, high = from;
    while (high < o->count && compare_rows(&o->rows[high], row, sorting) < 0) {
        low = high + 1;
        high += step;
        step *= 2;
    }
    high = high < o->count ? high : o->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_rows(&o->rows[middle], row, sorting) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool order_step(struct view_order *o, struct sorting *sorting)
{
    size_t come = o->moved_count < ORDER_STEP ? o->moved_count : ORDER_STEP, n = 0, from = 0;
    uint32_t *moved = o->moved + (o->moved_count - come);
    uint32_t *rows = malloc((o->count + come) * sizeof(*rows));
    if (rows == NULL)
        return false;
    qsort_r(moved, come, sizeof(*moved), compare_rows, sorting);
    for (size_t i = 0; i <= come; i++) {
        size_t upto = i == come ? o->count : place_of(o, from, &moved[i], sorting);
        if (upto > from)
            memcpy(rows + n, o->rows + from, (upto - from) * sizeof(*rows));
        n += upto - from;
        from = upto;
        if (i < come)
            rows[n++] = moved[i];
    }
    free(o->rows);
    o->rows = rows;
    o->count = n;
    o->moved_count -= come;
    o->lifted -= come;
    return true;
}

enum store_status view_order(struct store *s, struct view *v, unsigned sort, const struct store_list_query *q,
                             const struct view_order **out)
{
    struct view_order *o = &v->orders[sort];
    struct sorting sorting = {v, sort};
    *out = o;
    bool good = o->lifted == o->moved_count || lift(v, o);
    while (good && o->moved_count > 0) {
        good = order_step(o, &sorting);
        if (good && o->moved_count > 0 && store_paused(s, q))
            return STORE_AGAIN;
    }
    return good ? STORE_OK : store_fail(s, ENOMEM, "order reports");
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
