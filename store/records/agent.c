#include "store/records/agent.h"

#include "store/engine/errors.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/records/answers_log.h"
#include "store/records/apply.h"
#include "store/records/cached_records.h"
#include "store/records/erase.h"
#include "store/records/list_entries.h"
#include "store/records/ulid_keys.h"

#include <errno.h>

/* ---- reading ---- */

bool schema_read_agent(MDB_val value, struct store_agent *out)
{
    const struct agent_record *r = value.mv_data;
    if (value.mv_size < sizeof(*r) ||
        value.mv_size != sizeof(*r) + (size_t)r->name_n + r->origins_n + r->settings_n)
        return false;
    const char *p = (const char *)(r + 1);
    *out = (struct store_agent){
        .id = r->id,
        .workspace = r->workspace,
        .version = r->version,
        .is_published = r->is_published,
        .require_lead = r->require_lead,
        .created_at = r->created_at,
        .updated_at = r->updated_at,
        .name = {p, r->name_n},
        .origins = {p + r->name_n, r->origins_n},
        .settings = {p + r->name_n + r->origins_n, r->settings_n},
    };
    return true;
}

enum store_status agent_read(struct store *s, MDB_txn *txn, const struct ulid *id,
                             struct store_agent *out)
{
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_AGENT, id);
    enum store_status status = store_get(s, txn, SPACE_AGENT, &k, &v);
    if (status != STORE_OK)
        return status;
    if (!schema_read_agent(v, out))
        return store_corrupt(s, "an agent's record");
    return store_is_deleting(s, txn, out->workspace, 0) ? STORE_NOT_FOUND : STORE_OK;
}

/* The member is the last one, and JSON strings have no unescaped quotation mark. */
struct str agent_language(const struct store_agent *a)
{
    static const struct str name = STR("\"language_default\":\"");
    struct str rest = a->settings, language = {NULL, 0};
    for (const char *at; rest.n > 0 && (at = memmem(rest.p, rest.n, name.p, name.n)) != NULL;) {
        rest.n -= (size_t)(at + name.n - rest.p);
        rest.p = at + name.n;
        const char *end = memchr(rest.p, '"', rest.n);
        language = (struct str){rest.p, end == NULL ? 0 : (size_t)(end - rest.p)};
    }
    return language;
}

void store_agent_get(struct store *s, const struct ulid *id, store_agent_fn *done, void *arg)
{
    MDB_txn *txn;
    struct store_agent a;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = agent_read(s, txn, id, &a);
    done(arg, status, status == STORE_OK ? &a : NULL);
}

void store_agent_each(struct store *s, uint64_t workspace, store_agent_fn *each, void *arg)
{
    MDB_txn *txn;
    struct cursor w = {0};
    struct store_agent a;
    struct ulid id, scope = scope_of_workspace(workspace);
    enum store_status status = store_snapshot(s, &txn);
    if (workspace == 0)
        key_space(&w.prefix, SPACE_AGENT);
    else
        list_entry_prefix(&w.prefix, LIST_ENTRY_AGENT, &scope, 0);
    if (status == STORE_OK)
        status = cursor_prefix(s, txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        if (workspace == 0)
            memcpy(id.b, (const uint8_t *)w.k.mv_data + 1, ULID_BYTES);
        else if (!list_entry_id(&w, &id)) {
            status = store_corrupt(s, "the list of agents");
            break;
        }
        status = agent_read(s, txn, &id, &a);
        if (status == STORE_OK)
            each(arg, STORE_OK, &a);
        else if (status != STORE_NOT_FOUND)
            break;
    }
    cursor_end(&w);
    each(arg, status, NULL);
}

/* ---- changing ---- */

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
        answers_rebuild(t, &a.id);
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
