#include "store/engine/errors.h"
#include "store/engine/schema.h"
#include "store/engine/snapshot.h"
#include "store/index/lists.h"
#include "store/records/context.h"
#include "store/records/project.h"
#include "store/records/report.h"
#include "store/records/workspace.h"

#include <errno.h>
#include <stdlib.h>

/* Lists of reports and projects: the index selects the page; its records are read here. */

struct list {
    struct store *s;
    MDB_txn *txn;
    const struct store_list_query *q;
    size_t count;
};

static bool make_room(struct store *s, void **items, size_t *cap, size_t count, size_t size)
{
    if (count < *cap)
        return true;
    size_t more = *cap == 0 ? 32 : *cap * 2;
    void *p = realloc(*items, more * size);
    if (p == NULL) {
        store_fail(s, ENOMEM, "hold a page");
        return false;
    }
    *items = p;
    *cap = more;
    return true;
}

/* ---- projects ---- */

static enum store_status take_project(void *arg, uint64_t id)
{
    struct list *l = arg;
    struct store *s = l->s;
    void *items = s->records->projects;
    if (!make_room(s, &items, &s->records->project_cap, l->count, sizeof(*s->records->projects)))
        return STORE_IO;
    s->records->projects = items;
    enum store_status status =
        project_read(s, l->txn, l->q->workspace, id, &s->records->projects[l->count], NULL);
    l->count += status == STORE_OK;
    return status == STORE_NOT_FOUND ? store_corrupt(s, "an index of projects") : status;
}

static enum store_status project_list(struct list *l, uint64_t *total)
{
    struct store_workspace workspace;
    struct counts counts;
    enum store_status status = workspace_read(l->s, l->txn, l->q->workspace, &workspace, &counts);
    if (status != STORE_OK)
        return status == STORE_NOT_FOUND ? STORE_OK : status;
    return list_projects(l->s, l->txn, l->q, workspace.projects, take_project, l, total);
}

void store_project_list(struct store *s, const struct store_list_query *query,
                        store_project_list_fn *done, void *arg)
{
    struct list l = {.s = s, .q = query};
    uint64_t total = 0;
    enum store_status status =
        query->sort > PROJECT_BY_NAME ? STORE_INVALID : store_snapshot(s, &l.txn);
    if (status == STORE_OK)
        status = project_list(&l, &total);
    if (status == STORE_OK)
        done(arg, STORE_OK, total, s->records->projects, l.count);
    else
        done(arg, status, 0, NULL, 0);
}

/* ---- reports ---- */

static enum store_status read_head(struct list *l, uint64_t id, struct store_report *out)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_REPORT, id);
    enum store_status status = store_get(l->s, l->txn, SPACE_REPORT, &k, &v);
    if (status == STORE_NOT_FOUND || (status == STORE_OK && !schema_read_report(v, out)))
        return index_contradicted(l->s, id);
    return status;
}

static enum store_status take_report(void *arg, uint64_t id)
{
    struct list *l = arg;
    struct store *s = l->s;
    void *items = s->records->reports;
    if (!make_room(s, &items, &s->records->report_cap, l->count, sizeof(*s->records->reports)))
        return STORE_IO;
    s->records->reports = items;
    struct store_report *r = &s->records->reports[l->count];
    enum store_status status = read_head(l, id, r);
    if (status == STORE_OK && l->q->with_results)
        status = report_results(s, l->txn, r);
    l->count += status == STORE_OK;
    return status;
}

/* A workspace or project that does not exist, or is being deleted, has no reports. */
static enum store_status report_list(struct list *l, uint64_t *total)
{
    struct store_project p;
    enum store_status status = workspace_read(l->s, l->txn, l->q->workspace, NULL, NULL);
    if (status == STORE_OK && l->q->project != 0)
        status = project_read(l->s, l->txn, l->q->workspace, l->q->project, &p, NULL);
    if (status != STORE_OK)
        return status == STORE_NOT_FOUND ? STORE_OK : status;
    return list_reports(l->s, l->txn, l->q, take_report, l, total);
}

void store_report_list(struct store *s, const struct store_list_query *query,
                       store_report_list_fn *done, void *arg)
{
    struct list l = {.s = s, .q = query};
    uint64_t total = 0;
    bool valid = query->sort <= REPORT_BY_SCORE && query->result <= RESULT_BAD &&
                 query->status <= STATUSES && query->per_page <= STORE_PER_PAGE_MAX;
    enum store_status status = valid ? store_snapshot(s, &l.txn) : STORE_INVALID;
    if (status == STORE_OK)
        status = report_list(&l, &total);
    if (status == STORE_OK)
        done(arg, STORE_OK, total, s->records->reports, l.count);
    else
        done(arg, status, 0, NULL, 0);
}
