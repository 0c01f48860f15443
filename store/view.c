#include "view.h"

#include <errno.h>
#include <stdlib.h>

#define VIEWS_KEPT 64

/* ---- its rows ---- */

static const uint32_t *offsets(const struct view *v)
{
    return (const uint32_t *)(const void *)v->offset.p;
}

struct str view_url(const struct view *v, uint32_t row)
{
    const uint32_t *at = offsets(v) + row;
    return (struct str){v->text.p + at[0], at[1] - at[0] - 1};
}

static size_t slot_of(const struct view *v, uint64_t id)
{
    size_t at = (size_t)(id * 0x9e3779b97f4a7c15ull >> 32) & (v->slot_count - 1);
    while (v->slots[at] != 0 && v->rows[v->slots[at] - 1].id != id)
        at = (at + 1) & (v->slot_count - 1);
    return at;
}

/* The row of that id, deleted or not; row_count when there is none. */
uint32_t view_own_row(const struct view *v, uint64_t id)
{
    uint32_t row = v->slot_count == 0 ? 0 : v->slots[slot_of(v, id)];
    return row == 0 ? v->row_count : row - 1;
}

static bool grow(struct view *v)
{
    if (v->row_count < v->row_cap)
        return true;
    uint32_t cap = v->row_cap == 0 ? 256 : v->row_cap * 2;
    struct view_row *rows = realloc(v->rows, cap * sizeof(*rows));
    if (rows == NULL)
        return false;
    v->rows = rows;
    uint32_t *slots = calloc((size_t)cap * 2, sizeof(*slots));
    if (slots == NULL)
        return false;
    free(v->slots);
    v->slots = slots;
    v->slot_count = (size_t)cap * 2;
    v->row_cap = cap;
    for (uint32_t i = 0; i < v->row_count; i++)
        v->slots[slot_of(v, v->rows[i].id)] = i + 1;
    return true;
}

static bool moved(struct view_order *o, uint32_t row)
{
    if (o->moved_count == o->moved_cap) {
        size_t cap = o->moved_cap == 0 ? 256 : o->moved_cap * 2;
        uint32_t *more = realloc(o->moved, cap * sizeof(*more));
        if (more == NULL)
            return false;
        o->moved = more;
        o->moved_cap = cap;
    }
    o->moved[o->moved_count++] = row;
    return true;
}

static bool row_add(struct view *v, const struct segment_row *r)
{
    static const char pad[TEXT_PAD];
    uint32_t end = (uint32_t)(v->text.n - TEXT_PAD);
    if (!grow(v))
        return false;
    v->text.n = end;
    buf_str(&v->text, r->url);
    buf_add(&v->text, pad, 1);
    end = (uint32_t)v->text.n;
    buf_add(&v->text, pad, sizeof(pad));
    buf_add(&v->offset, &end, sizeof(end));
    if (!buf_ok(&v->text) || !buf_ok(&v->offset))
        return false;
    v->rows[v->row_count] = (struct view_row){r->id, r->project, r->date, r->score, r->class};
    v->slots[slot_of(v, r->id)] = v->row_count + 1;
    v->row_count++;
    search_note_grams(r->url, v->grams);
    for (int i = 0; i < 4; i++)
        if (!moved(&v->orders[i], v->row_count - 1))
            return false;
    return true;
}

/* ---- what the log says ---- */

static struct view_segment *segment_of(const struct view *v, uint64_t id)
{
    size_t low = 0, high = v->segment_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (v->segments[middle].last_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->segment_count && v->segments[low].first_id <= id ? &v->segments[low] : NULL;
}

struct segment_row view_segment_row(const struct segment *g, uint32_t row)
{
    return (struct segment_row){g->ids[row],    g->project[g->row_project[row]], g->dates[row],
                                g->scores[row], (uint8_t)segment_class(g, row),  segment_url(g, row)};
}

bool view_segment_find(const struct view *v, uint64_t id, struct view_segment **in, uint32_t *row)
{
    struct view_segment *g = segment_of(v, id);
    *in = g;
    *row = g == NULL ? 0 : segment_row(&g->segment, id);
    return g != NULL && *row < g->segment.rows && bit_test(g->segment.live_bits, *row) && (g->masked == NULL || !bit_test(g->masked, *row));
}

/* Take the row out of its segment; it is one of the view's if it lives on. */
static bool mask(struct view *v, struct view_segment *g, uint32_t row, bool lives)
{
    if (g->masked == NULL && (g->masked = calloc(g->segment.words, sizeof(*g->masked))) == NULL)
        return false;
    bit_set(g->masked, row);
    g->masked_count++;
    if (!lives)
        return true;
    struct segment_row r = view_segment_row(&g->segment, row);
    return row_add(v, &r);
}

/*
 * A segment's moving part may know of the log's newest entries already (tend.c), so what the log says of a row that is gone is passed over.
 */
static bool replay_set(struct view *v, const struct log_entry *e)
{
    struct view_segment *g;
    uint32_t row = view_own_row(v, e->id), in;
    if (row == v->row_count) {
        if (!view_segment_find(v, e->id, &g, &in))
            return true;
        if (!mask(v, g, in, true))
            return false;
    }
    struct view_row *r = &v->rows[row];
    r->class = e->class;
    r->score = e->score;
    r->date = e->generated_at;
    return moved(&v->orders[REPORT_BY_GENERATED_AT], row) && moved(&v->orders[REPORT_BY_SCORE], row);
}

static bool replay_gone(struct view *v, uint64_t id)
{
    struct view_segment *g;
    uint32_t row = view_own_row(v, id), in;
    if (row == v->row_count)
        return !view_segment_find(v, id, &g, &in) || mask(v, g, in, false);
    v->rows[row].class = CLASS_GONE;
    return true;
}

static bool replay_entry(struct view *v, const struct log_entry *e, struct str url)
{
    if (e->kind == LOG_ADD) {
        struct segment_row r = {e->id, e->project, e->generated_at, e->score, e->class, url};
        return view_own_row(v, e->id) == v->row_count && row_add(v, &r);
    }
    return e->kind == LOG_SET ? replay_set(v, e) : replay_gone(v, e->id);
}

static bool replay_record(struct view *v, MDB_val record)
{
    const uint8_t *at = record.mv_data, *end = at + record.mv_size;
    if (record.mv_size < sizeof(struct log_head))
        return false;
    at += sizeof(struct log_head);
    while (at < end) {
        struct log_entry e;
        struct str url;
        if (!index_entry(&at, end, &e, &url) || !replay_entry(v, &e, url))
            return false;
    }
    return true;
}

static enum store_status replay(struct store *s, MDB_txn *txn, struct view *v, const struct store_list_query *q)
{
    struct walk w = {0};
    struct key from;
    key_id(&from, SPACE_LOG, v->workspace);
    key_id(&w.prefix, SPACE_LOG, v->workspace);
    key_u64(&from, v->next_log);
    enum store_status status = walk_from(s, txn, &w, DB_LIST, &from);
    for (bool worked = false; status == STORE_OK; status = walk_next(&w), worked = true) {
        uint64_t sequence;
        if (worked && store_paused(s, q)) {
            status = STORE_AGAIN;
            break;
        }
        if (!walk_u64(&w, 1, &sequence) || !replay_record(v, w.v)) {
            status = store_corrupt(s, "the log of the reports' index");
            break;
        }
        v->next_log = sequence + 1;
    }
    walk_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* ---- projects that are being deleted ---- */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

bool view_is_dying(const struct view *v, uint64_t project)
{
    size_t count = v->dying.n / sizeof(project);
    return count != 0 && bsearch(&project, v->dying.p, count, sizeof(project), compare_u64) != NULL;
}

static enum store_status gather_dying(struct store *s, MDB_txn *txn, uint64_t workspace, struct buf *out)
{
    struct walk w = {0};
    if (!store_any_dying(s, txn))
        return STORE_OK;
    key_id(&w.prefix, SPACE_DYING, workspace);
    enum store_status status = walk_prefix(s, txn, &w, DB_BASE, false);
    for (; status == STORE_OK; status = walk_next(&w)) {
        uint64_t project;
        if (!walk_u64(&w, 1, &project))
            status = store_corrupt(s, "the list of what is being deleted");
        else
            buf_add(out, &project, sizeof(project));
    }
    walk_end(&w);
    if (!buf_ok(out))
        return store_fail(s, ENOMEM, "list reports");
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static bool hide(struct view *v, struct view_segment *g)
{
    free(g->hidden);
    g->hidden = NULL;
    for (size_t at = 0; at < v->dying.n; at += sizeof(uint64_t)) {
        uint64_t project;
        uint32_t count;
        memcpy(&project, v->dying.p + at, sizeof(project));
        const uint16_t *rows = segment_project(&g->segment, project, &count);
        if (count != 0 && g->hidden == NULL && (g->hidden = calloc(g->segment.words, sizeof(*g->hidden))) == NULL)
            return false;
        for (uint32_t i = 0; i < count; i++)
            bit_set(g->hidden, rows[i]);
    }
    return true;
}

static bool same_bytes(const struct buf *a, const struct buf *b)
{
    return a->n == b->n && (a->p == NULL || b->p == NULL || memcmp(a->p, b->p, a->n) == 0);
}

/*
 * The keys of the dying are short before they are long, so their order is the numbers'. Only lists leave them out, and a transaction asks for
 * none: it would hide all of them again each time that one is gone.
 */
static enum store_status hide_dying(struct store *s, MDB_txn *txn, struct view *v, const struct store_list_query *q)
{
    struct buf dying = {0};
    if (v->writing)
        return STORE_OK;
    enum store_status status = gather_dying(s, txn, v->workspace, &dying);
    bool same = status != STORE_OK || same_bytes(&dying, &v->dying);
    struct buf old = v->dying;
    v->dying = same ? v->dying : dying;
    v->hidden = same ? v->hidden : 0;
    buf_free(same ? &dying : &old);
    for (bool worked = false; status == STORE_OK && v->hidden < v->segment_count; worked = true) {
        if (worked && store_paused(s, q))
            return STORE_AGAIN;
        if (hide(v, &v->segments[v->hidden]))
            v->hidden++;
        else
            status = store_fail(s, ENOMEM, "list reports");
    }
    return status;
}

/* ---- its life ---- */

static void segments_free(struct view_segment *segments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        segment_close(&segments[i].segment);
        free(segments[i].masked);
        free(segments[i].hidden);
    }
    free(segments);
}

static bool rows_clear(struct store *s, struct view *v)
{
    static const char pad[TEXT_PAD];
    uint32_t zero = 0;
    v->made = ++s->rows_made;
    v->row_count = 0;
    if (v->slots != NULL)
        memset(v->slots, 0, v->slot_count * sizeof(*v->slots));
    buf_reset(&v->text);
    buf_reset(&v->offset);
    buf_add(&v->text, pad, sizeof(pad));
    buf_add(&v->offset, &zero, sizeof(zero));
    for (int i = 0; i < 4; i++)
        v->orders[i].count = v->orders[i].moved_count = v->orders[i].lifted = 0;
    return buf_ok(&v->text) && buf_ok(&v->offset);
}

static void view_free(struct view *v)
{
    segments_free(v->segments, v->segment_count);
    for (int i = 0; i < 4; i++) {
        free(v->orders[i].rows);
        free(v->orders[i].moved);
    }
    free(v->rows);
    free(v->slots);
    free(v->grams);
    buf_free(&v->text);
    buf_free(&v->offset);
    buf_free(&v->manifest);
    buf_free(&v->dying);
    free(v);
}

void view_forget(struct store *s)
{
    while (s->views != NULL) {
        struct view *v = s->views;
        s->views = v->next;
        view_free(v);
    }
    s->view_count = 0;
}

static void drop(struct store *s, struct view *v)
{
    struct view **at = &s->views;
    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    view_free(v);
    s->view_count--;
}

void view_undo(struct store *s)
{
    for (struct view *v = s->views, *next; v != NULL; v = next) {
        next = v->next;
        if (v->writing)
            drop(s, v);
    }
}

void view_settle(struct store *s)
{
    MDB_envinfo info;
    mdb_env_info(s->env, &info);
    for (struct view *v = s->views; v != NULL; v = v->next)
        if (v->writing && v->snapshot > info.me_last_txnid)
            v->snapshot = info.me_last_txnid;
}

/* The segment of these parts that the view has open already goes over to ${to}. */
static void keep_open(struct view *v, struct view_segment *to)
{
    for (size_t i = 0; i < v->segment_count && !v->dangling; i++) {
        struct view_segment *from = &v->segments[i];
        if (from->fixed != to->fixed || from->moving != to->moving)
            continue;
        to->segment = from->segment;
        from->segment = (struct segment){0};
    }
}

/* What the manifest names, to be opened, and nothing of the log. */
static enum store_status begin_anew(struct store *s, struct view *v, const struct manifest *m)
{
    struct view_segment *segments = calloc(m->count + 1, sizeof(*segments));
    if (v->grams == NULL)
        v->grams = malloc(GRAM_CODES / 8);
    buf_reset(&v->manifest);
    buf_add(&v->manifest, &m->head, sizeof(m->head));
    buf_add(&v->manifest, m->segments, m->count * sizeof(*m->segments));
    if (segments == NULL || v->grams == NULL || !rows_clear(s, v) || !buf_ok(&v->manifest)) {
        free(segments);
        return store_fail(s, ENOMEM, "hold a view");
    }
    for (size_t i = 0; i < m->count; i++) {
        const struct manifest_segment *from = &m->segments[i];
        segments[i] =
            (struct view_segment){.fixed = from->fixed, .moving = from->moving, .first_id = from->first_id, .last_id = from->last_id};
        keep_open(v, &segments[i]);
    }
    segments_free(v->segments, v->segment_count);
    v->segments = segments;
    v->segment_count = m->count;
    v->opened = 0;
    v->next_log = m->head.log_from;
    v->hidden = 0;
    memset(v->grams, 0, GRAM_CODES / 8);
    return STORE_OK;
}

static enum store_status open_segments(struct store *s, MDB_txn *txn, struct view *v, const struct manifest *m,
                                       const struct store_list_query *q)
{
    while (v->opened < v->segment_count) {
        struct segment *g = &v->segments[v->opened].segment;
        enum store_status status = segment_open(s, txn, q, v->workspace, &m->segments[v->opened], g);
        if (status != STORE_OK)
            return status;
        for (uint32_t i = 0; i < GRAM_CODES / 64; i++)
            v->grams[i] |= g->grams[i];
        v->opened++;
    }
    return STORE_OK;
}

static bool same_manifest(const struct view *v, const struct manifest *m)
{
    size_t bytes = m->count * sizeof(*m->segments);
    return v->manifest.n == sizeof(m->head) + bytes && memcmp(v->manifest.p, &m->head, sizeof(m->head)) == 0 &&
           (bytes == 0 || memcmp(v->manifest.p + sizeof(m->head), m->segments, bytes) == 0);
}

static enum store_status bring_up(struct store *s, MDB_txn *txn, struct view *v, const struct store_list_query *q)
{
    struct manifest m;
    size_t snapshot = mdb_txn_id(txn);
    if (v->snapshot == snapshot && !v->writing && !v->partial)
        return STORE_OK;
    enum store_status status = index_manifest(s, txn, v->workspace, &m);
    if (status == STORE_OK && (v->dangling || v->snapshot > snapshot || !same_manifest(v, &m)))
        status = begin_anew(s, v, &m);
    v->snapshot = snapshot;
    v->writing = txn == s->txn.mdb;
    v->dangling = v->writing && s->txn.installed;
    if (status == STORE_OK)
        status = open_segments(s, txn, v, &m, q);
    if (status == STORE_OK)
        status = replay(s, txn, v, q);
    if (status == STORE_OK)
        status = hide_dying(s, txn, v, q);
    v->partial = status == STORE_AGAIN;
    return status;
}

static struct view *add(struct store *s, uint64_t workspace)
{
    struct view *v = calloc(1, sizeof(*v));
    if (v == NULL)
        return NULL;
    v->workspace = workspace;
    v->next = s->views;
    s->views = v;
    s->view_count++;
    return v;
}

static struct view *find(struct store *s, uint64_t workspace)
{
    struct view *oldest = NULL;
    for (struct view *v = s->views; v != NULL; v = v->next) {
        if (v->workspace == workspace)
            return v;
        if (oldest == NULL || v->used < oldest->used)
            oldest = v;
    }
    if (s->view_count >= VIEWS_KEPT)
        drop(s, oldest);
    return add(s, workspace);
}

static enum store_status get(struct store *s, MDB_txn *txn, uint64_t workspace, const struct store_list_query *q, struct view **out)
{
    struct view *v = find(s, workspace);
    *out = v;
    if (v == NULL)
        return store_fail(s, ENOMEM, "hold a view");
    v->used = ++s->view_clock;
    enum store_status status = bring_up(s, txn, v, q);
    if (status != STORE_OK)
        *out = NULL;
    if (status != STORE_OK && status != STORE_AGAIN)
        drop(s, v);
    return status;
}

enum store_status view_get(struct store *s, MDB_txn *txn, uint64_t workspace, struct view **out)
{
    return get(s, txn, workspace, NULL, out);
}

enum store_status view_get_some(struct store *s, MDB_txn *txn, const struct store_list_query *q, struct view **out)
{
    return get(s, txn, q->workspace, q, out);
}
