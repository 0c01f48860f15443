#include "store/engine/errors.h"
#include "store/index/bitmap_internal.h"
#include "store/index/lists.h"
#include "store/index/match_cache_internal.h"
#include "store/index/page_internal.h"
#include "store/index/project_names_internal.h"
#include "store/index/search_internal.h"

#include <errno.h>
#include <stdlib.h>

struct project_list {
    struct store *s;
    MDB_txn *txn;
    const struct store_list_query *q;
    struct page page;
    struct search search;
};

/* The ${at}-th row in the order of the list. */
static uint32_t row_at(const struct project_list *l, const struct project_names *n, uint64_t at)
{
    const uint32_t *order = (const uint32_t *)(const void *)n->orders[l->q->sort].p;
    return order[l->q->ascending ? at : project_names_count(n) - 1 - at];
}

static uint64_t id_of(const struct project_names *n, uint32_t row)
{
    return ((const struct names_row *)(const void *)n->rows.p)[row].id;
}

static enum store_status take_all(struct project_list *l, const struct project_names *n)
{
    enum store_status status = STORE_OK;
    for (uint64_t at = l->page.skip;
         status == STORE_OK && l->page.count < l->page.want && at < project_names_count(n); at++)
        status = page_take(&l->page, id_of(n, row_at(l, n, at)));
    return status;
}

/* The matching rows; earlier matches are kept, since rows are only added. */
static enum store_status search_names(struct project_list *l, const struct project_names *n,
                                      const uint64_t **out)
{
    struct match_cache_entry *found =
        match_cache_get(l->s, l->q->workspace, search_key(&l->search));
    uint32_t rows = (uint32_t)(n->rows.n / sizeof(struct names_row));
    const uint32_t *offset = (const uint32_t *)(const void *)n->offset.p;
    const uint8_t *text = (const uint8_t *)n->text.p;
    uint64_t *bits =
        found == NULL ? NULL : match_cache_rows(l->s, found, &found->names, n->made, rows);
    if (bits == NULL && (found == NULL || rows != 0))
        return store_fail(l->s, ENOMEM, "search");
    if (!search_rows(&l->search, text, offset, found->names.looked, rows, bits))
        return STORE_AGAIN;
    found->names.looked = rows;
    *out = bits;
    return STORE_OK;
}

static enum store_status take_matching(struct project_list *l, const struct project_names *n,
                                       uint64_t *total)
{
    const uint64_t *bits = NULL;
    enum store_status status = search_names(l, n, &bits);
    *total = 0;
    for (uint32_t at = 0, count = project_names_count(n); at < count && status == STORE_OK; at++) {
        uint32_t row = row_at(l, n, at);
        if (!bit_test(bits, row))
            continue;
        if ((*total)++ >= l->page.skip && l->page.count < l->page.want)
            status = page_take(&l->page, id_of(n, row));
    }
    return status;
}

enum store_status list_projects(struct store *s, MDB_txn *txn, const struct store_list_query *q,
                                uint64_t projects, list_take_fn *take, void *arg, uint64_t *total)
{
    const struct project_names *n;
    struct project_list l = {.s = s, .txn = txn, .q = q, .page = page_of(s, q, take, arg)};
    *total = projects;
    if (!search_begin(&l.search, q->search))
        return store_fail(s, ENOMEM, "search");
    l.search.stop = page_stopped;
    l.search.stop_arg = &l.page;
    enum store_status status = project_names_get(s, txn, q, projects, &n);
    if (status == STORE_OK)
        status = q->search.n == 0 ? take_all(&l, n) : take_matching(&l, n, total);
    search_end(&l.search);
    return status;
}
