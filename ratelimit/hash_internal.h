/*
 * Keyed 64-bit hash that identifies a key. Without the file's seed nobody can construct two keys
 * with the same hash. Uses AES rounds if the processor has the instructions, else SipHash-1-3; the
 * file's header names the kind, since all processes must agree.
 *
 * AES: each 16 bytes are mixed in and pass four rounds; two different inputs then collide with a
 * probability of at most 2^-113 (Minematsu and Tsunoo, 2006, on four rounds as a universal hash).
 * The last 16 bytes pass six rounds, and 64 bits are taken. Round keys are words of SipHash-2-4
 * over the seed.
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
    uint64_t short_sizes; /* number of sizes from HASH_SHORT_MIN on; 0: no AES */
};

/* hash_kind_here(): the kind for a file made on this processor. */
enum hash_kind hash_kind_here(void);

void hash_keys_make(struct hash_keys *keys, enum hash_kind kind, const uint64_t seed[2]);

/*
 * hash_key(keys, domain, key, size): hash of ${size} bytes (at most HASH_KEY_MAX) at ${key}.
 * ${domain} separates them from keys of other limiters and contains their size. Never 0.
 */
uint64_t hash_key(const struct hash_keys *keys, uint64_t domain, const void *key, size_t size);

/*
 * hash_short: the same without branches, for HASH_SHORT_MIN to HASH_SHORT_MAX bytes: an address and
 * a little more. May return 0. Only if hash_is_short(keys, size).
 */
static inline bool hash_is_short(const struct hash_keys *keys, size_t size)
{
    return size - HASH_SHORT_MIN < keys->short_sizes;
}

static inline uint64_t hash_short(const struct hash_keys *keys, uint64_t domain, const void *key,
                                  size_t size);

/* ---- rounds ---- */

#if defined(__x86_64__)
typedef __m128i hash_block;

/* inline assembly, so that no compiler flags are needed: the processor is known only at run time */
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

/*
 * By words, as keys are usually written: a load wider than the stores before it has to wait for
 * them.
 */
static inline hash_block hash_load_16(const unsigned char *at)
{
    hash_block low = hash_load_8(at);
    __asm__("" : "+x"(low)); /* prevents the compiler from merging the two loads */
    return _mm_castps_si128(
        _mm_loadh_pi(_mm_castsi128_ps(low), (const __m64 *)(const void *)(at + 8)));
}

static inline hash_block hash_mix(const struct hash_keys *keys, hash_block x, hash_block more)
{
    return hash_four_rounds(keys, _mm_xor_si128(x, more));
}

static inline uint64_t hash_end(const struct hash_keys *keys, hash_block x, uint64_t domain,
                                hash_block last_8)
{
    x = hash_mix(keys, x, _mm_unpacklo_epi64(_mm_cvtsi64_si128((long long)domain), last_8));
    return (uint64_t)_mm_cvtsi128_si64(hash_two_rounds(keys, x));
}
#endif

static inline uint64_t hash_short(const struct hash_keys *keys, uint64_t domain, const void *key,
                                  size_t size)
{
#if defined(__x86_64__)
    const unsigned char *p = key;
    return hash_end(keys, hash_mix(keys, hash_first(keys), hash_load_16(p)), domain,
                    hash_load_8(p + size - 8));
#else
    return hash_key(keys, domain, key, size);
#endif
}

#endif
