/*
 * Memory of one page: handed out in pieces, given back at once. It has a limit, so that a hostile page costs a bounded amount and is then
 * given up. One thread; everything handed out lives until arena_free.
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
    bool full; /* sticky: something was refused */
};

void arena_init(struct arena *arena, size_t max_bytes);
void arena_free(struct arena *arena);

/* arena_get(arena, n): ${n} zeroed bytes, aligned for any type; NULL when the limit is reached or memory is short. */
void *arena_get(struct arena *arena, size_t n);

/* arena_copy(arena, s): the bytes of ${s} with a zero after them; an empty str with p "" when refused. */
struct str arena_copy(struct arena *arena, struct str s);

/* arena_printf(arena, format, …): a formatted string; empty when refused. */
struct str arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
