#include "store/records/list_entries.h"

#include "store/engine/cursor.h"
#include "store/engine/txn.h"
#include "store/records/ulid_keys.h"

struct ulid scope_of_workspace(uint64_t workspace)
{
    return ulid_of_halves(0, workspace);
}

void listed_prefix(struct key *k, enum listed_kind kind, const struct ulid *scope, unsigned class)
{
    const uint8_t parts[2] = {(uint8_t)kind, (uint8_t) class};
    key_space(k, SPACE_LISTED);
    key_bytes(k, &parts[0], 1);
    key_ulid(k, scope);
    key_bytes(k, &parts[1], 1);
}

void listed_put(struct store_txn *t, enum listed_kind kind, const struct ulid *scope,
                unsigned class, const struct ulid *id)
{
    struct key k;
    listed_prefix(&k, kind, scope, class);
    key_ulid(&k, id);
    txn_put(t, SPACE_LISTED, &k, "", 0);
}

void listed_drop(struct store_txn *t, enum listed_kind kind, const struct ulid *scope,
                 unsigned class, const struct ulid *id)
{
    struct key k;
    listed_prefix(&k, kind, scope, class);
    key_ulid(&k, id);
    txn_del(t, SPACE_LISTED, &k);
}

bool listed_id(const struct walk *w, struct ulid *out)
{
    if (w->k.mv_size != 3 + 2 * ULID_BYTES)
        return false;
    memcpy(out->b, (const uint8_t *)w->k.mv_data + 3 + ULID_BYTES, ULID_BYTES);
    return true;
}

bool listed_first(struct store_txn *t, enum listed_kind kind, const struct ulid *scope,
                  struct ulid *out)
{
    struct walk w = {0};
    listed_prefix(&w.prefix, kind, scope, 0);
    bool found = t->error == STORE_OK &&
                 walk_prefix(t->s, t->mdb, &w, DB_WIDGET, false) == STORE_OK && listed_id(&w, out);
    walk_end(&w);
    return found;
}

void event_ulid(struct store_txn *t, enum store_event_kind kind, uint64_t workspace,
                const struct ulid *u)
{
    uint64_t high, low;
    ulid_halves(u, &high, &low);
    txn_event(t, kind, workspace, high, low);
}
