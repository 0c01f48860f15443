#include "page.h"
#include "search.h"

#include <errno.h>
#include <stdlib.h>

struct page page_of(const struct store_list_query *q)
{
    struct page p = {.want = q->per_page};
    uint64_t before = q->page == 0 ? 0 : q->page - 1;
    if (__builtin_mul_overflow(before, (uint64_t)q->per_page, &p.skip))
        p.skip = UINT64_MAX;
    return p;
}

bool page_room(struct store *s, void **items, size_t *cap, size_t count, size_t size)
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
    if (!page_room(s, &items, &s->project_cap, l->page.count, sizeof(*s->projects)))
        return STORE_IO;
    s->projects = items;
    s->projects[l->page.count++] = p;
    return render_read_project(s, &s->projects[l->page.count - 1]);
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
