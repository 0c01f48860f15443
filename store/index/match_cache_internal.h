/*
 * Match cache: a bitmap of matches for each pattern and segment, so that the next page of a search
 * does not search again. Segments never change, so an entry is valid until it is dropped for space.
 */
#ifndef ASSAY_STORE_INDEX_MATCH_CACHE_INTERNAL_H
#define ASSAY_STORE_INDEX_MATCH_CACHE_INTERNAL_H

#include "store/index/snapshot.h"

/*
 * Matches in rows that only increase: a tail, or project names. ${made}: which rows they are. The
 * first ${looked} were searched.
 */
struct match_cache_rows {
    uint64_t made;
    uint32_t looked;
    struct buf bits; /* of uint64_t */
};

struct match_cache_entry { /* matches of one pattern in one workspace */
    struct match_cache_entry *next;
    uint64_t workspace;
    char *pattern;
    size_t pattern_n;
    struct match_cache_segment *segments;
    size_t count, cap, bytes;
    struct match_cache_rows tail, names;
};

/*
 * match_cache_get(s, workspace, pattern): the entry of that search_key, created if necessary; NULL:
 * out of memory. Valid until the next call.
 */
struct match_cache_entry *match_cache_get(struct store *s, uint64_t workspace, struct str pattern);

/* Matches in a segment: a bit for each row. */
struct match_cache_segment {
    uint64_t number; /* of the segment */
    uint64_t *bits;
    size_t bytes;
};

/*
 * match_cache_segment(f, number): the bits of that segment; NULL: not searched yet. Valid until the
 * next match_cache_get.
 */
const uint64_t *match_cache_segment(const struct match_cache_entry *f, uint64_t number);

/*
 * match_cache_drop_merged(s, f, view): drop segments that the snapshot no longer has, when they are
 * many.
 */
void match_cache_drop_merged(struct store *s, struct match_cache_entry *f,
                             const struct index_snapshot *v);

/*
 * match_cache_add(s, f, number, bits, words): keep the matches of a whole segment. ${bits} are
 * allocated and belong to ${f} from now on. False: out of memory, and they are freed.
 */
bool match_cache_add(struct store *s, struct match_cache_entry *f, uint64_t number, uint64_t *bits,
                     uint32_t words);

/*
 * match_cache_rows(s, f, rows, made, count): the bits of those rows, with space for ${count};
 * ${rows} starts again if ${made} differs. NULL: out of memory.
 */
uint64_t *match_cache_rows(struct store *s, struct match_cache_entry *f,
                           struct match_cache_rows *rows, uint64_t made, uint32_t count);

void match_cache_free(struct store *s);

#endif
