/*
 * What searches found in segments: a bitmap for each needle and segment, kept for as long as there is room, since segments never change.
 * So the next page of a search, or its continuation after a pause, does not look again. Private to store/.
 */
#ifndef ASSAY_STORE_FOUND_H
#define ASSAY_STORE_FOUND_H

#include "view.h"

struct found; /* what one needle found in one workspace */

/* found_needle(s, workspace, needle): its entry, made where there is none; NULL when memory is short. Good until the next call. */
struct found *found_needle(struct store *s, uint64_t workspace, struct str needle);

/* found_bits(s, f, part): what it found in the segment of that fixed part; NULL: not looked for yet. */
const uint64_t *found_bits(const struct found *f, uint64_t part);

/* found_add(s, f, part, words): room for it, all zero, to be filled at once; NULL when memory is short. */
uint64_t *found_add(struct store *s, struct found *f, uint64_t part, uint32_t words);

void found_forget(struct store *s);

#endif
