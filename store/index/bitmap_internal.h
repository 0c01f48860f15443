/* Bitmaps: words of 64 bits. */
#ifndef ASSAY_STORE_INDEX_BITMAP_INTERNAL_H
#define ASSAY_STORE_INDEX_BITMAP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool bit_test(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

/* Without the processor's instruction, which not all have, the compiler would call a function. */
static inline uint32_t bit_count(uint64_t word)
{
#ifdef __POPCNT__
    return (uint32_t)__builtin_popcountll(word);
#else
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    return (uint32_t)(((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56);
#endif
}

static inline void bit_set(uint64_t *bits, size_t i)
{
    bits[i / 64] |= 1ull << i % 64;
}

#endif
