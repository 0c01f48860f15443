/* Origins: their notation, and which requests they allow. */
#include "core/http/cors.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>

static const struct {
    const char *text, *normal; /* NULL: refused */
} written[] = {
    {"*", "*"},
    {"https://example.com", "https://example.com"},
    {"HTTPS://Example.COM", "https://example.com"},
    {"https://example.com:443", "https://example.com"},
    {"http://example.com:80", "http://example.com"},
    {"http://example.com:443", "http://example.com:443"},
    {"http://127.0.0.1:8080", "http://127.0.0.1:8080"},
    {"http://[::1]:8080", "http://[::1]:8080"},
    {"http://[::1]", "http://[::1]"},
    {"https://example.com/", NULL},
    {"https://example.com/path", NULL},
    {"https://u@example.com", NULL},
    {"https://", NULL},
    {"https://:443", NULL},
    {"https://example.com:", NULL},
    {"https://example.com:0", NULL},
    {"https://example.com:65536", NULL},
    {"https://example.com:8o", NULL},
    {"https://exa mple.com", NULL},
    {"https://*.example.com", NULL},
    {"example.com", NULL},
    {"ftp://example.com", NULL},
    {"null", NULL},
    {"", NULL},
    {"https://a\nhttps://b", NULL},
};

START_TEST(an_origin_is_normalized_as_browsers_send_it)
{
    char out[CORS_ORIGIN_MAX];
    bool good = cors_origin_normal(str_of(written[_i].text), out);
    ck_assert_msg(good == (written[_i].normal != NULL), "%s", written[_i].text);
    if (good)
        ck_assert_str_eq(out, written[_i].normal);
}
END_TEST

static const struct {
    const char *origins, *origin; /* NULL: no header */
    bool allowed;
} sent[] = {
    {"", "https://a.example", false},
    {"", NULL, false},
    {"*\n", "https://a.example", true},
    {"*\n", "null", true},
    {"*\n", NULL, true},
    {"https://a.example\n", "https://a.example", true},
    {"https://a.example\n", NULL, false},
    {"https://a.example\n", "", false},
    {"https://a.example\n", "null", false},
    {"https://a.example\n", "https://a.example.evil", false},
    {"https://a.example\n", "https://a.exampl", false},
    {"https://a.example\n", "http://a.example", false},
    {"https://a.example\n", "https://a.example:8443", false},
    {"https://a.example\n", "https://evil.a.example", false},
    {"https://a.example\n", "https://a.example\nhttps://b", false},
    {"https://a.example\nhttp://b.example:81\n", "http://b.example:81", true},
    {"https://a.example\nhttp://b.example:81\n", "http://b.example", false},
};

START_TEST(only_listed_origins_are_allowed)
{
    struct str origin = sent[_i].origin == NULL ? (struct str){NULL, 0} : str_of(sent[_i].origin);
    ck_assert_msg(cors_allowed(str_of(sent[_i].origins), origin) == sent[_i].allowed, "%s: %s",
                  sent[_i].origins, origin.p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cors");
    TCase *tc = tcase_create("cors");
    tcase_add_loop_test(tc, an_origin_is_normalized_as_browsers_send_it, 0,
                        (int)(sizeof(written) / sizeof(written[0])));
    tcase_add_loop_test(tc, only_listed_origins_are_allowed, 0,
                        (int)(sizeof(sent) / sizeof(sent[0])));
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
