#include "store/records/erase.h"

#include "store/engine/cursor.h"
#include "store/engine/free_space.h"
#include "store/engine/txn.h"
#include "store/records/apply.h"
#include "store/records/context.h"
#include "store/records/conversation.h"
#include "store/records/events_and_ratings.h"
#include "store/records/lead.h"
#include "store/records/list_entries.h"
#include "store/records/sync_purge.h"
#include "store/records/ulid_keys.h"
#include "store/records/visitor.h"

/*
 * Records of an erased visitor or a deleted agent, and records past their retention, are found by
 * list entries and deleted in batches. The row of a scope in SPACE_ERASING stays until nothing is
 * left, so an interrupted deletion continues.
 */

void erase_mark(struct store_txn *t, const struct ulid *scope)
{
    struct key k;
    key_of(&k, SPACE_ERASING, scope);
    txn_put(t, SPACE_ERASING, &k, "", 0);
}

/* ${scope}: the scope in whose list the record was found. */
static void remove_one(struct store_txn *t, enum list_entry_kind kind, const struct ulid *scope,
                       const struct ulid *id, uint64_t *left)
{
    switch (kind) {
    case LIST_ENTRY_CONVERSATION:
        conversation_remove(t, id, left); /* counts itself what it deletes */
        return;
    case LIST_ENTRY_LEAD:
        lead_remove(t, id, scope);
        break;
    case LIST_ENTRY_VISITOR:
        visitor_remove(t, id);
        break;
    default:
        event_remove(t, kind, id);
    }
    txn_spend(t, left);
}

bool erase_scope(struct store_txn *t, const struct ulid *scope, uint64_t *left)
{
    static const enum list_entry_kind kinds[] = {LIST_ENTRY_LEAD, LIST_ENTRY_CONVERSATION,
                                                 LIST_ENTRY_RATING, LIST_ENTRY_EVENT,
                                                 LIST_ENTRY_VISITOR};
    struct ulid id;
    if (!synced_erase(t, scope, left))
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        while (list_entry_first(t, kinds[i], scope, &id)) {
            if (*left == 0)
                return false;
            remove_one(t, kinds[i], scope, &id, left);
        }
    return *left > 0 && t->error == STORE_OK;
}

static void erase_agent(struct store_txn *t, const struct ulid *scope, const struct ulid *agent,
                        uint64_t *left)
{
    struct key k;
    if (!erase_scope(t, agent, left))
        return;
    key_of(&k, SPACE_AGENT, agent);
    txn_del(t, SPACE_AGENT, &k);
    list_entry_drop(t, LIST_ENTRY_AGENT, scope, 0, agent);
    txn_spend(t, left);
}

void erase_workspace(struct store_txn *t, uint64_t workspace, uint64_t *left)
{
    struct ulid scope = scope_of_workspace(workspace), agent;
    while (*left > 0 && list_entry_first(t, LIST_ENTRY_AGENT, &scope, &agent))
        erase_agent(t, &scope, &agent, left);
}

/* The next scope: the one after the scope that was set aside, or the first one. */
static bool erasing_next(struct store_txn *t, struct ulid *scope)
{
    struct cursor w = {0};
    struct key from;
    key_space(&w.prefix, SPACE_ERASING);
    key_of(&from, SPACE_ERASING, &t->s->records->set_aside);
    key_bytes(&from, "", 1);
    bool found =
        cursor_from(t->s, t->mdb, &w, (enum db)schema_space_db[SPACE_ERASING], &from) == STORE_OK &&
        w.k.mv_size == 1 + ULID_BYTES;
    if (found)
        memcpy(scope->b, (const uint8_t *)w.k.mv_data + 1, ULID_BYTES);
    else
        t->s->records->set_aside = (struct ulid){{0}};
    cursor_end(&w);
    return found;
}

/* A damaged scope makes its transaction fail. Set it aside, so that others do not wait for it. */
void erase_batch(struct store_txn *t, uint64_t *left)
{
    while (*left > 0 && t->error == STORE_OK) {
        struct key k;
        struct ulid scope;
        if (!erasing_next(t, &scope))
            return;
        bool gone = erase_scope(t, &scope, left);
        if (t->error == STORE_CORRUPT)
            t->s->records->set_aside = scope;
        if (!gone)
            return;
        key_of(&k, SPACE_ERASING, &scope);
        txn_del(t, SPACE_ERASING, &k);
        txn_spend(t, left);
    }
}

/* ---- retention ---- */

/* A visitor without conversations is deleted too. */
static void forget_visitor(struct store_txn *t, const struct ulid *visitor)
{
    static const enum list_entry_kind kinds[] = {LIST_ENTRY_CONVERSATION, LIST_ENTRY_LEAD,
                                                 LIST_ENTRY_EVENT, LIST_ENTRY_RATING};
    struct ulid id;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (list_entry_first(t, kinds[i], visitor, &id))
            return;
    visitor_remove(t, visitor);
}

/* The visitor of a conversation or event that is about to be deleted. */
static bool visitor_of(struct store_txn *t, enum list_entry_kind kind, const struct ulid *id,
                       struct ulid *out)
{
    enum space space = kind == LIST_ENTRY_EVENT ? SPACE_EVENT : SPACE_CONVERSATION;
    struct key k;
    MDB_val v;
    struct ulid agent;
    key_of(&k, space, id);
    return txn_get(t, space, &k, &v) == STORE_OK &&
           rows_owners(kind == LIST_ENTRY_EVENT ? ROWS_EVENTS : ROWS_CONVERSATIONS, v, &agent, out);
}

/* Records of that kind in one workspace from before ${before}, oldest first. */
static void retain_workspace(struct store_txn *t, enum list_entry_kind kind, uint64_t workspace,
                             int64_t before, uint64_t *left)
{
    const struct ulid scope = scope_of_workspace(workspace);
    struct ulid id, next, visitor;
    while (*left > 0 && list_entry_first(t, kind, &scope, &id) && ulid_ms(&id) < before) {
        if (!visitor_of(t, kind, &id, &visitor)) {
            txn_fail(t, 0, "a list of chat records");
            return;
        }
        remove_one(t, kind, &scope, &id, left);
        if (!list_entry_first(t, kind, &scope, &next) ||
            memcmp(&next, &id, sizeof(id)) != 0) /* otherwise some messages are left */
            forget_visitor(t, &visitor);
    }
}

enum store_status retain_batch(struct store_txn *t, const struct store_change *c,
                               struct store_answer *answer)
{
    uint64_t left = txn_batch_limit(t, c->limit), workspace = 0;
    if ((c->fields != RETAIN_EVENTS && c->fields != RETAIN_CONVERSATIONS) || c->limit == 0)
        return STORE_INVALID;
    while (left > 0 && t->error == STORE_OK) {
        struct cursor w = {0};
        struct key from;
        key_id(&from, SPACE_WORKSPACE, workspace + 1);
        key_space(&w.prefix, SPACE_WORKSPACE);
        bool found = cursor_from(t->s, t->mdb, &w, DB_BASE, &from) == STORE_OK &&
                     cursor_u64(&w, 0, &workspace);
        cursor_end(&w);
        if (!found)
            break;
        retain_workspace(t, c->fields == RETAIN_EVENTS ? LIST_ENTRY_EVENT : LIST_ENTRY_CONVERSATION,
                         workspace, c->expires_at, &left);
    }
    answer->id = t->spent;
    return t->spent == 0 ? STORE_NOT_FOUND : STORE_OK;
}
