/*
 * Which pages of a file are free: runs of them, ascending, no two touching. Private to store/; knows nothing of files.
 */
#ifndef ASSAY_SPARE_H
#define ASSAY_SPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_run {
    uint64_t page, count;
};

struct spare {
    struct page_run *runs;
    size_t count, cap;
    uint64_t end; /* pages from here on were never in use */
};

/* spare_take(p, count): the first of ${count} pages side by side: of the shortest run that has them, else at the end. */
uint64_t spare_take(struct spare *p, uint64_t count);

/* spare_give(p, run): they are free again; where memory is short, not before the list is made anew. */
void spare_give(struct spare *p, struct page_run run);

/* spare_rest(p, used, count): all but the runs ${used}, which are sorted here; ${first}: pages before it are never free. False when memory is short. */
bool spare_rest(struct spare *p, uint64_t first, struct page_run *used, size_t count);

void spare_free(struct spare *p);

#endif
