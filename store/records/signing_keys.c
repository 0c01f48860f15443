#include "store/records/signing_keys.h"

#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/apply.h"

static void signing_keys_key(struct key *k)
{
    key_meta(k, 's');
}

bool signing_keys_are(const struct key *k)
{
    struct key own;
    signing_keys_key(&own);
    return k->n == own.n && memcmp(k->b, own.b, own.n) == 0;
}

enum store_status signing_keys_put(struct store_txn *t, const struct store_change *c,
                                   struct store_answer *answer)
{
    struct key k;
    MDB_val v;
    (void)answer;
    if (c->data.n == 0 || c->data.n > SIGNING_KEYS_BYTES)
        return STORE_INVALID;
    signing_keys_key(&k);
    enum store_status status = txn_get(t, SPACE_META, &k, &v);
    if (status != STORE_OK && status != STORE_NOT_FOUND)
        return status;
    struct str before = {0};
    if (status == STORE_OK)
        before = (struct str){v.mv_data, v.mv_size};
    if (!str_eq(before, c->text))
        return STORE_STALE;
    txn_put(t, SPACE_META, &k, c->data.p, c->data.n);
    txn_event(t, EVENT_SIGNING_KEYS, 0, 0, 0);
    return STORE_OK;
}

enum store_status store_signing_keys(struct store *s, struct str *out)
{
    struct key k;
    MDB_val v;
    MDB_txn *txn;
    enum store_status status = store_snapshot(s, &txn);
    signing_keys_key(&k);
    if (status == STORE_OK)
        status = store_get(s, txn, SPACE_META, &k, &v);
    if (status == STORE_OK)
        *out = (struct str){v.mv_data, v.mv_size};
    return status;
}
