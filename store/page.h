/* Which of a list's matches are its page. Private to store/. */
#ifndef ASSAY_STORE_PAGE_H
#define ASSAY_STORE_PAGE_H

#include "store/internal.h"

/* Skip, then take. */
struct page {
    const struct store *s;
    const struct store_list_query *q;
    uint64_t skip;
    size_t want, count;
};

struct page page_of(const struct store *s, const struct store_list_query *q);

/*
 * page_stopped(page): is the page's query to stop? For a struct search. page_stops(p): likewise,
 * before an item is taken; it looks before each eighth.
 */
bool page_stopped(void *page);
bool page_stops(const struct page *p);

/* page_room(s, items, cap, count, size): room for one more item in an array that the store keeps; false when memory is short. */
bool page_room(struct store *s, void **items, size_t *cap, size_t count, size_t size);

#endif
