#include "store/records/conversation.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/agent.h"
#include "store/records/apply.h"
#include "store/records/list_entries.h"
#include "store/records/message_log.h"
#include "store/records/ulid_keys.h"
#include "store/records/visitor.h"

#include <errno.h>

bool schema_read_conversation(MDB_val value, struct store_conversation *out)
{
    const struct conversation_record *r = value.mv_data;
    if (value.mv_size < sizeof(*r) || value.mv_size != sizeof(*r) + (size_t)r->url_n + r->name_n)
        return false;
    const char *p = (const char *)(r + 1);
    *out = (struct store_conversation){
        .id = r->id,
        .agent = r->agent,
        .visitor = r->visitor,
        .last = r->last,
        .cleared = r->cleared,
        .read = r->read,
        .rating_id = r->rating_id,
        .workspace = r->workspace,
        .version = r->version,
        .messages = r->messages,
        .claimed_by = r->claimed_by,
        .closed_by = r->closed_by,
        .human_requested = r->human_requested,
        .lead_captured = r->lead_captured,
        .rating = r->rating,
        .created_at = r->created_at,
        .updated_at = r->updated_at,
        .closed_at = r->closed_at,
        .page_url = {p, r->url_n},
        .claimed_name = {p + r->url_n, r->name_n},
    };
    return true;
}

/* ---- reading ---- */

enum store_status conversation_read(struct store *s, MDB_txn *txn, const struct ulid *id,
                                    struct store_conversation *out)
{
    struct key k;
    MDB_val v;
    struct store_agent agent;
    key_of(&k, SPACE_CONVERSATION, id);
    enum store_status status = store_get(s, txn, SPACE_CONVERSATION, &k, &v);
    if (status != STORE_OK)
        return status;
    if (!schema_read_conversation(v, out))
        return store_corrupt(s, "a conversation's record");
    status = agent_read(s, txn, &out->agent, &agent);
    return status == STORE_OK && !visitor_there(s, txn, &out->visitor) ? STORE_NOT_FOUND : status;
}

void store_conversation_get(struct store *s, uint64_t workspace, const struct ulid *id,
                            store_conversation_fn *done, void *arg)
{
    MDB_txn *txn;
    struct store_conversation c;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = conversation_read(s, txn, id, &c);
    if (status == STORE_OK && c.workspace != workspace)
        status = STORE_NOT_FOUND;
    done(arg, status, status == STORE_OK ? &c : NULL);
}

void store_session_get(struct store *s, const struct ulid *agent, const struct ulid *visitor,
                       const struct ulid *conversation, store_session_fn *done, void *arg)
{
    MDB_txn *txn;
    struct store_agent a;
    struct store_conversation c;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = conversation_read(s, txn, conversation, &c);
    if (status == STORE_OK && (!ulid_eq(&c.agent, agent) || !ulid_eq(&c.visitor, visitor)))
        status = STORE_NOT_FOUND;
    if (status == STORE_OK)
        status = agent_read(s, txn, agent, &a);
    done(arg, status, status == STORE_OK ? &a : NULL, status == STORE_OK ? &c : NULL);
}

/* ---- changing ---- */

/* Copy its texts out of the pages that are written. */
static bool copy_texts(struct store_txn *t, struct store_conversation *c)
{
    buf_reset(&t->copy);
    buf_str(&t->copy, c->page_url);
    buf_str(&t->copy, c->claimed_name);
    if (!buf_ok(&t->copy) ||
        (t->copy.p == NULL && (c->page_url.n != 0 || c->claimed_name.n != 0))) {
        txn_fail(t, ENOMEM, "hold a conversation");
        return false;
    }
    c->page_url.p = t->copy.p;
    c->claimed_name.p = c->claimed_name.n == 0 ? NULL : t->copy.p + c->page_url.n;
    return true;
}

enum store_status conversation_open(struct store_txn *t, const struct store_change *c,
                                    struct store_conversation *out)
{
    enum store_status status = conversation_read(t->s, t->mdb, &c->conversation, out);
    if (status == STORE_CORRUPT || status == STORE_IO)
        return txn_fail(t, 0, "a conversation's record");
    if (status != STORE_OK)
        return status;
    bool by_operator = c->workspace != 0;
    if (by_operator ? out->workspace != c->workspace
                    : !ulid_eq(&out->agent, &c->agent) || !ulid_eq(&out->visitor, &c->visitor))
        return STORE_NOT_FOUND;
    return copy_texts(t, out) ? STORE_OK : t->error;
}

static void conversation_put(struct store_txn *t, const struct store_conversation *c)
{
    struct key k;
    const struct conversation_record r = {
        .human_requested = c->human_requested,
        .lead_captured = c->lead_captured,
        .rating = (uint8_t)c->rating,
        .id = c->id,
        .agent = c->agent,
        .visitor = c->visitor,
        .last = c->last,
        .cleared = c->cleared,
        .read = c->read,
        .rating_id = c->rating_id,
        .workspace = c->workspace,
        .version = c->version,
        .messages = c->messages,
        .claimed_by = c->claimed_by,
        .closed_by = c->closed_by,
        .created_at = c->created_at,
        .updated_at = c->updated_at,
        .closed_at = c->closed_at,
        .url_n = (uint16_t)c->page_url.n,
        .name_n = (uint16_t)c->claimed_name.n,
    };
    key_of(&k, SPACE_CONVERSATION, &c->id);
    char *to =
        txn_reserve(t, SPACE_CONVERSATION, &k, sizeof(r) + c->page_url.n + c->claimed_name.n);
    if (to == NULL)
        return;
    to = append_str(to, (struct str){(const char *)&r, sizeof(r)});
    to = append_str(to, c->page_url);
    append_str(to, c->claimed_name);
}

/* Its list entries by status, of its workspace and its agent. */
static void list_by_status(struct store_txn *t, bool put, enum conversation_status status,
                           const struct store_conversation *c)
{
    const struct ulid scopes[] = {scope_of_workspace(c->workspace), c->agent};
    for (size_t i = 0; i < 2; i++)
        if (put)
            list_entry_put(t, LIST_ENTRY_CONVERSATION, &scopes[i], 1 + (unsigned)status, &c->id);
        else
            list_entry_drop(t, LIST_ENTRY_CONVERSATION, &scopes[i], 1 + (unsigned)status, &c->id);
}

void conversation_write(struct store_txn *t, enum conversation_status old_status,
                        struct store_conversation *c)
{
    enum conversation_status status = conversation_status(c);
    c->updated_at = t->now;
    c->version++;
    conversation_put(t, c);
    if (old_status == CONVERSATION_STATUSES)
        list_entry_everywhere(t, true, LIST_ENTRY_CONVERSATION, c->workspace, &c->agent,
                              &c->visitor, &c->id);
    else if (old_status != status)
        list_by_status(t, false, old_status, c);
    if (old_status != status)
        list_by_status(t, true, status, c);
    if (old_status != CONVERSATION_STATUSES)
        event_ulid(t, EVENT_CONVERSATION, c->workspace, &c->id);
}

static void release(struct store_conversation *v)
{
    v->claimed_by = 0;
    v->claimed_name.n = 0;
    v->human_requested = false;
}

static void reopen(struct store_conversation *v)
{
    v->closed_at = 0;
    v->closed_by = 0;
}

/* A conversation that the visitor closed is not resumed. */
static void close_conversation(const struct store_change *c, int64_t now,
                               struct store_conversation *v)
{
    if (v->closed_at == 0 || c->workspace == 0)
        v->closed_by = c->id;
    if (v->closed_at == 0)
        v->closed_at = now;
    release(v);
}

/* False: another operator has claimed it. */
static bool claim(const struct store_change *c, struct store_conversation *v)
{
    if (v->claimed_by != 0 && v->claimed_by != c->id)
        return false;
    if (c->name.n > 0)
        v->claimed_name = c->name;
    v->claimed_by = c->id;
    reopen(v);
    return true;
}

/*
 * Apply ${c}. True if it changes the conversation. STORE_EXISTS in *status: another operator has
 * claimed it.
 */
static bool set(const struct store_change *c, int64_t now, struct store_conversation *v,
                enum store_status *status)
{
    const struct store_conversation old = *v;
    if (c->fields & CONVERSATION_SET_READ)
        v->read = v->last;
    if (c->fields & CONVERSATION_SET_CLEARED)
        v->cleared = v->last;
    if (c->fields & CONVERSATION_SET_CLOSED)
        close_conversation(c, now, v);
    if (c->fields & CONVERSATION_SET_HUMAN)
        v->human_requested = true;
    if (c->fields & (CONVERSATION_SET_HUMAN | CONVERSATION_SET_REOPENED))
        reopen(v);
    if ((c->fields & CONVERSATION_SET_CLAIMED) && !claim(c, v))
        *status = STORE_EXISTS;
    if (c->fields & CONVERSATION_SET_RELEASED)
        release(v);
    return *status == STORE_OK &&
           (!ulid_eq(&old.read, &v->read) || !ulid_eq(&old.cleared, &v->cleared) ||
            old.closed_at != v->closed_at || old.closed_by != v->closed_by ||
            old.human_requested != v->human_requested || old.claimed_by != v->claimed_by ||
            !str_eq(old.claimed_name, v->claimed_name));
}

enum store_status conversation_set(struct store_txn *t, const struct store_change *c,
                                   struct store_answer *answer)
{
    struct store_conversation v;
    if (c->name.n > NAME_MAX_BYTES)
        return STORE_INVALID;
    enum store_status status = conversation_open(t, c, &v);
    if (status != STORE_OK)
        return status;
    enum conversation_status before = conversation_status(&v);
    if (set(c, t->now, &v, &status))
        conversation_write(t, before, &v);
    answer->first = v.id;
    answer->version = v.version;
    return status;
}

/* ---- removing ---- */

/* Delete the keys of a space that begin with the conversation's id; true: none is left. */
static bool remove_below(struct store_txn *t, enum space space, const struct ulid *id,
                         uint64_t *left)
{
    while (*left > 0 && t->error == STORE_OK) {
        struct cursor w = {0};
        struct key k = {.n = 0};
        key_of(&w.prefix, space, id);
        if (cursor_prefix(t->s, t->mdb, &w, DB_WIDGET, false) == STORE_OK)
            key_bytes(&k, w.k.mv_data, w.k.mv_size);
        cursor_end(&w);
        if (k.n == 0)
            return true;
        txn_del(t, space, &k);
        txn_spend(t, left);
    }
    return false;
}

/* A copy of the record, with its texts in t->copy. */
static bool conversation_load(struct store_txn *t, const struct ulid *id,
                              struct store_conversation *out)
{
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_CONVERSATION, id);
    if (txn_get(t, SPACE_CONVERSATION, &k, &v) != STORE_OK || !schema_read_conversation(v, out)) {
        txn_fail(t, 0, "a conversation's record");
        return false;
    }
    return copy_texts(t, out);
}

/* Delete messages, notes and once-keys; true: nothing is left. */
static bool remove_messages(struct store_txn *t, struct store_conversation *c, uint64_t *left)
{
    const uint64_t messages = c->messages;
    message_log_remove(t, c, left);
    if (remove_below(t, SPACE_NOTE, &c->id, left) && remove_below(t, SPACE_ONCE, &c->id, left) &&
        *left > 0)
        return true;
    if (c->messages != messages) {
        c->version++;
        conversation_put(t, c);
    }
    return false;
}

void conversation_remove(struct store_txn *t, const struct ulid *id, uint64_t *left)
{
    struct key k;
    struct store_conversation c;
    if (!conversation_load(t, id, &c) || !remove_messages(t, &c, left))
        return;
    list_entry_everywhere(t, false, LIST_ENTRY_CONVERSATION, c.workspace, &c.agent, &c.visitor, id);
    list_by_status(t, false, conversation_status(&c), &c);
    key_of(&k, SPACE_PENDING_COUPONS, id);
    txn_drop(t, SPACE_PENDING_COUPONS, &k);
    key_of(&k, SPACE_CONVERSATION, id);
    txn_del(t, SPACE_CONVERSATION, &k);
    event_ulid(t, EVENT_CONVERSATION, c.workspace, id);
    txn_spend(t, left);
}
