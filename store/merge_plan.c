#include "tend.h"

#include <errno.h>
#include <stdlib.h>

/* What is to be merged of a workspace's index, and all rows of it in order. Carrying it out is merge.c's. */

#define NOT_MERGED UINT32_MAX /* of a row that goes into no new segment */

static bool sequence_add(struct tend *tend, uint32_t *rows, uint32_t count)
{
    struct sequence *more = realloc(tend->sequences, (tend->sequence_count + 1) * sizeof(*more));
    if (more == NULL) {
        free(rows);
        return false;
    }
    tend->sequences = more;
    tend->sequences[tend->sequence_count++] = (struct sequence){rows, count};
    return true;
}

/* An order of ${count} rows through ${to}, which tells where each one is in the plan. */
static bool sequence_map(struct tend *tend, const uint32_t *wide, const uint16_t *narrow, size_t count, const uint32_t *to)
{
    uint32_t *rows = malloc((count + 1) * sizeof(*rows)), n = 0;
    if (rows == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        uint32_t at = to[wide != NULL ? wide[i] : narrow[i]];
        if (at != NOT_MERGED)
            rows[n++] = at;
    }
    return sequence_add(tend, rows, n);
}

/* The rows of one segment that live on as they are, and where in the plan. */
static void take_segment(struct tend *tend, const struct view_segment *in, uint32_t *to)
{
    const struct segment *g = &in->segment;
    for (uint32_t row = 0; row < g->rows; row++) {
        to[row] = NOT_MERGED;
        if (!bit_test(g->live_bits, row) || (in->masked != NULL && bit_test(in->masked, row)))
            continue;
        to[row] = tend->count;
        tend->rows[tend->count++] = (struct segment_row){.id = g->ids[row],
                                                         .project = g->project[g->row_project[row]],
                                                         .date = g->dates[row],
                                                         .score = g->scores[row],
                                                         .class = (uint8_t)segment_class(g, row),
                                                         .url = segment_url(g, row)};
    }
}

/* Rows of the segments (up to ${begun}) and of the view, each ascending by id, become one. ${maps} follow. */
static bool join_rows(struct tend *tend, uint32_t begun, uint32_t *const *maps, const uint32_t *lengths, size_t count)
{
    struct segment_row *rows = malloc((tend->count + 1) * sizeof(*rows));
    uint32_t *now = malloc((tend->count + 1) * sizeof(*now)), n = 0;
    if (rows == NULL || now == NULL) {
        free(rows);
        free(now);
        return false;
    }
    for (uint32_t i = 0, j = begun; n < tend->count; n++) {
        bool first = j == tend->count || (i < begun && tend->rows[i].id < tend->rows[j].id);
        uint32_t from = first ? i++ : j++;
        rows[n] = tend->rows[from];
        now[from] = n;
    }
    for (size_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < lengths[i]; j++)
            if (maps[i][j] != NOT_MERGED)
                maps[i][j] = now[maps[i][j]];
    free(tend->rows);
    free(now);
    tend->rows = rows;
    return true;
}

static bool merges(const struct tend *tend, const struct view *v, uint64_t id)
{
    size_t count = v->segment_count;
    if (count == 0 || id > v->segments[count - 1].last_id)
        return true;
    return tend->first < tend->last && id >= v->segments[tend->first].first_id && id <= v->segments[tend->last - 1].last_id;
}

/* The view's own rows that go into new segments, ascending by id, with a copy of their URLs. */
static bool take_own(struct store *s, struct tend *tend, struct view *v, uint32_t *to)
{
    uint32_t begun = tend->count;
    const struct view_order *order;
    if (view_order(s, v, REPORT_BY_ID, NULL, &order) != STORE_OK)
        return false;
    for (size_t i = 0; i < order->count; i++) {
        uint32_t row = order->rows[i];
        const struct view_row *r = &v->rows[row];
        to[row] = NOT_MERGED;
        if (r->class == CLASS_GONE || !merges(tend, v, r->id))
            continue;
        struct str url = view_url(v, row);
        to[row] = tend->count;
        tend->rows[tend->count++] = (struct segment_row){r->id, r->project, r->date, r->score, r->class, {NULL, url.n}};
        buf_str(&tend->text, url);
        buf_add(&tend->text, "", 1);
    }
    if (!buf_ok(&tend->text))
        return false;
    const char *p = tend->text.p;
    for (uint32_t i = begun; i < tend->count; i++) {
        tend->rows[i].url.p = p;
        p += tend->rows[i].url.n + 1;
    }
    return true;
}

/* All rows of the plan, ascending by id, and an order of their URLs for each place they come from. */
static bool gather(struct store *s, struct tend *tend, struct view *v)
{
    size_t sources = tend->last - tend->first + 1;
    uint32_t *maps[sources], lengths[sources];
    uint64_t most = v->row_count;
    const struct view_order *own;
    bool good = view_order(s, v, REPORT_BY_URL, NULL, &own) == STORE_OK;
    for (size_t i = 0; i < sources; i++) {
        lengths[i] = i + 1 < sources ? v->segments[tend->first + i].segment.rows : v->row_count;
        most += i + 1 < sources ? lengths[i] : 0;
        maps[i] = malloc((lengths[i] + 1) * sizeof(**maps));
        good = good && maps[i] != NULL;
    }
    tend->rows = malloc((most + 1) * sizeof(*tend->rows));
    good = good && tend->rows != NULL;
    for (size_t i = 0; good && i + 1 < sources; i++)
        take_segment(tend, &v->segments[tend->first + i], maps[i]);
    uint32_t begun = tend->count;
    good = good && take_own(s, tend, v, maps[sources - 1]) && join_rows(tend, begun, maps, lengths, sources);
    for (size_t i = 0; good && i + 1 < sources; i++)
        good = sequence_map(tend, NULL, v->segments[tend->first + i].segment.url.row, lengths[i], maps[i]);
    good = good && sequence_map(tend, own->rows, NULL, own->count, maps[sources - 1]);
    for (size_t i = 0; i < sources; i++)
        free(maps[i]);
    return good;
}

static uint32_t new_rows(const struct view *v)
{
    uint64_t last = v->segment_count == 0 ? 0 : v->segments[v->segment_count - 1].last_id;
    uint32_t n = 0;
    for (uint32_t row = 0; row < v->row_count; row++)
        n += v->rows[row].class != CLASS_GONE && v->rows[row].id > last;
    return n;
}

static bool half_dead(const struct view *v, size_t i)
{
    return v->segments[i].segment.live < v->segments[i].segment.rows / 2;
}

/*
 * The last segments go into a new one as long as that makes it no more than twice as large with each, so that a report is rewritten a few
 * times in its life. Where nothing is new, segments that are mostly dead are.
 */
static void choose(struct store *s, struct tend *tend, const struct view *v)
{
    uint64_t rows = new_rows(v);
    tend->first = tend->last = v->segment_count;
    if (rows != 0) {
        while (tend->first > 0) {
            uint64_t live = v->segments[tend->first - 1].segment.live;
            if (live > 2 * rows || rows + live > s->segment_rows)
                return;
            rows += live;
            tend->first--;
        }
        return;
    }
    for (size_t i = 0; i < v->segment_count; i++) {
        uint64_t live = v->segments[i].segment.live;
        if (!half_dead(v, i) || rows + live > s->segment_rows) {
            if (tend->first < tend->last)
                return;
            continue;
        }
        tend->first = tend->first == v->segment_count ? i : tend->first;
        tend->last = i + 1;
        rows += live;
        if (i + 1 == v->segment_count)
            return;
    }
    if (tend->first == v->segment_count)
        tend->last = tend->first;
}

static enum store_status plan_make(struct store_txn *t, struct tend *tend, const struct manifest *m)
{
    struct view *v;
    enum store_status status = view_get(t->s, t->mdb, tend->workspace, &v);
    if (status != STORE_OK)
        return txn_fail(t, 0, "the reports' index");
    choose(t->s, tend, v);
    tend->kept_count = m->count;
    tend->kept = malloc((m->count + 1) * sizeof(*tend->kept));
    if (tend->kept == NULL || !gather(t->s, tend, v))
        return txn_fail(t, ENOMEM, "merge the reports' index");
    if (m->count != 0)
        memcpy(tend->kept, m->segments, m->count * sizeof(*m->segments));
    tend->made = calloc(tend->count / t->s->segment_rows + 1, sizeof(*tend->made));
    return tend->made == NULL ? txn_fail(t, ENOMEM, "merge the reports' index") : STORE_OK;
}

bool merge_ahead(struct store *s, MDB_txn *txn, const struct store_list_query *q)
{
    struct manifest m;
    struct log_head head;
    uint64_t next;
    struct view *v;
    const struct view_order *order;
    if (index_manifest(s, txn, q->workspace, &m) != STORE_OK || index_log(s, txn, q->workspace, &m, &next, &head) != STORE_OK ||
        !index_due(s, &m, &head))
        return true; /* what is wrong, the transaction says */
    enum store_status status = view_get_some(s, txn, q, &v);
    if (status == STORE_OK)
        status = view_order(s, v, REPORT_BY_URL, q, &order);
    return status != STORE_AGAIN;
}

/* Everything that the log has at this moment will be in the segments. */
void merge_plan(struct store_txn *t, struct tend *tend)
{
    struct manifest m;
    struct log_head head;
    uint64_t next;
    index_write(t);
    enum store_status status = index_manifest(t->s, t->mdb, tend->workspace, &m);
    if (status == STORE_OK)
        status = index_log(t->s, t->mdb, tend->workspace, &m, &next, &head);
    if (status != STORE_OK) {
        txn_fail(t, 0, "the reports' index");
        return;
    }
    tend->phase = TEND_IDLE;
    if (!index_due(t->s, &m, &head) || txn_upkeep_rests(t)) /* lists go through a longer log then */
        return;
    tend->head = m.head;
    tend->head.log_from = next;
    tend->head.base = head;
    if (tend->head.next_part == 0)
        tend->head.next_part = 1;
    if (plan_make(t, tend, &m) == STORE_OK)
        tend->phase = tend->count == 0 ? TEND_TOUCHED : TEND_ORDER;
}
