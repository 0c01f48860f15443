/* What the caches of a worker share. */
#ifndef ASSAY_HTTP_CACHE_SLOT_INTERNAL_H
#define ASSAY_HTTP_CACHE_SLOT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* cache_slot(v, slots): spreads ${v}, an id or the end of a secret, over a table. */
static inline size_t cache_slot(uint64_t v, size_t slots)
{
    return (v * UINT64_C(0x9E3779B97F4A7C15) >> 32) % slots;
}

/* same_secret(a, b, n): compare ${n} ≥ 8 bytes in a time that depends on ${n} alone. */
static inline bool same_secret(const char *a, const char *b, size_t n)
{
    uint64_t differ = 0, x, y;
    for (size_t i = 0; i < n; i += sizeof(x)) {
        size_t at = i + sizeof(x) <= n ? i : n - sizeof(x);
        memcpy(&x, a + at, sizeof(x));
        memcpy(&y, b + at, sizeof(y));
        differ |= x ^ y;
    }
    return differ == 0;
}

#endif
