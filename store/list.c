#include "store/index/found.h"
#include "store/names.h"
#include "store/page.h"
#include "store/search.h"

#include <errno.h>
#include <stdlib.h>

struct page page_of(const struct store *s, const struct store_list_query *q)
{
    struct page p = {.s = s, .q = q, .want = q->per_page};
    uint64_t before = q->page == 0 ? 0 : q->page - 1;
    if (__builtin_mul_overflow(before, (uint64_t)q->per_page, &p.skip))
        p.skip = UINT64_MAX;
    return p;
}

bool page_stopped(void *page)
{
    const struct page *p = page;
    return store_paused(p->s, p->q);
}

bool page_stops(const struct page *p)
{
    return p->count % 8 == 7 && store_paused(p->s, p->q);
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

static enum store_status take_project(struct project_list *l, uint64_t id)
{
    struct store *s = l->s;
    void *items = s->projects;
    if (page_stops(&l->page))
        return STORE_AGAIN;
    if (!page_room(s, &items, &s->project_cap, l->page.count, sizeof(*s->projects)))
        return STORE_IO;
    s->projects = items;
    enum store_status status =
        project_read(s, l->txn, l->q->workspace, id, &s->projects[l->page.count], NULL);
    l->page.count += status == STORE_OK;
    return status == STORE_NOT_FOUND ? store_corrupt(s, "an index of projects") : status;
}

/* The ${at}-th of the order, in the direction of the list. */
static uint32_t row_at(const struct project_list *l, const struct names *n, uint64_t at)
{
    const uint32_t *order = (const uint32_t *)(const void *)n->orders[l->q->sort].p;
    return order[l->q->ascending ? at : names_count(n) - 1 - at];
}

static uint64_t id_of(const struct names *n, uint32_t row)
{
    return ((const struct names_row *)(const void *)n->rows.p)[row].id;
}

static enum store_status take_all(struct project_list *l, const struct names *n)
{
    enum store_status status = STORE_OK;
    for (uint64_t at = l->page.skip;
         status == STORE_OK && l->page.count < l->page.want && at < names_count(n); at++)
        status = take_project(l, id_of(n, row_at(l, n, at)));
    return status;
}

/* The rows that have the needle; what was found stays, as they become more. */
static enum store_status search_names(struct project_list *l, const struct names *n,
                                      const uint64_t **out)
{
    struct found *found = found_needle(l->s, l->q->workspace, search_key(&l->search));
    uint32_t rows = (uint32_t)(n->rows.n / sizeof(struct names_row));
    const uint32_t *offset = (const uint32_t *)(const void *)n->offset.p;
    const uint8_t *text = (const uint8_t *)n->text.p;
    uint64_t *bits = found == NULL ? NULL : found_rows(l->s, found, &found->names, n->made, rows);
    if (bits == NULL && (found == NULL || rows != 0))
        return store_fail(l->s, ENOMEM, "search");
    if (!search_rows(&l->search, text, offset, found->names.looked, rows, bits))
        return STORE_AGAIN;
    found->names.looked = rows;
    *out = bits;
    return STORE_OK;
}

static enum store_status take_matching(struct project_list *l, const struct names *n,
                                       uint64_t *total)
{
    const uint64_t *bits = NULL;
    enum store_status status = search_names(l, n, &bits);
    *total = 0;
    for (uint32_t at = 0, count = names_count(n); at < count && status == STORE_OK; at++) {
        uint32_t row = row_at(l, n, at);
        if (!bit_test(bits, row))
            continue;
        if ((*total)++ >= l->page.skip && l->page.count < l->page.want)
            status = take_project(l, id_of(n, row));
    }
    return status;
}

static enum store_status project_list(struct project_list *l, uint64_t *total)
{
    struct store_workspace workspace;
    struct counts counts;
    const struct names *n;
    enum store_status status = workspace_read(l->s, l->txn, l->q->workspace, &workspace, &counts);
    if (status != STORE_OK)
        return status == STORE_NOT_FOUND ? STORE_OK : status;
    status = names_get(l->s, l->txn, l->q, workspace.projects, &n);
    *total = workspace.projects;
    if (status != STORE_OK)
        return status;
    return l->q->search.n == 0 ? take_all(l, n) : take_matching(l, n, total);
}

void store_project_list(struct store *s, const struct store_list_query *query,
                        store_project_list_fn *done, void *arg)
{
    struct project_list l = {.s = s, .q = query, .page = page_of(s, query)};
    uint64_t total = 0;
    enum store_status status =
        query->sort > PROJECT_BY_NAME ? STORE_INVALID : store_snapshot(s, &l.txn);
    if (status == STORE_OK && !search_begin(&l.search, query->search))
        status = store_fail(s, ENOMEM, "search");
    l.search.stop = page_stopped;
    l.search.stop_arg = &l.page;
    if (status == STORE_OK)
        status = project_list(&l, &total);
    if (status == STORE_OK)
        done(arg, STORE_OK, total, s->projects, l.page.count);
    else
        done(arg, status, 0, NULL, 0);
    search_end(&l.search);
}
