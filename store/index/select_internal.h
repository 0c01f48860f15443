/*
 * The page of a list out of several sorted sequences (runs), without merging them. Private to
 * store/.
 *
 * A run is a segment's rows in the order of the sort with a bit for each that matches, or its
 * matching rows alone where they are few, or the view's own matching rows. To find which rows of
 * each run come before the page, an element is taken of the run that is least certain, from where
 * the page is likely to begin in it and from its middle by turns, looked up in all the others, and
 * counted with bits: its place in the whole list narrows every run. So a page costs much the same
 * wherever it lies.
 */
#ifndef ASSAY_STORE_SELECT_H
#define ASSAY_STORE_SELECT_H

#include "store/index/snapshot.h"

struct run {
    const struct segment *segment; /* NULL: the view's own */
    const uint64_t *bits;          /* by rank: which rows match */
    uint32_t *before;              /* matches before each word, and all of them at its end */
    uint32_t words;
    const uint32_t *
        /*
         * where it has no bits: matching rows, ascending, each of them a rank; the view's own have
         * none
         */
        rows;
    uint32_t ranks;     /* all of them, matching or not */
    uint32_t count;     /* matches */
    uint32_t low, high; /* select's: ranks between which the cut lies */
};

/* run_of_bits(run): count the matches; bits, before, words and ranks are set. */
void run_of_bits(struct run *run);

/* What a page is selected from. */
struct selection {
    const struct index_snapshot *view;
    struct run *runs;
    size_t count;
    unsigned sort;
};

/*
 * select_page(s, from, want, ids): the ids of the ${want} elements from the ${from}-th on,
 * ascending. All of them must be there.
 */
void select_page(const struct selection *s, uint64_t from, size_t want, uint64_t *ids);

#endif
