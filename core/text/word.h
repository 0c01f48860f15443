/* Eight bytes of a text at a time, as a number whose lowest byte is the first. Pure functions. */
#ifndef ASSAY_TEXT_WORD_H
#define ASSAY_TEXT_WORD_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WORD_BYTES sizeof(uint64_t)
#define WORD_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t word_of(const char *p)
{
    uint64_t bytes;
    memcpy(&bytes, p, sizeof(bytes));
    return le64toh(bytes);
}

/* word_find(word, c): marks of the bytes that are ${c}, for word_first. They may be joined by |. */
static inline uint64_t word_find(uint64_t word, char c)
{
    uint64_t zero = word ^ WORD_EACH((unsigned char)c);
    /* The lowest mark is exact; a higher one may come from a carry. */
    return (zero - WORD_EACH(1)) & ~zero & WORD_EACH(0x80);
}

/* word_first(marks): the index of the first marked byte; WORD_BYTES: none. */
static inline size_t word_first(uint64_t marks)
{
    return marks == 0 ? WORD_BYTES : (size_t)__builtin_ctzll(marks) / 8;
}

#endif
