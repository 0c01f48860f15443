#include "check_parts.h"

#include <stdlib.h>

#define LL(v) ((unsigned long long)(v))

struct view *check_view(struct check *c, uint64_t workspace)
{
    struct view *v;
    if (view_get(c->s, c->txn, workspace, &v) == STORE_OK)
        return v;
    check_say(c, "the index of workspace %llu cannot be read: %s", LL(workspace), store_why(c->s));
    return NULL;
}

/* ---- the log ---- */

static bool count_entries(const struct walk *w, uint64_t *entries)
{
    const uint8_t *at = w->v.mv_data, *end = at + w->v.mv_size;
    *entries = 0;
    for (at += sizeof(struct log_head); at < end; ++*entries) {
        struct log_entry e;
        struct str url;
        if (!index_entry(&at, end, &e, &url))
            return false;
    }
    return true;
}

/* Records follow each other without a gap, each telling how much the log has held. Those before the manifest's first wait to be swept. */
void check_log(struct check *c, const struct walk *w)
{
    uint64_t workspace, sequence, entries;
    struct log_head head;
    struct manifest m;
    if (!walk_u64(w, 0, &workspace) || !walk_u64(w, 1, &sequence) || w->v.mv_size < sizeof(head) || !count_entries(w, &entries)) {
        check_say(c, "a record of the log of an index is malformed");
        return;
    }
    memcpy(&head, w->v.mv_data, sizeof(head));
    if (index_manifest(c->s, c->txn, workspace, &m) != STORE_OK) {
        check_say(c, "%s", store_why(c->s));
        return;
    }
    if (sequence < m.head.log_from)
        return;
    if (c->log_workspace != workspace || c->log_next < m.head.log_from) {
        c->log_workspace = workspace;
        c->log_next = m.head.log_from;
        c->log_head = m.head.base;
    }
    if (sequence != c->log_next || head.entries != c->log_head.entries + entries ||
        head.bytes != c->log_head.bytes + w->v.mv_size - sizeof(head))
        check_say(c, "the log of the index of workspace %llu has lost records before number %llu", LL(workspace), LL(sequence));
    c->log_next = sequence + 1;
    c->log_head = head;
}

/* ---- segments ---- */

void check_manifest(struct check *c, const struct walk *w)
{
    uint64_t workspace, last = 0;
    struct manifest m;
    if (!walk_u64(w, 0, &workspace) || index_manifest(c->s, c->txn, workspace, &m) != STORE_OK) {
        check_say(c, "the manifest of an index is malformed");
        return;
    }
    for (size_t i = 0; i < m.count; i++) {
        const struct manifest_segment *g = &m.segments[i];
        if (g->first_id <= last || g->last_id < g->first_id || g->fixed >= m.head.next_part || g->moving >= m.head.next_part)
            check_say(c, "the manifest of the index of workspace %llu names segments that overlap", LL(workspace));
        last = g->last_id;
    }
}

static bool order_good(const struct segment *g, const struct order *o, bool (*below)(const struct segment *g, uint32_t a, uint32_t b))
{
    for (uint32_t rank = 0; rank < g->rows; rank++) {
        if (o->row[rank] >= g->rows || o->rank[o->row[rank]] != rank || (rank != 0 && !below(g, o->row[rank - 1], o->row[rank])))
            return false;
    }
    return true;
}

static bool by_url(const struct segment *g, uint32_t a, uint32_t b)
{
    struct str x = segment_url(g, a), y = segment_url(g, b);
    int by = memcmp(x.p, y.p, (x.n < y.n ? x.n : y.n) + 1);
    return by != 0 ? by < 0 : a < b;
}

static bool by_date(const struct segment *g, uint32_t a, uint32_t b)
{
    return g->dates[a] != g->dates[b] ? g->dates[a] < g->dates[b] : a < b;
}

static bool by_score(const struct segment *g, uint32_t a, uint32_t b)
{
    return g->scores[a] != g->scores[b] ? g->scores[a] < g->scores[b] : a < b;
}

/* Each row is its project's, each live one has one result and one status, and ids ascend. */
static bool rows_good(const struct segment *g)
{
    uint32_t live = 0;
    for (uint32_t row = 0; row < g->rows; row++) {
        unsigned classes = 0, statuses = 0;
        for (int i = 0; i < CLASSES; i++)
            classes += bit_test(g->result_bits[i], row);
        for (int i = 0; i < STATUSES; i++)
            statuses += bit_test(g->status_bits[i], row);
        if (classes != bit_test(g->live_bits, row) || statuses != classes || (row != 0 && g->ids[row] <= g->ids[row - 1]) || g->row_project[row] >= g->projects)
            return false;
        live += classes;
    }
    for (uint32_t i = 0; i < g->projects; i++)
        for (uint32_t at = g->project_at[i]; at < g->project_at[i + 1]; at++)
            if (at >= g->rows || g->row_project[g->project_row[at]] != i ||
                (at != g->project_at[i] && g->project_row[at] <= g->project_row[at - 1]))
                return false;
    return live == g->live && g->project_at[0] == 0 && g->project_at[g->projects] == g->rows;
}

/* What searches rely on: no row is missing where its letters are. */
static bool filter_good(const struct segment *g)
{
    for (uint32_t row = 0; row < g->rows; row++) {
        const struct chunk *chunk = &g->chunks[row >> g->chunk_shift];
        struct str url = segment_url(g, row);
        for (size_t i = 0; i + 3 <= url.n; i++)
            if (!bit_test(g->grams, search_gram((const uint8_t *)url.p + i)) ||
                !chunk_has(chunk, search_gram((const uint8_t *)url.p + i), row & ((1u << g->chunk_shift) - 1)))
                return false;
    }
    return true;
}

/* The rows of a frequent word; UINT32_MAX: not all are the chunk's. */
static uint32_t rows_of_word(const struct chunk *c, const uint64_t *of, uint16_t *rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->bitmap; i++)
        for (uint64_t left = of[i]; left != 0; left &= left - 1)
            rows[n++] = (uint16_t)(i * 64 + (uint32_t)__builtin_ctzll(left));
    return n != 0 && rows[n - 1] >= c->head->rows ? UINT32_MAX : n;
}

/* A frequent word's rows have it. They alone are looked at: long URLs have many such words, each in few rows. */
static bool words_good(const struct chunk *c)
{
    for (uint32_t i = 0; i < c->head->words; i++) {
        struct search s;
        struct str word = {(const char *)c->words + c->word_at[i], c->word_at[i + 1] - c->word_at[i]};
        const uint64_t *of = c->word_bits + (size_t)i * c->bitmap;
        uint64_t bits[CHUNK_WORDS] = {0};
        uint16_t rows[1u << CHUNK_ROWS_SHIFT];
        uint32_t count = rows_of_word(c, of, rows);
        if (count == UINT32_MAX)
            return false;
        if (!search_begin(&s, word))
            return true;
        search_some(&s, c->text, c->offset, rows, count, bits);
        search_end(&s);
        if (memcmp(bits, of, c->bitmap * sizeof(*of)) != 0)
            return false;
    }
    return true;
}

static bool chunks_good(const struct segment *g)
{
    for (uint32_t i = 0; i < g->chunk_count; i++)
        if (!words_good(&g->chunks[i]))
            return false;
    return filter_good(g);
}

static void check_segment(struct check *c, uint64_t workspace, const struct view_segment *in)
{
    const struct segment *g = &in->segment;
    if (!rows_good(g) || g->ids[0] != in->first_id || g->ids[g->rows - 1] != in->last_id || !order_good(g, &g->url, by_url) ||
        !order_good(g, &g->date, by_date) || !order_good(g, &g->score, by_score) || !chunks_good(g))
        check_say(c, "segment %llu of the index of workspace %llu contradicts itself", LL(in->fixed), LL(workspace));
}

/* ---- rows ---- */

static bool check_has_head(void *arg, const struct segment_row *row)
{
    struct check *c = arg;
    struct store_report r;
    if (!check_report_at(c, row->id, &r) || r.project != row->project)
        check_say(c, "the index has report %llu, which is not there or belongs elsewhere", LL(row->id));
    check_step(c, 1);
    return !c->stopped;
}

/* One slice: the next segment's ids, or all above the last one's. ${after} becomes the last id looked at; false at the end. */
static bool check_slice(struct check *c, uint64_t workspace, uint64_t *after)
{
    const struct view *v = check_view(c, workspace);
    uint64_t upto = UINT64_MAX;
    if (v == NULL)
        return false;
    for (size_t i = 0; i < v->segment_count && upto == UINT64_MAX; i++) {
        if (v->segments[i].last_id <= *after)
            continue;
        upto = v->segments[i].last_id;
        check_segment(c, workspace, &v->segments[i]);
    }
    view_each(v, *after, upto, check_has_head, c);
    *after = upto;
    return upto != UINT64_MAX && !c->stopped;
}

static enum store_status gather_workspaces(struct check *c, struct buf *out)
{
    struct walk w = {0};
    uint64_t workspace;
    enum store_status status = check_renew(c);
    if (status == STORE_OK)
        status = walk_begin(c->s, c->txn, &w, SPACE_WORKSPACE);
    for (; status == STORE_OK; status = walk_next(&w))
        if (walk_u64(&w, 0, &workspace))
            buf_add(out, &workspace, sizeof(workspace));
    walk_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

enum store_status check_index(struct check *c)
{
    struct buf workspaces = {0};
    enum store_status status = gather_workspaces(c, &workspaces);
    for (size_t at = 0; status == STORE_OK && at < workspaces.n && !c->stopped; at += sizeof(uint64_t)) {
        uint64_t workspace, after = 0;
        memcpy(&workspace, workspaces.p + at, sizeof(workspace));
        do {
            status = check_renew(c);
        } while (status == STORE_OK && check_slice(c, workspace, &after));
    }
    buf_free(&workspaces);
    return status;
}
