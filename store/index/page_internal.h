/* The page of a list: how many matches are skipped, and how many are taken. */
#ifndef ASSAY_STORE_PAGE_H
#define ASSAY_STORE_PAGE_H

#include "store/engine/snapshot.h"

struct page {
    const struct store *s;
    const struct store_list_query *q;
    uint64_t skip;
    size_t want, count; /* count: taken so far */
};

struct page page_of(const struct store *s, const struct store_list_query *q);

/*
 * page_stopped(page): must the query stop? For a struct search. page_stops(p): the same before an
 * item is taken; it asks before each eighth.
 */
bool page_stopped(void *page);
bool page_stops(const struct page *p);

#endif
