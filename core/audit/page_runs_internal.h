/*
 * Queue of text runs that wait for the parser to reach their marks, in document order. The texts
 * are borrowed.
 */
#ifndef ASSAY_PAGE_RUNS_INTERNAL_H
#define ASSAY_PAGE_RUNS_INTERNAL_H

#include "core/audit/page_scan_internal.h"

struct page_runs {
    struct page_run *list;
    size_t first, end, capacity;
    size_t number; /* sequence number of the first one */
    bool failed;   /* memory was short */
};

/* page_runs_add(runs, run): append ${run} and return its mark, a letter. */
char page_runs_add(struct page_runs *runs, struct page_run run);

/*
 * page_runs_take(runs, mark, out): take the first waiting run with ${mark}. Runs before it are
 * dropped: the parser lost their marks. False if no run has it.
 */
bool page_runs_take(struct page_runs *runs, char mark, struct page_run *out);

void page_runs_free(struct page_runs *runs);

#endif
