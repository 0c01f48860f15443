#include "ratelimit/hash_internal.h"

#include "ratelimit/siphash.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum hash_kind hash_kind_here(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_AES) != 0)
        return HASH_AES;
#endif
    return HASH_SIPHASH;
}

void hash_keys_make(struct hash_keys *keys, enum hash_kind kind, const uint64_t seed[2])
{
    const uint64_t words = sizeof(keys->round) / sizeof(uint64_t);
    for (uint64_t i = 0; i < words; i++)
        keys->round[i / 2][i % 2] = siphash(SIPHASH_2_4, seed, &i, sizeof(i));
    keys->seed[0] = seed[0];
    keys->seed[1] = seed[1];
    keys->short_sizes = kind == HASH_AES ? HASH_SHORT_MAX - HASH_SHORT_MIN + 1 : 0;
}

#if defined(__x86_64__)
/* fewer than 8 bytes as one word; ${domain} contains their number */
static hash_block load_few(const unsigned char *key, size_t size)
{
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++)
        word |= (uint64_t)key[i] << 8 * i;
    return _mm_cvtsi64_si128((long long)word);
}

/*
 * The last 8 bytes go into hash_end. The others are mixed in by 16; the last block may overlap the
 * one before.
 */
static uint64_t hash_aes(const struct hash_keys *keys, uint64_t domain, const unsigned char *key,
                         size_t size)
{
    hash_block x = hash_first(keys);
    if (size < 8)
        return hash_end(keys, x, domain, load_few(key, size));
    if (size > 8 && size < 16)
        x = hash_mix(keys, x, hash_load_8(key));
    for (size_t at = 0; size >= 16 && at + 8 < size; at += 16)
        x = hash_mix(keys, x, hash_load_16(at + 16 <= size ? key + at : key + size - 16));
    return hash_end(keys, x, domain, hash_load_8(key + size - 8));
}
#endif

static uint64_t hash_siphash(const struct hash_keys *keys, uint64_t domain, const void *key,
                             size_t size)
{
    unsigned char input[8 + HASH_KEY_MAX];
    __builtin_memcpy(input, &domain, 8);
    __builtin_memcpy(input + 8, key, size);
    return siphash(SIPHASH_1_3, keys->seed, input, 8 + size);
}

uint64_t hash_key(const struct hash_keys *keys, uint64_t domain, const void *key, size_t size)
{
#if defined(__x86_64__)
    uint64_t hash = keys->short_sizes > 0 ? hash_aes(keys, domain, key, size)
                                          : hash_siphash(keys, domain, key, size);
#else
    uint64_t hash = hash_siphash(keys, domain, key, size);
#endif
    return hash + (hash == 0);
}
