/*
 * Arena allocator for one page: many small allocations, one free. A byte limit bounds what a
 * hostile page costs. Not thread-safe.
 */
#ifndef ASSAY_ARENA_INTERNAL_H
#define ASSAY_ARENA_INTERNAL_H

#include "store/bytes.h"

struct arena_block;

struct arena {
    struct arena_block *blocks;
    char *at;
    size_t left;      /* bytes free at ${at} */
    size_t max_bytes; /* over all blocks */
    size_t bytes;
    bool full; /* set when an allocation was refused, and stays set */
};

void arena_init(struct arena *arena, size_t max_bytes);
void arena_free(struct arena *arena);

/*
 * arena_get(arena, n): ${n} zeroed bytes, aligned for any type. NULL when the limit is reached or
 * malloc fails.
 */
void *arena_get(struct arena *arena, size_t n);

/* arena_copy(arena, s): zero-terminated copy of ${s}; an empty str with p "" when refused. */
struct str arena_copy(struct arena *arena, struct str s);

/* arena_printf(arena, format, …): a formatted string; empty when refused. */
struct str arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
