#include "index.h"
#include "search.h"

#include <errno.h>
#include <stdlib.h>

/* Which of the matches are the page: skip, then take. ${total} counts them all where nothing else knows it. */
struct page {
    uint64_t skip;
    size_t want, count;
    uint64_t total;
};

static struct page page_of(const struct store_list_query *q)
{
    struct page p = {.want = q->per_page};
    uint64_t before = q->page == 0 ? 0 : q->page - 1;
    if (__builtin_mul_overflow(before, (uint64_t)q->per_page, &p.skip))
        p.skip = UINT64_MAX;
    return p;
}

/* Room for one more item in an array that the store keeps. */
static bool room(struct store *s, void **items, size_t *cap, size_t count, size_t size)
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

/* ---- reports ---- */

struct report_list {
    struct store *s;
    MDB_txn *txn;
    const struct store_list_query *q;
    struct page page;
    struct search search;
    bool searching;
    struct buf dying; /* projects being deleted whose entries the walk has to pass over */
    struct index_walk walk;
};

/* The exact number of reports the filters let through, from the counters. */
static enum store_status report_total(struct store *s, MDB_txn *txn, const struct store_list_query *q, uint64_t *out)
{
    struct counts counts;
    enum store_status status;
    if (q->project != 0) {
        struct store_project p;
        status = project_read(s, txn, q->workspace, q->project, &p, &counts);
    } else {
        status = workspace_read(s, txn, q->workspace, NULL, &counts);
    }
    *out = status != STORE_OK ? 0 : q->result == RESULT_NONE ? counts_sum(&counts) : counts.by[q->result];
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static enum store_status gather_dying(struct report_list *l)
{
    struct walk w = {0};
    if (l->q->project != 0 || !store_any_dying(l->s, l->txn))
        return STORE_OK;
    key_id(&w.prefix, SPACE_DYING, l->q->workspace);
    enum store_status status = walk_prefix(l->s, l->txn, &w, DB_BASE, false);
    for (; status == STORE_OK; status = walk_next(&w)) {
        uint64_t project;
        if (!walk_u64(&w, 1, &project))
            status = store_corrupt(l->s, "the list of what is being deleted");
        else
            buf_add(&l->dying, &project, sizeof(project));
    }
    walk_end(&w);
    if (!buf_ok(&l->dying))
        return store_fail(l->s, ENOMEM, "list reports");
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

static bool is_dying(const struct report_list *l, uint64_t project)
{
    for (size_t at = 0; at < l->dying.n; at += sizeof(project)) {
        if (memcmp(l->dying.p + at, &project, sizeof(project)) == 0)
            return true;
    }
    return false;
}

static enum store_status read_head(struct report_list *l, uint64_t id, struct store_report *out)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_REPORT, id);
    enum store_status status = store_get(l->s, l->txn, SPACE_REPORT, &k, &v);
    if (status == STORE_NOT_FOUND || (status == STORE_OK && !schema_read_report(v, out)))
        return store_corrupt(l->s, "an index of reports");
    return status;
}

/* Does the search let this entry through? By URL the entry says, otherwise the head. */
static enum store_status matches(struct report_list *l, const struct index_entry *e, bool *out)
{
    struct store_report r = {.url = e->url};
    enum store_status status = STORE_OK;
    *out = true;
    if (!l->searching)
        return STORE_OK;
    if (e->url.n == 0)
        status = read_head(l, e->id, &r);
    *out = status == STORE_OK && search_matches(&l->search, r.url);
    return status;
}

static enum store_status take(struct report_list *l, uint64_t id)
{
    struct store *s = l->s;
    void *items = s->reports;
    if (!room(s, &items, &s->report_cap, l->page.count, sizeof(*s->reports)))
        return STORE_IO;
    s->reports = items;
    struct store_report *r = &s->reports[l->page.count];
    enum store_status status = read_head(l, id, r);
    if (status == STORE_OK && l->q->with_results)
        status = report_results(s, l->txn, r);
    l->page.count += status == STORE_OK;
    return status;
}

/* Walk until the page is full; a search has to go on to the end, since nothing else knows how many match. */
static enum store_status report_walk(struct report_list *l)
{
    struct index_entry e;
    enum store_status status;
    while ((l->searching || l->page.count < l->page.want) && (status = index_next(&l->walk, &e)) != STORE_NOT_FOUND) {
        bool match = false;
        if (status == STORE_OK && !is_dying(l, e.project))
            status = matches(l, &e, &match);
        if (status != STORE_OK)
            return status;
        if (!match)
            continue;
        l->page.total++;
        if (l->page.total > l->page.skip && l->page.count < l->page.want)
            status = take(l, e.id);
        if (status != STORE_OK)
            return status;
    }
    return STORE_OK;
}

static enum store_status report_list(struct report_list *l, uint64_t *total)
{
    const struct store_list_query *q = l->q;
    enum store_status status = report_total(l->s, l->txn, q, total);
    if (status != STORE_OK || *total == 0 || (!l->searching && l->page.skip >= *total))
        return status;
    status = gather_dying(l);
    if (status != STORE_OK)
        return status;
    index_begin(l->s, l->txn, &l->walk, q->sort, q->project != 0 ? SCOPE_PROJECT : SCOPE_WORKSPACE,
                q->project != 0 ? q->project : q->workspace, q->result, q->ascending);
    status = report_walk(l);
    index_end(&l->walk);
    if (l->searching)
        *total = l->page.total;
    return status;
}

void store_report_list(struct store *s, const struct store_list_query *query, store_report_list_fn *done, void *arg)
{
    MDB_txn *txn;
    uint64_t total = 0;
    struct report_list *l = NULL;
    enum store_status status = query->sort > REPORT_BY_SCORE || query->result > RESULT_BAD ? STORE_INVALID : store_snapshot(s, &txn);
    if (status == STORE_OK) {
        l = malloc(sizeof(*l)); /* some 100 KiB, and only what is used of it is touched */
        status = l == NULL ? store_fail(s, ENOMEM, "list reports") : STORE_OK;
    }
    if (l != NULL) {
        l->s = s;
        l->txn = txn;
        l->q = query;
        l->page = page_of(query);
        l->dying = (struct buf){0};
        l->searching = query->search.n != 0;
        if (l->searching && !search_begin(&l->search, query->search))
            status = store_fail(s, ENOMEM, "search");
        if (status == STORE_OK)
            status = report_list(l, &total);
    }
    if (status == STORE_OK)
        done(arg, STORE_OK, total, s->reports, l->page.count);
    else
        done(arg, status, 0, NULL, 0);
    if (l != NULL) {
        if (l->searching)
            search_end(&l->search);
        buf_free(&l->dying);
        free(l);
    }
}

/* ---- projects ---- */

struct project_list {
    struct store *s;
    MDB_txn *txn;
    const struct store_list_query *q;
    struct page page;
    struct search search;
};

/* The project an index entry leads to. By name the value says which, by date the key. */
static enum store_status project_at(struct project_list *l, struct walk *w, struct store_project *out)
{
    uint64_t id = 0;
    bool good;
    if (l->q->sort == PROJECT_BY_NAME) {
        good = w->v.mv_size == sizeof(id);
        if (good)
            memcpy(&id, w->v.mv_data, sizeof(id));
    } else {
        good = walk_u64(w, 2, &id);
    }
    enum store_status status = good ? project_read(l->s, l->txn, l->q->workspace, id, out, NULL) : STORE_NOT_FOUND;
    return status == STORE_NOT_FOUND ? store_corrupt(l->s, "an index of projects") : status;
}

static enum store_status project_step(struct project_list *l, struct walk *w)
{
    struct store *s = l->s;
    bool searching = l->q->search.n != 0;
    bool wanted = l->page.count < l->page.want;
    if (!searching && (l->page.total < l->page.skip || !wanted)) {
        l->page.total++;
        return STORE_OK;
    }
    struct store_project p;
    enum store_status status = project_at(l, w, &p);
    if (status != STORE_OK || (searching && !search_matches(&l->search, p.name)))
        return status;
    l->page.total++;
    if (l->page.total <= l->page.skip || !wanted)
        return STORE_OK;
    void *items = s->projects;
    if (!room(s, &items, &s->project_cap, l->page.count, sizeof(*s->projects)))
        return STORE_IO;
    s->projects = items;
    s->projects[l->page.count++] = p;
    return STORE_OK;
}

static enum store_status project_list(struct project_list *l, uint64_t *total)
{
    const struct store_list_query *q = l->q;
    struct store_workspace workspace;
    struct counts counts;
    enum store_status status = workspace_read(l->s, l->txn, q->workspace, &workspace, &counts);
    if (status != STORE_OK)
        return status == STORE_NOT_FOUND ? STORE_OK : status;
    *total = workspace.projects;
    if (q->search.n == 0 && l->page.skip >= *total)
        return STORE_OK;
    struct walk w = {0};
    enum space space = q->sort == PROJECT_BY_NAME ? SPACE_PROJECT_NAME : SPACE_PROJECT_DATE;
    key_id(&w.prefix, space, q->workspace);
    status = walk_prefix(l->s, l->txn, &w, DB_BASE, !q->ascending);
    for (; status == STORE_OK && (q->search.n != 0 || l->page.count < l->page.want); status = walk_next(&w)) {
        status = project_step(l, &w);
        if (status != STORE_OK)
            break;
    }
    walk_end(&w);
    if (q->search.n != 0)
        *total = l->page.total;
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

void store_project_list(struct store *s, const struct store_list_query *query, store_project_list_fn *done, void *arg)
{
    struct project_list l = {.s = s, .q = query, .page = page_of(query)};
    uint64_t total = 0;
    enum store_status status = query->sort > PROJECT_BY_NAME ? STORE_INVALID : store_snapshot(s, &l.txn);
    if (status == STORE_OK && !search_begin(&l.search, query->search))
        status = store_fail(s, ENOMEM, "search");
    if (status == STORE_OK)
        status = project_list(&l, &total);
    if (status == STORE_OK)
        done(arg, STORE_OK, total, s->projects, l.page.count);
    else
        done(arg, status, 0, NULL, 0);
    search_end(&l.search);
}
