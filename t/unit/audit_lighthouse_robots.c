/* robots.txt with Lighthouse's test cases: errors of a file, and rules for a page. */
#include "t/kit/audit.h"
#include "t/kit/suite.h"
#include "core/audit/text.h"

#include <check.h>
#include <locale.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define URL "https://example.com/"
#define PAGE URL "test/page.html"
#define HTTP "http://example.com/"

/* robots.txt: status and text, verdict, number of errors (NULL: any) */
static const struct {
    long status;
    const char *text;
    enum expected outcome;
    const char *mistakes;
} robots_files[] = {
    {500, "", FAIL, NULL},
    {503, "There is some content", FAIL, NULL},
    {599, "", FAIL, NULL},
    {200, "Allow: /", FAIL, "1"},
    {201, "syntax error", FAIL, "1"},
    {301, "unknown: directive", FAIL, "1"},
    {200, "unknown: directive", FAIL, "1"},
    {200, "sitemap: /cant/be/relative.xml", FAIL, "1"},
    {200, "sitemap:#can't be empty", FAIL, "1"},
    {200, "sitemap: data:text/plain,x", FAIL, "1"},
    {200, "user-agent: *\nallow: https://cant.be/absolute", FAIL, "1"},
    {399, "user-agent: *\nallow: must/start/with/a/slash", FAIL, "1"},
    {200, "user-agent: *\nallow: /dollar/sign$in/the/middle", FAIL, "1"},
    {200,
     "user-agent: *\nallow: /\ndisallow: /test\n\nuser agent: wrong\nalow: /wrong\ndisallow "
     "/wrong\n",
     FAIL, "3"},
    {200, "every\nsingle\r\nline\ris\nwrong\n", FAIL, "5"},
    {200, "user-agent:\ndisallow:", FAIL, "2"},
    {404, "invalid content", NA, NULL},
    {401, "invalid content", NA, NULL},
    {200, "", NA, NULL},
    {200, "#just a comment", PASS, "0"},
    {201, "user-agent:*\ndisallow:", PASS, "0"},
    {200, "USER-AGENT:  *\nALLOW:    /         \nDISALLOW:#comment", PASS, "0"},
    {204,
     "User-agent: Twitterbot\nDisallow:\n\nUser-agent: BadBot\nDisallow: / # go away!\n\nSitemap: "
     "https://example.com/sitemap.xml\n\n"
     "User-agent: Yandex\nHost: https://example.net\nclean-param: bla\n\nUser-agent: "
     "Bing\nDisallow: /*.swf$\ncrawl-delay: 10\n\n"
     "User-agent: NotOfficial\nnoindex: /bla\nVisit-time: 0600-0845\nRequest-rate: "
     "1/30m\n\nUser-agent: RespectfulAI\n"
     "Content-Signal: ai-train=yes, search=yes, ai-input=yes\n",
     PASS, "0"},
    {200, "Sitemap: ftp://example.com/s.xml", PASS, "0"},
};

START_TEST(a_lighthouse_robots_file_has_its_errors)
{
    struct facts f;
    audit_kit_facts(&f, PAGE, "", "");
    f.robots = (struct fact_probe){.state = PROBE_DONE,
                                   .status = robots_files[_i].status,
                                   .body = str_of(robots_files[_i].text)};
    audit_kit_expect(&f, "robots_txt_valid", robots_files[_i].outcome, robots_files[_i].mistakes);
    facts_free(&f);
}
END_TEST

/* robots.txt of a page, whether Googlebot can fetch the page */
static const struct {
    const char *text;
    enum expected outcome;
} rules[] = {
    {"User-agent: *\n        Disallow: /", FAIL},
    {"User-agent: *\n        Disallow: /test/page.html", FAIL},
    {"User-agent: *\nDisallow:\n\nUser-agent: *\nDisallow: /", FAIL},
    {"User-agent: *\nDisallow: /one/\nDisallow: /two/\nDisallow: /test/\nAllow: page.html\n# "
     "Allow: /test/page.html\n"
     "Allow: /test/page.html /someother/url.html",
     FAIL},
    {"User-agent: SomeBot\nDisallow: /", PASS},
    {"User-agent: *\nDisallow: /_/\nDisallow: /search?q=*\nDisallow: /test/\nAllow: "
     "/test/page.html",
     PASS},
    {"User-agent: googlebot\nAllow: /\n\nUser-agent: *\nDisallow: /", PASS},
    {"User-agent: Googlebot\nDisallow: /\n\nUser-agent: bingbot\nAllow: /\n\nUser-agent: "
     "*\nDisallow: /",
     FAIL},
};

START_TEST(a_lighthouse_robots_rule_is_followed)
{
    struct facts f;
    audit_kit_facts(&f, HTTP "test/page.html", "", "");
    f.robots =
        (struct fact_probe){.state = PROBE_DONE, .status = 200, .body = str_of(rules[_i].text)};
    audit_kit_expect(&f, "robots", rules[_i].outcome, NULL);
    facts_free(&f);
}
END_TEST

START_TEST(an_unreachable_robots_file_is_invalid)
{
    struct facts f;
    audit_kit_facts(&f, PAGE, "", "");
    audit_kit_expect(&f, "robots_txt_valid", NA, NULL);
    f.robots.state = PROBE_FAILED;
    audit_kit_expect(&f, "robots_txt_valid", FAIL, "could not be fetched");
    facts_free(&f);
}
END_TEST

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8"); /* like audit_new */
    Suite *s = suite_create("audit_lighthouse_robots");
    TCase *t = tcase_create("lighthouse");
    tcase_add_loop_test(t, a_lighthouse_robots_file_has_its_errors, 0, COUNT(robots_files));
    tcase_add_loop_test(t, a_lighthouse_robots_rule_is_followed, 0, COUNT(rules));
    tcase_add_test(t, an_unreachable_robots_file_is_invalid);
    suite_add_tcase(s, t);
    return suite_run(s);
}
