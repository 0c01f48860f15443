#include "store/engine/check.h"
#include "store/engine/cursor.h"
#include "store/engine/snapshot.h"
#include "store/index/check.h"
#include "store/index/snapshot.h"
#include "store/records/checks.h"

#define LL(v) ((unsigned long long)(v))

/* ---- helpers ---- */

static bool key_number(struct check *c, const struct cursor *w, unsigned skip, uint64_t *out)
{
    if (cursor_u64(w, skip, out))
        return true;
    check_say(c, "a key of the space '%c' is malformed", *(const char *)w->k.mv_data);
    return false;
}

static const struct workspace_record *workspace_at(struct check *c, uint64_t id,
                                                   struct store_workspace *out)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_WORKSPACE, id);
    return check_get(c, SPACE_WORKSPACE, &k, &v) && schema_read_workspace(v, out) ? v.mv_data
                                                                                  : NULL;
}

static const struct project_record *project_at(struct check *c, uint64_t id,
                                               struct store_project *out)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_PROJECT, id);
    return check_get(c, SPACE_PROJECT, &k, &v) && schema_read_project(v, out) ? v.mv_data : NULL;
}

static bool leads_to(struct check *c, enum space space, struct key *k, const void *value, size_t n)
{
    MDB_val v;
    return check_get(c, space, k, &v) && v.mv_size == n && memcmp(v.mv_data, value, n) == 0;
}

static bool deleting_row(struct check *c, uint64_t workspace, uint64_t project)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_DELETING, workspace);
    key_u64(&k, project);
    return check_get(c, SPACE_DELETING, &k, &v);
}

/* ---- workspaces ---- */

/* Of a project that is being deleted, only pending reports are counted. */
static void sum_deleting_projects(struct check *c, uint64_t workspace, struct workspace_record *out)
{
    struct cursor w = {0};
    uint64_t project;
    key_id(&w.prefix, SPACE_DELETING, workspace);
    enum store_status status = cursor_prefix(c->s, c->txn, &w, DB_BASE, false);
    for (; status == STORE_OK && cursor_u64(&w, 1, &project); status = cursor_next(&w)) {
        struct store_project p;
        const struct project_record *r = project == 0 ? NULL : project_at(c, project, &p);
        out->pending += r == NULL ? 0 : r->pending;
    }
    cursor_end(&w);
}

/* The expected counters: the sums over existing projects, and pending reports of deleted ones. */
static void sum_projects(struct check *c, uint64_t workspace, struct workspace_record *out)
{
    struct cursor w = {0};
    key_id(&w.prefix, SPACE_PROJECT_NAME, workspace);
    enum store_status status = cursor_prefix(c->s, c->txn, &w, DB_BASE, false);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        uint64_t id = 0;
        struct store_project p;
        memcpy(&id, w.v.mv_data, w.v.mv_size < sizeof(id) ? w.v.mv_size : sizeof(id));
        const struct project_record *r = project_at(c, id, &p);
        if (r == NULL)
            continue; /* reported by check_project_name */
        out->projects++;
        out->pending += r->pending;
        for (int i = 0; i < CLASSES; i++)
            out->counts.by[i] += r->counts.by[i];
    }
    cursor_end(&w);
    sum_deleting_projects(c, workspace, out);
}

void check_workspace(struct check *c, const struct cursor *w)
{
    uint64_t id;
    struct store_workspace workspace;
    struct key k;
    if (!key_number(c, w, 0, &id))
        return;
    if (!schema_read_workspace(w->v, &workspace) || workspace.id != id) {
        check_say(c, "the record of workspace %llu is malformed", LL(id));
        return;
    }
    const struct workspace_record *r = w->v.mv_data;
    if (id > c->counters.workspace)
        check_say(c, "workspace %llu has an id that was never given", LL(id));
    if (r->deleting) {
        if (!deleting_row(c, id, 0))
            check_say(c, "workspace %llu is marked as being deleted, but no deletion is pending",
                      LL(id));
        return;
    }
    key_space(&k, SPACE_WORKSPACE_NAME);
    key_str(&k, workspace.name);
    if (!leads_to(c, SPACE_WORKSPACE_NAME, &k, &id, sizeof(id)))
        check_say(c, "workspace %llu cannot be found by its name", LL(id));
    struct workspace_record sums = {0};
    sum_projects(c, id, &sums);
    if (sums.projects != r->projects || sums.pending != r->pending ||
        memcmp(&sums.counts, &r->counts, sizeof(sums.counts)) != 0)
        check_say(c,
                  "workspace %llu counts %llu projects, %llu reports and %llu pending; there are "
                  "%llu, %llu and %llu",
                  LL(id), LL(r->projects), LL(counts_sum(&r->counts)), LL(r->pending),
                  LL(sums.projects), LL(counts_sum(&sums.counts)), LL(sums.pending));
}

void check_workspace_name(struct check *c, const struct cursor *w)
{
    uint64_t id = 0;
    struct store_workspace workspace;
    const struct str name = {(const char *)w->k.mv_data + 1, w->k.mv_size - 1};
    memcpy(&id, w->v.mv_data, w->v.mv_size < sizeof(id) ? w->v.mv_size : sizeof(id));
    const struct workspace_record *r = workspace_at(c, id, &workspace);
    if (r == NULL || r->deleting || !str_eq(workspace.name, name))
        check_say(c, "the workspace name %.*s leads to workspace %llu, which has another name",
                  (int)name.n, name.p, LL(id));
}

/* ---- keys ---- */

void check_key(struct check *c, const struct cursor *w)
{
    struct store_key key;
    struct store_workspace workspace;
    struct key k;
    const uint8_t *hash = (const uint8_t *)w->k.mv_data + 1;
    if (w->k.mv_size != 1 + sizeof(key.hash) || !schema_read_key(w->v, hash, &key)) {
        check_say(c, "a key's record is malformed");
        return;
    }
    key_id(&k, SPACE_KEY_ID, key.id);
    if (!leads_to(c, SPACE_KEY_ID, &k, hash, sizeof(key.hash)))
        check_say(c, "key %llu cannot be found by its id", LL(key.id));
    key_id(&k, SPACE_KEY_WORKSPACE, key.workspace);
    key_u64(&k, key.id);
    if (!leads_to(c, SPACE_KEY_WORKSPACE, &k, hash, sizeof(key.hash)))
        check_say(c, "key %llu cannot be found in workspace %llu", LL(key.id), LL(key.workspace));
    if (workspace_at(c, key.workspace, &workspace) == NULL)
        check_say(c, "key %llu belongs to workspace %llu, which does not exist", LL(key.id),
                  LL(key.workspace));
    if (key.id > c->counters.key)
        check_say(c, "key %llu has an id that was never given", LL(key.id));
}

static void check_hash(struct check *c, const struct cursor *w, uint64_t workspace, uint64_t id)
{
    struct store_key key;
    struct key k;
    MDB_val v;
    key_space(&k, SPACE_KEY);
    if (w->v.mv_size == sizeof(key.hash))
        key_bytes(&k, w->v.mv_data, w->v.mv_size);
    if (w->v.mv_size != sizeof(key.hash) || !check_get(c, SPACE_KEY, &k, &v) ||
        !schema_read_key(v, w->v.mv_data, &key) || key.id != id ||
        (workspace != 0 && key.workspace != workspace))
        check_say(c, "an index of keys names key %llu, which does not exist", LL(id));
}

void check_key_id(struct check *c, const struct cursor *w)
{
    uint64_t id;
    if (key_number(c, w, 0, &id))
        check_hash(c, w, 0, id);
}

void check_key_workspace(struct check *c, const struct cursor *w)
{
    uint64_t workspace, id;
    if (key_number(c, w, 0, &workspace) && key_number(c, w, 1, &id))
        check_hash(c, w, workspace, id);
}

/* ---- projects ---- */

struct sums {
    struct check *c;
    struct project_record *of;
};

static bool sum_report(void *arg, uint64_t id)
{
    const struct sums *sums = arg;
    struct store_report r;
    if (!check_report_at(sums->c, id, &r))
        return true; /* reported by check_index */
    sums->of->counts.by[r.result]++;
    sums->of->pending += r.status == REPORT_PENDING;
    sums->of->score_total += r.score >= 0 ? (uint64_t)r.score : 0;
    return true;
}

static void check_active_project(struct check *c, const struct store_project *p,
                                 const struct project_record *r)
{
    struct key k;
    MDB_val v;
    struct project_record sums = {0};
    key_id(&k, SPACE_PROJECT_NAME, p->workspace);
    key_str(&k, p->name);
    if (!leads_to(c, SPACE_PROJECT_NAME, &k, &p->id, sizeof(p->id)))
        check_say(c, "project %llu cannot be found by its name", LL(p->id));
    key_id(&k, SPACE_PROJECT_DATE, p->workspace);
    key_u64(&k, (uint64_t)p->created_at);
    key_u64(&k, p->id);
    if (!check_get(c, SPACE_PROJECT_DATE, &k, &v))
        check_say(c, "project %llu cannot be found by its date", LL(p->id));
    const struct index_snapshot *view = check_index_snapshot(c, p->workspace);
    if (view == NULL)
        return;
    index_snapshot_each_id(view, p->id, sum_report, &(struct sums){c, &sums});
    if (sums.pending != r->pending || sums.score_total != r->score_total ||
        memcmp(&sums.counts, &r->counts, sizeof(sums.counts)) != 0)
        check_say(c,
                  "project %llu counts %llu reports, %llu pending and %llu points; there are %llu, "
                  "%llu and %llu",
                  LL(p->id), LL(counts_sum(&r->counts)), LL(r->pending), LL(r->score_total),
                  LL(counts_sum(&sums.counts)), LL(sums.pending), LL(sums.score_total));
}

void check_project(struct check *c, const struct cursor *w)
{
    uint64_t id;
    struct store_project p;
    struct store_workspace workspace;
    if (!key_number(c, w, 0, &id))
        return;
    if (!schema_read_project(w->v, &p) || p.id != id) {
        check_say(c, "the record of project %llu is malformed", LL(id));
        return;
    }
    const struct project_record *r = w->v.mv_data;
    const struct workspace_record *owner = workspace_at(c, p.workspace, &workspace);
    if (id > c->counters.project)
        check_say(c, "project %llu has an id that was never given", LL(id));
    if (owner == NULL)
        check_say(c, "project %llu belongs to workspace %llu, which does not exist", LL(id),
                  LL(p.workspace));
    else if (r->deleting && !deleting_row(c, p.workspace, id))
        check_say(c, "project %llu is marked as being deleted, but no deletion is pending", LL(id));
    else if (!r->deleting && !owner->deleting)
        check_active_project(c, &p, r);
}

static void check_listed(struct check *c, uint64_t workspace, uint64_t id, const struct str *name,
                         int64_t created_at)
{
    struct store_project p;
    const struct project_record *r = project_at(c, id, &p);
    if (r == NULL || r->deleting || p.workspace != workspace ||
        (name != NULL ? !str_eq(*name, p.name) : created_at != p.created_at))
        check_say(c,
                  "an index of workspace %llu names project %llu, which does not exist or differs",
                  LL(workspace), LL(id));
}

void check_project_name(struct check *c, const struct cursor *w)
{
    const uint8_t *at = (const uint8_t *)w->k.mv_data + 1;
    const uint8_t *end = (const uint8_t *)w->k.mv_data + w->k.mv_size;
    uint64_t workspace = 0, id = 0;
    if (!key_read_u64(&at, end, &workspace) || w->v.mv_size != sizeof(id)) {
        check_say(c, "an entry of projects by name is malformed");
        return;
    }
    const struct str name = {(const char *)at, (size_t)(end - at)};
    memcpy(&id, w->v.mv_data, sizeof(id));
    check_listed(c, workspace, id, &name, 0);
}

void check_project_date(struct check *c, const struct cursor *w)
{
    uint64_t workspace, created_at, id;
    if (key_number(c, w, 0, &workspace) && key_number(c, w, 1, &created_at) &&
        key_number(c, w, 2, &id))
        check_listed(c, workspace, id, NULL, (int64_t)created_at);
}

/* ---- deletions, idempotency keys, senders ---- */

void check_deleting(struct check *c, const struct cursor *w)
{
    uint64_t workspace, project;
    struct store_workspace owner;
    struct store_project p;
    if (!key_number(c, w, 0, &workspace) || !key_number(c, w, 1, &project))
        return;
    const struct workspace_record *wr = workspace_at(c, workspace, &owner);
    const struct project_record *pr = project == 0 ? NULL : project_at(c, project, &p);
    bool marked = project == 0 ? wr != NULL && wr->deleting
                               : pr != NULL && pr->deleting && p.workspace == workspace;
    if (!marked)
        check_say(c, "project %llu of workspace %llu has a pending deletion, but is not marked",
                  LL(project), LL(workspace));
}

void check_idem(struct check *c, const struct cursor *w)
{
    struct key k;
    MDB_val v;
    const struct idem_record *r = store_record(w->v, sizeof(*r));
    if (r == NULL || w->k.mv_size != 1 + 32) {
        check_say(c, "an idempotency row is malformed");
        return;
    }
    key_id(&k, SPACE_IDEM_AGE, (uint64_t)r->expires_at);
    key_bytes(&k, (const char *)w->k.mv_data + 1, 32);
    if (!check_get(c, SPACE_IDEM_AGE, &k, &v))
        check_say(c, "the idempotency row of report %llu is never deleted", LL(r->report));
}

void check_idem_age(struct check *c, const struct cursor *w)
{
    uint64_t expires_at;
    struct key k;
    MDB_val v;
    if (!key_number(c, w, 0, &expires_at))
        return;
    const struct idem_record *r = NULL;
    key_space(&k, SPACE_IDEM);
    if (w->k.mv_size > 32) {
        key_bytes(&k, (const char *)w->k.mv_data + w->k.mv_size - 32, 32);
        if (check_get(c, SPACE_IDEM, &k, &v))
            r = store_record(v, sizeof(*r));
    }
    if (r == NULL || (uint64_t)r->expires_at != expires_at)
        check_say(c, "an idempotency row to be deleted does not exist");
}

void check_sender(struct check *c, const struct cursor *w)
{
    uint64_t sender;
    if (key_number(c, w, 0, &sender) && w->v.mv_size < sizeof(uint64_t))
        check_say(c, "the row of sender %llu is malformed", LL(sender));
}
