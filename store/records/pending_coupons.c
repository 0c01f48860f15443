#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/apply.h"
#include "store/records/conversation.h"
#include "store/records/coupon.h"
#include "store/records/ulid_keys.h"

#include <errno.h>

/*
 * Pending coupons: codes that a visitor has chosen for the shop's cart. One record per
 * conversation, oldest first. Expired ones are skipped by readers and dropped by the next write.
 * The record is deleted with the conversation.
 */

#define STAGED_MAX 20 /* of a conversation */

struct PACKED pending_row {
    int64_t until;
    uint16_t code_n;
};

static bool row_next(struct str *rest, struct store_pending_coupon *out)
{
    struct pending_row row;
    if (rest->n < sizeof(row))
        return false;
    memcpy(&row, rest->p, sizeof(row));
    if (row.code_n == 0 || row.code_n > rest->n - sizeof(row))
        return false;
    *out = (struct store_pending_coupon){.until = row.until,
                                         .code = {rest->p + sizeof(row), row.code_n}};
    *rest = (struct str){rest->p + sizeof(row) + row.code_n, rest->n - sizeof(row) - row.code_n};
    return true;
}

bool pending_coupons_well_formed(MDB_val value)
{
    struct str rest = {value.mv_data, value.mv_size};
    struct store_pending_coupon row;
    unsigned count = 0;
    while (row_next(&rest, &row))
        count++;
    return rest.n == 0 && count > 0 && count <= STAGED_MAX;
}

void store_pending_coupon_each(struct store *s, const struct ulid *conversation, int64_t now_ms,
                               store_pending_coupon_fn *each, void *arg)
{
    MDB_txn *txn;
    struct key k;
    MDB_val v;
    struct store_pending_coupon row;
    struct str rest = {NULL, 0};
    enum store_status status = store_snapshot(s, &txn);
    key_of(&k, SPACE_PENDING_COUPONS, conversation);
    if (status == STORE_OK)
        status = store_get(s, txn, SPACE_PENDING_COUPONS, &k, &v);
    if (status == STORE_OK && !pending_coupons_well_formed(v))
        status = store_corrupt(s, "the row with the pending coupons of a conversation");
    if (status == STORE_OK)
        rest = (struct str){v.mv_data, v.mv_size};
    while (row_next(&rest, &row))
        if (row.until > now_ms)
            each(arg, STORE_OK, &row);
    each(arg, status == STORE_OK ? STORE_NOT_FOUND : status, NULL);
}

static void row_put(struct buf *out, struct str code, int64_t until)
{
    const struct pending_row row = {until, (uint16_t)code.n};
    buf_add(out, &row, sizeof(row));
    buf_str(out, code);
}

/* What remains of ${old} besides ${code}: other codes that have not expired, the latest ones. */
static void keep_others(struct buf *out, MDB_val old, const struct ulid *agent, struct str code,
                        int64_t now)
{
    struct key own, other;
    struct store_pending_coupon row;
    unsigned others = 0, passed = 0;
    coupon_key(&own, agent, code);
    for (int pass = 0; pass < 2; pass++) {
        for (struct str rest = {old.mv_data, old.mv_size}; row_next(&rest, &row);) {
            coupon_key(&other, agent, row.code);
            if (row.until <= now || (own.n == other.n && memcmp(own.b, other.b, own.n) == 0))
                continue;
            if (pass == 0)
                others++;
            else if (++passed + STAGED_MAX > others + 1)
                row_put(out, row.code, row.until);
        }
    }
}

enum store_status pending_coupon_add(struct store_txn *t, const struct store_change *c,
                                     struct store_answer *answer)
{
    struct store_conversation v;
    struct key k;
    MDB_val old;
    struct buf rows = {0};
    if (c->workspace != 0 || c->text.n == 0 || c->text.n > STORE_COUPON_CODE_MAX)
        return STORE_INVALID;
    enum store_status status = conversation_open(t, c, &v);
    if (status == STORE_OK && txn_is_full(t))
        status = STORE_FULL;
    if (status != STORE_OK)
        return status;
    key_of(&k, SPACE_PENDING_COUPONS, &v.id);
    if (txn_get(t, SPACE_PENDING_COUPONS, &k, &old) == STORE_OK)
        keep_others(&rows, old, &c->agent, c->text, t->now);
    row_put(&rows, c->text, c->expires_at);
    if (buf_ok(&rows))
        txn_put(t, SPACE_PENDING_COUPONS, &k, rows.p, rows.n);
    else
        txn_fail(t, ENOMEM, "hold a record");
    buf_free(&rows);
    answer->first = v.id;
    return STORE_OK;
}
