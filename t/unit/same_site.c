/* Which requests may change something, by what they say about their source. */
#include "core/web/same_site.h"
#include "t/kit/suite.h"

#include <check.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define BASE "https://assay.example/grader"

/* Columns: Sec-Fetch-Site, Origin (NULL: not sent), Host, TLS, base_url, may change something. */
static const struct {
    const char *site, *origin, *host;
    bool tls;
    const char *base;
    bool ours;
} cases[] = {
    /* Sec-Fetch-Site decides alone */
    {"same-origin", NULL, "a.test", false, BASE, true},
    {"none", NULL, "a.test", false, BASE, true},
    {"same-origin", "https://elsewhere.test", "a.test", false, BASE, true},
    {"same-site", "https://assay.example", "assay.example", false, BASE, false},
    {"cross-site", NULL, "a.test", false, BASE, false},
    {"cross-site", "https://assay.example", "assay.example", true, BASE, false},
    {"", NULL, "a.test", false, BASE, false},
    {"Same-Origin", NULL, "a.test", false, BASE, false},
    {"same-origin, cross-site", NULL, "a.test", false, BASE, false},
    {"same-origin ", NULL, "a.test", false, BASE, false},
    /* neither: a program */
    {NULL, NULL, "a.test", false, BASE, true},
    /* the origin of base_url */
    {NULL, "https://assay.example", "a.test", false, BASE, true},
    {NULL, "https://ASSAY.example", "a.test", false, BASE, true},
    {NULL, "http://assay.example", "a.test", false, BASE, false},
    {NULL, "https://assay.example:8443", "a.test", false, BASE, false},
    {NULL, "https://assay.example.evil.test", "a.test", false, BASE, false},
    {NULL, "https://evil.test/assay.example", "a.test", false, BASE, false},
    {NULL, "https://assay.exampl", "a.test", false, BASE, false},
    {NULL, "https://assay.example/grader", "a.test", false, BASE, false},
    {NULL, "https://sub.assay.example", "a.test", false, BASE, false},
    {NULL, "http://127.0.0.1:8080", "a.test", false, "http://127.0.0.1:8080", true},
    {NULL, "http://127.0.0.1:80", "a.test", false, "http://127.0.0.1:8080", false},
    /* the host that the request came to */
    {NULL, "http://a.test", "a.test", false, BASE, true},
    {NULL, "http://a.test:81", "a.test:81", false, BASE, true},
    {NULL, "http://[::1]:81", "[::1]:81", false, BASE, true},
    {NULL, "https://a.test", "a.test", false, BASE, true}, /* TLS ends at a proxy */
    {NULL, "https://a.test", "a.test", true, BASE, true},
    {NULL, "http://a.test", "a.test", true, BASE, false},
    {NULL, "http://a.test", "a.test:81", false, BASE, false},
    {NULL, "http://a.test:81", "a.test", false, BASE, false},
    {NULL, "http://a.test.evil.test", "a.test", false, BASE, false},
    {NULL, "ftp://a.test", "a.test", false, BASE, false},
    {NULL, "a.test", "a.test", false, BASE, false},
    {NULL, "http://", "", false, BASE, false},
    /* privacy-sensitive contexts, such as a sandboxed frame */
    {NULL, "null", "a.test", false, BASE, false},
    {NULL, "null", "null", false, BASE, false},
    {NULL, "", "a.test", false, BASE, false},
    {NULL, "", "", false, "", false},
};

START_TEST(only_pages_of_this_server_and_programs_may_change_something)
{
    const struct request_source source = {.fetch_site = str_of(cases[_i].site),
                                          .origin = str_of(cases[_i].origin),
                                          .host = str_of(cases[_i].host),
                                          .base_url = str_of(cases[_i].base),
                                          .tls = cases[_i].tls};
    ck_assert_msg(request_source_is_ours(&source) == cases[_i].ours,
                  "Sec-Fetch-Site: %s, Origin: %s, Host: %s", cases[_i].site, cases[_i].origin,
                  cases[_i].host);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("same_site");
    TCase *tcase = tcase_create("same_site");
    tcase_add_loop_test(tcase, only_pages_of_this_server_and_programs_may_change_something, 0,
                        COUNT(cases));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
