/* What follows from a replicated row beside derived rows: logs, and events for those who wait. */
#include "store/engine/snapshot.h"
#include "store/index/index.h"
#include "store/records/agent.h"
#include "store/records/answers_log.h"
#include "store/records/conversation.h"
#include "store/records/document.h"
#include "store/records/report.h"
#include "store/records/rows_derived.h"
#include "store/records/signing_keys.h"
#include "store/records/ulid_keys.h"

/* ---- reports ---- */

/* Of a report or a project that is being deleted, those who wait have heard already. */
static bool is_awaited(struct store_txn *t, const struct store_report *r)
{
    return r->status == REPORT_PENDING ||
           !store_is_deleting(t->s, t->mdb, r->workspace, r->project);
}

static bool is_finished(const struct store_report *old, const struct store_report *new)
{
    return new->status != REPORT_PENDING &&
           (old == NULL || old->status == REPORT_PENDING || old->attempt != new->attempt);
}

static bool read_report(struct store_txn *t, const MDB_val *v, struct store_report *out)
{
    if (v != NULL && !schema_read_report(*v, out))
        txn_fail(t, 0, "a report's record");
    return v != NULL && t->error == STORE_OK;
}

static void follow_report(struct store_txn *t, const struct row_change *c)
{
    struct store_report old, new;
    bool had = read_report(t, c->old, &old), has = read_report(t, c->new, &new);
    if (t->error != STORE_OK || (!had && !has))
        return;
    index_move(t, had ? &old : NULL, has ? &new : NULL);
    if (!has && is_awaited(t, &old))
        txn_event(t, EVENT_REPORT_DELETED, old.workspace, old.id, 0);
    else if (has && is_finished(had ? &old : NULL, &new))
        txn_event(t, EVENT_REPORT_FINISHED, new.workspace, new.id, new.version);
}

static void follow_job(struct store_txn *t, const struct row_change *c)
{
    struct job_record old = {0}, new;
    uint64_t report;
    const struct cursor at = {.k = key_val(c->key)};
    if (c->new == NULL || !cursor_u64(&at, 0, &report))
        return;
    memcpy(&new, c->new->mv_data, sizeof(new));
    if (c->old != NULL && c->old->mv_size == sizeof(old))
        memcpy(&old, c->old->mv_data, sizeof(old));
    if (old.attempt != new.attempt)
        txn_event(t, EVENT_JOB_ADDED, new.workspace, report, new.attempt);
}

/* ---- workspaces, projects, keys ---- */

static bool workspace_deleting(const MDB_val *v)
{
    return v != NULL && ((const struct workspace_record *)v->mv_data)->deleting != 0;
}

static void follow_workspace(struct store_txn *t, const struct row_change *c)
{
    const struct cursor at = {.k = key_val(c->key)};
    uint64_t id, all = UINT64_MAX;
    if (!cursor_u64(&at, 0, &id))
        return;
    if (workspace_deleting(c->new) && !workspace_deleting(c->old)) {
        txn_event(t, EVENT_WORKSPACE_DELETED, id, id, 0);
        txn_event(t, EVENT_MAINTENANCE, id, 0, 0);
    }
    if (c->new == NULL)
        index_empty(t, id, &all);
}

static bool project_deleting(const MDB_val *v)
{
    return v != NULL && ((const struct project_record *)v->mv_data)->deleting != 0;
}

static void follow_project(struct store_txn *t, const struct row_change *c)
{
    struct store_project p;
    if (!project_deleting(c->new) || project_deleting(c->old) || !schema_read_project(*c->new, &p))
        return;
    txn_event(t, EVENT_PROJECT_DELETED, p.workspace, p.id, 0);
    txn_event(t, EVENT_MAINTENANCE, p.workspace, p.id, 0);
}

static void follow_key(struct store_txn *t, const struct row_change *c)
{
    struct store_key old, new;
    const uint8_t *hash = c->key->b + 1;
    if (c->old == NULL || c->new == NULL || !schema_read_key(*c->old, hash, &old) ||
        !schema_read_key(*c->new, hash, &new))
        return;
    if (old.revoked_at != new.revoked_at || old.expires_at != new.expires_at)
        txn_event(t, EVENT_KEY_REVOKED, new.workspace, new.id, 0);
}

/* ---- chat ---- */

static void follow_agent(struct store_txn *t, const struct row_change *c)
{
    struct store_agent old, new;
    if (c->old == NULL || !schema_read_agent(*c->old, &old))
        return;
    bool has = c->new != NULL &&schema_read_agent(*c->new, &new);
    if (has && !str_eq(agent_language(&old), agent_language(&new)))
        answers_rebuild(t, &old.id, true);
    if (has || !store_is_deleting(t->s, t->mdb, old.workspace, 0))
        event_ulid(t, EVENT_AGENT_CHANGED, old.workspace, &old.id);
}

/* While its messages are deleted in batches, nobody is told of a conversation. */
static void follow_conversation(struct store_txn *t, const struct row_change *c)
{
    struct store_conversation old, new;
    if (c->old == NULL || !schema_read_conversation(*c->old, &old))
        return;
    if (c->new == NULL || (schema_read_conversation(*c->new, &new) && new.messages >= old.messages))
        event_ulid(t, EVENT_CONVERSATION, old.workspace, &old.id);
}

static void follow_meta(struct store_txn *t, const struct row_change *c)
{
    if (signing_keys_are(c->key) && c->new != NULL)
        txn_event(t, EVENT_SIGNING_KEYS, 0, 0, 0);
}

/* Work for a store that executes changes. */
static void follow_pending(struct store_txn *t, const struct row_change *c)
{
    if (c->old == NULL && c->new != NULL)
        txn_event(t, EVENT_PURGE, 0, 0, 0);
}

/* ---- documents ---- */

static void follow_answers(struct store_txn *t, const struct row_change *c)
{
    struct ulid agent;
    uint64_t last = 0;
    memcpy(agent.b, c->key->b + 1, ULID_BYTES);
    if (c->new != NULL)
        schema_read_answers(*c->new, &last);
    answers_follow(t, &agent, last);
}

static void follow_document(struct store_txn *t, const struct row_change *c)
{
    struct store_synced old = {0}, new;
    if (c->old != NULL && !schema_read_document(*c->old, &old))
        txn_fail(t, 0, "a document's record");
    else if (c->new != NULL && schema_read_document(*c->new, &new))
        answers_follow_document(t, &new.agent, new.id, old.change, new.change);
    else if (c->old != NULL)
        answers_follow_document(t, &old.agent, old.id, old.change, 0);
}

/* ---- the table ---- */

static void (*const follow[SPACE_COUNT])(struct store_txn *t, const struct row_change *c) = {
    [SPACE_META] = follow_meta,
    [SPACE_REPORT] = follow_report,
    [SPACE_JOB] = follow_job,
    [SPACE_WORKSPACE] = follow_workspace,
    [SPACE_PROJECT] = follow_project,
    [SPACE_KEY] = follow_key,
    [SPACE_AGENT] = follow_agent,
    [SPACE_CONVERSATION] = follow_conversation,
    [SPACE_ERASING] = follow_pending,
    [SPACE_UNSEEN] = follow_pending,
    [SPACE_ANSWERS] = follow_answers,
    [SPACE_DOCUMENT] = follow_document,
};

void rows_follow(struct store_txn *t, const struct row_change *c)
{
    if (follow[c->space] != NULL && t->error == STORE_OK)
        follow[c->space](t, c);
}
