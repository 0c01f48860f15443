/*
 * k-way selection over sorted runs: a page of a list, without merging the runs.
 *
 * A run is the rows of a segment in the order of the sort with a bit for each match, or only its
 * matching rows if they are few, or the matching rows of the tail. To find the cut before the page,
 * the selection takes an element of the least certain run (alternately from the likely position of
 * the cut and from the middle), looks it up in all other runs and counts matches: its rank in the
 * whole list narrows every run. So a page costs about the same wherever it is.
 */
#ifndef ASSAY_STORE_INDEX_SELECT_INTERNAL_H
#define ASSAY_STORE_INDEX_SELECT_INTERNAL_H

#include "store/index/snapshot.h"

struct run {
    const struct segment *segment; /* NULL: the tail */
    const uint64_t *bits;          /* by rank: which rows match */
    uint32_t *before;              /* matches before each word, and their number at the end */
    uint32_t words;
    const uint32_t *
        /* if it has no bits: matching rows, ascending, each of them a rank */
        rows;
    uint32_t ranks;     /* all rows, matching or not */
    uint32_t count;     /* matches */
    uint32_t low, high; /* bounds of the cut, for select_page */
};

/* run_of_bits(run): count the matches; bits, before, words and ranks are set. */
void run_of_bits(struct run *run);

/* What a page is selected from. */
struct selection {
    const struct index_snapshot *snapshot;
    struct run *runs;
    size_t count;
    unsigned sort;
};

/*
 * select_page(s, from, want, ids): the ids of ${want} elements from the ${from}-th on, ascending.
 * All must exist.
 */
void select_page(const struct selection *s, uint64_t from, size_t want, uint64_t *ids);

#endif
