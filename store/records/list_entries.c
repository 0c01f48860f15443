#include "store/records/list_entries.h"

#include "store/engine/cursor.h"
#include "store/engine/txn.h"
#include "store/records/ulid_keys.h"

struct ulid scope_of_workspace(uint64_t workspace)
{
    return ulid_of_halves(0, workspace);
}

void list_entry_prefix(struct key *k, enum list_entry_kind kind, const struct ulid *scope,
                       unsigned class)
{
    const uint8_t parts[2] = {(uint8_t)kind, (uint8_t) class};
    key_space(k, SPACE_LIST_ENTRY);
    key_bytes(k, &parts[0], 1);
    key_ulid(k, scope);
    key_bytes(k, &parts[1], 1);
}

void list_entry_put(struct store_txn *t, enum list_entry_kind kind, const struct ulid *scope,
                    unsigned class, const struct ulid *id)
{
    struct key k;
    list_entry_prefix(&k, kind, scope, class);
    key_ulid(&k, id);
    txn_put(t, SPACE_LIST_ENTRY, &k, "", 0);
}

void list_entry_drop(struct store_txn *t, enum list_entry_kind kind, const struct ulid *scope,
                     unsigned class, const struct ulid *id)
{
    struct key k;
    list_entry_prefix(&k, kind, scope, class);
    key_ulid(&k, id);
    txn_del(t, SPACE_LIST_ENTRY, &k);
}

bool list_entry_id(const struct cursor *w, struct ulid *out)
{
    if (w->k.mv_size != 3 + 2 * ULID_BYTES)
        return false;
    memcpy(out->b, (const uint8_t *)w->k.mv_data + 3 + ULID_BYTES, ULID_BYTES);
    return true;
}

bool list_entry_first(struct store_txn *t, enum list_entry_kind kind, const struct ulid *scope,
                      struct ulid *out)
{
    struct cursor w = {0};
    list_entry_prefix(&w.prefix, kind, scope, 0);
    bool found = t->error == STORE_OK &&
                 cursor_prefix(t->s, t->mdb, &w, DB_WIDGET, false) == STORE_OK &&
                 list_entry_id(&w, out);
    cursor_end(&w);
    return found;
}

void event_ulid(struct store_txn *t, enum store_event_kind kind, uint64_t workspace,
                const struct ulid *u)
{
    uint64_t high, low;
    ulid_halves(u, &high, &low);
    txn_event(t, kind, workspace, high, low);
}

void list_entry_everywhere(struct store_txn *t, bool put, enum list_entry_kind kind,
                           uint64_t workspace, const struct ulid *agent, const struct ulid *visitor,
                           const struct ulid *id)
{
    const struct ulid scopes[] = {scope_of_workspace(workspace), *agent, *visitor};
    for (size_t i = 0; i < 3; i++)
        if (put)
            list_entry_put(t, kind, &scopes[i], 0, id);
        else
            list_entry_drop(t, kind, &scopes[i], 0, id);
}
