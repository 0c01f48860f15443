#include "store/index/tail_internal.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/index/bitmap_internal.h"
#include "store/index/context_internal.h"
#include "store/index/index.h"
#include "store/index/search_internal.h"
#include "store/index/segment_internal.h"
#include "store/index/snapshot.h"

#include <errno.h>
#include <stdlib.h>

#define STOP_EVERY 8 /* records of the log between two calls of ${stop} */

/* ---- rows ---- */

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

static bool note_moved(struct tail_order *o, uint32_t row)
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
        if (!note_moved(&v->orders[i], v->row_count - 1))
            return false;
    return true;
}

bool tail_clear(struct store *s, struct index_snapshot *v)
{
    static const char pad[TEXT_PAD];
    uint32_t zero = 0;
    if (v->trigrams == NULL && (v->trigrams = malloc(TRIGRAM_CODES / 8)) == NULL)
        return false;
    memset(v->trigrams, 0, TRIGRAM_CODES / 8);
    v->made = ++s->index->rows_made;
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
static bool put_tombstone(struct index_snapshot *v, struct snapshot_segment *g, uint32_t row,
                          bool lives)
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
        if (!put_tombstone(v, g, in, true))
            return false;
    }
    struct tail_row *r = &v->rows[row];
    r->class = e->class;
    r->score = e->score;
    r->date = e->generated_at;
    return note_moved(&v->orders[REPORT_BY_GENERATED_AT], row) &&
           note_moved(&v->orders[REPORT_BY_SCORE], row);
}

static bool replay_gone(struct index_snapshot *v, uint64_t id)
{
    struct snapshot_segment *g;
    uint32_t row = index_snapshot_tail_row(v, id), in;
    if (row == v->row_count)
        return !index_snapshot_segment_find(v, id, &g, &in) || put_tombstone(v, g, in, false);
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

enum store_status tail_replay_base(struct store *s, MDB_txn *txn, struct index_snapshot *v)
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

enum store_status tail_replay_log(struct store *s, MDB_txn *txn, struct index_snapshot *v,
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
        if (status == STORE_OK && records % STOP_EVERY == 0 && store_query_must_stop(s, q))
            status = STORE_AGAIN;
        if (status == STORE_OK)
            status = cursor_next(&w);
    }
    cursor_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}
