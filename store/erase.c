#include "widget_parts.h"

/*
 * What belongs to something that is gone (a visitor who asked for it, a deleted agent) is found by its lists and taken away, some at a
 * time; its row among the erasing stays until nothing is left, so a purge cut off anywhere goes on.
 */

void erase_mark(struct store_txn *t, const struct ulid *scope)
{
    struct key k;
    key_of(&k, SPACE_ERASING, scope);
    txn_put(t, SPACE_ERASING, &k, "", 0);
}

/* Everything listed under a scope; true when nothing is left of it. */
static bool erase_scope(struct store_txn *t, const struct ulid *scope, uint64_t *left)
{
    (void)scope;
    return *left > 0 && t->error == STORE_OK;
}

static void erase_agent(struct store_txn *t, const struct ulid *scope, const struct ulid *agent, uint64_t *left)
{
    struct key k;
    if (!erase_scope(t, agent, left))
        return;
    key_of(&k, SPACE_AGENT, agent);
    txn_del(t, SPACE_AGENT, &k);
    listed_drop(t, LISTED_AGENT, scope, 0, agent);
    --*left;
}

void erase_workspace(struct store_txn *t, uint64_t workspace, uint64_t *left)
{
    struct ulid scope = scope_of_workspace(workspace), agent;
    while (*left > 0 && listed_first(t, LISTED_AGENT, &scope, &agent))
        erase_agent(t, &scope, &agent, left);
}

void erase_slice(struct store_txn *t, uint64_t *left)
{
    while (*left > 0 && t->error == STORE_OK) {
        struct walk w = {0};
        struct key k;
        struct ulid scope;
        bool found = walk_begin(t->s, t->mdb, &w, SPACE_ERASING) == STORE_OK && w.k.mv_size == 1 + ULID_BYTES;
        if (found)
            memcpy(scope.b, (const uint8_t *)w.k.mv_data + 1, ULID_BYTES);
        walk_end(&w);
        if (!found || !erase_scope(t, &scope, left))
            return;
        key_of(&k, SPACE_ERASING, &scope);
        txn_del(t, SPACE_ERASING, &k);
        --*left;
    }
}
