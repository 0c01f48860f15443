#include "store/records/purge.h"

#include "store/engine/cursor.h"
#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/index/index.h"
#include "store/records/apply.h"
#include "store/records/cached_records.h"
#include "store/records/context.h"
#include "store/records/erase.h"
#include "store/records/idempotency.h"
#include "store/records/project.h"
#include "store/records/report.h"
#include "store/records/sync_purge.h"
#include "store/records/thresholds.h"
#include "store/records/workspace.h"

static bool deleting_at(struct cursor *w, struct deleting *out)
{
    return cursor_u64(w, 0, &out->workspace) && cursor_u64(w, 1, &out->project);
}

bool deleting_next(struct store *s, MDB_txn *txn, uint64_t from, struct deleting *out)
{
    struct cursor w = {0};
    struct key at;
    struct deleting next;
    key_space(&w.prefix, SPACE_DELETING);
    key_id(&at, SPACE_DELETING, from);
    bool found = cursor_from(s, txn, &w, DB_BASE, &at) == STORE_OK && deleting_at(&w, out);
    if (found && out->project == 0 && cursor_next(&w) == STORE_OK && deleting_at(&w, &next) &&
        next.workspace == out->workspace)
        *out = next;
    cursor_end(&w);
    return found;
}

/* The number at the end of the first key of a prefix; false: there is none. */
static bool first_of(struct store_txn *t, enum db db, struct cursor *w, unsigned skip,
                     uint64_t *out)
{
    bool found = t->error == STORE_OK && cursor_prefix(t->s, t->mdb, w, db, false) == STORE_OK &&
                 cursor_u64(w, skip, out);
    cursor_end(w);
    return found;
}

/* A pending report: correct the counters, and tell its job and the clients that wait. */
static void purge_pending(struct store_txn *t, const struct deleting *d,
                          const struct store_report *r)
{
    struct cached_record *w = txn_workspace(t, d->workspace), *p = txn_project(t, r->project);
    txn_event(t, EVENT_REPORT_DELETED, r->workspace, r->id, 0);
    if (w == NULL || p == NULL) {
        txn_fail(t, 0, "a report's workspace or project");
        return;
    }
    w->workspace.pending--;
    p->project.pending--;
    w->dirty = p->dirty = true;
}

/* Delete the first reports; returns how many. */
static uint64_t purge_reports(struct store_txn *t, const struct deleting *d, struct str ids,
                              uint64_t left)
{
    uint64_t done = 0;
    for (size_t at = 0; at + sizeof(uint64_t) <= ids.n && left > 0; at += sizeof(uint64_t)) {
        uint64_t id;
        struct store_report r;
        memcpy(&id, ids.p + at, sizeof(id));
        if (report_load(t, id, &r) != STORE_OK || r.workspace != d->workspace ||
            (d->project != 0 && r.project != d->project)) {
            txn_fail(t, 0, "an index of reports");
            break;
        }
        report_remove(t, &r);
        if (r.status == REPORT_PENDING)
            purge_pending(t, d, &r);
        txn_spend(t, &left);
        done++;
    }
    return done;
}

static void purge_project_record(struct store_txn *t, uint64_t id)
{
    struct cached_record *p = txn_project(t, id);
    if (p == NULL)
        txn_fail(t, 0, "a project's record");
    else
        txn_gone(t, p);
}

/* Projects that were not deleted themselves still have their name and date. */
static void purge_projects(struct store_txn *t, uint64_t workspace, uint64_t *left)
{
    uint64_t id;
    while (*left > 0) {
        struct cursor w = {0};
        key_id(&w.prefix, SPACE_PROJECT_DATE, workspace);
        if (!first_of(t, DB_BASE, &w, 2, &id))
            return;
        struct cached_record *p = txn_project(t, id);
        if (p == NULL) {
            txn_fail(t, 0, "the index of projects");
            return;
        }
        project_unlist(t, p);
        txn_gone(t, p);
        txn_spend(t, left);
    }
}

static void purge_keys(struct store_txn *t, uint64_t workspace, uint64_t *left)
{
    uint64_t id;
    while (*left > 0) {
        struct cursor w = {0};
        key_id(&w.prefix, SPACE_KEY_WORKSPACE, workspace);
        if (!first_of(t, DB_BASE, &w, 1, &id))
            return;
        key_remove(t, workspace, id);
        txn_spend(t, left);
    }
}

/* Delete the rest after its reports; true: nothing is left. */
static bool purge_rest(struct store_txn *t, const struct deleting *d, uint64_t *left)
{
    if (d->project != 0) {
        purge_project_record(t, d->project);
    } else {
        purge_projects(t, d->workspace, left);
        purge_keys(t, d->workspace, left);
        index_empty(t, d->workspace, left);
        erase_workspace(t, d->workspace, left);
        struct cached_record *w =
            *left == 0 || t->error != STORE_OK ? NULL : txn_workspace(t, d->workspace);
        if (w == NULL)
            return false;
        txn_gone(t, w);
    }
    txn_spend(t, left);
    return true;
}

static void end_deleting(struct store_txn *t, const struct deleting *d)
{
    struct key k;
    key_id(&k, SPACE_DELETING, d->workspace);
    key_u64(&k, d->project);
    txn_del(t, SPACE_DELETING, &k);
    t->counters.deleting--;
    t->counters_dirty = true;
}

static bool is_deleting(struct store_txn *t, const struct deleting *d)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_DELETING, d->workspace);
    key_u64(&k, d->project);
    return txn_get(t, SPACE_DELETING, &k, &v) == STORE_OK;
}

enum store_status purge_deleted(struct store_txn *t, const struct store_change *c,
                                struct store_answer *answer)
{
    const struct deleting d = {c->workspace, c->id};
    uint64_t left = txn_batch_limit(t, c->limit == 0 ? UINT64_MAX : c->limit);
    if (!is_deleting(t, &d))
        return STORE_NOT_FOUND;
    if (c->data.n != 0) {
        answer->id = purge_reports(t, &d, c->data, left);
        return STORE_OK;
    }
    if (purge_rest(t, &d, &left))
        end_deleting(t, &d);
    answer->id = t->spent;
    return STORE_OK;
}

/* Marked scopes, and expired records. */
static bool erase_step(struct store_txn *t)
{
    uint64_t left = t->batch_limit;
    erase_batch(t, &left);
    unseen_batch(t, &left);
    idempotency_purge(t, &left);
    return t->spent != 0;
}

/*
 * One kind of work per change, round robin, so that no kind waits for another and a commit has the
 * pages of one. Columns: a step of the work; false: there is nothing to do.
 */
static bool (*const kinds[])(struct store_txn *t) = {erase_step, thresholds_step};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

enum store_status purge_batch(struct store_txn *t, const struct store_change *c,
                              struct store_answer *answer)
{
    unsigned turn = t->s->records->background_turn;
    bool worked = false;
    txn_batch_limit(t, c->limit == 0 ? UINT64_MAX : c->limit);
    for (unsigned i = 0; i < KINDS && !worked; i++) {
        worked = kinds[turn](t);
        turn = (turn + 1) % KINDS;
    }
    t->s->records->background_turn = turn;
    answer->id = t->spent;
    return worked ? STORE_OK : STORE_NOT_FOUND;
}

/* ---- progress ---- */

enum store_status store_maintenance_status(struct store *s, struct store_maintenance_status *out)
{
    MDB_txn *txn;
    struct counters_record counters;
    *out = (struct store_maintenance_status){.what = ""};
    enum store_status status = store_snapshot(s, &txn);
    if (status != STORE_OK)
        return status;
    status = store_counters(s, txn, &counters);
    if (status != STORE_OK)
        return status;
    if (thresholds_progress(s, txn, &out->done)) {
        out->what = "rating";
        out->total = counters.report;
    }
    return STORE_OK;
}
