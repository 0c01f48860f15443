/*
 * Substring search, in one place so that an index can take over what is now a look at every candidate. Private to store/.
 */
#ifndef ASSAY_STORE_SEARCH_H
#define ASSAY_STORE_SEARCH_H

#include "bytes.h"

/* A needle prepared once per list: folded, with the distances a mismatch may skip (Horspool's). */
struct search {
    struct str needle; /* folded; into ${folded} or allocated */
    size_t skip[256];
    char *allocated;
    char folded[256];
};

/* search_begin(s, needle): false when memory is short. ASCII letters are folded; URLs and project names have no others. */
bool search_begin(struct search *s, struct str needle);
bool search_matches(const struct search *s, struct str text);
void search_end(struct search *s);

#endif
