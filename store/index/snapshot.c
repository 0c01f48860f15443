#include "store/index/snapshot.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/index/bitmap_internal.h"
#include "store/index/index.h"
#include "store/index/search_internal.h"
#include "store/index/segment_file_internal.h"
#include "store/index/segment_internal.h"

#include <errno.h>
#include <stdlib.h>

#define SNAPSHOTS_KEPT 64
#define PAUSE_EVERY 8 /* records of the log between two calls of ${pause} */

/* ---- its rows ---- */

static const uint32_t *offsets(const struct index_snapshot *v)
{
    return (const uint32_t *)(const void *)v->offset.p;
}

struct str index_snapshot_url(const struct index_snapshot *v, uint32_t row)
{
    const uint32_t *at = offsets(v) + row;
    return (struct str){v->text.p + at[0], at[1] - at[0] - 1};
}

static size_t slot_of(const struct index_snapshot *v, uint64_t id)
{
    size_t at = (size_t)(id * 0x9e3779b97f4a7c15ull >> 32) & (v->slot_count - 1);
    while (v->slots[at] != 0 && v->rows[v->slots[at] - 1].id != id)
        at = (at + 1) & (v->slot_count - 1);
    return at;
}

uint32_t index_snapshot_tail_row(const struct index_snapshot *v, uint64_t id)
{
    uint32_t row = v->slot_count == 0 ? 0 : v->slots[slot_of(v, id)];
    return row == 0 ? v->row_count : row - 1;
}

static bool grow(struct index_snapshot *v)
{
    if (v->row_count < v->row_cap)
        return true;
    uint32_t cap = v->row_cap == 0 ? 256 : v->row_cap * 2;
    struct tail_row *rows = realloc(v->rows, cap * sizeof(*rows));
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

static bool moved(struct tail_order *o, uint32_t row)
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

static bool row_add(struct index_snapshot *v, const struct segment_row *r)
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
    v->rows[v->row_count] = (struct tail_row){r->id, r->project, r->date, r->score, r->class};
    v->slots[slot_of(v, r->id)] = v->row_count + 1;
    v->row_count++;
    search_note_trigrams(r->url, v->trigrams);
    for (int i = 0; i < 4; i++)
        if (!moved(&v->orders[i], v->row_count - 1))
            return false;
    return true;
}

/* ---- segments and log ---- */

bool index_snapshot_segment_find(const struct index_snapshot *v, uint64_t id,
                                 struct snapshot_segment **in, uint32_t *row)
{
    for (size_t i = 0; i < v->segment_count; i++) {
        struct snapshot_segment *g = &v->segments[i];
        if (id < g->record.first_id || id > g->record.last_id)
            continue;
        *row = segment_find(&g->segment, id);
        *in = g;
        if (*row < g->segment.rows && index_snapshot_lives(g, *row))
            return true;
    }
    return false;
}

/* Put a tombstone on the row in its segment; a live report becomes a row of the tail. */
static bool mask(struct index_snapshot *v, struct snapshot_segment *g, uint32_t row, bool lives)
{
    if (g->tombstones == NULL &&
        (g->tombstones = calloc(g->segment.words, sizeof(*g->tombstones))) == NULL)
        return false;
    bit_set(g->tombstones, row);
    g->tombstone_count++;
    if (!lives)
        return true;
    struct segment_row r = segment_row(&g->segment, row);
    return row_add(v, &r);
}

/* During a rebuild the log can name rows that were deleted later: no error. */
static bool replay_set(struct index_snapshot *v, const struct log_entry *e)
{
    struct snapshot_segment *g;
    uint32_t row = index_snapshot_tail_row(v, e->id), in;
    if (row == v->row_count) {
        if (!index_snapshot_segment_find(v, e->id, &g, &in))
            return true;
        if (!mask(v, g, in, true))
            return false;
    }
    struct tail_row *r = &v->rows[row];
    r->class = e->class;
    r->score = e->score;
    r->date = e->generated_at;
    return moved(&v->orders[REPORT_BY_GENERATED_AT], row) &&
           moved(&v->orders[REPORT_BY_SCORE], row);
}

static bool replay_gone(struct index_snapshot *v, uint64_t id)
{
    struct snapshot_segment *g;
    uint32_t row = index_snapshot_tail_row(v, id), in;
    if (row == v->row_count)
        return !index_snapshot_segment_find(v, id, &g, &in) || mask(v, g, in, false);
    v->rows[row].class = CLASS_GONE;
    return true;
}

static bool replay_entry(struct index_snapshot *v, const struct log_entry *e, struct str url)
{
    if (e->kind == LOG_ADD) {
        struct segment_row r = {e->id, e->project, e->generated_at, e->score, e->class, url};
        return index_snapshot_tail_row(v, e->id) == v->row_count && row_add(v, &r);
    }
    return e->kind == LOG_SET ? replay_set(v, e) : replay_gone(v, e->id);
}

static bool replay_entries(struct index_snapshot *v, const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        struct log_entry e;
        struct str url;
        if (!index_entry(&at, end, &e, &url) || !replay_entry(v, &e, url))
            return false;
    }
    return true;
}

static enum store_status replay_base(struct store *s, MDB_txn *txn, struct index_snapshot *v)
{
    struct cursor w = {0};
    key_id(&w.prefix, SPACE_BASE, v->workspace);
    enum store_status status = cursor_prefix(s, txn, &w, DB_LIST, false);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        const uint8_t *at = w.v.mv_data;
        if (!replay_entries(v, at, at + w.v.mv_size)) {
            status = store_corrupt(s, "an index of reports");
            break;
        }
    }
    cursor_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static enum store_status replay_record(struct store *s, struct index_snapshot *v,
                                       const struct cursor *w)
{
    uint64_t sequence;
    const uint8_t *at = w->v.mv_data;
    size_t head = sizeof(struct log_head);
    if (!cursor_u64(w, 1, &sequence) || w->v.mv_size < head ||
        !replay_entries(v, at + head, at + w->v.mv_size))
        return store_corrupt(s, "the log of an index of reports");
    v->next_log = sequence + 1;
    return STORE_OK;
}

static enum store_status replay_log(struct store *s, MDB_txn *txn, struct index_snapshot *v,
                                    const struct store_list_query *q)
{
    struct cursor w = {0};
    struct key from;
    key_id(&from, SPACE_LOG, v->workspace);
    key_id(&w.prefix, SPACE_LOG, v->workspace);
    key_u64(&from, v->next_log);
    enum store_status status = cursor_from(s, txn, &w, DB_LIST, &from);
    for (unsigned records = 1; status == STORE_OK; records++) {
        status = replay_record(s, v, &w);
        if (status == STORE_OK && records % PAUSE_EVERY == 0 && store_paused(s, q))
            status = STORE_AGAIN;
        if (status == STORE_OK)
            status = cursor_next(&w);
    }
    cursor_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* ---- projects that are being deleted ---- */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

bool index_snapshot_is_deleting(const struct index_snapshot *v, uint64_t project)
{
    size_t count = v->deleting.n / sizeof(project);
    return count != 0 &&
           bsearch(&project, v->deleting.p, count, sizeof(project), compare_u64) != NULL;
}

static enum store_status read_deleting(struct store *s, MDB_txn *txn, uint64_t workspace,
                                       struct buf *out)
{
    struct cursor w = {0};
    if (!store_any_deleting(s, txn))
        return STORE_OK;
    key_id(&w.prefix, SPACE_DELETING, workspace);
    enum store_status status = cursor_prefix(s, txn, &w, DB_BASE, false);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        uint64_t project;
        if (!cursor_u64(&w, 1, &project))
            status = store_corrupt(s, "the list of pending deletions");
        else
            buf_add(out, &project, sizeof(project));
    }
    cursor_end(&w);
    if (!buf_ok(out))
        return store_fail(s, ENOMEM, "list reports");
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static bool hide_project(struct snapshot_segment *g, uint64_t project)
{
    uint32_t count;
    const uint16_t *rows = segment_project(&g->segment, project, &count);
    if (count != 0 && g->deleting == NULL &&
        (g->deleting = calloc(g->segment.words, sizeof(*g->deleting))) == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++)
        bit_set(g->deleting, rows[i]);
    return true;
}

static bool hide_all(struct index_snapshot *v)
{
    const uint64_t *projects = (const uint64_t *)(const void *)v->deleting.p;
    for (size_t i = 0; i < v->segment_count; i++) {
        free(v->segments[i].deleting);
        v->segments[i].deleting = NULL;
        for (size_t j = 0; j < v->deleting.n / sizeof(*projects); j++)
            if (!hide_project(&v->segments[i], projects[j]))
                return false;
    }
    return true;
}

static enum store_status mark_deleting(struct store *s, MDB_txn *txn, struct index_snapshot *v,
                                       bool anew)
{
    struct buf deleting = {0};
    enum store_status status = read_deleting(s, txn, v->workspace, &deleting);
    bool same = !anew && str_eq(buf_view(&deleting), buf_view(&v->deleting));
    if (status != STORE_OK || same) {
        buf_free(&deleting);
        return status;
    }
    buf_free(&v->deleting);
    v->deleting = deleting;
    return hide_all(v) ? STORE_OK : store_fail(s, ENOMEM, "list reports");
}

/* ---- its life ---- */

static void segments_free(struct store *s, struct snapshot_segment *segments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        segment_close(s, &segments[i].segment);
        free(segments[i].tombstones);
        free(segments[i].deleting);
    }
    free(segments);
}

static bool rows_clear(struct store *s, struct index_snapshot *v)
{
    static const char pad[TEXT_PAD];
    uint32_t zero = 0;
    if (v->trigrams == NULL && (v->trigrams = malloc(TRIGRAM_CODES / 8)) == NULL)
        return false;
    memset(v->trigrams, 0, TRIGRAM_CODES / 8);
    v->made = ++s->rows_made;
    v->row_count = 0;
    if (v->slots != NULL)
        memset(v->slots, 0, v->slot_count * sizeof(*v->slots));
    buf_reset(&v->text);
    buf_reset(&v->offset);
    buf_add(&v->text, pad, sizeof(pad));
    buf_add(&v->offset, &zero, sizeof(zero));
    for (int i = 0; i < 4; i++)
        v->orders[i].count = v->orders[i].moved_count = 0;
    return buf_ok(&v->text) && buf_ok(&v->offset);
}

static void snapshot_free(struct store *s, struct index_snapshot *v)
{
    segments_free(s, v->segments, v->segment_count);
    for (int i = 0; i < 4; i++) {
        free(v->orders[i].rows);
        free(v->orders[i].moved);
    }
    free(v->rows);
    free(v->slots);
    free(v->trigrams);
    buf_free(&v->text);
    buf_free(&v->offset);
    buf_free(&v->deleting);
    free(v);
}

void index_snapshot_forget(struct store *s)
{
    while (s->index_snapshots != NULL) {
        struct index_snapshot *v = s->index_snapshots;
        s->index_snapshots = v->next;
        snapshot_free(s, v);
    }
    s->index_snapshot_count = 0;
}

static void drop(struct store *s, struct index_snapshot *v)
{
    struct index_snapshot **at = &s->index_snapshots;
    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    snapshot_free(s, v);
    s->index_snapshot_count--;
}

/* Reuse a segment that is already open. */
static enum store_status open_segment(struct store *s, struct index_snapshot *v,
                                      struct snapshot_segment *to)
{
    for (size_t i = 0; i < v->segment_count; i++) {
        struct snapshot_segment *from = &v->segments[i];
        if (from->number != to->number || from->segment.file == NULL)
            continue;
        to->segment = from->segment;
        from->segment = (struct segment){0};
        return STORE_OK;
    }
    return segment_open(s, v->workspace, to->number, to->record.bytes, &to->segment);
}

static enum store_status take_segment(struct store *s, struct index_snapshot *v,
                                      const struct cursor *w, struct buf *out)
{
    struct snapshot_segment g = {0};
    const uint8_t *dead;
    enum store_status status = index_segment_read(s, w->v, &g.record, &dead);
    if (status == STORE_OK && !cursor_u64(w, 1, &g.number))
        status = store_corrupt(s, "the manifest of an index of reports");
    if (status == STORE_OK)
        status = open_segment(s, v, &g);
    if (status != STORE_OK)
        return status;
    if (g.segment.rows != g.record.rows) {
        status = segment_is_damaged(s, g.segment.file);
    } else if (dead != NULL) {
        size_t bytes = g.segment.words * sizeof(*g.tombstones);
        g.tombstone_count = g.record.dead;
        if ((g.tombstones = malloc(bytes)) == NULL)
            status = store_fail(s, ENOMEM, "hold a view");
        else
            memcpy(g.tombstones, dead, bytes);
    }
    buf_add(out, &g, sizeof(g)); /* also a failed one: it is freed with the others */
    if (buf_ok(out))
        return status;
    segment_close(s, &g.segment);
    free(g.tombstones);
    return store_fail(s, ENOMEM, "hold a view");
}

static enum store_status take_segments(struct store *s, MDB_txn *txn, struct index_snapshot *v)
{
    struct cursor w = {0};
    struct buf segments = {0};
    key_id(&w.prefix, SPACE_SEGMENT, v->workspace);
    enum store_status status = cursor_prefix(s, txn, &w, DB_LIST, false);
    for (; status == STORE_OK; status = cursor_next(&w))
        if ((status = take_segment(s, v, &w, &segments)) != STORE_OK)
            break;
    cursor_end(&w);
    segments_free(s, v->segments, v->segment_count);
    v->segments = (struct snapshot_segment *)(void *)segments.p;
    v->segment_count = segments.n / sizeof(*v->segments);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* Open the manifest's segments, without the log. */
static enum store_status begin_anew(struct store *s, MDB_txn *txn, struct index_snapshot *v)
{
    enum store_status status = take_segments(s, txn, v);
    if (status == STORE_OK && !rows_clear(s, v))
        status = store_fail(s, ENOMEM, "hold a view");
    v->next_log = v->record.log_from;
    return status == STORE_OK ? replay_base(s, txn, v) : status;
}

static enum store_status bring_up(struct store *s, MDB_txn *txn, struct index_snapshot *v,
                                  const struct store_list_query *q)
{
    struct index_record record;
    size_t snapshot = mdb_txn_id(txn);
    if (v->snapshot == snapshot)
        return STORE_OK;
    enum store_status status = index_read(s, txn, v->workspace, &record);
    if (status == STORE_OK && record.state == INDEX_REBUILDING)
        status = STORE_REBUILDING;
    bool anew = v->snapshot == 0 || v->snapshot > snapshot ||
                memcmp(&record, &v->record, sizeof(record)) != 0;
    v->record = record;
    if (status == STORE_OK && anew)
        status = begin_anew(s, txn, v);
    if (status == STORE_OK)
        status = replay_log(s, txn, v, q);
    if (status == STORE_OK)
        status = mark_deleting(s, txn, v, anew);
    v->snapshot = snapshot;
    return status;
}

static struct index_snapshot *add(struct store *s, uint64_t workspace)
{
    struct index_snapshot *v = calloc(1, sizeof(*v));
    if (v == NULL)
        return NULL;
    v->workspace = workspace;
    v->next = s->index_snapshots;
    s->index_snapshots = v;
    s->index_snapshot_count++;
    return v;
}

static struct index_snapshot *oldest(const struct store *s)
{
    struct index_snapshot *found = s->index_snapshots;
    for (struct index_snapshot *v = s->index_snapshots; v != NULL; v = v->next)
        if (v->used < found->used)
            found = v;
    return found;
}

static struct index_snapshot *find(struct store *s, uint64_t workspace)
{
    for (struct index_snapshot *v = s->index_snapshots; v != NULL; v = v->next)
        if (v->workspace == workspace)
            return v;
    if (s->index_snapshot_count >= SNAPSHOTS_KEPT)
        drop(s, oldest(s));
    return add(s, workspace);
}

/* All threads share the maps; each drops its own least recently used snapshots. */
static bool too_much_mapped(const struct store *s)
{
    return segment_maps_bytes(s->shared->segments) > s->mapped_bytes;
}

static void keep_bound(struct store *s, const struct index_snapshot *used)
{
    while (too_much_mapped(s) && oldest(s) != used)
        drop(s, oldest(s));
}

static enum store_status get(struct store *s, MDB_txn *txn, uint64_t workspace,
                             const struct store_list_query *q, struct index_snapshot **out)
{
    struct index_snapshot *v = find(s, workspace);
    *out = v;
    if (v == NULL)
        return store_fail(s, ENOMEM, "hold a view");
    v->used = ++s->index_snapshot_clock;
    s->lost_segment = 0;
    bool kept = v->snapshot == mdb_txn_id(txn);
    enum store_status status = bring_up(s, txn, v, q);
    if (status == STORE_OK)
        status = index_snapshot_verified(s, v);
    else
        drop(s, v);
    if (status != STORE_OK)
        *out = NULL;
    else if (!kept)
        keep_bound(s, v);
    return status;
}

enum store_status index_snapshot_get(struct store *s, MDB_txn *txn, uint64_t workspace,
                                     struct index_snapshot **out)
{
    return get(s, txn, workspace, NULL, out);
}

enum store_status index_snapshot_query(struct store *s, MDB_txn *txn,
                                       const struct store_list_query *q,
                                       struct index_snapshot **out)
{
    return get(s, txn, q->workspace, q, out);
}

enum store_status index_snapshot_verified(struct store *s, struct index_snapshot *v)
{
    for (size_t i = 0; i < v->segment_count; i++) {
        const struct segment *g = &v->segments[i].segment;
        if (!segment_damaged(g))
            continue;
        enum store_status status = segment_is_damaged(s, g->file);
        drop(s, v);
        return status;
    }
    return STORE_OK;
}

bool index_snapshot_tidy(struct store *s)
{
    MDB_txn *txn;
    struct index_record record;
    if (s->index_snapshots == NULL || store_snapshot(s, &txn) != STORE_OK)
        return s->index_snapshots != NULL;
    for (struct index_snapshot *v = s->index_snapshots, *next; v != NULL; v = next) {
        next = v->next;
        if (index_read(s, txn, v->workspace, &record) != STORE_OK ||
            record.version != v->record.version || too_much_mapped(s))
            drop(s, v);
    }
    store_read_end(s);
    return s->index_snapshots != NULL;
}

uint64_t store_lost_segment(const struct store *s)
{
    return s->lost_segment;
}
