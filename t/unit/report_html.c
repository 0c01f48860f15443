/* A graded page as one HTML file. */
#include "cmd/report_html.h"
#include "core/text/printable.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* The page, zero-terminated, to be freed. */
static char *page_of(const char *url, const struct audit_findings *findings, enum language language)
{
    struct buf html = {0};
    const struct report_html report = {
        .url = str_of(url),
        .result = findings->error_code == NULL ? RESULT_BAD : RESULT_NONE,
        .generated_at = INT64_C(1764212400000),
        .findings = findings,
        .language = language,
    };
    report_html(&html, &report);
    buf_add(&html, "", 1);
    ck_assert(buf_ok(&html));
    return html.p;
}

static struct audit_findings graded(const char *results)
{
    return (struct audit_findings){
        .score = 42,
        .issues = {.high = 1},
        .results = str_of(results),
        .failed = STR("title"),
        .final_url = "https://a.example/",
        .facts = {.http_status = 200,
                  .ttfb_ms = 12,
                  .page_bytes = 4321,
                  .protocol = STR("HTTP/2"),
                  .final_url = STR("https://a.example/"),
                  .version = STR("1.0.0")},
    };
}

static void assert_has(const char *html, const char *wanted)
{
    ck_assert_msg(strstr(html, wanted) != NULL, "no %s in %s", wanted, html);
}

/* Every character can be printed as it is. */
static void assert_printable(const char *html)
{
    struct printable next;
    for (struct str rest = str_of(html); rest.n > 0; rest.p += next.taken, rest.n -= next.taken) {
        printable_next(rest, &next);
        ck_assert_msg(next.as_itself || strchr("\n\t", rest.p[0]) != NULL, "U+%04X in %.80s",
                      (unsigned)next.code, rest.p);
    }
}

/* Columns: a text of the page; how the file shows it. */
static const char *const texts[][2] = {
    {"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
    {"{{title}} & \\\"x\\\"", "{{title}} &amp; &quot;x&quot;"},
    {"a\x1b[31mb\x7f", "a\xef\xbf\xbd[31mb\xef\xbf\xbd"},
    {"a\xc2\x9b"
     "b",
     "a\xef\xbf\xbd"
     "b"},
    {"a\xe2\x80\xae"
     "b\xe2\x81\xa6",
     "a&#x202E;b&#x2066;"},
    {"a\xe2\x80\xa8"
     "b",
     "a&#x2028;b"},
    {"a\xff\xc3", "a\xef\xbf\xbd\xef\xbf\xbd"},
    {"مرحبا שלום 你好", "مرحبا שלום 你好"},
};

START_TEST(text_of_a_page_is_text_and_printable)
{
    char results[512];
    snprintf(results, sizeof(results),
             "{\"title\":{\"category\":\"seo\",\"importance\":\"high\",\"passed\":false,"
             "\"value\":\"%s\",\"message\":\"%s\",\"details\":[\"%s\"]}}",
             texts[_i][0], texts[_i][0], texts[_i][0]);
    struct audit_findings findings = graded(results);
    char *html = page_of("https://a.example/", &findings, LANGUAGE_EN);
    size_t times = 0;
    for (const char *at = html; (at = strstr(at, texts[_i][1])) != NULL; at++)
        times++;
    ck_assert_msg(times == 3, "%zu times %s in %s", times, texts[_i][1], html);
    assert_printable(html);
    free(html);
}
END_TEST

START_TEST(a_page_has_facts_and_no_history_in_each_language)
{
    struct audit_findings findings = graded("{}");
    char *html = page_of("http://a.example/", &findings, (enum language)_i);
    assert_has(html, _i == LANGUAGE_DE ? "<html lang=\"de\">" : "<html lang=\"en\">");
    assert_has(html, ">42</text>");
    assert_has(html, "<dd>HTTP/2</dd>");
    assert_has(html, "<dd>4 kB</dd>");
    assert_has(html, "<dd>12 ms</dd>");
    assert_has(html, "<dd>Assay 1.0.0</dd>");
    assert_has(html, "<bdi>https://a.example/</bdi>"); /* the final address */
    ck_assert(!strstr(html, "<table") && !strstr(html, "/reports/"));
    free(html);
}
END_TEST

START_TEST(a_final_address_like_the_url_is_not_named)
{
    struct audit_findings findings = graded("{}");
    char *html = page_of("https://a.example/", &findings, LANGUAGE_EN);
    ck_assert(!strstr(html, "Final address"));
    free(html);
}
END_TEST

START_TEST(an_ungraded_page_says_why_and_has_no_score)
{
    struct audit_findings findings = {.error_code = "http_error",
                                      .error_message = "The status is 404.",
                                      .final_url = "https://b.example/"};
    char *html = page_of("https://a.example/\xff", &findings, LANGUAGE_EN);
    assert_has(html, "The status is 404.");
    assert_has(html, "<bdi>https://b.example/</bdi>");
    ck_assert(!strstr(html, "class=\"dial") && !strstr(html, "class=\"facts\""));
    assert_printable(html);
    free(html);
}
END_TEST

static const char *const odd_results[] = {"", "null", "[]", "{\"title\":null}", "{\"title\":{"};

START_TEST(unexpected_results_do_no_harm)
{
    struct audit_findings findings = graded(odd_results[_i]);
    char *html = page_of("https://a.example/", &findings, LANGUAGE_EN);
    assert_has(html, ">42</text>");
    assert_has(html, "</html>");
    free(html);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report_html");
    TCase *tcase = tcase_create("pages");
    tcase_add_loop_test(tcase, text_of_a_page_is_text_and_printable, 0, COUNT(texts));
    tcase_add_loop_test(tcase, a_page_has_facts_and_no_history_in_each_language, 0, LANGUAGES);
    tcase_add_test(tcase, a_final_address_like_the_url_is_not_named);
    tcase_add_test(tcase, an_ungraded_page_says_why_and_has_no_score);
    tcase_add_loop_test(tcase, unexpected_results_do_no_harm, 0, COUNT(odd_results));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
