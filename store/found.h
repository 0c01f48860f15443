/*
 * What searches found in segments: a bitmap for each needle and segment, kept for as long as there is room, since segments never change.
 * So the next page of a search, or its continuation after a pause, does not look again. Private to store/.
 */
#ifndef ASSAY_STORE_FOUND_H
#define ASSAY_STORE_FOUND_H

#include "view.h"

/*
 * What a needle found in rows that lie one behind the other and become more: a view's own, or names. ${made}: which ones (its view's, or its
 * names'). The first ${looked} were looked at.
 */
struct found_rows {
    uint64_t made;
    uint32_t looked;
    struct buf bits; /* of uint64_t */
};

struct found { /* what one needle found in one workspace */
    struct found *next;
    uint64_t workspace;
    char *needle;
    size_t needle_n;
    struct found_segment *segments;
    size_t count, cap, bytes;
    bool slow; /* rows of segments that are looked at one by one are kept too, since a pause came among them */
    struct found_rows own, names;
};

/* found_needle(s, workspace, needle): by its search_key; its entry, made where there is none; NULL when memory is short. Good until the next call. */
struct found *found_needle(struct store *s, uint64_t workspace, struct str needle);

/* What it found in a segment: a bit for each row of those of its chunks that were looked at. */
struct found_segment {
    uint64_t part; /* the segment's fixed one */
    uint32_t chunks, from; /* and where in the next chunk it goes on: see chunk_match */
    uint64_t *bits;
    size_t bytes;
    uint64_t *looked; /* rows that were looked at one by one, to which ${bits} applies too; NULL: none */
};

/* found_segment(f, part): what it found in the segment of that fixed part; NULL: not looked for yet. Good until the next found_add. */
struct found_segment *found_segment(const struct found *f, uint64_t part);

/* found_forget_merged(s, f, view): what it found in segments that the view has no more, when they are many. */
void found_forget_merged(struct store *s, struct found *f, const struct view *v);

/* found_add(s, f, part, words): room for it, no chunk looked at; NULL when memory is short. */
struct found_segment *found_add(struct store *s, struct found *f, uint64_t part, uint32_t words);

/* found_note(s, f, part, words, row, matches): what was found of one row; false when memory is short. What found_segment answered is gone. */
bool found_note(struct store *s, struct found *f, uint64_t part, uint32_t words, uint32_t row, bool matches);

/* found_rows(s, f, rows, made, count): the bits of those rows, with room for ${count}; ${rows} begins anew where they are others. NULL when memory is short. */
uint64_t *found_rows(struct store *s, struct found *f, struct found_rows *rows, uint64_t made, uint32_t count);

void found_forget(struct store *s);

#endif
