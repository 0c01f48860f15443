#include "store/records/rows_derived.h"

#include "store/engine/derived.h"
#include "store/engine/errors.h"
#include "store/records/answers_log.h"
#include "store/records/document.h"

#include <errno.h>

/* ---- derived rows ---- */

/* A derived row in a buffer, followed by key and value. Without padding: buffers are compared. */
struct derived_head {
    uint64_t space, key_n, n;
};

static void add_derived(void *arg, enum space space, struct key *key, const void *value, size_t n)
{
    const struct derived_head h = {space, key->n, n};
    buf_add(arg, &h, sizeof(h));
    buf_add(arg, key->b, key->n);
    buf_add(arg, value, n);
}

static bool derive(const struct row_change *c, const MDB_val *value, struct buf *out)
{
    const struct derived_sink sink = {add_derived, out};
    buf_reset(out);
    if (value == NULL || !derived_has_rows(c->space))
        return true;
    const struct cursor at = {.k = key_val(c->key), .v = *value};
    return derived_rows_of[c->space](&at, &sink);
}

typedef void derived_row_fn(struct store_txn *t, enum space space, struct key *key, MDB_val value);

static void each_derived(struct store_txn *t, const struct buf *rows, derived_row_fn *each)
{
    struct derived_head h;
    struct key key;
    if (!buf_ok(rows))
        txn_fail(t, ENOMEM, "derive rows");
    for (size_t at = 0; at < rows->n && t->error == STORE_OK; at += h.key_n + h.n) {
        memcpy(&h, rows->p + at, sizeof(h));
        at += sizeof(h);
        key.n = 0;
        key_bytes(&key, rows->p + at, h.key_n);
        each(t, (enum space)h.space, &key, (MDB_val){h.n, rows->p + at + h.key_n});
    }
}

/* A record can name the same row twice. */
static void drop_derived(struct store_txn *t, enum space space, struct key *key, MDB_val value)
{
    (void)value;
    txn_drop(t, space, key);
}

static void put_derived(struct store_txn *t, enum space space, struct key *key, MDB_val value)
{
    MDB_val now;
    enum store_status status = txn_get(t, space, key, &now);
    bool same = status == STORE_OK && now.mv_size == value.mv_size &&
                memcmp(now.mv_data, value.mv_data, value.mv_size) == 0;
    if (!same)
        txn_put(t, space, key, value.mv_data, value.mv_size);
}

void rows_derived_drop(struct store_txn *t, struct row_change *c)
{
    if (!derived_has_rows(c->space))
        return;
    if (!derive(c, c->old, &c->before) || !derive(c, c->new, &c->after))
        txn_fail(t, 0, "a record with derived rows");
    else if (!str_eq(buf_view(&c->before), buf_view(&c->after)))
        each_derived(t, &c->before, drop_derived);
}

void rows_derived_put(struct store_txn *t, struct row_change *c)
{
    if (!derive(c, c->new, &c->after))
        txn_fail(t, 0, "a record with derived rows");
    else
        each_derived(t, &c->after, put_derived);
}

/* ---- what can be applied ---- */

/* The number after the tag of the key. */
static bool is_numbered(const struct row_change *c, uint64_t id)
{
    struct key expected;
    key_id(&expected, c->space, id);
    return expected.n == c->key->n && memcmp(expected.b, c->key->b, expected.n) == 0;
}

static bool is_report(const struct row_change *c)
{
    struct store_report r;
    return schema_read_report(*c->new, &r) && is_numbered(c, r.id);
}

static bool is_document(const struct row_change *c)
{
    struct store_synced d;
    return schema_read_document(*c->new, &d) && is_numbered(c, d.id);
}

static bool is_workspace(const struct row_change *c)
{
    struct store_workspace w;
    return schema_read_workspace(*c->new, &w) && is_numbered(c, w.id);
}

static bool is_project(const struct row_change *c)
{
    struct store_project p;
    return schema_read_project(*c->new, &p) && is_numbered(c, p.id);
}

static bool is_last_change(const struct row_change *c)
{
    uint64_t last;
    return c->key->n == 1 + ULID_BYTES && schema_read_answers(*c->new, &last);
}

static bool is_job(const struct row_change *c)
{
    return c->new->mv_size == sizeof(struct job_record);
}

/* Records that rows_follow reads. */
static bool (*const is_well_formed[SPACE_COUNT])(const struct row_change *c) = {
    [SPACE_REPORT] = is_report,   [SPACE_DOCUMENT] = is_document,
    [SPACE_JOB] = is_job,         [SPACE_WORKSPACE] = is_workspace,
    [SPACE_PROJECT] = is_project, [SPACE_ANSWERS] = is_last_change,
};

bool rows_well_formed(struct row_change *c)
{
    if (c->new == NULL)
        return true;
    return (is_well_formed[c->space] == NULL || is_well_formed[c->space](c)) &&
           derive(c, c->new, &c->after);
}
