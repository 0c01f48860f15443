/*
 * What searches found in segments: a bitmap for each needle and segment, kept for as long as there is room, since segments never change.
 * So the next page of a search, or its continuation after a pause, does not look again. Private to store/.
 */
#ifndef ASSAY_STORE_FOUND_H
#define ASSAY_STORE_FOUND_H

#include "view.h"

struct found; /* what one needle found in one workspace */

/* found_needle(s, workspace, needle): by its search_key; its entry, made where there is none; NULL when memory is short. Good until the next call. */
struct found *found_needle(struct store *s, uint64_t workspace, struct str needle);

/* What it found in a segment: a bit for each row of those of its chunks that were looked at. */
struct found_segment {
    uint64_t part; /* the segment's fixed one */
    uint32_t chunks, from; /* and where in the next chunk it goes on: see chunk_match */
    uint64_t *bits;
};

/* found_segment(f, part): what it found in the segment of that fixed part; NULL: not looked for yet. Good until the next found_add. */
struct found_segment *found_segment(const struct found *f, uint64_t part);

/* found_add(s, f, part, words): room for it, no chunk looked at; NULL when memory is short. */
struct found_segment *found_add(struct store *s, struct found *f, uint64_t part, uint32_t words);

void found_forget(struct store *s);

#endif
