#include "index.h"
#include "widget_parts.h"

/*
 * What was deleted as a whole is gone for everybody at once, by its row among the dying; here its records follow, some at a time. Each
 * step looks up what is first now, so a purge cut off anywhere goes on from what is left.
 */

struct dying {
    uint64_t workspace, project;
};

static bool dying_at(struct walk *w, struct dying *out)
{
    return walk_u64(w, 0, &out->workspace) && walk_u64(w, 1, &out->project);
}

/* The projects of a workspace go before the workspace itself. */
static bool dying_first(struct store_txn *t, struct dying *out)
{
    struct walk w = {0};
    struct dying next;
    bool found = walk_begin(t->s, t->mdb, &w, SPACE_DYING) == STORE_OK && dying_at(&w, out);
    if (found && out->project == 0 && walk_next(&w) == STORE_OK && dying_at(&w, &next) && next.workspace == out->workspace)
        *out = next;
    walk_end(&w);
    return found;
}

/* The number at the end of the first key of a prefix; false when there is none. */
static bool first_of(struct store_txn *t, enum db db, struct walk *w, unsigned skip, uint64_t *out)
{
    bool found = t->error == STORE_OK && walk_prefix(t->s, t->mdb, w, db, false) == STORE_OK && walk_u64(w, skip, out);
    walk_end(w);
    return found;
}

static bool first_report(struct store_txn *t, enum index_scope scope, uint64_t scope_id, uint64_t *out)
{
    for (enum report_result class = RESULT_NONE; class <= RESULT_BAD; class ++) {
        struct walk w = {0};
        index_prefix(&w.prefix, INDEX_ID, scope, scope_id, class);
        if (first_of(t, DB_INDEX, &w, 1, out))
            return true;
    }
    return false;
}

static void purge_reports(struct store_txn *t, enum index_scope scope, uint64_t scope_id, uint64_t *left)
{
    uint64_t id;
    while (*left > 0 && first_report(t, scope, scope_id, &id)) {
        struct store_report r;
        if (report_load(t, id, &r) != STORE_OK) {
            txn_fail(t, 0, "an index of reports");
            return;
        }
        report_remove(t, &r);
        --*left;
    }
}

static void purge_project_record(struct store_txn *t, uint64_t id)
{
    struct cached *p = txn_project(t, id);
    if (p == NULL)
        txn_fail(t, 0, "a project's record");
    else
        txn_gone(t, p);
}

/* Projects that were not deleted on their own still have their name and date. */
static void purge_projects(struct store_txn *t, uint64_t workspace, uint64_t *left)
{
    uint64_t id;
    while (*left > 0) {
        struct walk w = {0};
        key_id(&w.prefix, SPACE_PROJECT_DATE, workspace);
        if (!first_of(t, DB_BASE, &w, 2, &id))
            return;
        struct cached *p = txn_project(t, id);
        if (p == NULL) {
            txn_fail(t, 0, "the index of projects");
            return;
        }
        project_unlist(t, p);
        txn_gone(t, p);
        --*left;
    }
}

static void purge_keys(struct store_txn *t, uint64_t workspace, uint64_t *left)
{
    uint64_t id;
    while (*left > 0) {
        struct walk w = {0};
        key_id(&w.prefix, SPACE_KEY_WORKSPACE, workspace);
        if (!first_of(t, DB_BASE, &w, 1, &id))
            return;
        key_remove(t, workspace, id);
        --*left;
    }
}

/* One thing that dies; true when nothing of it is left. */
static bool purge_one(struct store_txn *t, const struct dying *d, uint64_t *left)
{
    if (d->project != 0) {
        purge_reports(t, SCOPE_PROJECT, d->project, left);
        if (*left == 0 || t->error != STORE_OK)
            return false;
        purge_project_record(t, d->project);
    } else {
        purge_reports(t, SCOPE_WORKSPACE, d->workspace, left);
        purge_projects(t, d->workspace, left);
        purge_keys(t, d->workspace, left);
        erase_workspace(t, d->workspace, left);
        struct cached *w = *left == 0 || t->error != STORE_OK ? NULL : txn_workspace(t, d->workspace);
        if (w == NULL)
            return false;
        txn_gone(t, w);
    }
    --*left;
    return true;
}

enum store_status purge_slice(struct store_txn *t, const struct store_change *c, struct store_answer *answer)
{
    uint64_t limit = c->limit == 0 ? UINT64_MAX : c->limit;
    uint64_t left = limit;
    struct dying d;
    while (left > 0 && t->error == STORE_OK && t->counters.dying > 0 && dying_first(t, &d)) {
        if (!purge_one(t, &d, &left))
            continue;
        struct key k;
        key_id(&k, SPACE_DYING, d.workspace);
        key_u64(&k, d.project);
        txn_del(t, SPACE_DYING, &k);
        t->counters.dying--;
        t->counters_dirty = true;
    }
    erase_slice(t, &left);
    left -= idem_purge(t, left);
    answer->id = limit - left;
    return left == limit ? STORE_NOT_FOUND : STORE_OK;
}
