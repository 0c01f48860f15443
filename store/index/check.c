#include "store/index/check.h"

#include "store/engine/check.h"
#include "store/engine/cursor.h"
#include "store/engine/environment.h"
#include "store/index/bitmap_internal.h"
#include "store/index/index.h"
#include "store/index/ngram_block_internal.h"
#include "store/index/search_internal.h"
#include "store/index/segment_file_internal.h"
#include "store/index/segment_internal.h"
#include "store/index/snapshot.h"

#include <stdlib.h>

#define LL(v) ((unsigned long long)(v))

/* ${id}: as that of CHANGE_INDEX_LOST. */
static void must_be_rebuilt(struct check *c, uint64_t workspace, uint64_t id)
{
    if (c->s->lost != NULL)
        c->s->lost(c->s->lost_arg, workspace, id);
}

struct index_snapshot *check_index_snapshot(struct check *c, uint64_t workspace)
{
    struct index_snapshot *v;
    if (c->records_only)
        return NULL;
    enum store_status status = index_snapshot_get(c->s, c->txn, workspace, &v);
    if (status == STORE_OK)
        return v;
    if (status != STORE_REBUILDING && c->unreadable != workspace)
        check_say(c, "the index of reports of workspace %llu cannot be read: %s", LL(workspace),
                  store_why(c->s));
    if (status == STORE_DAMAGED)
        must_be_rebuilt(c, workspace, store_lost_segment(c->s));
    c->unreadable = workspace;
    return NULL;
}

/* Its rows mean nothing if a segment is damaged: check_segment names the file. */
static bool is_damaged(struct check *c, uint64_t workspace, struct index_snapshot *v)
{
    if (index_snapshot_verified(c->s, v) != STORE_OK)
        c->unreadable = workspace;
    return c->unreadable == workspace;
}

static bool row_equals(const struct segment_row *row, const struct store_report *r)
{
    return row->project == r->project && row->class == class_of(r->result, r->status) &&
           row->score == r->score && row->date == r->generated_at && str_eq(row->url, r->url);
}

void check_index_row(struct check *c, const struct store_report *r)
{
    struct segment_row row;
    struct index_snapshot *v =
        c->unreadable == r->workspace ? NULL : check_index_snapshot(c, r->workspace);
    if (v == NULL)
        return;
    bool found = index_snapshot_find(v, r->id, &row);
    if ((found && row_equals(&row, r)) || is_damaged(c, r->workspace, v))
        return;
    must_be_rebuilt(c, r->workspace, 0);
    if (!found)
        check_say(c, "report %llu is missing in the index of its workspace", LL(r->id));
    else
        check_say(
            c, "the index has report %llu with another project, result, status, score, date or URL",
            LL(r->id));
}

/* ---- the log ---- */

static bool count_entries(const struct cursor *w, uint64_t *entries)
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

/*
 * Records have consecutive numbers, each with the totals of the log so far. Those before the
 * manifest's first one wait to be deleted.
 */
void check_log(struct check *c, const struct cursor *w)
{
    uint64_t workspace, sequence, entries;
    struct log_head head;
    struct index_record m;
    if (!cursor_u64(w, 0, &workspace) || !cursor_u64(w, 1, &sequence) ||
        w->v.mv_size < sizeof(head) || !count_entries(w, &entries)) {
        check_say(c, "a record of the log of an index is malformed");
        return;
    }
    memcpy(&head, w->v.mv_data, sizeof(head));
    if (index_read(c->s, c->txn, workspace, &m) != STORE_OK) {
        check_say(c, "%s", store_why(c->s));
        return;
    }
    if (sequence < m.log_from)
        return;
    if (c->log.workspace != workspace || c->log.next < m.log_from) {
        c->log.workspace = workspace;
        c->log.next = m.log_from;
        c->log.head = m.base;
    }
    if (sequence != c->log.next || head.entries != c->log.head.entries + entries ||
        head.bytes != c->log.head.bytes + w->v.mv_size - sizeof(head))
        check_say(c, "the log of the index of workspace %llu lacks records before number %llu",
                  LL(workspace), LL(sequence));
    c->log.next = sequence + 1;
    c->log.head = head;
}

/* ---- manifest ---- */

void check_index_record(struct check *c, const struct cursor *w)
{
    uint64_t workspace;
    struct index_record record;
    if (!cursor_u64(w, 0, &workspace) || index_read(c->s, c->txn, workspace, &record) != STORE_OK ||
        record.log_from == 0 || record.version == 0 || record.state > INDEX_REBUILDING)
        check_say(c, "the manifest of an index of reports is malformed");
}

static bool dead_bits_good(const struct segment_record *r, const uint8_t *dead)
{
    uint32_t n = 0;
    for (uint32_t word = 0; dead != NULL && word < index_words(r->rows); word++) {
        uint64_t bits;
        memcpy(&bits, dead + word * sizeof(bits), sizeof(bits));
        n += bit_count(bits);
    }
    return n == r->dead;
}

void check_segment_row(struct check *c, const struct cursor *w)
{
    uint64_t workspace, number;
    struct segment_record r;
    const uint8_t *dead;
    if (!cursor_u64(w, 0, &workspace) || !cursor_u64(w, 1, &number) ||
        index_segment_read(c->s, w->v, &r, &dead) != STORE_OK || r.last_id < r.first_id ||
        !dead_bits_good(&r, dead))
        check_say(c, "a row of a segment of an index of reports is malformed");
}

void check_base(struct check *c, const struct cursor *w)
{
    const uint8_t *at = w->v.mv_data, *end = at + w->v.mv_size;
    while (at < end) {
        struct log_entry e;
        struct str url;
        if (!index_entry(&at, end, &e, &url) || e.kind != LOG_ADD) {
            check_say(c, "a base of an index of reports is malformed");
            return;
        }
    }
}

void check_index_due(struct check *c, const struct cursor *w)
{
    uint64_t workspace;
    struct key k;
    MDB_val v;
    if (!cursor_u64(w, 0, &workspace)) {
        check_say(c, "a row of the list of due indexes is malformed");
        return;
    }
    key_id(&k, SPACE_WORKSPACE, workspace);
    if (!check_get(c, SPACE_WORKSPACE, &k, &v))
        check_say(c, "the index of workspace %llu is due, but the workspace does not exist",
                  LL(workspace));
}

/* ---- segments ---- */

static bool order_good(const struct segment *g, const struct order *o,
                       bool (*below)(const struct segment *g, uint32_t a, uint32_t b))
{
    for (uint32_t rank = 0; rank < g->rows; rank++) {
        if (o->row[rank] >= g->rows || o->rank[o->row[rank]] != rank ||
            (rank != 0 && !below(g, o->row[rank - 1], o->row[rank])))
            return false;
    }
    return true;
}

static bool by_url(const struct segment *g, uint32_t a, uint32_t b)
{
    struct str x = segment_url(g, a), y = segment_url(g, b);
    int by = url_compare(x, y);
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

/* Each row belongs to its project and has one result and one status; ids ascend. */
static bool rows_good(const struct segment *g)
{
    for (uint32_t row = 0; row < g->rows; row++) {
        unsigned classes = 0, statuses = 0;
        for (int i = 0; i < CLASSES; i++)
            classes += bit_test(g->result_bits[i], row);
        for (int i = 0; i < STATUSES; i++)
            statuses += bit_test(g->status_bits[i], row);
        if (classes != 1 || statuses != 1 || (row != 0 && g->ids[row] <= g->ids[row - 1]) ||
            g->row_project[row] >= g->projects)
            return false;
    }
    for (uint32_t i = 0; i < g->projects; i++)
        for (uint32_t at = g->project_at[i]; at < g->project_at[i + 1]; at++)
            if (at >= g->rows || g->project_row[at] >= g->rows ||
                g->row_project[g->project_row[at]] != i ||
                (at != g->project_at[i] && g->project_row[at] <= g->project_row[at - 1]))
                return false;
    return g->project_at[0] == 0 && g->project_at[g->projects] == g->rows;
}

/* Searches rely on this: each row is listed under all its trigrams. */
static bool filter_good(const struct segment *g)
{
    for (uint32_t row = 0; row < g->rows; row++) {
        const struct ngram_block *block = segment_ngram_block(g, row >> g->ngram_block_shift);
        struct str url = segment_url(g, row);
        for (size_t i = 0; i + 3 <= url.n; i++)
            if (!bit_test(g->trigrams, search_trigram((const uint8_t *)url.p + i)) ||
                !ngram_block_has(block, search_trigram((const uint8_t *)url.p + i),
                                 row & ((1u << g->ngram_block_shift) - 1)))
                return false;
    }
    return true;
}

/* The rows of a frequent word; UINT32_MAX: some row does not exist. */
static uint32_t rows_of_word(const struct ngram_block *c, const uint64_t *of, uint16_t *rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->bitmap; i++)
        for (uint64_t left = of[i]; left != 0; left &= left - 1)
            rows[n++] = (uint16_t)(i * 64 + (uint32_t)__builtin_ctzll(left));
    return n != 0 && rows[n - 1] >= c->head->rows ? UINT32_MAX : n;
}

/*
 * The rows listed under a frequent word have it. Only these are read: long URLs have many such
 * words, each in few rows.
 */
static bool words_good(const struct ngram_block *c)
{
    for (uint32_t i = 0; i < c->head->words; i++) {
        struct search s;
        struct str word = {(const char *)c->words + c->word_at[i],
                           c->word_at[i + 1] - c->word_at[i]};
        const uint64_t *of = c->word_bits + (size_t)i * c->bitmap;
        uint64_t bits[NGRAM_BLOCK_WORDS] = {0};
        uint16_t rows[1u << NGRAM_BLOCK_ROWS_SHIFT];
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

static bool ngram_blocks_good(const struct segment *g)
{
    for (uint32_t i = 0; i < g->ngram_block_count; i++) {
        const struct ngram_block *block = segment_ngram_block(g, i);
        if (block == NULL || !words_good(block))
            return false;
    }
    return filter_good(g);
}

static bool parts_good(const struct segment *g)
{
    for (int part = 0; part < SEGMENT_PARTS; part++)
        if (!segment_need(g, (enum segment_part)part))
            return false;
    return true;
}

static void check_segment(struct check *c, uint64_t workspace, const struct snapshot_segment *in)
{
    const struct segment *g = &in->segment;
    if (!parts_good(g) || !rows_good(g) || g->ids[0] != in->record.first_id ||
        g->ids[g->rows - 1] != in->record.last_id || !order_good(g, &g->url, by_url) ||
        !order_good(g, &g->date, by_date) || !order_good(g, &g->score, by_score) ||
        !ngram_blocks_good(g)) {
        char path[SEGMENT_PATH_BYTES];
        segment_file_path(c->s->dir, workspace, in->number, path);
        check_say(c, "%.900s %s", path,
                  segment_damaged(g) ? "does not match its checksums" : "is inconsistent");
        must_be_rebuilt(c, workspace, in->number);
    }
}

/* The index snapshot outlives the transaction, which would keep pages in use. */
static void check_segments(struct check *c, uint64_t workspace)
{
    const struct index_snapshot *v = check_index_snapshot(c, workspace);
    store_read_end(c->s);
    for (size_t i = 0; v != NULL && i < v->segment_count && !c->stopped; i++) {
        check_segment(c, workspace, &v->segments[i]);
        if (segment_damaged(&v->segments[i].segment))
            c->unreadable = workspace;
        check_step(c, 1);
    }
}

/* ---- rows ---- */

static bool check_has_head(void *arg, const struct segment_row *row)
{
    struct check *c = arg;
    struct store_report r;
    if (!check_report_at(c, row->id, &r) || r.project != row->project)
        check_say(c, "the index has report %llu, which does not exist or belongs elsewhere",
                  LL(row->id));
    check_step(c, 1);
    return !c->stopped;
}

/* The end of a batch of about ${BATCH_ROWS} rows with ids above ${after}. */
#define BATCH_ROWS 8192

static uint64_t batch_end(const struct index_snapshot *v, uint64_t after)
{
    uint64_t end = UINT64_MAX;
    for (size_t i = 0; i < v->segment_count; i++) {
        const struct segment *g = &v->segments[i].segment;
        for (uint32_t row = BATCH_ROWS - 1; row < g->rows; row += BATCH_ROWS)
            if (g->ids[row] > after && g->ids[row] < end)
                end = g->ids[row];
    }
    return end;
}

/* ${after} becomes the last id that was checked; false at the end. */
static bool check_batch(struct check *c, uint64_t workspace, uint64_t *after)
{
    const struct index_snapshot *v =
        c->unreadable == workspace ? NULL : check_index_snapshot(c, workspace);
    if (v == NULL)
        return false;
    uint64_t upto = batch_end(v, *after), problems = c->problems;
    index_snapshot_each(v, *after, upto, check_has_head, c);
    if (c->problems != problems)
        must_be_rebuilt(c, workspace, 0);
    *after = upto;
    return upto != UINT64_MAX && !c->stopped;
}

static enum store_status gather_workspaces(struct check *c, struct buf *out)
{
    struct cursor w = {0};
    uint64_t workspace;
    enum store_status status = check_renew(c);
    if (status == STORE_OK)
        status = cursor_begin(c->s, c->txn, &w, SPACE_WORKSPACE);
    for (; status == STORE_OK; status = cursor_next(&w))
        if (cursor_u64(&w, 0, &workspace))
            buf_add(out, &workspace, sizeof(workspace));
    cursor_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

enum store_status check_index(struct check *c)
{
    if (c->records_only)
        return STORE_OK;
    struct buf workspaces = {0};
    enum store_status status = gather_workspaces(c, &workspaces);
    for (size_t at = 0; status == STORE_OK && at < workspaces.n && !c->stopped;
         at += sizeof(uint64_t)) {
        uint64_t workspace, after = 0;
        memcpy(&workspace, workspaces.p + at, sizeof(workspace));
        status = check_renew(c);
        if (status == STORE_OK)
            check_segments(c, workspace);
        do {
            status = check_renew(c);
        } while (status == STORE_OK && check_batch(c, workspace, &after));
    }
    buf_free(&workspaces);
    return status;
}
