/* The cache of bodies: variants, the limit of its bytes, compressed bodies. */
#include "core/http/response_cache.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>

#define FULL (4u << 20)

static struct response_cache *cache;

static void setup(void)
{
    cache = response_cache_new();
    ck_assert_ptr_nonnull(cache);
}

static void teardown(void)
{
    response_cache_free(cache);
}

static struct cached_report *put(uint64_t id, size_t bytes)
{
    char *body = malloc(bytes);
    ck_assert_ptr_nonnull(body);
    memset(body, (int)('a' + id % 26), bytes);
    const struct cached_report entry = {.variant = 7, .id = id, .version = 1};
    struct cached_report *r = response_cache_put(cache, &entry, (struct str){body, bytes});
    ck_assert_uint_eq(r->body.len, bytes);
    ck_assert_mem_eq(r->body.base, body, bytes);
    free(body);
    return r;
}

static bool has(uint64_t id)
{
    return response_cache_find(cache, 7, id) != NULL;
}

/* Bytes of all bodies of the ids up to ${last}. */
static size_t bytes_up_to(uint64_t last)
{
    size_t bytes = 0;
    for (uint64_t id = 1; id <= last; id++) {
        const struct cached_report *r = response_cache_find(cache, 7, id);
        bytes += r == NULL ? 0 : r->body.len + r->gzip.len;
    }
    return bytes;
}

START_TEST(an_entry_is_found_by_its_variant_and_id)
{
    struct cached_report *r = put(5, 10);
    ck_assert_ptr_eq(response_cache_find(cache, 7, 5), r);
    ck_assert_ptr_null(response_cache_find(cache, 8, 5));
    ck_assert_ptr_null(response_cache_find(cache, 7, 6));
}
END_TEST

START_TEST(a_full_cache_takes_every_new_entry_and_no_more_bytes)
{
    for (uint64_t id = 1; id <= 1000; id++) {
        put(id, 100000);
        ck_assert_msg(has(id), "%llu", (unsigned long long)id);
        ck_assert_uint_le(bytes_up_to(id), FULL);
    }
    ck_assert_uint_gt(bytes_up_to(1000), FULL / 2);
}
END_TEST

START_TEST(a_body_larger_than_the_cache_is_served_and_evicts_nothing)
{
    put(1, 1000);
    put(2, FULL + 1);
    ck_assert(has(1) && !has(2));
    put(2, FULL);
    ck_assert(!has(1) && has(2));
    put(3, 10);
    ck_assert(!has(2) && has(3));
}
END_TEST

START_TEST(compressed_bodies_count)
{
    static const char gzip[1000];
    put(1, FULL - 1000);
    response_cache_compress(cache, put(2, 500), (struct str){gzip, 500});
    ck_assert_uint_eq(bytes_up_to(2), FULL);
    put(3, 10);
    ck_assert(has(3));
    ck_assert_uint_le(bytes_up_to(3), FULL);
}
END_TEST

START_TEST(a_compressed_body_evicts_others_and_not_its_own_entry)
{
    static const char gzip[1000];
    put(1, FULL - 1000);
    response_cache_compress(cache, put(2, 500), (struct str){gzip, sizeof(gzip)});
    ck_assert(!has(1));
    ck_assert_uint_eq(response_cache_find(cache, 7, 2)->gzip.len, sizeof(gzip));
    response_cache_compress(cache, put(3, FULL - 10), (struct str){gzip, sizeof(gzip)});
    ck_assert(has(3));
    ck_assert_uint_eq(response_cache_find(cache, 7, 3)->gzip.len, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("response_cache");
    TCase *tcase = tcase_create("response_cache");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, an_entry_is_found_by_its_variant_and_id);
    tcase_add_test(tcase, a_full_cache_takes_every_new_entry_and_no_more_bytes);
    tcase_add_test(tcase, a_body_larger_than_the_cache_is_served_and_evicts_nothing);
    tcase_add_test(tcase, compressed_bodies_count);
    tcase_add_test(tcase, a_compressed_body_evicts_others_and_not_its_own_entry);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
