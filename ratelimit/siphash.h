/*
 * SipHash (Aumasson and Bernstein, 2012), a keyed hash for short inputs: without the key nobody can
 * construct collisions. Pure.
 */
#ifndef ASSAY_RATELIMIT_SIPHASH_H
#define ASSAY_RATELIMIT_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/*
 * Rounds per 8 bytes of input, and at the end: the paper's variant, and the reduced one of hash
 * tables in Rust and Linux.
 */
struct siphash_rounds {
    unsigned each, last;
};
#define SIPHASH_2_4 ((struct siphash_rounds){2, 4})
#define SIPHASH_1_3 ((struct siphash_rounds){1, 3})

#define SIPHASH_ROTATE(x, by) ((x) << (by) | (x) >> (64 - (by)))

static inline __attribute__((always_inline)) void siphash_rounds(uint64_t v[4], unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        v[0] += v[1], v[2] += v[3];
        v[1] = SIPHASH_ROTATE(v[1], 13) ^ v[0], v[3] = SIPHASH_ROTATE(v[3], 16) ^ v[2];
        v[0] = SIPHASH_ROTATE(v[0], 32);
        v[2] += v[1], v[0] += v[3];
        v[1] = SIPHASH_ROTATE(v[1], 17) ^ v[2], v[3] = SIPHASH_ROTATE(v[3], 21) ^ v[0];
        v[2] = SIPHASH_ROTATE(v[2], 32);
    }
}

/*
 * siphash(rounds, key, data, size): inlined, so that a constant ${rounds} unrolls the loops.
 * Little-endian, as in the paper.
 */
static inline __attribute__((always_inline)) uint64_t
siphash(struct siphash_rounds rounds, const uint64_t key[2], const void *data, size_t size)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                     key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
    const unsigned char *p = data;
    uint64_t word;
    for (size_t left = size; left >= 8; left -= 8, p += 8) {
        __builtin_memcpy(&word, p, 8);
        v[3] ^= word;
        siphash_rounds(v, rounds.each);
        v[0] ^= word;
    }
    word = (uint64_t)size << 56;
    for (size_t i = 0; i < size % 8; i++)
        word |= (uint64_t)p[i] << 8 * i;
    v[3] ^= word;
    siphash_rounds(v, rounds.each);
    v[0] ^= word;
    v[2] ^= 0xff;
    siphash_rounds(v, rounds.last);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
