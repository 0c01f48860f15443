/* The page of a list: how many matches are skipped, and how many are taken. */
#ifndef ASSAY_STORE_INDEX_PAGE_INTERNAL_H
#define ASSAY_STORE_INDEX_PAGE_INTERNAL_H

#include "store/index/lists.h"

struct page {
    const struct store *s;
    const struct store_list_query *q;
    list_take_fn *take;
    void *arg;
    uint64_t skip;
    size_t want, count; /* count: taken so far */
};

struct page page_of(const struct store *s, const struct store_list_query *q, list_take_fn *take,
                    void *arg);

/* page_stopped(page): must the query stop? For a struct search. */
bool page_stopped(void *page);

/* page_take(p, id): hand out the next item; STORE_AGAIN: the query must stop, asked before each
 * eighth item. */
enum store_status page_take(struct page *p, uint64_t id);

#endif
