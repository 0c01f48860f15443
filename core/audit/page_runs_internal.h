/*
 * Runs of text that wait until the parser comes to their marks, in the order of the document. One reading's; its texts are borrowed.
 */
#ifndef ASSAY_PAGE_RUNS_INTERNAL_H
#define ASSAY_PAGE_RUNS_INTERNAL_H

#include "core/audit/page_scan_internal.h"

struct page_runs {
    struct page_run *list;
    size_t first, end, room;
    size_t number; /* of the first */
    bool failed;   /* memory was short */
};

/* page_runs_add(runs, run): ${run} waits; its mark, a letter. */
char page_runs_add(struct page_runs *runs, struct page_run run);

/*
 * page_runs_take(runs, mark, out): the first waiting run that ${mark} stands for; those before it are dropped, since the parser lost their
 * marks. False where it stands for none.
 */
bool page_runs_take(struct page_runs *runs, char mark, struct page_run *out);

void page_runs_free(struct page_runs *runs);

#endif
