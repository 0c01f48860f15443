#include "store/index/merge.h"

#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/index/builder.h"
#include "store/index/context_internal.h"
#include "store/index/index.h"
#include "store/index/segment_internal.h"
#include "store/index/snapshot.h"

#include <errno.h>
#include <stdlib.h>

/* A segment, and whether it is merged. */
struct choice {
    size_t at;
    uint32_t live, rows;
    bool merged;
};

static int by_live(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    return x->live != y->live ? (x->live < y->live ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}

static uint64_t live_rows(const struct index_snapshot *v)
{
    uint64_t n = 0;
    for (uint32_t row = 0; row < v->row_count; row++)
        n += v->rows[row].class != CLASS_GONE;
    return n;
}

/*
 * Merge policy: from the smallest on, each segment that makes the new one at most three times as
 * large, so that a report is rewritten only a few times; and segments that are mostly dead.
 */
static void choose(const struct store *s, const struct index_snapshot *v, struct choice *all)
{
    size_t count = v->segment_count;
    uint64_t rows = live_rows(v);
    for (size_t i = 0; i < count; i++) {
        const struct snapshot_segment *g = &v->segments[i];
        all[i] = (struct choice){
            .at = i, .live = g->segment.rows - g->tombstone_count, .rows = g->segment.rows};
    }
    qsort(all, count, sizeof(*all), by_live);
    for (size_t i = 0; i < count && rows + all[i].live <= s->index->segment_rows; i++) {
        bool mostly_dead = all[i].live < all[i].rows / 2;
        if (all[i].live > 2 * rows && !mostly_dead)
            continue;
        all[i].merged = true;
        rows += all[i].live;
    }
}

/* A few rows of all segments together become a base. */
static void choose_all_where_few(const struct store *s, const struct index_snapshot *v,
                                 struct choice *all)
{
    uint64_t rows = live_rows(v);
    for (size_t i = 0; i < v->segment_count; i++)
        rows += all[i].live;
    for (size_t i = 0; i < v->segment_count && rows < s->index->small_rows; i++)
        all[i].merged = true;
}

/* ---- merging ---- */

static void take_segment(struct builder *b, const struct snapshot_segment *in)
{
    const struct segment *g = &in->segment;
    segment_file_verify_again(g->file, 0, 1); /* the new file will have a good checksum */
    for (uint32_t row = 0; row < g->rows; row++) {
        if (!index_snapshot_lives(in, row))
            continue;
        struct segment_row r = segment_row(g, row);
        builder_add(b, &r);
    }
    builder_remove(b, in->number);
}

/* The segment stays; the tombstones of the log become dead rows. */
static uint64_t keep_segment(struct builder *b, const struct snapshot_segment *in)
{
    struct segment_record record = in->record;
    if (in->tombstone_count == record.rows) {
        builder_remove(b, in->number);
        return 0;
    }
    if (in->tombstone_count != record.dead) {
        record.dead = in->tombstone_count;
        builder_put(b, in->number, &record, in->tombstones);
    }
    return record.rows;
}

static void take_tail(struct builder *b, const struct index_snapshot *v)
{
    for (uint32_t row = 0; row < v->row_count; row++) {
        const struct tail_row *r = &v->rows[row];
        struct segment_row taken = {r->id,    r->project, r->date,
                                    r->score, r->class,   index_snapshot_url(v, row)};
        if (r->class != CLASS_GONE)
            builder_add(b, &taken);
    }
}

static enum store_status merge(struct builder *b, struct index_snapshot *v, struct choice *all,
                               struct index_install head, struct buf *out)
{
    uint64_t kept = 0;
    choose(b->s, v, all);
    choose_all_where_few(b->s, v, all);
    for (size_t i = 0; i < v->segment_count; i++) {
        const struct snapshot_segment *in = &v->segments[all[i].at];
        if (all[i].merged)
            take_segment(b, in);
        else
            kept += keep_segment(b, in);
    }
    take_tail(b, v);
    enum store_status status = index_snapshot_verified(b->s, v);
    return status == STORE_OK ? builder_end(b, head, kept, out) : status;
}

/* The index snapshot outlives the transaction. */
static enum store_status look(struct builder *b, struct index_snapshot **v,
                              struct index_install *head)
{
    MDB_txn *txn;
    struct index_record record = {0};
    uint64_t next = 0;
    struct store *s = b->s;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = index_read(s, txn, b->workspace, &record);
    if (status == STORE_OK)
        status = index_log(s, txn, b->workspace, &record, &next, &head->base);
    if (status == STORE_OK && !index_due(s, &record, &head->base))
        status = STORE_NOT_FOUND;
    if (status == STORE_OK)
        status = index_snapshot_get(s, txn, b->workspace, v);
    store_read_end(s);
    head->version = record.version;
    head->log_from = next;
    return status;
}

enum store_status merge_make(struct builder *b, struct buf *out)
{
    struct index_snapshot *v;
    struct index_install head = {0};
    enum store_status status = look(b, &v, &head);
    if (status != STORE_OK)
        return status;
    struct choice *all = calloc(v->segment_count + 1, sizeof(*all));
    if (all == NULL)
        return store_fail(b->s, ENOMEM, "merge an index of reports");
    status = merge(b, v, all, head, out);
    free(all);
    return status;
}
