/*
 * What searches found in segments: a bitmap for each needle and segment, kept for as long as there is room, since segments never change.
 * So the next page of a search does not look again. Private to store/.
 */
#ifndef ASSAY_STORE_FOUND_H
#define ASSAY_STORE_FOUND_H

#include "store/index/snapshot.h"

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
    struct found_rows own, names;
};

/* found_needle(s, workspace, needle): by its search_key; its entry, made where there is none; NULL when memory is short. Good until the next call. */
struct found *found_needle(struct store *s, uint64_t workspace, struct str needle);

/* What it found in a segment: a bit for each row. */
struct found_segment {
    uint64_t number; /* of the segment */
    uint64_t *bits;
    size_t bytes;
};

/*
 * found_segment(f, number): the bits of the segment of that number; NULL: not looked for yet.
 * Good until the next found_needle.
 */
const uint64_t *found_segment(const struct found *f, uint64_t number);

/* found_forget_merged(s, f, view): what it found in segments that the view has no more, when they are many. */
void found_forget_merged(struct store *s, struct found *f, const struct view *v);

/*
 * found_add(s, f, number, bits, words): keep what was found in all of a segment. ${bits} are
 * allocated and belong to ${f} from then on. False when memory is short: they are freed.
 */
bool found_add(struct store *s, struct found *f, uint64_t number, uint64_t *bits, uint32_t words);

/* found_rows(s, f, rows, made, count): the bits of those rows, with room for ${count}; ${rows} begins anew where they are others. NULL when memory is short. */
uint64_t *found_rows(struct store *s, struct found *f, struct found_rows *rows, uint64_t made,
                     uint32_t count);

void found_forget(struct store *s);

#endif
