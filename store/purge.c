#include "synced_parts.h"
#include "tend.h"
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
static bool dying_first(struct store *s, MDB_txn *txn, struct dying *out)
{
    struct walk w = {0};
    struct dying next;
    bool found = walk_begin(s, txn, &w, SPACE_DYING) == STORE_OK && dying_at(&w, out);
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

/* Reports are found by the index, as the transaction has it by now. */
#define PURGE_STEP 256

struct found_ids {
    uint64_t ids[PURGE_STEP];
    size_t count, most;
};

static bool take_id(void *arg, const struct segment_row *row)
{
    struct found_ids *found = arg;
    found->ids[found->count++] = row->id;
    return found->count < found->most;
}

/* Reports of the project, or (0) of the whole workspace. */
static void first_reports(const struct view *v, const struct dying *d, uint64_t most, struct found_ids *found)
{
    found->count = 0;
    found->most = most < PURGE_STEP ? (size_t)most : PURGE_STEP;
    if (d->project != 0)
        view_each_of_project(v, d->project, take_id, found);
    else
        view_each(v, 0, UINT64_MAX, take_id, found);
}

static bool next_reports(struct store_txn *t, const struct dying *d, uint64_t left, struct found_ids *found)
{
    struct view *v;
    index_write(t);
    if (t->error != STORE_OK || view_get(t->s, t->mdb, d->workspace, &v) != STORE_OK) {
        txn_fail(t, 0, "the reports' index");
        return false;
    }
    first_reports(v, d, left, found);
    return found->count != 0;
}

/* A report that waits for its grade: it counts no more, and its job and its waiters are told. */
static void purge_pending(struct store_txn *t, const struct dying *d, const struct store_report *r)
{
    struct cached *w = txn_workspace(t, d->workspace), *p = txn_project(t, r->project);
    txn_event(t, EVENT_REPORT_DELETED, r->workspace, r->id, 0);
    if (w == NULL || p == NULL) {
        txn_fail(t, 0, "a report's workspace or project");
        return;
    }
    w->workspace.pending--;
    p->project.pending--;
    w->dirty = p->dirty = true;
}

static void purge_reports(struct store_txn *t, const struct dying *d, uint64_t *left)
{
    struct found_ids found;
    while (*left > 0 && next_reports(t, d, *left, &found)) {
        for (size_t i = 0; i < found.count && *left > 0 && t->error == STORE_OK; i++) {
            struct store_report r;
            if (report_load(t, found.ids[i], &r) != STORE_OK) {
                txn_fail(t, 0, "an index of reports");
                break;
            }
            report_remove(t, &r);
            if (r.status == REPORT_PENDING)
                purge_pending(t, d, &r);
            txn_spend(t, left);
        }
    }
}

/* A manifest that names nothing and is past the log: what goes below in slices is nobody's any more, wherever that is cut off. */
static void empty_index(struct store_txn *t, uint64_t workspace)
{
    struct manifest m;
    struct log_head held;
    uint64_t next;
    struct key k;
    enum store_status status = index_manifest(t->s, t->mdb, workspace, &m);
    if (status == STORE_OK)
        status = index_log(t->s, t->mdb, workspace, &m, &next, &held);
    if (status != STORE_OK) {
        txn_fail(t, 0, "the reports' index");
        return;
    }
    if (m.count == 0 && next == m.head.log_from)
        return;
    m.head.log_from = next;
    m.head.base = held;
    key_id(&k, SPACE_MANIFEST, workspace);
    txn_put(t, SPACE_MANIFEST, &k, &m.head, sizeof(m.head));
}

/* Log, manifest and parts of a workspace that has no reports any more. */
static void purge_index(struct store_txn *t, uint64_t workspace, uint64_t *left)
{
    static const enum space spaces[] = {SPACE_PART, SPACE_LOG, SPACE_MANIFEST};
    if (*left == 0 || t->error != STORE_OK)
        return;
    index_write(t);
    tend_drop(t->s, workspace);
    empty_index(t, workspace);
    for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++) {
        while (*left > 0 && t->error == STORE_OK) {
            struct walk w = {0};
            struct key k = {.n = 0};
            key_id(&w.prefix, spaces[i], workspace);
            bool found = walk_prefix(t->s, t->mdb, &w, DB_LIST, false) == STORE_OK;
            if (found)
                key_bytes(&k, w.k.mv_data, w.k.mv_size);
            walk_end(&w);
            if (!found)
                break;
            txn_del(t, spaces[i], &k);
            txn_spend(t, left);
        }
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
        txn_spend(t, left);
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
        txn_spend(t, left);
    }
}

/* One thing that dies; true when nothing of it is left. */
static bool purge_one(struct store_txn *t, const struct dying *d, uint64_t *left)
{
    if (d->project != 0) {
        purge_reports(t, d, left);
        if (*left == 0 || t->error != STORE_OK)
            return false;
        purge_project_record(t, d->project);
    } else {
        purge_reports(t, d, left);
        purge_projects(t, d->workspace, left);
        purge_keys(t, d->workspace, left);
        purge_index(t, d->workspace, left);
        erase_workspace(t, d->workspace, left);
        struct cached *w = *left == 0 || t->error != STORE_OK ? NULL : txn_workspace(t, d->workspace);
        if (w == NULL)
            return false;
        txn_gone(t, w);
    }
    txn_spend(t, left);
    return true;
}

/* What was marked, and what is over its time. */
static bool erase_step(struct store_txn *t)
{
    uint64_t left = t->slice;
    erase_slice(t, &left);
    unseen_slice(t, &left);
    idem_purge(t, &left);
    return t->spent != 0;
}

static bool purge_step(struct store_txn *t)
{
    uint64_t left = t->slice;
    struct dying d;
    while (left > 0 && t->error == STORE_OK && t->counters.dying > 0 && dying_first(t->s, t->mdb, &d)) {
        if (!purge_one(t, &d, &left))
            continue;
        struct key k;
        key_id(&k, SPACE_DYING, d.workspace);
        key_u64(&k, d.project);
        txn_del(t, SPACE_DYING, &k);
        t->counters.dying--;
        t->counters_dirty = true;
    }
    return t->spent != 0;
}

/*
 * One kind of work a change, each in its turn, so that none waits for another's end and a commit has the pages of one only. Columns: what
 * does some of it; false: there was nothing to do.
 */
static bool (*const kinds[])(struct store_txn *t) = {erase_step, purge_step, rate_step, tend_step};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

enum store_status purge_slice(struct store_txn *t, const struct store_change *c, struct store_answer *answer)
{
    unsigned turn = t->s->upkeep_turn;
    bool worked = false;
    txn_slice(t, c->limit == 0 ? UINT64_MAX : c->limit);
    for (unsigned i = 0; i < KINDS && !worked; i++) {
        worked = kinds[turn](t);
        turn = (turn + 1) % KINDS;
    }
    t->s->upkeep_turn = turn;
    answer->id = t->spent;
    return worked ? STORE_OK : STORE_NOT_FOUND;
}

/* ---- before the transaction ---- */

/* A page that is not in memory is waited for here. */
static void touch_head(struct store *s, MDB_txn *txn, uint64_t id)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_REPORT, id);
    if (store_get(s, txn, SPACE_REPORT, &k, &v) == STORE_OK && v.mv_size > 0)
        (void)*(const volatile char *)v.mv_data;
}

/* How many of the reports that go next are in memory; 0: not even their index is. */
static size_t reports_ahead(struct store *s, MDB_txn *txn, const struct store_list_query *q, const struct dying *d, size_t limit)
{
    struct view *v;
    struct found_ids found;
    enum store_status status = view_get_some(s, txn, q, &v);
    if (status != STORE_OK)
        return status == STORE_AGAIN ? 0 : limit; /* the transaction says what is wrong */
    first_reports(v, d, limit, &found);
    for (size_t i = 0; i < found.count; i++) {
        touch_head(s, txn, found.ids[i]);
        (void)result_look(s, txn, found.ids[i]); /* the transaction says what is wrong */
        if (i + 1 < found.count && store_paused(s, q))
            return i + 1;
    }
    return limit;
}

size_t store_purge_ahead(struct store *s, size_t limit, store_pause_fn *pause, void *arg)
{
    MDB_txn *txn;
    struct dying d;
    struct store_list_query q = {.pause = pause, .pause_arg = arg};
    if (store_snapshot(s, &txn) != STORE_OK)
        return limit;
    if (store_any_dying(s, txn) && dying_first(s, txn, &d)) {
        q.workspace = d.workspace;
        limit = reports_ahead(s, txn, &q, &d, limit);
    }
    if (limit != 0 && (q.workspace = tend_next(s)) != 0 && !merge_ahead(s, txn, &q))
        limit = 0;
    if (limit != 0 && s->tend != NULL)
        merge_prepare(s, txn, s->tend);
    store_read_end(s);
    return limit;
}

/* ---- how far it is ---- */

/* Reports of dying projects, by what their records counted when they were marked; of the index, what is left of them. */
static void purge_progress(struct store *s, MDB_txn *txn, uint64_t *done, uint64_t *total)
{
    struct walk w = {0};
    struct dying d;
    enum store_status status = walk_begin(s, txn, &w, SPACE_DYING);
    for (; status == STORE_OK && dying_at(&w, &d); status = walk_next(&w)) {
        struct key k;
        MDB_val v;
        struct view *view;
        const struct project_record *p = NULL;
        key_id(&k, SPACE_PROJECT, d.project);
        if (d.project != 0 && store_get(s, txn, SPACE_PROJECT, &k, &v) == STORE_OK && v.mv_size >= sizeof(*p))
            p = v.mv_data;
        if (p == NULL || view_get(s, txn, d.workspace, &view) != STORE_OK)
            continue;
        *total += counts_sum(&p->counts);
        *done += counts_sum(&p->counts) - view_count_of_project(view, d.project);
    }
    walk_end(&w);
}

/* Of several things the one that people wait for. */
enum store_status store_upkeep(struct store *s, struct store_upkeep *out)
{
    MDB_txn *txn;
    MDB_val v;
    struct key k;
    *out = (struct store_upkeep){.what = ""};
    enum store_status status = store_snapshot(s, &txn);
    if (status != STORE_OK)
        return status;
    key_space(&k, SPACE_META);
    key_bytes(&k, "c", 1);
    status = store_get(s, txn, SPACE_META, &k, &v);
    const struct counters_record *counters = status == STORE_OK ? store_record(v, sizeof(*counters)) : NULL;
    if (counters == NULL)
        return store_corrupt(s, "the record of counters");
    if (rate_progress(s, txn, &out->done)) {
        out->what = "rating";
        out->total = counters->report;
    } else if (counters->dying != 0) {
        out->what = "purging";
        purge_progress(s, txn, &out->done, &out->total);
    } else {
        tend_progress(s, out);
    }
    return STORE_OK;
}
