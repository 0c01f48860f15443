#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/index/builder.h"
#include "store/index/context_internal.h"
#include "store/index/index.h"
#include "store/index/merge.h"
#include "store/index/segment_internal.h"

#include <errno.h>
#include <stdlib.h>

#define BATCH 4096                         /* heads read in one snapshot */
#define PASS_WORKSPACES 4096               /* workspaces of a pass over the heads */
#define ROWS_BYTES_MAX ((size_t)256 << 20) /* of rows that are not written yet */
#define EVICTED_ROWS 512                   /* indexes with fewer are not written early */

/* An index that is being built. */
struct rebuilt {
    uint64_t workspace, rebuild_to;
    struct index_install head;
    struct builder builder;
};

struct rebuild {
    struct store *s;
    bool every; /* of all workspaces */
    /* of one pass over the heads, ascending by workspace; NULL: no pass is in progress */
    struct rebuilt *all;
    size_t count, at; /* those before it are installed */
    struct builder *full;
    size_t bytes, bytes_max; /* of rows that are not written yet */
    uint64_t after;          /* the last report that was read */
    uint64_t done;           /* the last workspace of the passes so far */
    bool read;               /* all heads were read */
};

/* ---- workspaces to rebuild ---- */

static enum store_status add_workspace(struct rebuild *r, struct rebuilt *one, struct buf *out)
{
    builder_init(&one->builder, r->s, one->workspace);
    buf_add(out, one, sizeof(*one));
    return buf_ok(out) ? STORE_OK : store_fail(r->s, ENOMEM, "rebuild indexes of reports");
}

static enum store_status take_marked(struct rebuild *r, const struct cursor *w, struct buf *out)
{
    struct index_record record;
    struct rebuilt one = {0};
    const void *p = store_record(w->v, sizeof(record));
    if (p == NULL || !cursor_u64(w, 0, &one.workspace))
        return store_corrupt(r->s, "the manifest of an index of reports");
    memcpy(&record, p, sizeof(record));
    if (record.state != INDEX_REBUILDING)
        return STORE_OK;
    one.rebuild_to = record.rebuild_to;
    one.head = (struct index_install){
        .version = record.version, .log_from = record.log_from, .base = record.base};
    return add_workspace(r, &one, out);
}

/* The manifest that CHANGE_INDEX_LOST will make of the present one. */
static enum store_status take_any(struct rebuild *r, MDB_txn *txn, const struct cursor *w,
                                  struct buf *out)
{
    struct index_record record;
    struct rebuilt one = {.rebuild_to = UINT64_MAX};
    uint64_t next;
    if (!cursor_u64(w, 0, &one.workspace))
        return store_corrupt(r->s, "a workspace");
    enum store_status status = index_read(r->s, txn, one.workspace, &record);
    if (status == STORE_OK)
        status = index_log(r->s, txn, one.workspace, &record, &next, &one.head.base);
    if (status != STORE_OK)
        return status;
    one.head.version = record.version + 1;
    one.head.log_from = next;
    return add_workspace(r, &one, out);
}

static enum store_status take_workspaces(struct rebuild *r)
{
    MDB_txn *txn;
    struct cursor w = {0};
    struct key from;
    struct buf found = {0};
    const enum space space = r->every ? SPACE_WORKSPACE : SPACE_INDEX;
    enum store_status status = store_snapshot(r->s, &txn);
    key_id(&from, space, r->done + 1);
    key_space(&w.prefix, space);
    if (status == STORE_OK)
        status = cursor_from(r->s, txn, &w, (enum db)schema_space_db[space], &from);
    while (status == STORE_OK && found.n < PASS_WORKSPACES * sizeof(*r->all)) {
        status = r->every ? take_any(r, txn, &w, &found) : take_marked(r, &w, &found);
        if (status == STORE_OK)
            status = cursor_next(&w);
    }
    cursor_end(&w);
    store_read_end(r->s);
    r->all = (struct rebuilt *)(void *)found.p;
    r->count = found.n / sizeof(*r->all);
    if (status == STORE_OK || (status == STORE_NOT_FOUND && r->count != 0))
        r->done = r->all[r->count - 1].workspace;
    else
        return status;
    r->bytes = r->after = r->at = 0;
    r->bytes_max = ROWS_BYTES_MAX;
    r->read = false;
    return STORE_OK;
}

static struct rebuilt *find(const struct rebuild *r, uint64_t workspace)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->all[middle].workspace < workspace)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->count && r->all[low].workspace == workspace ? &r->all[low] : NULL;
}

/* ---- heads ---- */

static enum store_status write_rows(struct rebuild *r, struct builder *b)
{
    r->bytes -= builder_bytes(b);
    return builder_write(b);
}

/* The remaining rows belong to many small indexes, and may use as much memory again. */
static enum store_status write_large(struct rebuild *r)
{
    enum store_status status = STORE_OK;
    for (size_t i = 0; i < r->count && status == STORE_OK; i++)
        if (r->all[i].builder.count >= EVICTED_ROWS)
            status = write_rows(r, &r->all[i].builder);
    r->bytes_max = r->bytes + ROWS_BYTES_MAX;
    return status;
}

/* A malformed head costs only its own report: no list has it, and assay check names it. */
static void take_head(struct rebuild *r, const struct cursor *w)
{
    struct store_report report;
    if (!cursor_u64(w, 0, &r->after) || !schema_read_report(w->v, &report))
        return;
    struct rebuilt *one = find(r, report.workspace);
    if (one == NULL || report.id > one->rebuild_to)
        return;
    struct builder *b = &one->builder;
    struct segment_row row = {report.id,
                              report.project,
                              report.generated_at,
                              (int8_t)report.score,
                              class_of(report.result, report.status),
                              report.url};
    r->bytes -= builder_bytes(b);
    builder_add(b, &row);
    r->bytes += builder_bytes(b);
    if (b->count >= r->s->index->segment_rows || b->text.n >= SEGMENT_TEXT_BYTES)
        r->full = b;
}

/* Write files after the snapshot has ended. */
static enum store_status take_batch(struct rebuild *r)
{
    MDB_txn *txn;
    struct cursor w = {0};
    struct key from;
    enum store_status status = store_snapshot(r->s, &txn);
    r->full = NULL;
    key_id(&from, SPACE_REPORT, r->after + 1);
    key_space(&w.prefix, SPACE_REPORT);
    if (status == STORE_OK)
        status = cursor_from(r->s, txn, &w, DB_RECORD, &from);
    for (unsigned n = 0; status == STORE_OK && n < BATCH && r->full == NULL; n++) {
        take_head(r, &w);
        status = cursor_next(&w);
    }
    cursor_end(&w);
    store_read_end(r->s);
    r->read = status == STORE_NOT_FOUND;
    if (r->read)
        status = STORE_OK;
    if (status == STORE_OK && r->full != NULL)
        status = write_rows(r, r->full);
    return status == STORE_OK && r->bytes > r->bytes_max ? write_large(r) : status;
}

/* ---- steps ---- */

static enum store_status install_next(struct rebuild *r, rebuild_fn *install, void *arg)
{
    struct buf out = {0};
    struct rebuilt *one = &r->all[r->at];
    enum store_status status = builder_end(&one->builder, one->head, 0, &out);
    if (status == STORE_OK)
        status = install(arg, &one->builder, buf_view(&out));
    buf_free(&out);
    r->at++;
    return status;
}

static void end_pass(struct rebuild *r)
{
    for (size_t i = 0; i < r->count; i++) {
        builder_undo(&r->all[i].builder); /* files that were not installed */
        builder_free(&r->all[i].builder);
    }
    free(r->all);
    r->all = NULL;
    r->count = 0;
}

enum store_status rebuild_step(struct rebuild *r, rebuild_fn *install, void *arg)
{
    if (r->all == NULL)
        return take_workspaces(r);
    if (!r->read)
        return take_batch(r);
    if (r->at < r->count)
        return install_next(r, install, arg);
    end_pass(r);
    return STORE_OK;
}

struct rebuild *rebuild_new(struct store *s, bool every)
{
    struct rebuild *r = calloc(1, sizeof(*r));
    if (r != NULL)
        *r = (struct rebuild){.s = s, .every = every};
    return r;
}

void rebuild_free(struct rebuild *r)
{
    if (r == NULL)
        return;
    end_pass(r);
    free(r);
}
