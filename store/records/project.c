#include "store/records/project.h"

#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/apply.h"
#include "store/records/cached_records.h"
#include "store/records/context.h"

#include <errno.h>

static void name_key(struct key *k, uint64_t workspace, struct str name)
{
    key_id(k, SPACE_PROJECT_NAME, workspace);
    key_str(k, name);
}

static void date_key(struct key *k, const struct project_record *p)
{
    key_id(k, SPACE_PROJECT_DATE, p->workspace);
    key_u64(k, (uint64_t)p->created_at);
    key_u64(k, p->id);
}

/* ---- reading ---- */

enum store_status project_read(struct store *s, MDB_txn *txn, uint64_t workspace, uint64_t id,
                               struct store_project *out, struct counts *counts)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_PROJECT, id);
    enum store_status status = store_get(s, txn, SPACE_PROJECT, &k, &v);
    if (status != STORE_OK)
        return status;
    if (!schema_read_project(v, out))
        return store_corrupt(s, "a project's record");
    const struct project_record *r = v.mv_data;
    if (r->workspace != workspace || r->deleting || store_is_deleting(s, txn, workspace, 0))
        return STORE_NOT_FOUND;
    if (counts != NULL)
        *counts = r->counts;
    return STORE_OK;
}

void store_project_get(struct store *s, uint64_t workspace, uint64_t id, store_project_fn *done,
                       void *arg)
{
    MDB_txn *txn;
    struct store_project p;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = project_read(s, txn, workspace, id, &p, NULL);
    done(arg, status, status == STORE_OK ? &p : NULL);
}

static enum store_status find(struct store *s, uint64_t workspace, struct str name,
                              struct store_project *out)
{
    MDB_txn *txn;
    MDB_val v;
    struct key k;
    uint64_t id;
    if (name.n == 0 || name.n > NAME_MAX_BYTES)
        return STORE_NOT_FOUND;
    enum store_status status = store_snapshot(s, &txn);
    if (status != STORE_OK)
        return status;
    name_key(&k, workspace, name);
    status = store_get(s, txn, SPACE_PROJECT_NAME, &k, &v);
    if (status != STORE_OK)
        return status;
    if (v.mv_size != sizeof(id))
        return store_corrupt(s, "a project's name");
    memcpy(&id, v.mv_data, sizeof(id));
    return project_read(s, txn, workspace, id, out, NULL);
}

void store_project_find(struct store *s, uint64_t workspace, struct str name,
                        store_project_fn *done, void *arg)
{
    struct store_project p;
    enum store_status status = find(s, workspace, name, &p);
    done(arg, status, status == STORE_OK ? &p : NULL);
}

/* ---- changing ---- */

/* Creates of one commit often share a project: try the last one found before the index. */
struct cached_record *project_for(struct store_txn *t, struct cached_record *workspace,
                                  struct str name)
{
    if (t->s->records->named != NULL && t->s->records->named->project.workspace == workspace->id &&
        str_eq(t->s->records->named->name, name))
        return t->s->records->named;
    struct key k;
    MDB_val v;
    uint64_t id;
    name_key(&k, workspace->id, name);
    enum store_status status = txn_get(t, SPACE_PROJECT_NAME, &k, &v);
    if (status == STORE_OK && v.mv_size == sizeof(id)) {
        memcpy(&id, v.mv_data, sizeof(id));
        struct cached_record *p = txn_project(t, id);
        if (p == NULL)
            txn_fail(t, 0, "a project's name");
        t->s->records->named = p;
        return p;
    }
    if (status != STORE_NOT_FOUND)
        return NULL;
    id = txn_next(t, project);
    struct cached_record *p = txn_made(t, SPACE_PROJECT, id, name);
    if (p == NULL)
        return NULL;
    p->project.workspace = workspace->id;
    workspace->workspace.projects++;
    txn_put(t, SPACE_PROJECT_NAME, &k, &id, sizeof(id));
    date_key(&k, &p->project);
    txn_put(t, SPACE_PROJECT_DATE, &k, "", 0);
    t->s->records->named = p;
    return p;
}

/* Unsigned counters: adding -1 wraps correctly. */
static void count(struct cached_record *workspace, struct cached_record *project,
                  const struct store_report *r, uint64_t by)
{
    if (r == NULL)
        return;
    workspace->workspace.counts.by[r->result] += by;
    project->project.counts.by[r->result] += by;
    if (r->score >= 0)
        project->project.score_total += by * (uint64_t)r->score;
    if (r->status == REPORT_PENDING) {
        workspace->workspace.pending += by;
        project->project.pending += by;
    }
}

void project_count(struct store_txn *t, struct cached_record *workspace,
                   struct cached_record *project, const struct store_report *old,
                   const struct store_report *new)
{
    struct project_record before = project->project;
    count(workspace, project, old, (uint64_t)-1);
    count(workspace, project, new, 1);
    workspace->workspace.version++;
    txn_changed(t, workspace);
    if (memcmp(&before.counts, &project->project.counts, sizeof(before.counts)) != 0 ||
        before.score_total != project->project.score_total)
        txn_changed(t, project);
    else if (before.pending != project->project.pending)
        project->dirty = true;
}

void project_unlist(struct store_txn *t, struct cached_record *p)
{
    struct key k;
    t->s->records->named = NULL;
    name_key(&k, p->project.workspace, p->name);
    txn_del(t, SPACE_PROJECT_NAME, &k);
    date_key(&k, &p->project);
    txn_del(t, SPACE_PROJECT_DATE, &k);
}

/*
 * Its reports leave the workspace's counters now and the store in batches. Pending ones count until
 * they are deleted.
 */
enum store_status project_delete(struct store_txn *t, const struct store_change *c,
                                 struct store_answer *answer)
{
    struct cached_record *w = txn_workspace_active(t, c->workspace);
    struct cached_record *p = w == NULL ? NULL : txn_project_active(t, c->workspace, c->id);
    if (p == NULL)
        return STORE_NOT_FOUND;
    if (!txn_match(c->match, p->project.version))
        return STORE_PRECONDITION;
    project_unlist(t, p);
    for (int i = 0; i < CLASSES; i++)
        w->workspace.counts.by[i] -= p->project.counts.by[i];
    w->workspace.projects--;
    w->workspace.version++;
    txn_changed(t, w);
    p->project.deleting = 1;
    txn_changed(t, p);
    txn_mark_deleting(t, c->workspace, c->id);
    txn_event(t, EVENT_PROJECT_DELETED, c->workspace, c->id, 0);
    txn_event(t, EVENT_MAINTENANCE, c->workspace, c->id, 0);
    answer->id = c->id;
    return STORE_OK;
}
