/* Which of a list's matches are its page. Private to store/. */
#ifndef ASSAY_STORE_PAGE_H
#define ASSAY_STORE_PAGE_H

#include "internal.h"

/* Skip, then take. */
struct page {
    uint64_t skip;
    size_t want, count;
};

struct page page_of(const struct store_list_query *q);

/* page_stops(s, q, count): is the query to stop before that item? Asked before each eighth. */
static inline bool page_stops(const struct store *s, const struct store_list_query *q, size_t count)
{
    return count % 8 == 7 && store_paused(s, q);
}

/* page_room(s, items, cap, count, size): room for one more item in an array that the store keeps; false when memory is short. */
bool page_room(struct store *s, void **items, size_t *cap, size_t count, size_t size);

#endif
