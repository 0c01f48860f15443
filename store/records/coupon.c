#include "store/records/coupon.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/agent.h"
#include "store/records/apply.h"
#include "store/records/collection.h"
#include "store/records/idempotency.h"
#include "store/records/sync_rows.h"
#include "store/records/ulid_keys.h"

#include <errno.h>

/* Coupons of an agent, by code. A sync replaces all of them. */

/* Type of a row without content: the coupon of that code does not change. */
#define SEEN_ONLY UINT8_MAX

static struct str trimmed(struct str code)
{
    while (code.n > 0 && (code.p[0] == ' ' || code.p[0] == '\t'))
        code = (struct str){code.p + 1, code.n - 1};
    while (code.n > 0 && (code.p[code.n - 1] == ' ' || code.p[code.n - 1] == '\t'))
        code.n--;
    return code;
}

void coupon_key(struct key *k, const struct ulid *agent, struct str code)
{
    key_of(k, SPACE_COUPON, agent);
    code = trimmed(code);
    for (size_t i = 0; i < code.n && i < STORE_COUPON_CODE_MAX; i++) {
        const char c = code.p[i] >= 'A' && code.p[i] <= 'Z' ? (char)(code.p[i] | 0x20) : code.p[i];
        key_bytes(k, &c, 1);
    }
}

bool schema_read_coupon(MDB_val value, struct store_coupon *out)
{
    const struct coupon_record *r = value.mv_data;
    if (value.mv_size < sizeof(*r) || (r->type > COUPON_FIXED_PRODUCT && r->type != SEEN_ONLY))
        return false;
    const size_t products_n = r->products_n * sizeof(uint64_t),
                 excluded_n = r->excluded_n * sizeof(uint64_t);
    if (value.mv_size != sizeof(*r) + r->code_n + r->label_n + products_n + excluded_n)
        return false;
    const char *p = (const char *)(r + 1);
    *out = (struct store_coupon){
        .agent = r->agent,
        .type = (enum coupon_type)r->type,
        .amount = r->amount,
        .minimum = r->minimum,
        .maximum = r->maximum,
        .exclude_sale_items = r->exclude_sale_items != 0,
        .usage_limit = r->usage_limit,
        .usage_count = r->usage_count,
        .expires_at = r->expires_at,
        .code = {p, r->code_n},
        .label = {p + r->code_n, r->label_n},
        .products = {p + r->code_n + r->label_n, products_n},
        .excluded = {p + r->code_n + r->label_n + products_n, excluded_n},
    };
    return true;
}

/* ---- reading ---- */

void store_coupon_get(struct store *s, const struct ulid *agent, struct str code,
                      store_coupon_fn *done, void *arg)
{
    MDB_txn *txn;
    struct key k;
    MDB_val v;
    struct store_agent a;
    struct store_coupon coupon;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = agent_read(s, txn, agent, &a);
    code = trimmed(code);
    if (status == STORE_OK && (code.n == 0 || code.n > STORE_COUPON_CODE_MAX))
        status = STORE_NOT_FOUND;
    coupon_key(&k, agent, code);
    if (status == STORE_OK)
        status = store_get(s, txn, SPACE_COUPON, &k, &v);
    if (status == STORE_OK && !schema_read_coupon(v, &coupon))
        status = store_corrupt(s, "a coupon's record");
    done(arg, status, status == STORE_OK ? &coupon : NULL);
}

void store_coupon_each(struct store *s, const struct ulid *agent, store_coupon_fn *each, void *arg)
{
    MDB_txn *txn;
    struct cursor w = {0};
    struct store_agent a;
    struct store_coupon coupon;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = agent_read(s, txn, agent, &a);
    key_of(&w.prefix, SPACE_COUPON, agent);
    if (status == STORE_OK)
        status = cursor_prefix(s, txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        if (!schema_read_coupon(w.v, &coupon)) {
            status = store_corrupt(s, "a coupon's record");
            break;
        }
        each(arg, STORE_OK, &coupon);
    }
    cursor_end(&w);
    each(arg, status, NULL);
}

/* ---- rows of a change: a length, then the record without an owner ---- */

static void row_pack(struct buf *out, const struct coupon_record *r, struct str code,
                     const struct store_coupon *c)
{
    uint32_t n = (uint32_t)(sizeof(*r) + code.n +
                            (c == NULL ? 0 : c->label.n + c->products.n + c->excluded.n));
    buf_add(out, &n, sizeof(n));
    buf_add(out, r, sizeof(*r));
    buf_str(out, code);
    if (c == NULL)
        return;
    buf_str(out, c->label);
    buf_str(out, c->products);
    buf_str(out, c->excluded);
}

void coupon_pack(struct buf *out, const struct store_coupon *c)
{
    struct str code = trimmed(c->code);
    const struct coupon_record r = {
        .type = (uint8_t)c->type,
        .exclude_sale_items = c->exclude_sale_items,
        .amount = c->amount,
        .minimum = c->minimum,
        .maximum = c->maximum,
        .expires_at = c->expires_at,
        .usage_limit = c->usage_limit,
        .usage_count = c->usage_count,
        .code_n = (uint16_t)code.n,
        .label_n = (uint16_t)c->label.n,
        .products_n = (uint16_t)coupon_products(c->products),
        .excluded_n = (uint16_t)coupon_products(c->excluded),
    };
    row_pack(out, &r, code, c);
}

void coupon_pack_seen(struct buf *out, struct str code)
{
    code = trimmed(code);
    const struct coupon_record r = {.type = SEEN_ONLY, .code_n = (uint16_t)code.n};
    row_pack(out, &r, code, NULL);
}

static bool row_next(struct str *rest, MDB_val *bytes, struct store_coupon *out)
{
    uint32_t n;
    if (rest->n < sizeof(n))
        return false;
    memcpy(&n, rest->p, sizeof(n));
    if (n > rest->n - sizeof(n))
        return false;
    *bytes = (MDB_val){n, (void *)(uintptr_t)(rest->p + sizeof(n))};
    if (!schema_read_coupon(*bytes, out) || out->code.n == 0 ||
        out->code.n > STORE_COUPON_CODE_MAX || out->label.n > STORE_SYNCED_SHORT_MAX ||
        coupon_products(out->products) > STORE_COUPON_LIST_MAX ||
        coupon_products(out->excluded) > STORE_COUPON_LIST_MAX)
        return false;
    *rest = (struct str){rest->p + sizeof(n) + n, rest->n - sizeof(n) - n};
    return true;
}

static bool well_formed(const struct store_change *c)
{
    MDB_val bytes;
    struct store_coupon coupon;
    struct str rows = c->data;
    size_t count = 0;
    while (row_next(&rows, &bytes, &coupon))
        count++;
    return rows.n == 0 && count <= STORE_BATCH_MAX && c->text.n <= SYNC_ID_MAX &&
           (c->idem_key.n == 0 || (c->idem_key.n == 32 && c->idem_body.n == 32));
}

/* ---- changing ---- */

/* Equal except for the owner. */
static bool same(MDB_val stored, MDB_val sent, const struct ulid *agent)
{
    const struct coupon_record *r = stored.mv_data;
    const size_t from = offsetof(struct coupon_record, amount);
    const struct coupon_record *new = sent.mv_data;
    return stored.mv_size == sent.mv_size && r->type == new->type &&
           r->exclude_sale_items ==
               new->exclude_sale_items &&memcmp(&r->agent, agent, sizeof(*agent)) == 0 &&
           memcmp((const char *)stored.mv_data + from, (const char *)sent.mv_data + from,
                  sent.mv_size - from) == 0;
}

/* ${count}: existing coupons. */
static enum synced_mark coupon_put(struct store_txn *t, const struct store_change *c, MDB_val sent,
                                   const struct store_coupon *coupon, uint64_t *count)
{
    struct key k;
    MDB_val v;
    coupon_key(&k, &c->agent, coupon->code);
    enum store_status status = txn_get(t, SPACE_COUPON, &k, &v);
    if (coupon->type == SEEN_ONLY)
        return SYNCED_FAILED;
    if (status == STORE_OK && same(v, sent, &c->agent))
        return SYNCED_UNCHANGED;
    *count += status == STORE_NOT_FOUND;
    struct coupon_record *r = txn_reserve(t, SPACE_COUPON, &k, sent.mv_size);
    if (r != NULL) {
        memcpy(r, sent.mv_data, sent.mv_size);
        r->agent = c->agent;
    }
    return SYNCED_QUEUED;
}

static bool sent_again(const struct store_change *c, const struct key *key)
{
    struct str rows = c->data;
    MDB_val bytes;
    struct store_coupon coupon;
    struct key k;
    while (row_next(&rows, &bytes, &coupon)) {
        coupon_key(&k, &c->agent, coupon.code);
        if (k.n == key->n && memcmp(k.b, key->b, k.n) == 0)
            return true;
    }
    return false;
}

/* The agent's first coupon above ${after} that was not sent. */
static bool next_left_out(struct store_txn *t, const struct store_change *c, struct key *after)
{
    struct cursor w = {0};
    bool found = false;
    key_of(&w.prefix, SPACE_COUPON, &c->agent);
    enum store_status status = cursor_from(t->s, t->mdb, &w, DB_WIDGET, after);
    for (; status == STORE_OK && !found; status = found ? status : cursor_next(&w)) {
        after->n = 0;
        key_bytes(after, w.k.mv_data, w.k.mv_size);
        found = !sent_again(c, after);
    }
    cursor_end(&w);
    return found;
}

static uint64_t drop_left_out(struct store_txn *t, const struct store_change *c)
{
    struct key k;
    uint64_t dropped = 0;
    key_of(&k, SPACE_COUPON, &c->agent);
    while (t->error == STORE_OK && next_left_out(t, c, &k)) {
        txn_del(t, SPACE_COUPON, &k);
        dropped++;
    }
    return dropped;
}

static void replace(struct open_collection *o, const struct store_change *c,
                    struct store_answer *answer)
{
    struct store_txn *t = o->t;
    struct str rows = c->data;
    MDB_val sent;
    struct store_coupon coupon;
    answer->id = drop_left_out(t, c);
    o->record.count -= answer->id;
    for (size_t i = 0; t->error == STORE_OK && row_next(&rows, &sent, &coupon); i++) {
        uint64_t count = o->record.count;
        synced_mark_set(answer, i, coupon_put(t, c, sent, &coupon, &count));
        o->record.count = count;
    }
    o->record.complete = ++o->record.generations;
    o->record.completed_at = t->now;
    o->sync_id = c->text;
    answer->version = o->record.generations;
    answer->code = c->code;
}

enum store_status coupons_put(struct store_txn *t, const struct store_change *c,
                              struct store_answer *answer)
{
    struct open_collection o;
    if (!well_formed(c))
        return STORE_INVALID;
    enum store_status status = agent_of_workspace(t, c);
    if (status == STORE_OK)
        status = idempotency_look_sync(t, c, answer);
    if (status != STORE_NOT_FOUND || answer->replayed)
        return status;
    if (c->data.n != 0 && txn_is_full(t))
        return STORE_FULL;
    if (!collection_open(&o, t, &c->agent, SYNCED_COUPON, (struct str){NULL, 0}) ||
        !collection_begin(&o))
        return t->error;
    replace(&o, c, answer);
    collection_close(&o);
    idempotency_put_sync(t, c, answer);
    return STORE_OK;
}
