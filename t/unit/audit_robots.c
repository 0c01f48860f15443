/* robots.txt: which URLs it allows, and by which line. */
#include "core/audit/robots_internal.h"
#include "core/audit/text.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- robots.txt: text, target, allowed, line ---- */

#define ALL "User-agent: *\n"
static const struct {
    const char *text, *target;
    bool allowed;
    unsigned line;
} robots_cases[] = {
    {"", "/a", true, 0},
    {ALL "Disallow: /", "/a", false, 2},
    {ALL "Disallow:", "/a", true, 0},
    {"Disallow: /", "/a", true, 0},
    {ALL "Disallow: /a\nAllow: /a/b", "/a/b/c", true, 3},
    {ALL "Allow: /a/b\nDisallow: /a", "/a/c", false, 3},
    {ALL "Disallow: /a\nAllow: /a", "/a", true, 3},
    {ALL "Allow: /a\nDisallow: /a", "/a", true, 2},
    {ALL "Disallow: /A", "/a", true, 0},
    {ALL "Disallow: /*.php$", "/x/y.php", false, 2},
    {ALL "Disallow: /*.php$", "/x/y.php?z", true, 0},
    {ALL "Disallow: /*.php", "/x/y.php?z", false, 2},
    {ALL "Disallow: /a*b*c", "/aXbYcZ", false, 2},
    {ALL "Disallow: /a*b*c$", "/aXbcYbc", false, 2},
    {ALL "Disallow: /a$", "/a", false, 2},
    {ALL "Disallow: /a$", "/ab", true, 0},
    {ALL "Disallow: *", "/a", false, 2},
    {ALL "Disallow: $", "/a", true, 0},
    {ALL "Disallow: /\xC3\xA4", "/%c3%a4", false, 2},
    {ALL "Disallow: /%7Ejoe", "/~joe/x", false, 2},
    {ALL "Disallow: /a%2Fb", "/a/b", true, 0},
    {ALL "Disallow: /a # comment", "/a", false, 2},
    {"\xEF\xBB\xBF" ALL "Disallow: /a", "/a", false, 2},
    {"user-AGENT : googlebot\r\ndisALLOW : /a\r\n", "/a", false, 2},
    {"User-agent: Googlebot\nDisallow: /b\n\n" ALL "Disallow: /", "/a", true, 0},
    {"User-agent: Googlebot\n\n" ALL "Disallow: /", "/a", false, 4},
    {"User-agent: Googlebot\nDisallow:\nUser-agent: *\nDisallow: /", "/a", true, 0},
    {"User-agent: Googlebot-Image\nDisallow: /", "/a", true, 0},
    {"User-agent: Googlebot/2.1\nDisallow: /", "/a", false, 2},
    {"User-agent: other\nUser-agent: googlebot\nDisallow: /a", "/a", false, 3},
    {"User-agent: googlebot\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: "
     "googlebot\nDisallow: /b",
     "/b", false, 6},
    {ALL "Crawl-delay: 3\nSitemap: http://x/\nDisallow: /a", "/a", false, 4},
    {ALL "\n\nDisallow: /a", "/a", false, 4},
    {ALL "Disallow: /", "/robots.txt", true, 0},
    {"<html>no robots at all</html>", "/a", true, 0},
};

START_TEST(robots_txt_is_read_by_rfc_9309)
{
    struct robots_verdict out;
    robots_judge(str_of(robots_cases[_i].text), "Googlebot", str_of(robots_cases[_i].target), &out);
    ck_assert_msg(out.allowed == robots_cases[_i].allowed, "%s", robots_cases[_i].text);
    ck_assert_msg(out.line == robots_cases[_i].line, "%s: line %u", robots_cases[_i].text,
                  out.line);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit_robots");
    TCase *t = tcase_create("robots");
    tcase_add_loop_test(t, robots_txt_is_read_by_rfc_9309, 0, COUNT(robots_cases));
    suite_add_tcase(s, t);
    return suite_run(s);
}
