/* Which of a list's matches are its page. Private to store/. */
#ifndef ASSAY_STORE_PAGE_H
#define ASSAY_STORE_PAGE_H

#include "internal.h"

/* Skip, then take. ${total} counts them all where nothing else knows it. */
struct page {
    uint64_t skip;
    size_t want, count;
    uint64_t total;
};

struct page page_of(const struct store_list_query *q);

/*
 * Steps on the way to a page. They are short, but each may wait for the disk; only a turn that did so pauses between them. What they look at
 * is not kept but looked at again in the next turn, when it lies in memory: so each turn takes a few steps more before it pauses.
 * steps_begin(s, q, projects): at the beginning of a turn; the same query goes on where it was. steps_pause(steps): before a step: is it for
 * the next turn? steps_end(steps, status): at the turn's end; where that is the list's, the same query begins anew.
 */
struct steps {
    struct store *s;
    const struct store_list_query *q;
    unsigned taken;
};
struct steps steps_begin(struct store *s, const struct store_list_query *q, bool projects);
bool steps_pause(void *steps);
void steps_end(struct steps *steps, enum store_status status);

/* page_room(s, items, cap, count, size): room for one more item in an array that the store keeps; false when memory is short. */
bool page_room(struct store *s, void **items, size_t *cap, size_t count, size_t size);

#endif
