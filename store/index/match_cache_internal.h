/*
 * What searches found in segments: a bitmap for each pattern and segment, kept for as long as there
 * is room, since segments never change. So the next page of a search does not look again. Private
 * to store/.
 */
#ifndef ASSAY_STORE_FOUND_H
#define ASSAY_STORE_FOUND_H

#include "store/index/snapshot.h"

/*
 * What a pattern found in rows that lie one behind the other and become more: a view's own, or
 * names. ${made}: which ones (its view's, or its names'). The first ${looked} were looked at.
 */
struct match_cache_rows {
    uint64_t made;
    uint32_t looked;
    struct buf bits; /* of uint64_t */
};

struct match_cache_entry { /* what one pattern found in one workspace */
    struct match_cache_entry *next;
    uint64_t workspace;
    char *pattern;
    size_t pattern_n;
    struct match_cache_segment *segments;
    size_t count, cap, bytes;
    struct match_cache_rows own, names;
};

/*
 * match_cache_get(s, workspace, pattern): by its search_key; its entry, made where there is none;
 * NULL when memory is short. Good until the next call.
 */
struct match_cache_entry *match_cache_get(struct store *s, uint64_t workspace, struct str pattern);

/* What it found in a segment: a bit for each row. */
struct match_cache_segment {
    uint64_t number; /* of the segment */
    uint64_t *bits;
    size_t bytes;
};

/*
 * match_cache_segment(f, number): the bits of the segment of that number; NULL: not looked for yet.
 * Good until the next match_cache_get.
 */
const uint64_t *match_cache_segment(const struct match_cache_entry *f, uint64_t number);

/*
 * match_cache_drop_merged(s, f, view): what it found in segments that the view has no more, when
 * they are many.
 */
void match_cache_drop_merged(struct store *s, struct match_cache_entry *f,
                             const struct index_snapshot *v);

/*
 * match_cache_add(s, f, number, bits, words): keep what was found in all of a segment. ${bits} are
 * allocated and belong to ${f} from then on. False when memory is short: they are freed.
 */
bool match_cache_add(struct store *s, struct match_cache_entry *f, uint64_t number, uint64_t *bits,
                     uint32_t words);

/*
 * match_cache_rows(s, f, rows, made, count): the bits of those rows, with room for ${count};
 * ${rows} begins anew where they are others. NULL when memory is short.
 */
uint64_t *match_cache_rows(struct store *s, struct match_cache_entry *f,
                           struct match_cache_rows *rows, uint64_t made, uint32_t count);

void match_cache_free(struct store *s);

#endif
