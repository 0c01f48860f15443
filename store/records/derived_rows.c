#include "store/engine/cursor.h"
#include "store/engine/derived.h"
#include "store/engine/snapshot.h"
#include "store/records/agent.h"
#include "store/records/collection.h"
#include "store/records/conversation.h"
#include "store/records/lead.h"
#include "store/records/list_entries.h"
#include "store/records/ulid_keys.h"
#include "store/records/visitor.h"

static void put_row(const struct derived_sink *r, enum space space, struct key *key,
                    const void *value, size_t n)
{
    r->put(r->arg, space, key, value, n);
}

/* ---- base ---- */

static void put_deleting(const struct derived_sink *r, uint64_t workspace, uint64_t project)
{
    struct key k;
    key_id(&k, SPACE_DELETING, workspace);
    key_u64(&k, project);
    put_row(r, SPACE_DELETING, &k, "", 0);
}

static bool of_workspace(const struct cursor *w, const struct derived_sink *r)
{
    struct key k;
    struct store_workspace workspace;
    if (!schema_read_workspace(w->v, &workspace))
        return false;
    const struct workspace_record *record = w->v.mv_data;
    if (record->deleting) {
        put_deleting(r, workspace.id, 0);
        return true;
    }
    key_space(&k, SPACE_WORKSPACE_NAME);
    key_str(&k, workspace.name);
    put_row(r, SPACE_WORKSPACE_NAME, &k, &workspace.id, sizeof(workspace.id));
    return true;
}

static bool of_project(const struct cursor *w, const struct derived_sink *r)
{
    struct key k;
    struct store_project p;
    if (!schema_read_project(w->v, &p))
        return false;
    const struct project_record *record = w->v.mv_data;
    if (record->deleting) {
        put_deleting(r, p.workspace, p.id);
        return true;
    }
    key_id(&k, SPACE_PROJECT_NAME, p.workspace);
    key_str(&k, p.name);
    put_row(r, SPACE_PROJECT_NAME, &k, &p.id, sizeof(p.id));
    key_id(&k, SPACE_PROJECT_DATE, p.workspace);
    key_u64(&k, (uint64_t)p.created_at);
    key_u64(&k, p.id);
    put_row(r, SPACE_PROJECT_DATE, &k, "", 0);
    return true;
}

static bool of_key(const struct cursor *w, const struct derived_sink *r)
{
    struct key k;
    struct store_key key;
    const uint8_t *hash = (const uint8_t *)w->k.mv_data + 1;
    if (w->k.mv_size != 1 + sizeof(key.hash) || !schema_read_key(w->v, hash, &key))
        return false;
    key_id(&k, SPACE_KEY_ID, key.id);
    put_row(r, SPACE_KEY_ID, &k, hash, sizeof(key.hash));
    key_id(&k, SPACE_KEY_WORKSPACE, key.workspace);
    key_u64(&k, key.id);
    put_row(r, SPACE_KEY_WORKSPACE, &k, hash, sizeof(key.hash));
    return true;
}

static bool of_idem(const struct cursor *w, const struct derived_sink *r)
{
    struct key k;
    const struct idem_record *record = store_record(w->v, sizeof(*record));
    if (record == NULL || w->k.mv_size < 1)
        return false;
    key_id(&k, SPACE_IDEM_AGE, (uint64_t)record->expires_at);
    key_bytes(&k, (const uint8_t *)w->k.mv_data + 1, w->k.mv_size - 1);
    put_row(r, SPACE_IDEM_AGE, &k, "", 0);
    return true;
}

/* ---- chat ---- */

static void put_list_entry(const struct derived_sink *r, enum list_entry_kind kind,
                           const struct ulid *scope, unsigned class, const struct ulid *id)
{
    struct key k;
    list_entry_prefix(&k, kind, scope, class);
    key_ulid(&k, id);
    put_row(r, SPACE_LIST_ENTRY, &k, "", 0);
}

static bool of_agent(const struct cursor *w, const struct derived_sink *r)
{
    struct store_agent a;
    if (!schema_read_agent(w->v, &a))
        return false;
    const struct ulid scope = scope_of_workspace(a.workspace);
    put_list_entry(r, LIST_ENTRY_AGENT, &scope, 0, &a.id);
    return true;
}

static bool of_visitor(const struct cursor *w, const struct derived_sink *r)
{
    struct key k;
    const struct visitor_record *v;
    if (!schema_read_visitor(w->v, &v))
        return false;
    const struct ulid id = v->id, agent = v->agent;
    put_list_entry(r, LIST_ENTRY_VISITOR, &agent, 0, &id);
    key_of(&k, SPACE_VISITOR_SECRET, &agent);
    key_bytes(&k, v->secret, sizeof(v->secret));
    put_row(r, SPACE_VISITOR_SECRET, &k, &id, sizeof(id));
    return true;
}

static void put_everywhere(const struct derived_sink *r, enum list_entry_kind kind,
                           uint64_t workspace, const struct ulid *agent, const struct ulid *visitor,
                           const struct ulid *id)
{
    const struct ulid scope = scope_of_workspace(workspace);
    put_list_entry(r, kind, &scope, 0, id);
    put_list_entry(r, kind, agent, 0, id);
    put_list_entry(r, kind, visitor, 0, id);
}

static bool of_conversation(const struct cursor *w, const struct derived_sink *r)
{
    struct store_conversation c;
    if (!schema_read_conversation(w->v, &c))
        return false;
    const struct ulid scope = scope_of_workspace(c.workspace);
    unsigned class = 1 + (unsigned)conversation_status(&c);
    put_everywhere(r, LIST_ENTRY_CONVERSATION, c.workspace, &c.agent, &c.visitor, &c.id);
    put_list_entry(r, LIST_ENTRY_CONVERSATION, &scope, class, &c.id);
    put_list_entry(r, LIST_ENTRY_CONVERSATION, &c.agent, class, &c.id);
    return true;
}

static bool of_lead(const struct cursor *w, const struct derived_sink *r)
{
    struct key k;
    struct store_lead lead;
    struct store_sender senders[LEAD_SENDERS_MAX];
    const struct lead_record *record = w->v.mv_data;
    if (!lead_read(w->v, senders, &lead))
        return false;
    const struct ulid scope = scope_of_workspace(record->workspace);
    put_list_entry(r, LIST_ENTRY_LEAD, &scope, 0, &lead.id);
    put_list_entry(r, LIST_ENTRY_LEAD, &lead.agent, 0, &lead.id);
    for (size_t i = 0; i < record->senders_n; i++)
        put_list_entry(r, LIST_ENTRY_LEAD, &senders[i].visitor, 0, &lead.id);
    key_of(&k, SPACE_LEAD_EMAIL, &lead.agent);
    key_bytes(&k, record->hash, sizeof(record->hash));
    put_row(r, SPACE_LEAD_EMAIL, &k, &lead.id, sizeof(lead.id));
    return true;
}

static bool of_event_or_rating(const struct cursor *w, const struct derived_sink *r,
                               enum list_entry_kind kind)
{
    const struct event_record *record = w->v.mv_data;
    if (w->v.mv_size < sizeof(*record))
        return false;
    const struct ulid agent = record->agent, visitor = record->visitor, id = record->id;
    put_everywhere(r, kind, record->workspace, &agent, &visitor, &id);
    return true;
}

static bool of_event(const struct cursor *w, const struct derived_sink *r)
{
    return of_event_or_rating(w, r, LIST_ENTRY_EVENT);
}

static bool of_rating(const struct cursor *w, const struct derived_sink *r)
{
    return of_event_or_rating(w, r, LIST_ENTRY_RATING);
}

static bool of_collection(const struct cursor *w, const struct derived_sink *r)
{
    struct key k;
    struct store_collection c;
    const struct collection_record *record = w->v.mv_data;
    if (!schema_read_collection(w->v, &c))
        return false;
    const struct ulid agent = record->agent;
    const uint64_t id = record->id;
    key_of(&k, SPACE_COLLECTION_NAME, &agent);
    key_bytes(&k, &record->kind, 1);
    key_str(&k, c.site);
    put_row(r, SPACE_COLLECTION_NAME, &k, &id, sizeof(id));
    return true;
}

/* ---- the table ---- */

derived_of_fn *const derived_rows_of[SPACE_COUNT] = {
    [SPACE_WORKSPACE] = of_workspace,
    [SPACE_PROJECT] = of_project,
    [SPACE_KEY] = of_key,
    [SPACE_IDEM] = of_idem,
    [SPACE_AGENT] = of_agent,
    [SPACE_VISITOR] = of_visitor,
    [SPACE_CONVERSATION] = of_conversation,
    [SPACE_LEAD] = of_lead,
    [SPACE_EVENT] = of_event,
    [SPACE_RATING] = of_rating,
    [SPACE_COLLECTION] = of_collection,
};
