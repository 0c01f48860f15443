/* The hash of the limiter's keys. */
#include "ratelimit/hash_internal.h"
#include "ratelimit/siphash.h"
#include "t/kit/suite.h"

#include <check.h>
#include <limits.h>
#include <stdlib.h>

START_TEST(the_hash_matches_the_papers_vector)
{
    uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    unsigned char input[15];
    for (unsigned char i = 0; i < 15; i++)
        input[i] = i;
    ck_assert_uint_eq(siphash(SIPHASH_2_4, key, input, 15), 0xa129ca6149be45e5);
}
END_TEST

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/*
 * The hash of ${size} bytes of 0 with one bit flipped: a bit of the limiter, or, from 64 on, of the
 * bytes; none for UINT_MAX.
 */
static uint64_t hash_with_bit(const struct hash_keys *keys, unsigned size, unsigned bit)
{
    unsigned char key[HASH_KEY_MAX] = {0};
    uint64_t what = 0x1234567890abcdef + ((uint64_t)size << 56);
    if (bit < 64)
        what ^= 1ull << bit;
    else if (bit < 64 + 8 * HASH_KEY_MAX)
        key[(bit - 64) / 8] = (unsigned char)(1u << bit % 8);
    return hash_key(keys, what, key, size);
}

START_TEST(every_bit_of_keys_of_every_size_changes_half_of_the_hash)
{
    const enum hash_kind kinds[] = {HASH_SIPHASH, hash_kind_here()};
    uint64_t seed[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908}, hashes[64 + 8 * HASH_KEY_MAX + 1];
    struct hash_keys keys;
    hash_keys_make(&keys, kinds[_i], seed);
    for (unsigned size = 0; size <= HASH_KEY_MAX; size++) {
        unsigned bits = 64 + 8 * size, changed = 0;
        hashes[bits] = hash_with_bit(&keys, size, UINT_MAX);
        for (unsigned bit = 0; bit < bits; bit++) {
            hashes[bit] = hash_with_bit(&keys, size, bit);
            changed += (unsigned)__builtin_popcountll(hashes[bit] ^ hashes[bits]);
        }
        ck_assert_msg(changed > bits * 30 && changed < bits * 34, "size %u: %u of %u bits", size,
                      changed, bits * 64);
        qsort(hashes, bits + 1, sizeof(hashes[0]), by_value);
        for (unsigned i = 0; i < bits; i++)
            ck_assert_msg(hashes[i] != hashes[i + 1], "size %u: two keys have the same hash", size);
        ck_assert(size == 0 ||
                  hash_with_bit(&keys, size, UINT_MAX) != hash_with_bit(&keys, size - 1, UINT_MAX));
    }
}
END_TEST

START_TEST(short_keys_have_the_same_hash_in_one_line)
{
    uint64_t seed[2] = {1, 2};
    unsigned char key[HASH_SHORT_MAX];
    struct hash_keys keys;
    hash_keys_make(&keys, hash_kind_here(), seed);
    for (unsigned char i = 0; i < sizeof(key); i++)
        key[i] = (unsigned char)(i * 37 + 1);
    for (size_t size = 0; size <= HASH_KEY_MAX; size++)
        if (hash_is_short(&keys, size))
            ck_assert_uint_eq(hash_short(&keys, size << 56, key, size),
                              hash_key(&keys, size << 56, key, size));
    ck_assert(!hash_is_short(&keys, HASH_SHORT_MIN - 1) &&
              !hash_is_short(&keys, HASH_SHORT_MAX + 1));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ratelimit_hash");
    TCase *t = tcase_create("hash");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_hash_matches_the_papers_vector);
    tcase_add_loop_test(t, every_bit_of_keys_of_every_size_changes_half_of_the_hash, 0, 2);
    tcase_add_test(t, short_keys_have_the_same_hash_in_one_line);
    suite_add_tcase(s, t);
    return suite_run(s);
}
