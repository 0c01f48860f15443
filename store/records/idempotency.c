#include "store/records/idempotency.h"

#include "store/engine/cursor.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/report.h"

#define HASH_BYTES 32
#define KEPT_MS ((int64_t)24 * 60 * 60 * 1000)

static void row_key(struct key *k, const void *hash)
{
    key_space(k, SPACE_IDEM);
    key_bytes(k, hash, HASH_BYTES);
}

static void age_key(struct key *k, int64_t expires_at, const void *hash)
{
    key_id(k, SPACE_IDEM_AGE, (uint64_t)expires_at);
    key_bytes(k, hash, HASH_BYTES);
}

static enum store_status idem_load(struct store_txn *t, struct str hash, struct idem_record *out)
{
    struct key k;
    MDB_val v;
    row_key(&k, hash.p);
    enum store_status status = txn_get(t, SPACE_IDEM, &k, &v);
    if (status != STORE_OK)
        return status;
    if (v.mv_size != sizeof(*out))
        return txn_fail(t, 0, "an idempotency row");
    memcpy(out, v.mv_data, sizeof(*out));
    return STORE_OK;
}

/* The row of an earlier request with this key; STORE_NOT_FOUND: there is none. */
static enum store_status idem_find(struct store_txn *t, const struct store_change *c,
                                   struct idem_record *row)
{
    if (c->idem_key.n == 0)
        return STORE_NOT_FOUND;
    enum store_status status = idem_load(t, c->idem_key, row);
    if (status != STORE_OK)
        return status;
    if (row->expires_at <= t->now)
        return STORE_NOT_FOUND;
    return memcmp(row->body, c->idem_body.p, HASH_BYTES) != 0 ? STORE_KEY_REUSED : STORE_OK;
}

enum store_status idempotency_look(struct store_txn *t, const struct store_change *c,
                                   struct store_answer *answer)
{
    struct idem_record row;
    enum store_status status = idem_find(t, c, &row);
    if (status != STORE_OK)
        return status;
    struct store_report r;
    answer->replayed = 1;
    answer->id = row.report;
    answer->code = row.code;
    status = report_load(t, row.report, &r);
    if (status == STORE_OK && report_active(t, &r))
        answer->version = r.version;
    else if (status == STORE_OK)
        status = STORE_NOT_FOUND;
    return status;
}

void idempotency_put(struct store_txn *t, const struct store_change *c, uint64_t report)
{
    struct key k;
    struct idem_record row;
    if (c->idem_key.n == 0)
        return;
    if (idem_load(t, c->idem_key, &row) == STORE_OK) {
        age_key(&k, row.expires_at, c->idem_key.p);
        txn_del(t, SPACE_IDEM_AGE, &k);
    }
    row = (struct idem_record){.workspace = c->workspace,
                               .report = report,
                               .expires_at = t->now + KEPT_MS,
                               .code = c->code};
    memcpy(row.body, c->idem_body.p, HASH_BYTES);
    row_key(&k, c->idem_key.p);
    txn_put(t, SPACE_IDEM, &k, &row, sizeof(row));
    age_key(&k, row.expires_at, c->idem_key.p);
    txn_put(t, SPACE_IDEM_AGE, &k, "", 0);
}

/* ---- batches ---- */

static void once_key(struct key *k, const void *hash)
{
    key_space(k, SPACE_SYNC_ONCE);
    key_bytes(k, hash, HASH_BYTES);
}

enum store_status idempotency_look_sync(struct store_txn *t, const struct store_change *c,
                                        struct store_answer *answer)
{
    struct idem_record row;
    struct key k;
    MDB_val v;
    enum store_status status = idem_find(t, c, &row);
    if (status != STORE_OK)
        return status;
    once_key(&k, c->idem_key.p);
    status = txn_get(t, SPACE_SYNC_ONCE, &k, &v);
    const struct sync_once_record *once =
        status == STORE_OK ? store_record(v, sizeof(*once)) : NULL;
    if (once == NULL)
        return txn_fail(t, 0, "the answer kept for an idempotency row");
    answer->replayed = 1;
    answer->code = row.code;
    answer->id = once->id;
    answer->version = once->version;
    answer->first = once->first;
    answer->second = once->second;
    return STORE_OK;
}

void idempotency_put_sync(struct store_txn *t, const struct store_change *c,
                          const struct store_answer *answer)
{
    struct key k;
    const struct sync_once_record once = {answer->id, answer->version, answer->first,
                                          answer->second};
    if (c->idem_key.n == 0)
        return;
    idempotency_put(t, c, 0);
    once_key(&k, c->idem_key.p);
    txn_put(t, SPACE_SYNC_ONCE, &k, &once, sizeof(once));
}

/* ---- purging ---- */

/* The age key of the oldest expired row, with its hash at the end. False: there is none. */
static bool oldest_over(struct store_txn *t, struct key *out)
{
    struct cursor w = {0};
    uint64_t expires_at;
    bool over = cursor_begin(t->s, t->mdb, &w, SPACE_IDEM_AGE) == STORE_OK &&
                cursor_u64(&w, 0, &expires_at) && (int64_t)expires_at <= t->now &&
                w.k.mv_size > HASH_BYTES;
    if (over) {
        out->n = 0;
        key_bytes(out, w.k.mv_data, w.k.mv_size);
    }
    cursor_end(&w);
    return over;
}

void idempotency_purge(struct store_txn *t, uint64_t *left)
{
    struct key age, row;
    while (*left > 0 && t->error == STORE_OK && oldest_over(t, &age)) {
        row_key(&row, age.b + age.n - HASH_BYTES);
        txn_drop(t, SPACE_IDEM, &row);
        once_key(&row, age.b + age.n - HASH_BYTES);
        txn_drop(t, SPACE_SYNC_ONCE, &row);
        txn_del(t, SPACE_IDEM_AGE, &age);
        txn_spend(t, left);
    }
}
