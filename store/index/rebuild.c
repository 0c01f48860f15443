#include "merge.h"

#include <errno.h>
#include <stdlib.h>

#define SLICE 4096                         /* heads of a snapshot */
#define ROWS_BYTES_MAX ((size_t)256 << 20) /* of rows that are not written yet */

/* An index that is being built. */
struct rebuilt {
    uint64_t workspace, rebuild_to;
    struct index_install head;
    struct builder builder;
};

struct rebuild {
    struct store *s;
    struct rebuilt *all; /* ascending by workspace */
    size_t count;
    size_t bytes; /* of rows that are not written yet */
    uint64_t after;
};

/* ---- which ---- */

static enum store_status take_workspace(struct rebuild *r, const struct walk *w, struct buf *out)
{
    struct index_record record;
    struct rebuilt one = {0};
    const void *p = store_record(w->v, sizeof(record));
    if (p == NULL || !walk_u64(w, 0, &one.workspace))
        return store_corrupt(r->s, "the manifest of an index of reports");
    memcpy(&record, p, sizeof(record));
    if (record.state != INDEX_REBUILDING)
        return STORE_OK;
    one.rebuild_to = record.rebuild_to;
    one.head = (struct index_install){
        .version = record.version, .log_from = record.log_from, .base = record.base};
    builder_init(&one.builder, r->s, one.workspace);
    buf_add(out, &one, sizeof(one));
    return buf_ok(out) ? STORE_OK : store_fail(r->s, ENOMEM, "rebuild indexes of reports");
}

static enum store_status take_workspaces(struct rebuild *r)
{
    MDB_txn *txn;
    struct walk w = {0};
    struct buf found = {0};
    enum store_status status = store_snapshot(r->s, &txn);
    if (status == STORE_OK)
        status = walk_begin(r->s, txn, &w, SPACE_INDEX);
    for (; status == STORE_OK; status = walk_next(&w))
        if ((status = take_workspace(r, &w, &found)) != STORE_OK)
            break;
    walk_end(&w);
    store_read_end(r->s);
    r->all = (struct rebuilt *)(void *)found.p;
    r->count = found.n / sizeof(*r->all);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
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

static struct builder *largest(const struct rebuild *r)
{
    struct builder *found = &r->all[0].builder;
    for (size_t i = 1; i < r->count; i++)
        if (builder_bytes(&r->all[i].builder) > builder_bytes(found))
            found = &r->all[i].builder;
    return found;
}

static enum store_status take_head(struct rebuild *r, MDB_val v)
{
    struct store_report report;
    if (!schema_read_report(v, &report))
        return store_corrupt(r->s, "the record of a report");
    r->after = report.id;
    struct rebuilt *one = find(r, report.workspace);
    if (one == NULL || report.id > one->rebuild_to)
        return STORE_OK;
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
    if (b->count >= r->s->segment_rows || b->text.n >= SEGMENT_TEXT_BYTES)
        return write_rows(r, b);
    return r->bytes > ROWS_BYTES_MAX ? write_rows(r, largest(r)) : STORE_OK;
}

/* STORE_NOT_FOUND: there are no more. */
static enum store_status take_slice(struct rebuild *r)
{
    MDB_txn *txn;
    struct walk w = {0};
    struct key from;
    enum store_status status = store_snapshot(r->s, &txn);
    key_id(&from, SPACE_REPORT, r->after + 1);
    key_space(&w.prefix, SPACE_REPORT);
    if (status == STORE_OK)
        status = walk_from(r->s, txn, &w, DB_RECORD, &from);
    for (unsigned n = 0; status == STORE_OK && n < SLICE; n++) {
        status = take_head(r, w.v);
        if (status == STORE_OK)
            status = walk_next(&w);
    }
    walk_end(&w);
    store_read_end(r->s);
    return status;
}

/* ---- all of it ---- */

static enum store_status build(struct rebuild *r, rebuild_fn *install, store_pause_fn *stop,
                               void *arg)
{
    enum store_status status = STORE_OK;
    while (status == STORE_OK)
        status = stop(arg) ? STORE_AGAIN : take_slice(r);
    if (status == STORE_NOT_FOUND)
        status = STORE_OK;
    for (size_t i = 0; i < r->count && status == STORE_OK; i++) {
        struct buf out = {0};
        struct rebuilt *one = &r->all[i];
        status = builder_end(&one->builder, one->head, 0, &out);
        if (status == STORE_OK)
            status = install(arg, &one->builder, buf_view(&out));
        buf_free(&out);
    }
    return status;
}

enum store_status rebuild_all(struct store *s, rebuild_fn *install, store_pause_fn *stop, void *arg)
{
    struct rebuild r = {.s = s};
    enum store_status status = take_workspaces(&r);
    if (status == STORE_OK && r.count != 0)
        status = build(&r, install, stop, arg);
    for (size_t i = 0; i < r.count; i++) {
        builder_undo(&r.all[i].builder); /* of those that were not installed */
        builder_free(&r.all[i].builder);
    }
    free(r.all);
    return status;
}
