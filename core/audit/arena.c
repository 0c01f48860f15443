#include "core/audit/arena_internal.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK_BYTES ((size_t)16 * 1024)

struct arena_block {
    struct arena_block *next;
    alignas(max_align_t) char bytes[];
};

void arena_init(struct arena *arena, size_t max_bytes)
{
    *arena = (struct arena){.max_bytes = max_bytes};
}

void arena_free(struct arena *arena)
{
    for (struct arena_block *b = arena->blocks, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    *arena = (struct arena){.max_bytes = arena->max_bytes};
}

static bool add_block(struct arena *arena, size_t need)
{
    size_t size = need > BLOCK_BYTES / 4 ? need : BLOCK_BYTES;
    struct arena_block *b = NULL;
    if (arena->bytes + size <= arena->max_bytes)
        b = calloc(1, sizeof(*b) + size);
    if (b == NULL) {
        arena->full = true;
        return false;
    }
    b->next = arena->blocks;
    arena->blocks = b;
    arena->bytes += size;
    arena->at = b->bytes;
    arena->left = size;
    return true;
}

void *arena_get(struct arena *arena, size_t n)
{
    if (n > arena->max_bytes) {
        arena->full = true;
        return NULL;
    }
    n = (n + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (arena->left < n && !add_block(arena, n))
        return NULL;
    void *p = arena->at;
    arena->at += n;
    arena->left -= n;
    return p;
}

struct str arena_copy(struct arena *arena, struct str s)
{
    char *p = s.n == SIZE_MAX ? NULL : arena_get(arena, s.n + 1);
    if (p == NULL)
        return STR("");
    if (s.n > 0)
        memcpy(p, s.p, s.n);
    return (struct str){p, s.n};
}

struct str arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *p = n < 0 ? NULL : arena_get(arena, (size_t)n + 1);
    if (p != NULL)
        vsnprintf(p, (size_t)n + 1, format, again);
    va_end(again);
    return p == NULL ? STR("") : (struct str){p, (size_t)n};
}
