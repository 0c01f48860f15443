#include "store/engine/cursor.h"
#include "store/engine/free_space.h"
#include "store/engine/txn.h"
#include "store/index/apply.h"
#include "store/index/index.h"

/*
 * Changes of a manifest: CHANGE_INDEX_INSTALL, which is small whatever was merged,
 * CHANGE_INDEX_LOST and CHANGE_INDEX_SWEEP.
 */

/* ---- install ---- */

struct byte_reader {
    const uint8_t *at, *end;
    bool bad;
};

static const void *take(struct byte_reader *c, size_t n)
{
    const uint8_t *p = c->at;
    if (c->bad || (size_t)(c->end - p) < n) {
        c->bad = true;
        return NULL;
    }
    c->at += n;
    return p;
}

static void segment_key(struct key *k, uint64_t workspace, const void *number)
{
    uint64_t n;
    memcpy(&n, number, sizeof(n));
    key_id(k, SPACE_SEGMENT, workspace);
    key_u64(k, n);
}

static void remove_segments(struct store_txn *t, uint64_t workspace, uint32_t count,
                            struct byte_reader *c)
{
    for (uint32_t i = 0; i < count && t->error == STORE_OK; i++) {
        const void *number = take(c, sizeof(uint64_t));
        struct key k;
        if (number == NULL)
            return;
        segment_key(&k, workspace, number);
        txn_del(t, SPACE_SEGMENT, &k);
    }
}

static void put_segments(struct store_txn *t, uint64_t workspace, uint32_t count,
                         struct byte_reader *c)
{
    for (uint32_t i = 0; i < count && t->error == STORE_OK; i++) {
        const void *number = take(c, sizeof(uint64_t));
        const uint8_t *row = c->at;
        const void *head = take(c, sizeof(struct segment_record));
        struct segment_record r = {0};
        struct key k;
        if (head == NULL)
            return;
        memcpy(&r, head, sizeof(r));
        if (r.dead != 0 && take(c, index_words(r.rows) * sizeof(uint64_t)) == NULL)
            return;
        segment_key(&k, workspace, number);
        txn_put(t, SPACE_SEGMENT, &k, row, (size_t)(c->at - row));
    }
}

/* Delete the workspace's first key of a space, if its number is below ${below}. */
static bool delete_first(struct store_txn *t, enum space space, uint64_t workspace, uint64_t below)
{
    struct cursor w = {0};
    struct key k = {.n = 0};
    uint64_t number = 0;
    key_id(&w.prefix, space, workspace);
    bool found = t->error == STORE_OK &&
                 cursor_prefix(t->s, t->mdb, &w, DB_LIST, false) == STORE_OK &&
                 (below == UINT64_MAX || (cursor_u64(&w, 1, &number) && number < below));
    if (found)
        key_bytes(&k, w.k.mv_data, w.k.mv_size);
    cursor_end(&w);
    if (found)
        txn_del(t, space, &k);
    return found;
}

static void delete_all(struct store_txn *t, enum space space, uint64_t workspace)
{
    while (delete_first(t, space, workspace, UINT64_MAX))
        continue;
}

static void put_base(struct store_txn *t, uint64_t workspace, uint32_t count, struct byte_reader *c)
{
    delete_all(t, SPACE_BASE, workspace);
    for (uint32_t i = 0; i < count && t->error == STORE_OK; i++) {
        const void *length = take(c, sizeof(uint32_t));
        uint32_t n = 0;
        struct key k;
        if (length != NULL)
            memcpy(&n, length, sizeof(n));
        const void *piece = take(c, n);
        if (piece == NULL)
            return;
        key_id(&k, SPACE_BASE, workspace);
        key_u64(&k, i);
        txn_put(t, SPACE_BASE, &k, piece, n);
    }
}

/* Also for a workspace that is being deleted: its reports are found by the index. */
static bool workspace_exists(struct store_txn *t, uint64_t workspace)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_WORKSPACE, workspace);
    return txn_get(t, SPACE_WORKSPACE, &k, &v) == STORE_OK;
}

enum store_status index_install(struct store_txn *t, const struct store_change *c,
                                struct store_answer *answer)
{
    struct byte_reader at = {(const uint8_t *)c->data.p, (const uint8_t *)c->data.p + c->data.n,
                             false};
    struct index_record record;
    struct index_install head;
    const void *p = take(&at, sizeof(head));
    if (p == NULL)
        return STORE_INVALID;
    memcpy(&head, p, sizeof(head));
    enum store_status status = index_read(t->s, t->mdb, c->workspace, &record);
    if (status != STORE_OK)
        return txn_fail(t, 0, "the manifest of an index of reports");
    if (record.version != head.version || !workspace_exists(t, c->workspace))
        return STORE_STALE;
    if (!txn_results_fit(t, c->data.n))
        return STORE_FULL;
    answer->id = record.state == INDEX_REBUILDING ? head.rows : 0;
    remove_segments(t, c->workspace, head.removed, &at);
    put_segments(t, c->workspace, head.put, &at);
    put_base(t, c->workspace, head.pieces, &at);
    record = (struct index_record){.state = INDEX_READY,
                                   .version = record.version + 1,
                                   .log_from = head.log_from,
                                   .base = head.base,
                                   .rows = head.rows};
    index_record_put(t, c->workspace, &record);
    answer->version = record.version;
    if (at.bad || at.at != at.end)
        return txn_fail(t, 0, "what a merge made");
    return STORE_OK;
}

/* ---- loss and deletion ---- */

/* The manifest becomes empty, past the end of the log. */
static bool begin_anew(struct store_txn *t, uint64_t workspace, struct index_record *record)
{
    index_write(t);
    enum store_status status = index_read(t->s, t->mdb, workspace, record);
    uint64_t next = 0;
    struct log_head head = {0};
    if (status == STORE_OK)
        status = index_log(t->s, t->mdb, workspace, record, &next, &head);
    if (status != STORE_OK) {
        txn_fail(t, 0, "the manifest of an index of reports");
        return false;
    }
    delete_all(t, SPACE_SEGMENT, workspace);
    delete_all(t, SPACE_BASE, workspace);
    record->version++;
    record->log_from = next;
    record->base = head;
    record->rows = 0;
    index_record_put(t, workspace, record);
    return true;
}

/* Reports up to now are built from their heads; later changes are in the log. */
enum store_status index_lost(struct store_txn *t, const struct store_change *c,
                             struct store_answer *answer)
{
    struct index_record record;
    struct key k;
    MDB_val v;
    (void)answer;
    segment_key(&k, c->workspace, &c->id);
    enum store_status status = c->id == 0 ? STORE_OK : txn_get(t, SPACE_SEGMENT, &k, &v);
    if (status != STORE_OK)
        return status == STORE_NOT_FOUND ? STORE_STALE : status;
    if (!begin_anew(t, c->workspace, &record))
        return t->error;
    record.state = INDEX_REBUILDING;
    record.rebuild_to = t->counters.report;
    index_record_put(t, c->workspace, &record);
    index_mark_due(t, c->workspace);
    return STORE_OK;
}

void index_empty(struct store_txn *t, uint64_t workspace, uint64_t *left)
{
    static const enum space spaces[] = {SPACE_LOG, SPACE_INDEX_DUE, SPACE_INDEX};
    struct index_record record;
    struct log_head head;
    uint64_t next;
    index_write(t);
    if (*left == 0 || t->error != STORE_OK)
        return;
    if (index_read(t->s, t->mdb, workspace, &record) == STORE_OK && record.version == 0 &&
        index_log(t->s, t->mdb, workspace, &record, &next, &head) == STORE_OK &&
        next == record.log_from)
        return; /* it has none */
    if (!begin_anew(t, workspace, &record))
        return;
    for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++)
        while (*left > 0 && delete_first(t, spaces[i], workspace, UINT64_MAX))
            txn_spend(t, left);
}

/* ---- the merged part of the log ---- */

/* A workspace whose log is deleted and not due again needs no further check. */
enum store_status index_sweep(struct store_txn *t, const struct store_change *c,
                              struct store_answer *answer)
{
    struct index_record record;
    struct log_head head;
    struct key k;
    uint64_t next, left = txn_batch_limit(t, c->limit == 0 ? UINT64_MAX : c->limit);
    index_write(t);
    enum store_status status = index_read(t->s, t->mdb, c->workspace, &record);
    if (status == STORE_OK)
        status = index_log(t->s, t->mdb, c->workspace, &record, &next, &head);
    if (status != STORE_OK)
        return txn_fail(t, 0, "the manifest of an index of reports");
    while (left > 0 && delete_first(t, SPACE_LOG, c->workspace, record.log_from))
        txn_spend(t, &left);
    answer->id = t->spent;
    key_id(&k, SPACE_INDEX_DUE, c->workspace);
    if (t->spent == 0 && !index_due(t->s, &record, &head))
        txn_drop(t, SPACE_INDEX_DUE, &k);
    return STORE_OK;
}
