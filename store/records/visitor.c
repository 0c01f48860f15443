#include "store/records/visitor.h"

#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/list_entries.h"
#include "store/records/ulid_keys.h"

#define HASH_BYTES 32

bool schema_read_visitor(MDB_val value, const struct visitor_record **out)
{
    *out = value.mv_data;
    return value.mv_size >= sizeof(**out) && value.mv_size == sizeof(**out) + (*out)->about_n;
}

void visitor_secret_key(struct key *k, const struct ulid *agent, const void *hash)
{
    key_of(k, SPACE_VISITOR_SECRET, agent);
    key_bytes(k, hash, HASH_BYTES);
}

/* ---- reading ---- */

bool visitor_there(struct store *s, MDB_txn *txn, const struct ulid *id)
{
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_VISITOR, id);
    return store_get(s, txn, SPACE_VISITOR, &k, &v) == STORE_OK;
}

/* ---- changing ---- */

void visitor_write(struct store_txn *t, const struct visitor_record *v, struct str about)
{
    struct key k;
    key_of(&k, SPACE_VISITOR, &v->id);
    char *to = txn_reserve(t, SPACE_VISITOR, &k, sizeof(*v) + about.n);
    if (to == NULL)
        return;
    to = append_str(to, (struct str){(const char *)v, sizeof(*v)});
    append_str(to, about);
}

bool visitor_load(struct store_txn *t, const struct ulid *id, struct visitor_record *out)
{
    struct key k;
    MDB_val v;
    const struct visitor_record *r;
    key_of(&k, SPACE_VISITOR, id);
    if (txn_get(t, SPACE_VISITOR, &k, &v) != STORE_OK)
        return false;
    if (!schema_read_visitor(v, &r)) {
        txn_fail(t, 0, "a visitor's record");
        return false;
    }
    *out = *r;
    buf_reset(&t->copy);
    buf_add(&t->copy, r + 1, r->about_n);
    return true;
}

void visitor_mark_lead(struct store_txn *t, const struct ulid *id)
{
    struct visitor_record v;
    if (!visitor_load(t, id, &v) || v.lead)
        return;
    v.lead = 1;
    visitor_write(t, &v, buf_view(&t->copy));
}

void visitor_remove(struct store_txn *t, const struct ulid *id)
{
    struct visitor_record v;
    struct key k;
    if (!visitor_load(t, id, &v))
        return;
    struct ulid agent = v.agent;
    visitor_secret_key(&k, &agent, v.secret);
    txn_del(t, SPACE_VISITOR_SECRET, &k);
    key_of(&k, SPACE_VISITOR, id);
    txn_del(t, SPACE_VISITOR, &k);
    list_entry_drop(t, LIST_ENTRY_VISITOR, &agent, 0, id);
}
