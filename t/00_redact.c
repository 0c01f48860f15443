/* What looks like a secret is masked before it is logged; what does not is left as it is. */
#include "core/http/redact.h"

#include <check.h>
#include <stdlib.h>

#define KEY "asy_key_2OtjqMXp3MIHEOPziBpBy0nlB2BYPR27SzlX"

static const struct {
    const char *text, *logged;
} cases[] = {
    {"/api/v1/reports?per_page=10&sort=-id", NULL},
    {"/", NULL},
    {"", NULL},
    {"/?", NULL},
    {"/reports?search=tokens&x=password", NULL},
    {"/x?password=hunter2", "/x?password=***"},
    {"/x?PassWord=hunter2&page=2", "/x?PassWord=***&page=2"},
    {"/x?page=2&access_token=a=b==&y=1", "/x?page=2&access_token=***&y=1"},
    {"/x?api_key=1;session_id=2#sig", "/x?api_key=***;session_id=***#sig"},
    {"/x?token=", NULL},
    {"/x?password=abc/def,ghi?jkl\"m:n&page=2", "/x?password=***&page=2"},
    {"/x?next=/a/b?key=1/2 HTTP/1.1", "/x?next=/a/b?key=*** HTTP/1.1"},
    {"/x?token=&y=1", "/x?token=***&y=1"},
    {"/x?a=" KEY, "/x?a=***"},
    {"/reports/" KEY "/" KEY "?x", "/reports/***/***?x"},
    {"curl " KEY " x", "curl *** x"},
    {"Bearer asy_wp_1", "Bearer ***"},
    {"/eyJhbGciOiJIUzI1NiJ9.eyJpc3Mi.MjiVGyse_5aU/x", "/***/x"},
    {"/asy_ke", NULL},
};

static void expect_redacted(const char *text, const char *logged)
{
    size_t n = strlen(text);
    char *room = malloc(n + REDACT_MORE);
    struct str out = redact(str_of(text), room);
    ck_assert_msg(str_eq(out, str_of(logged == NULL ? text : logged)), "%s becomes %.*s", text, (int)out.n, out.p);
    ck_assert(logged != NULL || out.p == text);
    free(room);
}

START_TEST(secrets_are_masked_and_nothing_else)
{
    expect_redacted(cases[_i].text, cases[_i].logged);
}
END_TEST

START_TEST(a_text_of_many_empty_secrets_fits_into_the_room)
{
    char text[4001] = "", *room = malloc(sizeof(text) + REDACT_MORE);
    for (size_t i = 0; i + 5 < sizeof(text); i += 5)
        memcpy(text + i, "&key=", 5);
    size_t n = strlen(text);
    struct str out = redact((struct str){text, n}, room);
    ck_assert_uint_le(out.n, n + REDACT_MORE);
    free(room);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("redact");
    TCase *tcase = tcase_create("redact");
    tcase_add_loop_test(tcase, secrets_are_masked_and_nothing_else, 0, sizeof(cases) / sizeof(cases[0]));
    tcase_add_test(tcase, a_text_of_many_empty_secrets_fits_into_the_room);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
