/*
 * What a key is known by: 64 bits of a hash under the file's seed, so that nobody without it can make two keys meet. By rounds of AES
 * where the processor has them as instructions, else by SipHash-1-3: which of them, the file says (struct table_header), as all its
 * processes must agree.
 *
 * With AES, each 16 bytes are mixed in and go through four rounds: then two inputs that differ have met with a probability of at most
 * 2^-113 (Minematsu and Tsunoo, 2006, on four rounds as a universal hash). The last 16 go through six, of which 64 bits are taken. Round
 * keys are words from SipHash-2-4 of the seed.
 */
#ifndef ASSAY_RATELIMIT_HASH_INTERNAL_H
#define ASSAY_RATELIMIT_HASH_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum hash_kind { HASH_SIPHASH = 1, HASH_AES = 2 };

#define HASH_KEY_MAX 64
#define HASH_SHORT_MIN 16
#define HASH_SHORT_MAX 24

struct hash_keys {
    uint64_t round[7][2] __attribute__((aligned(16)));
    uint64_t seed[2];
    uint64_t short_sizes; /* how many, from HASH_SHORT_MIN on; 0: there is no AES */
};

/* hash_kind_here(): the kind for files that are made on this processor. */
enum hash_kind hash_kind_here(void);

void hash_keys_make(struct hash_keys *keys, enum hash_kind kind, const uint64_t seed[2]);

/*
 * hash_key(keys, what, key, size): of the ${size} bytes (at most HASH_KEY_MAX) at ${key}; ${what} tells them from those of others, and has
 * their number in it. Never 0.
 */
uint64_t hash_key(const struct hash_keys *keys, uint64_t what, const void *key, size_t size);

/*
 * hash_short: the same for HASH_SHORT_MIN to HASH_SHORT_MAX bytes, an address and a little, in one straight line; but it may be 0. Only
 * where hash_is_short(keys, size).
 */
static inline bool hash_is_short(const struct hash_keys *keys, size_t size)
{
    return size - HASH_SHORT_MIN < keys->short_sizes;
}

static inline uint64_t hash_short(const struct hash_keys *keys, uint64_t what, const void *key, size_t size);

/* ---- rounds ---- */

#if defined(__x86_64__)
typedef __m128i hash_block;

/* inline assembly, so that this needs no flags of its own: which processor it is, is known only when it runs */
static inline hash_block hash_four_rounds(const struct hash_keys *keys, hash_block x)
{
    __asm__("aesenc %1, %0\n\taesenc %2, %0\n\taesenc %3, %0\n\taesenc %4, %0"
            : "+x"(x)
            : "m"(keys->round[1]), "m"(keys->round[2]), "m"(keys->round[3]), "m"(keys->round[4]));
    return x;
}

static inline hash_block hash_two_rounds(const struct hash_keys *keys, hash_block x)
{
    __asm__("aesenc %1, %0\n\taesenc %2, %0" : "+x"(x) : "m"(keys->round[5]), "m"(keys->round[6]));
    return x;
}

static inline hash_block hash_first(const struct hash_keys *keys)
{
    return _mm_load_si128((const hash_block *)(const void *)keys->round[0]);
}

static inline hash_block hash_load_8(const unsigned char *at)
{
    return _mm_loadl_epi64((const hash_block *)(const void *)at);
}

/* by words, as keys are mostly written: a load that is wider than the stores before it waits until they are done */
static inline hash_block hash_load_16(const unsigned char *at)
{
    hash_block low = hash_load_8(at);
    __asm__("" : "+x"(low)); /* or a compiler makes one load of the two */
    return _mm_castps_si128(_mm_loadh_pi(_mm_castsi128_ps(low), (const __m64 *)(const void *)(at + 8)));
}

static inline hash_block hash_mix(const struct hash_keys *keys, hash_block x, hash_block more)
{
    return hash_four_rounds(keys, _mm_xor_si128(x, more));
}

static inline uint64_t hash_end(const struct hash_keys *keys, hash_block x, uint64_t what, hash_block last_8)
{
    x = hash_mix(keys, x, _mm_unpacklo_epi64(_mm_cvtsi64_si128((long long)what), last_8));
    return (uint64_t)_mm_cvtsi128_si64(hash_two_rounds(keys, x));
}
#endif

static inline uint64_t hash_short(const struct hash_keys *keys, uint64_t what, const void *key, size_t size)
{
#if defined(__x86_64__)
    const unsigned char *p = key;
    return hash_end(keys, hash_mix(keys, hash_first(keys), hash_load_16(p)), what, hash_load_8(p + size - 8));
#else
    return hash_key(keys, what, key, size);
#endif
}

#endif
