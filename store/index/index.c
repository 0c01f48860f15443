#include "store/index/index.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/index/context_internal.h"
#include "store/index/lists.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- log and manifest ---- */

static const size_t entry_bytes[] = {
    [LOG_ADD] = sizeof(struct log_entry),
    [LOG_SET] = offsetof(struct log_entry, project),
    [LOG_GONE] = offsetof(struct log_entry, class),
};

bool index_entry(const uint8_t **at, const uint8_t *end, struct log_entry *out, struct str *url)
{
    size_t left = (size_t)(end - *at);
    *out = (struct log_entry){0};
    if (left == 0 || **at < LOG_ADD || **at > LOG_GONE || left < entry_bytes[**at])
        return false;
    memcpy(out, *at, entry_bytes[**at]);
    *at += entry_bytes[out->kind];
    *url = (struct str){(const char *)*at, out->url_n};
    if (class_status(out->class) >= STATUSES || (size_t)(end - *at) < out->url_n)
        return false;
    *at += out->url_n;
    return true;
}

void index_entry_put(struct buf *out, const struct log_entry *e, struct str url)
{
    buf_add(out, e, entry_bytes[e->kind]);
    if (e->kind == LOG_ADD)
        buf_str(out, url);
}

enum store_status index_read(struct store *s, MDB_txn *txn, uint64_t workspace,
                             struct index_record *out)
{
    struct key k;
    MDB_val v;
    *out = (struct index_record){.log_from = 1};
    key_id(&k, SPACE_INDEX, workspace);
    enum store_status status = store_get(s, txn, SPACE_INDEX, &k, &v);
    if (status == STORE_NOT_FOUND)
        return STORE_OK;
    const void *record = status == STORE_OK ? store_record(v, sizeof(*out)) : NULL;
    if (record == NULL)
        return status == STORE_OK ? store_corrupt(s, "the manifest of an index of reports")
                                  : status;
    memcpy(out, record, sizeof(*out));
    return STORE_OK;
}

void index_record_put(struct store_txn *t, uint64_t workspace, const struct index_record *record)
{
    struct key k;
    key_id(&k, SPACE_INDEX, workspace);
    txn_put(t, SPACE_INDEX, &k, record, sizeof(*record));
}

enum store_status index_segment_read(struct store *s, MDB_val v, struct segment_record *out,
                                     const uint8_t **dead)
{
    *dead = NULL;
    if (v.mv_size >= sizeof(*out)) {
        memcpy(out, v.mv_data, sizeof(*out));
        size_t bitmap = out->dead == 0 ? 0 : index_words(out->rows) * sizeof(uint64_t);
        if (bitmap != 0)
            *dead = (const uint8_t *)v.mv_data + sizeof(*out);
        if (v.mv_size == sizeof(*out) + bitmap && out->rows != 0 && out->dead <= out->rows)
            return STORE_OK;
    }
    return store_corrupt(s, "the manifest of an index of reports");
}

enum store_status index_log(struct store *s, MDB_txn *txn, uint64_t workspace,
                            const struct index_record *record, uint64_t *next,
                            struct log_head *head)
{
    struct cursor w = {0};
    *next = record->log_from;
    *head = record->base;
    key_id(&w.prefix, SPACE_LOG, workspace);
    enum store_status status = cursor_prefix(s, txn, &w, DB_LIST, true);
    uint64_t last;
    if (status == STORE_OK && (w.v.mv_size < sizeof(*head) || !cursor_u64(&w, 1, &last)))
        status = store_corrupt(s, "the log of an index of reports");
    if (status == STORE_OK && last >= *next) {
        *next = last + 1;
        memcpy(head, w.v.mv_data, sizeof(*head));
    }
    cursor_end(&w);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

/* A merge rewrites segments, so the log of a large workspace may be longer. */
bool index_due(const struct store *s, const struct index_record *record,
               const struct log_head *head)
{
    enum { LOG_BYTES_MAX = 4 << 20, ROWS_AN_ENTRY = 64 };
    uint64_t entries = head->entries - record->base.entries;
    uint64_t bytes = head->bytes - record->base.bytes;
    if (record->state == INDEX_REBUILDING)
        return true;
    return entries >= s->index->log_entries + record->rows / ROWS_AN_ENTRY ||
           bytes >= LOG_BYTES_MAX;
}

enum store_status index_contradicted(struct store *s, uint64_t id)
{
    snprintf(s->why, sizeof(s->why), "it names report %llu, whose record is missing or damaged",
             (unsigned long long)id);
    s->index->lost_segment = 0;
    return STORE_DAMAGED;
}

/* ---- writing ---- */

static struct log_batch *batch_of(struct store_txn *t, uint64_t workspace)
{
    for (size_t i = 0; i < t->s->index->batch_count; i++)
        if (t->s->index->batches[i].workspace == workspace)
            return &t->s->index->batches[i];
    if (t->s->index->batch_count == t->s->index->batch_cap) {
        size_t cap = t->s->index->batch_cap == 0 ? 4 : t->s->index->batch_cap * 2;
        struct log_batch *more = realloc(t->s->index->batches, cap * sizeof(*more));
        if (more == NULL) {
            txn_fail(t, ENOMEM, "hold a change");
            return NULL;
        }
        memset(more + t->s->index->batch_cap, 0, (cap - t->s->index->batch_cap) * sizeof(*more));
        t->s->index->batches = more;
        t->s->index->batch_cap = cap;
    }
    struct log_batch *b = &t->s->index->batches[t->s->index->batch_count++];
    b->workspace = workspace;
    b->entries = 0;
    buf_reset(&b->bytes);
    return b;
}

/* The merge thread reads these rows, also after a restart. */
void index_mark_due(struct store_txn *t, uint64_t workspace)
{
    struct key k;
    key_id(&k, SPACE_INDEX_DUE, workspace);
    txn_put(t, SPACE_INDEX_DUE, &k, "", 0);
    if (!t->maintenance_told)
        txn_event(t, EVENT_MAINTENANCE, workspace, 0, 0);
    t->maintenance_told = true;
}

static void batch_write(struct store_txn *t, struct log_batch *b)
{
    struct index_record record;
    struct log_head head;
    uint64_t next;
    struct key k;
    enum store_status status = index_read(t->s, t->mdb, b->workspace, &record);
    if (status == STORE_OK)
        status = index_log(t->s, t->mdb, b->workspace, &record, &next, &head);
    if (status != STORE_OK || !buf_ok(&b->bytes)) {
        txn_fail(t, status == STORE_OK ? ENOMEM : 0, "the log of an index of reports");
        return;
    }
    head.entries += b->entries;
    head.bytes += b->bytes.n;
    if (index_due(t->s, &record, &head))
        index_mark_due(t, b->workspace);
    key_id(&k, SPACE_LOG, b->workspace);
    key_u64(&k, next);
    char *to = txn_reserve(t, SPACE_LOG, &k, sizeof(head) + b->bytes.n);
    if (to == NULL)
        return;
    memcpy(to, &head, sizeof(head));
    memcpy(to + sizeof(head), b->bytes.p, b->bytes.n);
    b->entries = 0;
    buf_reset(&b->bytes);
}

void index_move(struct store_txn *t, const struct store_report *old, const struct store_report *new)
{
    const struct store_report *r = new != NULL ? new : old;
    enum log_kind kind = old == NULL ? LOG_ADD : new == NULL ? LOG_GONE : LOG_SET;
    if (kind == LOG_SET && old->result == new->result && old->status == new->status &&
        old->score == new->score && old->generated_at == new->generated_at)
        return;
    struct log_batch *b = batch_of(t, r->workspace);
    if (b == NULL)
        return;
    size_t bytes = entry_bytes[kind] + (kind == LOG_ADD ? r->url.n : 0);
    if (b->entries != 0 && sizeof(struct log_head) + b->bytes.n + bytes > PAGE_VALUE_BYTES)
        batch_write(t, b);
    struct log_entry e = {.kind = (uint8_t)kind,
                          .id = r->id,
                          .class = class_of(r->result, r->status),
                          .score = (int8_t)r->score,
                          .generated_at = r->generated_at,
                          .project = r->project,
                          .url_n = (uint16_t)r->url.n};
    index_entry_put(&b->bytes, &e, r->url);
    b->entries++;
}

void index_write(struct store_txn *t)
{
    for (size_t i = 0; i < t->s->index->batch_count && t->error == STORE_OK; i++)
        if (t->s->index->batches[i].entries != 0)
            batch_write(t, &t->s->index->batches[i]);
    t->s->index->batch_count = 0;
}
