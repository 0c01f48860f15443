#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/agent.h"
#include "store/records/answers_log.h"
#include "store/records/apply.h"
#include "store/records/cached_records.h"
#include "store/records/erase.h"
#include "store/records/list_entries.h"
#include "store/records/ulid_keys.h"

#include <errno.h>

/* Changes of agents: create, update, delete. */

/* Its texts must not lie in pages that are written. */
static void agent_write(struct store_txn *t, const struct store_agent *a)
{
    struct key k;
    const struct agent_record r = {
        .is_published = a->is_published,
        .require_lead = a->require_lead,
        .id = a->id,
        .workspace = a->workspace,
        .version = a->version,
        .created_at = a->created_at,
        .updated_at = a->updated_at,
        .name_n = (uint16_t)a->name.n,
        .origins_n = (uint32_t)a->origins.n,
        .settings_n = (uint32_t)a->settings.n,
    };
    key_of(&k, SPACE_AGENT, &a->id);
    char *to =
        txn_reserve(t, SPACE_AGENT, &k, sizeof(r) + a->name.n + a->origins.n + a->settings.n);
    if (to == NULL)
        return;
    to = append_str(to, (struct str){(const char *)&r, sizeof(r)});
    to = append_str(to, a->name);
    to = append_str(to, a->origins);
    append_str(to, a->settings);
}

/*
 * An agent that may be changed, of that workspace (0: any): a copy that later writes do not change.
 */
static enum store_status agent_open(struct store_txn *t, uint64_t workspace, const struct ulid *id,
                                    struct store_agent *out)
{
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_AGENT, id);
    enum store_status status = txn_get_copy(t, SPACE_AGENT, &k, &v);
    if (status != STORE_OK)
        return status;
    if (!schema_read_agent(v, out))
        return txn_fail(t, 0, "an agent's record");
    bool there = (workspace == 0 || out->workspace == workspace) &&
                 !store_is_deleting(t->s, t->mdb, out->workspace, 0);
    return there ? STORE_OK : STORE_NOT_FOUND;
}

static bool well_formed(const struct store_change *c, bool whole)
{
    return (!whole || (c->name.n > 0 && c->data.n > 0)) && c->name.n <= NAME_MAX_BYTES &&
           c->text.n <= STORE_ORIGINS_MAX && (c->text.n == 0 || c->text.p[c->text.n - 1] == '\n') &&
           c->data.n <= STORE_SETTINGS_MAX;
}

enum store_status agent_create(struct store_txn *t, const struct store_change *c,
                               struct store_answer *answer)
{
    if (!well_formed(c, true))
        return STORE_INVALID;
    if (txn_workspace_active(t, c->workspace) == NULL)
        return STORE_NOT_FOUND;
    if (txn_is_full(t))
        return STORE_FULL;
    struct store_agent a = {
        .workspace = c->workspace,
        .version = 1,
        .is_published = (c->fields & AGENT_PUBLISHED) != 0,
        .require_lead = (c->fields & AGENT_LEAD) != 0,
        .created_at = t->now,
        .updated_at = t->now,
        .name = c->name,
        .origins = c->text,
        .settings = c->data,
    };
    if (!txn_ulid(t, &a.id))
        return t->error;
    agent_write(t, &a);
    struct ulid scope = scope_of_workspace(c->workspace);
    list_entry_put(t, LIST_ENTRY_AGENT, &scope, 0, &a.id);
    answer->first = a.id;
    answer->version = 1;
    return STORE_OK;
}

enum store_status agent_update(struct store_txn *t, const struct store_change *c,
                               struct store_answer *answer)
{
    struct store_agent a = {0};
    if (!well_formed(c, false) || ((c->fields & AGENT_HAS_NAME) && c->name.n == 0) ||
        ((c->fields & AGENT_HAS_SETTINGS) && c->data.n == 0))
        return STORE_INVALID;
    enum store_status status = agent_open(t, c->workspace, &c->agent, &a);
    if (status != STORE_OK)
        return status;
    answer->first = a.id;
    answer->version = a.version;
    if (!txn_match(c->match, a.version))
        return STORE_PRECONDITION;
    const struct str language = agent_language(&a);
    if (c->fields & AGENT_HAS_NAME)
        a.name = c->name;
    if (c->fields & AGENT_HAS_ORIGINS)
        a.origins = c->text;
    if (c->fields & AGENT_HAS_SETTINGS)
        a.settings = c->data;
    if (c->fields & AGENT_HAS_PUBLISHED)
        a.is_published = (c->fields & AGENT_PUBLISHED) != 0;
    if (c->fields & AGENT_HAS_LEAD)
        a.require_lead = (c->fields & AGENT_LEAD) != 0;
    a.updated_at = t->now;
    answer->version = ++a.version;
    agent_write(t, &a);
    if (!str_eq(agent_language(&a), language))
        answers_rebuild(t, &a.id, true);
    event_ulid(t, EVENT_AGENT_CHANGED, a.workspace, &a.id);
    return STORE_OK;
}

enum store_status agent_delete(struct store_txn *t, const struct store_change *c,
                               struct store_answer *answer)
{
    struct store_agent a;
    struct key k;
    enum store_status status = agent_open(t, c->workspace, &c->agent, &a);
    if (status != STORE_OK)
        return status;
    struct ulid scope = scope_of_workspace(a.workspace);
    key_of(&k, SPACE_AGENT, &a.id);
    txn_del(t, SPACE_AGENT, &k);
    list_entry_drop(t, LIST_ENTRY_AGENT, &scope, 0, &a.id);
    erase_mark(t, &a.id);
    event_ulid(t, EVENT_AGENT_CHANGED, a.workspace, &a.id);
    txn_event(t, EVENT_PURGE, a.workspace, 0, 0);
    answer->first = a.id;
    return STORE_OK;
}
