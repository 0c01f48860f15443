/* ETag, If-Match, If-None-Match, Prefer and Idempotency-Key. */
#include "config.h"
#include "core/http/etag.h"
#include "core/http/idempotency.h"
#include "core/http/prefer.h"
#include "t/kit/suite.h"

#include <check.h>

/* ---- entity tags ---- */

START_TEST(tag_is_version_and_program)
{
    char out[ETAG_SIZE], gz[ETAG_SIZE];
    struct str tag = etag_format(5, out);
    ck_assert(str_eq(tag, STR("\"5-" PACKAGE_VERSION "\"")));
    ck_assert(str_eq(etag_compressed(tag, gz), STR("\"5-" PACKAGE_VERSION "-gz\"")));
    tag = etag_format(UINT64_MAX, out);
    ck_assert(str_eq(tag, STR("\"18446744073709551615-" PACKAGE_VERSION "\"")));
    ck_assert(
        str_eq(etag_compressed(tag, gz), STR("\"18446744073709551615-" PACKAGE_VERSION "-gz\"")));
}
END_TEST

static const struct {
    const char *header;
    enum etag_match match;
} none_match_cases[] = {
    {"\"5-" PACKAGE_VERSION "\"", ETAG_HIT},
    {"W/\"5-" PACKAGE_VERSION "\"", ETAG_HIT},
    {"\"5-" PACKAGE_VERSION "-gz\"", ETAG_GZIP},
    {"W/\"5-" PACKAGE_VERSION "-gz\"", ETAG_GZIP},
    {"*", ETAG_HIT},
    {" * ", ETAG_HIT},
    {"\"4-" PACKAGE_VERSION "\", \"5-" PACKAGE_VERSION "\"", ETAG_HIT},
    {"\"4-" PACKAGE_VERSION "\",W/\"x\" ,\t\"5-" PACKAGE_VERSION "-gz\"", ETAG_GZIP},
    {",,\"5-" PACKAGE_VERSION "\",,", ETAG_HIT},
    {"\"a,b\", \"5-" PACKAGE_VERSION "\"", ETAG_HIT},
    {"\"4-" PACKAGE_VERSION "\"", ETAG_MISS},
    {"\"5-2\"", ETAG_MISS},
    {"\"5-1-br\"", ETAG_MISS},
    {"\"*\"", ETAG_MISS},
    {"5-1", ETAG_MISS},
    {"\"5-1", ETAG_MISS},
    {"w/\"5-" PACKAGE_VERSION "\"", ETAG_MISS},
    {"W/", ETAG_MISS},
    {"\"", ETAG_MISS},
    {"", ETAG_MISS},
    {"\"x\" garbage \"5-" PACKAGE_VERSION "\"", ETAG_MISS},
};

START_TEST(if_none_match_accepts_lists_weak_tags_and_both_forms)
{
    ck_assert_int_eq(
        etag_none_match(str_of(none_match_cases[_i].header), STR("\"5-" PACKAGE_VERSION "\"")),
        none_match_cases[_i].match);
}
END_TEST

static const struct {
    const char *header;
    bool listed; /* false: any version matches */
    size_t count;
    uint64_t versions[3];
} if_match_cases[] = {
    {"\"5-" PACKAGE_VERSION "\"", true, 1, {5}},
    {"\"5-" PACKAGE_VERSION "-gz\"", true, 1, {5}},
    {"\"5-" PACKAGE_VERSION "\",\"7-" PACKAGE_VERSION "\" , \"9-" PACKAGE_VERSION "-gz\"",
     true,
     3,
     {5, 7, 9}},
    /* at most as many as fit */
    {"\"1-" PACKAGE_VERSION "\",\"2-" PACKAGE_VERSION "\",\"3-" PACKAGE_VERSION
     "\",\"4-" PACKAGE_VERSION "\"",
     true,
     3,
     {1, 2, 3}},
    {"*", false, 0, {0}},
    {"W/\"5-" PACKAGE_VERSION "\"", true, 0, {0}},
    {"W/\"5-" PACKAGE_VERSION "\", \"6-" PACKAGE_VERSION "\"", true, 1, {6}},
    {"\"5-2\"", true, 0, {0}}, /* another program's */
    {"\"05-" PACKAGE_VERSION "\"", true, 0, {0}},
    {"\"5-0" PACKAGE_VERSION "\"", true, 0, {0}},
    {"\"5\"", true, 0, {0}},
    {"\"-" PACKAGE_VERSION "\"", true, 0, {0}},
    {"\"5-" PACKAGE_VERSION "-gz-gz\"", true, 0, {0}},
    /* a version that no record has */
    {"\"18446744073709551615-" PACKAGE_VERSION "\"", true, 0, {0}},
    {"\"99999999999999999999-" PACKAGE_VERSION "\"", true, 0, {0}},
    {"\"abc\"", true, 0, {0}},
    {"5-1", true, 0, {0}},
    {"", true, 0, {0}},
};

START_TEST(if_match_accepts_strong_tags_only)
{
    uint64_t versions[3];
    size_t count = 0;
    ck_assert_int_eq(etag_versions(str_of(if_match_cases[_i].header), versions, 3, &count),
                     if_match_cases[_i].listed);
    ck_assert_uint_eq(count, if_match_cases[_i].count);
    for (size_t i = 0; i < count; ++i)
        ck_assert_uint_eq(versions[i], if_match_cases[_i].versions[i]);
}
END_TEST

/* ---- Prefer ---- */

static const struct {
    const char *first, *second; /* header lines */
    bool wait;
    unsigned wait_s;
    bool async;
    const char *applied;
} prefer_cases[] = {
    {"wait=5", NULL, true, 5, false, "wait=5"},
    {"wait=0", NULL, true, 0, false, "wait=0"},
    {"wait=30", NULL, true, 30, false, "wait=30"},
    {"Wait = \"7\"", NULL, true, 7, false, "wait=7"},
    {"respond-async", NULL, false, 0, true, "respond-async"},
    {"Respond-Async; x=y, wait=5", NULL, true, 5, true, "respond-async"},
    {"wait=5", "respond-async", true, 5, true, "respond-async"},
    {"return=minimal, foo; bar=\"a, wait=9\", wait=3;q=1", NULL, true, 3, false, "wait=3"},
    {"foo=\"a\\\", wait=9\", wait=4", NULL, true, 4, false, "wait=4"},
    {"wait=5, wait=6", NULL, true, 5, false, "wait=5"},
    {"wait=31, wait=6", NULL, false, 0, false, NULL}, /* the first one counts, and it is ignored */
    {"wait=31", "wait=6", false, 0, false, NULL},
    {"wait", NULL, false, 0, false, NULL},
    {"wait=", NULL, false, 0, false, NULL},
    {"wait=-1", NULL, false, 0, false, NULL},
    {"wait=1.5", NULL, false, 0, false, NULL},
    {"wait=5s", NULL, false, 0, false, NULL},
    {"wait=99999999999999999999999", NULL, false, 0, false, NULL},
    {"awaits=5, respond-asynchronously", NULL, false, 0, false, NULL},
    {"\"wait=5", NULL, false, 0, false, NULL},
    {",;=,==,;;", NULL, false, 0, false, NULL},
    {"", NULL, false, 0, false, NULL},
};

static const struct {
    const char *header;
    bool strict;
} handlings[] = {
    {"handling=strict", true},
    {"Handling = \"Strict\"", true},
    {"wait=5, handling=strict;x=y", true},
    {"handling=strict, handling=lenient", true},
    {"handling=lenient, handling=strict", false},
    {"handling", false},
    {"handling=stricter", false},
    {"x=\"handling=strict\"", false},
};

START_TEST(the_first_handling_preference_wins)
{
    struct prefer p = {0};
    prefer_parse(str_of(handlings[_i].header), &p);
    ck_assert_int_eq(p.strict, handlings[_i].strict);
}
END_TEST

START_TEST(prefer_is_parsed_by_rfc_7240)
{
    struct prefer p = {0};
    char out[PREFER_APPLIED_SIZE];
    prefer_parse(str_of(prefer_cases[_i].first), &p);
    if (prefer_cases[_i].second != NULL)
        prefer_parse(str_of(prefer_cases[_i].second), &p);
    ck_assert_int_eq(p.wait, prefer_cases[_i].wait);
    if (p.wait)
        ck_assert_uint_eq(p.wait_s, prefer_cases[_i].wait_s);
    ck_assert_int_eq(p.async, prefer_cases[_i].async);
    struct str applied = prefer_applied(&p, out);
    ck_assert_int_eq(applied.p == NULL, prefer_cases[_i].applied == NULL);
    ck_assert(str_eq(applied, str_of(prefer_cases[_i].applied)));
}
END_TEST

/* ---- Idempotency-Key ---- */

START_TEST(an_idempotency_key_is_printable_and_bounded)
{
    char key[256];
    memset(key, 'k', sizeof(key));
    ck_assert(idempotency_key_valid(STR("8e03978e-40d5-43dd-bc93-6894a57f9324")));
    ck_assert(idempotency_key_valid(STR("with space and ~!\"")));
    ck_assert(idempotency_key_valid((struct str){key, 255}));
    ck_assert(!idempotency_key_valid((struct str){key, 256}));
    ck_assert(!idempotency_key_valid(STR("")));
    ck_assert(!idempotency_key_valid(STR("tab\there")));
    ck_assert(!idempotency_key_valid(STR("nul\0")));
    ck_assert(!idempotency_key_valid(STR("\x7f")));
    ck_assert(!idempotency_key_valid(STR("\xc3\xa9")));
}
END_TEST

START_TEST(idempotency_key_is_bound_to_credential_and_path)
{
    static const struct {
        uint64_t credential;
        struct str path, key;
    } triples[] = {
        {1, {"/a", 2}, {"bc", 2}}, {2, {"/a", 2}, {"bc", 2}}, {1, {"/ab", 3}, {"c", 1}},
        {1, {"/a", 2}, {"bd", 2}}, {1, {"/b", 2}, {"bc", 2}},
    };
    uint8_t digests[5][IDEMPOTENCY_DIGEST_SIZE], again[IDEMPOTENCY_DIGEST_SIZE];
    for (int i = 0; i < 5; ++i) {
        ck_assert(
            idempotency_digest(triples[i].credential, triples[i].path, triples[i].key, digests[i]));
        for (int j = 0; j < i; ++j)
            ck_assert_mem_ne(digests[i], digests[j], sizeof(again));
    }
    ck_assert(idempotency_digest(1, STR("/a"), STR("bc"), again));
    ck_assert_mem_eq(again, digests[0], sizeof(again));
}
END_TEST

START_TEST(body_digest_is_sha_256)
{
    static const uint8_t empty[] = {0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14,
                                    0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
                                    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c,
                                    0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55};
    uint8_t got[IDEMPOTENCY_DIGEST_SIZE];
    ck_assert(idempotency_body((struct str){NULL, 0}, got));
    ck_assert_mem_eq(got, empty, sizeof(empty));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conditions");
    TCase *tc = tcase_create("conditions");
    suite_add_tcase(suite, tc);
    tcase_add_test(tc, tag_is_version_and_program);
    tcase_add_loop_test(tc, if_none_match_accepts_lists_weak_tags_and_both_forms, 0,
                        sizeof(none_match_cases) / sizeof(none_match_cases[0]));
    tcase_add_loop_test(tc, if_match_accepts_strong_tags_only, 0,
                        sizeof(if_match_cases) / sizeof(if_match_cases[0]));
    tcase_add_loop_test(tc, prefer_is_parsed_by_rfc_7240, 0,
                        sizeof(prefer_cases) / sizeof(prefer_cases[0]));
    tcase_add_loop_test(tc, the_first_handling_preference_wins, 0,
                        (int)(sizeof(handlings) / sizeof(handlings[0])));
    tcase_add_test(tc, an_idempotency_key_is_printable_and_bounded);
    tcase_add_test(tc, idempotency_key_is_bound_to_credential_and_path);
    tcase_add_test(tc, body_digest_is_sha_256);
    return suite_run(suite);
}
