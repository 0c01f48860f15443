#include "store/records/agent.h"

#include "store/engine/cursor.h"
#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
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

enum store_status agent_of_workspace(struct store_txn *t, const struct store_change *c)
{
    struct store_agent a;
    enum store_status status = agent_read(t->s, t->mdb, &c->agent, &a);
    if (status == STORE_OK && a.workspace != c->workspace)
        status = STORE_NOT_FOUND;
    return status;
}
