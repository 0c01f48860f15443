/* Text that looks like a secret is masked before it is logged; other text is unchanged. */
#include "core/text/redact.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>

#define KEY_RANDOM "2OtjqMXp3MIHEOPziBpBy0nlB2BYPR27SzlX"
#define KEY "asy_key_" KEY_RANDOM
#define ANON "anon_" KEY_RANDOM

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
    {"/x?anon_id=" ANON "&page=2", "/x?anon_id=***&page=2"},
    {"/visitors/" ANON "/x", "/visitors/***/x"},
    {"/x?anon_id=7&canon_eos=1", NULL},
    {"/x?sig=0123abcd&page=2", "/x?sig=***&page=2"},
    {"/x?X-Sig=0123abcd", "/x?X-Sig=***"},
    {"/x?sig1=0123abcd", "/x?sig1=***"},
    {"/x?design=1&signup=2&assigned=3", NULL},
    {"/x?pass%77ord=hunter2&y=1", "/x?pass%77ord=***&y=1"},
    {"/x?%73ig=0123&y=1", "/x?%73ig=***&y=1"},
    {"/x?%54%4f%4B%45%4E=0123&y=1", "/x?%54%4f%4B%45%4E=***&y=1"},
    {"/x?password%3Dhunter2&y=1", "/x?password%3D***&y=1"},
    {"/x?url=https%3A%2F%2Fa.example%2F%3Ftoken%3Dhunter2&y=1",
     "/x?url=https%3A%2F%2Fa.example%2F%3Ftoken%3D***&y=1"},
    {"/x?a=%61sy_key%5F" KEY_RANDOM "&y=1", "/x?a=***&y=1"},
    {"/x?a=%65yJhbGci&y=1", "/x?a=***&y=1"},
    {"/x?a=%61non%5f" KEY_RANDOM "&y=1", "/x?a=***&y=1"},
    {"/100%?pa%=1&%7=2&%zz=3&%", NULL},
};

static void expect_redacted(const char *text, const char *logged)
{
    size_t n = strlen(text);
    char *room = malloc(n + REDACT_MORE);
    struct str out = redact(str_of(text), room);
    ck_assert_msg(str_eq(out, str_of(logged == NULL ? text : logged)), "%s becomes %.*s", text,
                  (int)out.n, out.p);
    ck_assert(logged != NULL || out.p == text);
    free(room);
}

START_TEST(only_secrets_are_masked)
{
    expect_redacted(cases[_i].text, cases[_i].logged);
}
END_TEST

/* some of its characters percent-encoded, at random */
static void add_encoded(struct buf *b, const char *text)
{
    for (; *text != '\0'; text++)
        if (rand() % 3 == 0)
            buf_printf(b, rand() % 2 == 0 ? "%%%02x" : "%%%02X", (unsigned char)*text);
        else
            buf_add(b, text, 1);
}

static const char *const secret_names[] = {
    "password",      "PassWord",   "access_token", "client_secret", "signature", "jwt",
    "authorization", "credential", "session_id",   "api_key",       "sig",       "x-sig"};
static const char *const secret_starts[] = {"asy_key_", "asy_wp_", "eyJ", "anon_"};

/* With any encoding of a name, a "=" or a prefix, nothing of the secret is left. */
START_TEST(no_encoded_secret_is_left)
{
    srand(1);
    for (int i = 0; i < 20000; i++) {
        struct buf b = {0};
        bool named = rand() % 2 == 0;
        buf_adds(&b, rand() % 2 == 0 ? "/a/b?c=1&" : "/a?");
        add_encoded(
            &b, named
                    ? secret_names[(size_t)rand() % (sizeof(secret_names) / sizeof(*secret_names))]
                    : "x");
        add_encoded(&b, "=");
        if (!named)
            add_encoded(
                &b,
                secret_starts[(size_t)rand() % (sizeof(secret_starts) / sizeof(*secret_starts))]);
        buf_adds(&b, KEY_RANDOM "&page=2");
        char *room = malloc(b.n + REDACT_MORE);
        struct str out = redact(buf_view(&b), room);
        ck_assert_msg(memmem(out.p, out.n, "OtjqMX", 6) == NULL, "%.*s becomes %.*s", (int)b.n, b.p,
                      (int)out.n, out.p);
        ck_assert(out.n > 7 && memcmp(out.p + out.n - 7, "&page=2", 7) == 0);
        free(room);
        buf_free(&b);
    }
}
END_TEST

START_TEST(a_text_of_many_empty_secrets_fits_the_buffer)
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
    tcase_add_loop_test(tcase, only_secrets_are_masked, 0, sizeof(cases) / sizeof(cases[0]));
    tcase_add_test(tcase, no_encoded_secret_is_left);
    tcase_add_test(tcase, a_text_of_many_empty_secrets_fits_the_buffer);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
