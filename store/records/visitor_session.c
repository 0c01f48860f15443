#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/agent.h"
#include "store/records/apply.h"
#include "store/records/conversation.h"
#include "store/records/erase.h"
#include "store/records/list_entries.h"
#include "store/records/ulid_keys.h"
#include "store/records/visitor.h"

#define HASH_BYTES 32

/* Sessions of visitors: a new visitor, the conversation that one continues, and its erasure. */

/* The visitor with that secret. */
static enum store_status visitor_find(struct store *s, MDB_txn *txn, const struct ulid *agent,
                                      const void *hash, const struct visitor_record **out)
{
    struct key k;
    MDB_val v;
    struct ulid id;
    visitor_secret_key(&k, agent, hash);
    enum store_status status = store_get(s, txn, SPACE_VISITOR_SECRET, &k, &v);
    if (status != STORE_OK)
        return status;
    if (v.mv_size != ULID_BYTES)
        return store_corrupt(s, "the index of visitors");
    memcpy(id.b, v.mv_data, ULID_BYTES);
    key_of(&k, SPACE_VISITOR, &id);
    status = store_get(s, txn, SPACE_VISITOR, &k, &v);
    return status != STORE_OK || !schema_read_visitor(v, out)
               ? store_corrupt(s, "a visitor's record")
               : STORE_OK;
}

static bool can_continue(const struct store_conversation *c, int64_t begun_after)
{
    return c->created_at > begun_after && (c->closed_at == 0 || c->closed_by != 0);
}

static enum store_status resume(struct store *s, const struct ulid *agent, const uint8_t *secret,
                                int64_t begun_after, struct store_conversation *out)
{
    MDB_txn *txn;
    const struct visitor_record *v;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = visitor_find(s, txn, agent, secret, &v);
    if (status == STORE_OK)
        status = conversation_read(s, txn, &v->conversation, out);
    return status == STORE_OK && !can_continue(out, begun_after) ? STORE_NOT_FOUND : status;
}

void store_visitor_resume(struct store *s, const struct ulid *agent, const uint8_t secret[32],
                          int64_t begun_after, store_conversation_fn *done, void *arg)
{
    struct store_conversation c;
    enum store_status status = resume(s, agent, secret, begun_after, &c);
    done(arg, status, status == STORE_OK ? &c : NULL);
}

static bool init_well_formed(const struct store_change *c)
{
    return (c->hash.n == 0 || c->hash.n == HASH_BYTES) && c->match.n == HASH_BYTES &&
           c->data.n <= STORE_TEXT_MAX && c->url.n <= URL_MAX_BYTES;
}

/* A new visitor with a new secret. */
static bool visitor_new(struct store_txn *t, const struct store_change *c,
                        const struct store_agent *agent, struct visitor_record *out)
{
    struct key k;
    struct ulid id;
    if (!txn_ulid(t, &id))
        return false;
    *out = (struct visitor_record){.id = id,
                                   .agent = agent->id,
                                   .workspace = agent->workspace,
                                   .created_at = t->now,
                                   .about_n = (uint32_t)c->data.n};
    memcpy(out->secret, c->match.p, HASH_BYTES);
    visitor_secret_key(&k, &agent->id, out->secret);
    txn_put(t, SPACE_VISITOR_SECRET, &k, &id, sizeof(id));
    list_entry_put(t, LIST_ENTRY_VISITOR, &agent->id, 0, &id);
    return true;
}

/* The visitor's newest conversation, if it can be continued. */
static bool can_continue_conversation(struct store_txn *t, const struct visitor_record *v,
                                      int64_t begun_after, struct ulid *out)
{
    struct store_conversation c;
    *out = v->conversation;
    return !ulid_none(out) && conversation_read(t->s, t->mdb, out, &c) == STORE_OK &&
           can_continue(&c, begun_after);
}

enum store_status visitor_init(struct store_txn *t, const struct store_change *c,
                               struct store_answer *answer)
{
    struct store_agent agent;
    struct visitor_record v;
    const struct visitor_record *known;
    if (!init_well_formed(c))
        return STORE_INVALID;
    enum store_status status = agent_read(t->s, t->mdb, &c->agent, &agent);
    if (status != STORE_OK)
        return status;
    agent.name = agent.origins = agent.settings =
        (struct str){NULL, 0}; /* the first write moves the pages */
    status =
        c->hash.n == 0 ? STORE_NOT_FOUND : visitor_find(t->s, t->mdb, &c->agent, c->hash.p, &known);
    if (status != STORE_OK && status != STORE_NOT_FOUND)
        return txn_fail(t, 0, "a visitor's record");
    if (status == STORE_OK && can_continue_conversation(t, known, c->expires_at, &answer->first)) {
        answer->second = known->id;
        return STORE_OK;
    }
    if (txn_is_full(t))
        return STORE_FULL;
    bool new = status == STORE_NOT_FOUND;
    struct str about = c->data;
    if (!new) {
        struct ulid id = known->id;
        if (!visitor_load(t, &id, &v))
            return t->error;
        about = buf_view(&t->copy);
    } else if (!visitor_new(t, c, &agent, &v))
        return t->error;
    struct store_conversation made = {.agent = agent.id,
                                      .visitor = v.id,
                                      .workspace = agent.workspace,
                                      .lead_captured = v.lead != 0,
                                      .created_at = t->now,
                                      .page_url = c->url};
    if (!txn_ulid(t, &made.id))
        return t->error;
    v.conversation = made.id;
    visitor_write(t, &v, about);
    conversation_write(t, CONVERSATION_STATUSES, &made);
    answer->first = made.id;
    answer->second = v.id;
    answer->code = new;
    return STORE_OK;
}

/*
 * Most visitors left little and are erased at once. The rest is deleted in batches and hidden until
 * then: each record may cost a read of the disk, and other callers wait for it.
 */
#define ERASE_AT_ONCE 64

enum store_status visitor_erase(struct store_txn *t, const struct store_change *c,
                                struct store_answer *answer)
{
    struct visitor_record v;
    uint64_t left = ERASE_AT_ONCE;
    if (!visitor_load(t, &c->visitor, &v))
        return t->error != STORE_OK ? t->error : STORE_NOT_FOUND;
    if (memcmp(&v.agent, &c->agent, ULID_BYTES) != 0)
        return STORE_NOT_FOUND;
    visitor_remove(t, &c->visitor);
    answer->second = c->visitor;
    if (!erase_scope(t, &c->visitor, &left)) {
        erase_mark(t, &c->visitor);
        txn_event(t, EVENT_PURGE, v.workspace, 0, 0);
    }
    return t->error;
}
