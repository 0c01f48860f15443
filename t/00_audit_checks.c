/* Every check's verdict: a page and what the check says of it, three lines a case. */
#include "audit/checks.h"
#include "audit/results.h"
#include "audit/text.h"
#include "audit/url.h"

#include <check.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define NOW_MS 1800000000000 /* January 2027 */

enum expected { PASS = OUTCOME_PASS, FAIL = OUTCOME_FAIL, NA = OUTCOME_NOT_APPLICABLE };

static const struct conf conf = {.audit_ports = {80, 443}, .audit_ports_count = 2};

static void set_headers(struct facts *f, const char *headers)
{
    struct str rest = str_of(headers), line;
    while (text_token(&rest, "\n", &line)) {
        struct fact_header *h = &f->response.headers[f->response.header_count++];
        text_split(line, ':', &h->name, &h->value);
        h->value = text_trim(h->value);
    }
}

static void set_url(struct facts *f, const char *text)
{
    struct url url;
    const char *why;
    ck_assert_msg(url_judge(str_of(text), NULL, &conf, &url, &why), "%s: %s", text, why);
    f->response.url = arena_copy(&f->arena, str_of(url.text));
    f->response.origin = arena_copy(&f->arena, str_of(url.origin));
    f->response.host = arena_copy(&f->arena, str_of(url.host));
    f->response.target = arena_copy(&f->arena, str_of(url.target));
    f->response.https = url.https;
    url_free(&url);
}

static void set_facts(struct facts *f, const char *url, const char *headers, const char *html)
{
    facts_init(f);
    f->now_ms = NOW_MS;
    f->response.status = 200;
    f->response.http_version = 20;
    f->response.certificate.verified = true;
    f->response.decoded_bytes = f->response.wire_bytes = strlen(html);
    set_url(f, url);
    set_headers(f, headers);
    ck_assert_int_eq(facts_read(f, str_of(html), 1000), PAGE_OK);
}

static const struct check *find(const char *id)
{
    for (size_t i = 0; i < checks_count; i++)
        if (strcmp(checks[i].id, id) == 0)
            return &checks[i];
    ck_abort_msg("no check %s", id);
    return NULL;
}

static void expect(struct facts *f, const char *id, enum expected outcome, const char *says)
{
    struct verdict v = {.arena = &f->arena};
    find(id)->run(f, &v);
    ck_assert_msg((int)v.outcome == (int)outcome, "%s: %d, not %d: %.*s", id, v.outcome, outcome, (int)v.message.n, v.message.p);
    ck_assert_msg(v.outcome != OUTCOME_FAIL || v.message.n > 20, "%s fails without a word", id);
    if (says == NULL)
        return;
    bool found = text_has(v.message, says) || (v.value_kind == VALUE_TEXT && text_has(v.text, says));
    for (size_t i = 0; i < v.detail_count; i++)
        found = found || text_has(v.details[i], says);
    char number[32];
    snprintf(number, sizeof(number), "%.10g", v.number);
    found = found || (v.value_kind == VALUE_NUMBER && strcmp(number, says) == 0);
    ck_assert_msg(found, "%s does not say %s", id, says);
}

#define URL "https://example.com/"
#define T60 "123456789 123456789 123456789 123456789 123456789 1234567890"
#define VIEWPORT(content) "<meta name=viewport content='" content "'>"
#define D(n) "<!DOCTYPE html><title>t</title><body>" n

/* check, outcome, what value, message or details must hold (NULL: anything); URL; headers; HTML */
static const struct {
    const char *id;
    enum expected outcome;
    const char *says, *url, *headers, *html;
} cases[] = {
    {"title", PASS, "6 characters", URL, "Content-Type: text/html; charset=utf-8", "<title> Good\n\xC3\xA4 </title>"},
    {"title", PASS, "60 characters", URL, "", "<title>" T60 "</title>"},
    {"title", FAIL, "61 characters", URL, "", "<title>" T60 "x</title>"},
    {"title", FAIL, "no title", URL, "", "<h1>x</h1>"},
    {"title", FAIL, "empty", URL, "", "<title> \n </title>"},
    {"title", FAIL, "2 titles", URL, "", "<title>a</title><title>b</title>"},
    {"title", PASS, "a", URL, "", "<title>a</title><svg><title>b</title></svg>"},
    {"title", FAIL, "no title", URL, "", "<svg><title>b</title></svg>"},
    {"meta_description", PASS, "11 characters", URL, "", "<meta name=DESCRIPTION content=' What it is. '>"},
    {"meta_description", PASS, "120 to 160", URL, "", "<meta name=description content=short>"},
    {"meta_description", FAIL, "no description", URL, "", "<meta property=og:description content=x>"},
    {"meta_description", FAIL, "empty", URL, "", "<meta name=description content=' '>"},
    {"meta_description", FAIL, "empty", URL, "", "<meta name=description><meta name=description content=x>"},
    {"headings", PASS, "h2: two", URL, "", "<title>t</title><h1>one</h1><h2>two</h2>"},
    {"headings", FAIL, "no h1", URL, "", "<h2>x</h2>"},
    {"headings", FAIL, "2 h1", URL, "", "<h1>a</h1><h1>b</h1>"},
    {"headings", FAIL, "repeats", URL, "", "<title>Same</title><h1> Same</h1>"},
    {"image_alt", PASS, "0", URL, "", "<img alt=x src=a><img alt='' src=b><img alt src=c>"},
    {"image_alt", PASS, NULL, URL, "", "<img aria-label=x><img aria-labelledby=y><img title=z><img role=none><img role=presentation>"},
    {"image_alt", FAIL, "src=\"b.png\"", URL, "", "<img alt=x><img src=b.png>"},
    {"image_alt", FAIL, "1 of 1", URL, "", "<img alt=' '>"},
    {"image_alt", FAIL, NULL, URL, "", "<img aria-label='' role=img title=' '>"},
    {"image_alt", NA, NULL, URL, "", "<p>x"},
    {"image_alt", NA, NULL, URL, "", "<noscript><img></noscript><template><img></template>"},
    {"noindex", PASS, NULL, URL, "", "<meta name=robots content='index, follow'>"},
    {"noindex", PASS, NULL, URL, "", "<p>noindex"},
    {"noindex", FAIL, "noindex in <meta", URL, "", "<meta name=ROBOTS content='follow, NoIndex'>"},
    {"noindex", FAIL, "none", URL, "", "<meta name=robots content=none>"},
    {"noindex", PASS, "googlebot", URL, "", "<meta name=googlebot content=noindex>"},
    {"noindex", PASS, NULL, URL, "", "<meta name=robots content=noindex><meta name=googlebot content=index>"},
    {"noindex", FAIL, "X-Robots-Tag", URL, "X-Robots-Tag: noindex", ""},
    {"noindex", FAIL, NULL, URL, "X-Robots-Tag: nofollow\nX-Robots-Tag: none", ""},
    {"noindex", PASS, NULL, URL, "X-Robots-Tag: bingbot: noindex", ""},
    {"noindex", FAIL, NULL, URL, "X-Robots-Tag: bingbot: noindex", "<meta name=robots content=noindex>"},
    {"noindex", FAIL, NULL, URL, "X-Robots-Tag: unavailable_after: 25 Jun 2010 15:00:00 PST", ""},
    {"noindex", FAIL, NULL, URL, "X-Robots-Tag: unavailable_after: Friday, 25-Jun-10 15:00:00 GMT", ""},
    {"noindex", FAIL, NULL, URL, "", "<meta name=robots content='unavailable_after: 2010-06-25'>"},
    {"noindex", PASS, NULL, URL, "", "<meta name=robots content='unavailable_after: 2090-06-25T10:00:00Z'>"},
    {"noindex", PASS, NULL, URL, "", "<meta name=robots content='unavailable_after: never'>"},
    {"language", PASS, "en-GB", URL, "", "<html lang=en-GB>"},
    {"language", FAIL, "does not say", URL, "", "<html>"},
    {"language", FAIL, "does not say", URL, "", "<html lang=' '>"},
    {"language", FAIL, "no known", URL, "", "<html lang=english>"},
    {"text_compression", PASS, "br", URL, "Content-Encoding: br", ""},
    {"text_compression", PASS, NULL, URL, "Content-Encoding: GZIP", ""},
    {"text_compression", PASS, NULL, URL, "Content-Encoding: identity, zstd", ""},
    {"text_compression", NA, NULL, URL, "", "<p>short"},
    {"doctype", PASS, "standards mode", URL, "", "<!doctype html><p>"},
    {"doctype", FAIL, "no doctype", URL, "", "<p>"},
    {"doctype", FAIL, "no doctype", URL, "", "<p><!doctype html>"},
    {"doctype", FAIL, "limited quirks", URL, "", "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\" \"x\">"},
    {"doctype", FAIL, "into quirks mode", URL, "", "<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 3.2//EN\">"},
    {"dom_size", PASS, "6", URL, "", "<html><head><title>t</title></head><body><p><br></body></html>"},
    {"https_encryption", PASS, "https", URL, "", ""},
    {"https_encryption", FAIL, "not encrypted", "http://example.com/", "", ""},
    {"mixed_content", NA, NULL, "http://example.com/", "", "<img src=http://a/>"},
    {"mixed_content", PASS, "0", URL, "", "<img src=https://a/><img src=//a/><img src=/a><img src=data:image/gif;base64,x><a href=http://a/>x</a>"},
    {"mixed_content", PASS, NULL, URL, "", "<link rel=canonical href=http://a/><link rel=alternate href=http://a/>"},
    {"mixed_content", FAIL, "<img src=\"HTTP://a/\">", URL, "", "<img src=HTTP://a/>"},
    {"mixed_content", FAIL, "6 elements", URL, "",
     "<script src=http://a/></script><link rel=stylesheet href=http://a/><iframe src=http://a/></iframe><video poster=http://a/></video><form action=http://a/></form>"
     "<object data=http://a/></object>"},
    {"mixed_content", FAIL, "1 elements", URL, "", "<picture><source srcset='https://a/1 1x, http://a/2 2x'><img src=/a></picture>"},
    {"mixed_content", FAIL, NULL, URL, "", "<svg><image xlink:href=http://a/></svg>"},
    {"mixed_content", FAIL, NULL, URL, "", "<base href=http://a/><img src=b>"},
    {"mixed_content", PASS, NULL, URL, "", "<base href=https://a/><img src=b>"},
    {"hsts", NA, NULL, "http://example.com/", "Strict-Transport-Security: max-age=31536000", ""},
    {"hsts", PASS, NULL, URL, "strict-transport-security: max-age=31536000", ""},
    {"hsts", PASS, NULL, URL, "Strict-Transport-Security: max-age=\"63072000\" ; includeSubDomains; preload;", ""},
    {"hsts", FAIL, "no Strict", URL, "", ""},
    {"hsts", FAIL, "31535999 seconds", URL, "Strict-Transport-Security: max-age=31535999", ""},
    {"hsts", FAIL, "no max-age", URL, "Strict-Transport-Security: includeSubDomains", ""},
    {"hsts", FAIL, "Unknown directive: x=1", URL, "Strict-Transport-Security: max-age=31536000; x=1", ""},
    {"structured_data", PASS, "Open Graph", URL, "", "<meta property=og:title content=x>"},
    {"structured_data", PASS, "Twitter", URL, "", "<meta name=twitter:card content=summary>"},
    {"structured_data", PASS, "JSON-LD", URL, "", "<script type=application/ld+json>\n{\"@type\":\"Thing\",\"x\":\"</p>\"}\n</script>"},
    {"structured_data", PASS, "Open Graph, JSON-LD", URL, "", "<meta property=og:type content=x><script type=application/ld+json>[]</script>"},
    {"structured_data", PASS, "no valid JSON", URL, "", "<meta property=og:type content=x><script type=application/ld+json>{,}</script>"},
    {"structured_data", FAIL, "no valid JSON", URL, "", "<script type=application/ld+json>{\"a\":1,}</script>"},
    {"structured_data", FAIL, "no valid JSON", URL, "", "<script type=application/ld+json>{\"a\":1} x</script>"},
    {"structured_data", FAIL, "no structured", URL, "", "<script>{\"a\":1}</script><meta property=og:title content=''>"},
    {"meta_viewport", PASS, NULL, URL, "", VIEWPORT("width=device-width")},
    {"meta_viewport", PASS, NULL, URL, "", VIEWPORT("initial-scale = 1.0")},
    {"meta_viewport", PASS, NULL, URL, "", VIEWPORT("user-scalable=no;width=320 , initial-scale=2")},
    {"meta_viewport", FAIL, "no viewport", URL, "", "<meta name=view content=width=1>"},
    {"meta_viewport", FAIL, "neither", URL, "", VIEWPORT("user-scalable=no")},
    {"meta_viewport", FAIL, "neither", URL, "", VIEWPORT("width=, height=3")},
    {"meta_viewport", FAIL, "under 1", URL, "", VIEWPORT("width=device-width, initial-scale=.5")},
    {"charset", PASS, "utf-8", URL, "Content-Type: text/html; charset=UTF-8", ""},
    {"charset", PASS, "meta tag", URL, "Content-Type: text/html", "<meta charset=utf-8>"},
    {"charset", PASS, "byte order", URL, "", "\xEF\xBB\xBF<p>"},
    {"charset", FAIL, "does not say", URL, "Content-Type: text/html", "<p>"},
    {"charset", FAIL, "unknown", URL, "Content-Type: text/html; charset=klingon", "<p>"},
    {"deprecated_html_tags", PASS, "0", URL, "", "<p><b>x</b><i>y</i><small>z</small>"},
    {"deprecated_html_tags", FAIL, "<font>: 2", URL, "", "<font>a</font><font>b</font><center>c</center>"},
};

START_TEST(a_page_gets_its_verdict)
{
    struct facts f;
    set_facts(&f, cases[_i].url, cases[_i].headers, cases[_i].html);
    expect(&f, cases[_i].id, cases[_i].outcome, cases[_i].says);
    facts_free(&f);
}
END_TEST

/* ---- verdicts on what is no markup: sizes, times, probes ---- */

START_TEST(sizes_and_times_are_held_to_their_limits)
{
    struct facts f;
    set_facts(&f, URL, "", D("<p>"));
    f.response.load_ms = 2000;
    expect(&f, "load_time", PASS, "2");
    f.response.load_ms = 2001;
    expect(&f, "load_time", FAIL, "2.001");
    f.response.wire_bytes = 330000;
    expect(&f, "page_size", PASS, "330000");
    f.response.wire_bytes++;
    expect(&f, "page_size", FAIL, "330001");
    f.page.element_count = 1500;
    expect(&f, "dom_size", PASS, "1500");
    f.page.element_count++;
    expect(&f, "dom_size", FAIL, "1501");
    facts_free(&f);
}
END_TEST

START_TEST(an_uncompressed_page_fails_when_gzip_would_save_1400_bytes)
{
    struct facts f;
    struct buf html = {0};
    buf_adds(&html, D("<p>"));
    while (html.n < 1600)
        buf_adds(&html, "word ");
    buf_add(&html, "", 1);
    set_facts(&f, URL, "", html.p);
    ck_assert_uint_gt(f.response.gzip_bytes, 50);
    expect(&f, "text_compression", FAIL, "none");
    f.response.decoded_bytes = f.response.gzip_bytes + 1399;
    expect(&f, "text_compression", NA, NULL);
    f.response.decoded_bytes++;
    expect(&f, "text_compression", FAIL, "1400 bytes");
    facts_free(&f);
    buf_free(&html);
}
END_TEST

START_TEST(a_certificate_is_described_and_its_fault_named)
{
    struct facts f;
    set_facts(&f, URL, "", "");
    f.response.certificate = (struct fact_certificate){.verified = true, .issuer = STR("C = US, O = Good"), .not_before = STR("Jan 1"), .not_after = STR("Mar 31")};
    expect(&f, "https_encryption", PASS, "Valid until Mar 31");
    f.response.certificate.verified = false;
    f.response.certificate.reason = STR("certificate has expired");
    expect(&f, "https_encryption", FAIL, "certificate has expired");
    facts_free(&f);
}
END_TEST

START_TEST(robots_txt_decides_by_its_status_and_rules)
{
    struct facts f;
    set_facts(&f, "https://example.com/private/x?y", "", "");
    expect(&f, "robots", NA, NULL);
    f.robots = (struct fact_probe){.state = PROBE_DONE, .status = 404, .body = STR("User-agent: *\nDisallow: /")};
    expect(&f, "robots", PASS, NULL);
    f.robots.status = 503;
    expect(&f, "robots", FAIL, "503");
    f.robots.status = 200;
    expect(&f, "robots", FAIL, "Line 2: Disallow: /");
    f.robots.body = STR("User-agent: *\nDisallow: /\nAllow: /private/");
    expect(&f, "robots", PASS, "Line 3");
    f.robots.state = PROBE_FAILED;
    expect(&f, "robots", NA, NULL);
    facts_free(&f);
}
END_TEST

/* ---- the table and the results ---- */

START_TEST(every_check_has_an_id_of_its_own_and_a_function)
{
    for (size_t i = 0; i < checks_count; i++) {
        ck_assert_ptr_nonnull(checks[i].run);
        ck_assert_uint_gt(strlen(checks[i].id), 2);
        for (const char *p = checks[i].id; *p != '\0'; p++)
            ck_assert((*p >= 'a' && *p <= 'z') || *p == '_' || (*p >= '0' && *p <= '9'));
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(checks[i].id, checks[j].id);
    }
}
END_TEST

START_TEST(every_check_is_tested_with_a_pass_and_a_fail)
{
    static const char *const elsewhere[] = {"robots", "load_time", "page_size", "dom_size", "text_compression"};
    for (size_t i = 0; i < checks_count; i++) {
        bool passes = false, fails = false;
        for (int j = 0; j < COUNT(elsewhere); j++)
            passes = fails = passes || strcmp(elsewhere[j], checks[i].id) == 0;
        for (int j = 0; j < COUNT(cases); j++) {
            passes = passes || (strcmp(cases[j].id, checks[i].id) == 0 && cases[j].outcome == PASS);
            fails = fails || (strcmp(cases[j].id, checks[i].id) == 0 && cases[j].outcome == FAIL);
        }
        ck_assert_msg(passes && fails, "%s", checks[i].id);
    }
}
END_TEST

START_TEST(results_are_json_with_a_member_per_check_and_a_score_of_them)
{
    struct facts f;
    struct audit_findings findings = {0};
    struct buf json = {0};
    unsigned won = 0, all = 0, passed = 0;
    set_facts(&f, URL, "X-Robots-Tag: noindex \"\\\x01", "<title>\"\\\x02 <\xC3\xA4></title><img src='a\"\\'>");
    ck_assert(results_make(&f, &findings, &json));
    buf_add(&json, "", 1);
    struct json_object *parsed = json_tokener_parse(json.p);
    ck_assert_ptr_nonnull(parsed);
    ck_assert_int_eq(json_object_object_length(parsed), (int)checks_count);
    for (size_t i = 0; i < checks_count; i++) {
        static const unsigned weights[] = {10, 5, 1};
        struct json_object *check, *outcome, *details;
        ck_assert(json_object_object_get_ex(parsed, checks[i].id, &check));
        ck_assert_int_eq(json_object_object_length(check), 6);
        ck_assert(json_object_object_get_ex(check, "details", &details) && json_object_is_type(details, json_type_array));
        ck_assert(json_object_object_get_ex(check, "passed", &outcome));
        if (outcome == NULL)
            continue;
        all += weights[checks[i].importance];
        won += json_object_get_boolean(outcome) ? weights[checks[i].importance] : 0;
        passed += (unsigned)json_object_get_boolean(outcome);
    }
    ck_assert_int_eq(findings.score, (int)(100.0 * won / all + 0.5));
    ck_assert_uint_eq(findings.issues.passed, passed);
    json_object_put(parsed);
    buf_free(&json);
    facts_free(&f);
}
END_TEST

START_TEST(long_details_are_cut_before_anything_else)
{
    struct facts f;
    struct audit_findings findings = {0};
    struct buf html = {0}, json = {0};
    for (unsigned i = 0; i < 100; i++)
        buf_printf(&html, "<h1>%0250u</h1><img src='http://%0250u'><meta property='og:%0100u' content='%0200u'>", i, i, i, i);
    buf_add(&html, "", 1);
    set_facts(&f, URL, "", html.p);
    ck_assert(results_make(&f, &findings, &json));
    ck_assert_uint_le(json.n, RESULTS_MAX_BYTES);
    ck_assert_uint_gt(json.n, RESULTS_MAX_BYTES / 8);
    buf_add(&json, "", 1);
    struct json_object *parsed = json_tokener_parse(json.p), *check, *details;
    ck_assert(json_object_object_get_ex(parsed, "headings", &check) && json_object_object_get_ex(check, "details", &details));
    ck_assert_uint_gt(json_object_array_length(details), 5);
    ck_assert_uint_le(json_object_array_length(details), 50);
    json_object_put(parsed);
    buf_free(&html);
    buf_free(&json);
    facts_free(&f);
}
END_TEST

START_TEST(a_score_is_classified_by_the_thresholds)
{
    struct conf c = {.reports_good = 80, .reports_decent = 50};
    static const int results[][2] = {{100, 1}, {80, 1}, {79, 2}, {50, 2}, {49, 3}, {0, 3}, {-1, 0}};
    for (int i = 0; i < COUNT(results); i++)
        ck_assert_int_eq(audit_result(results[i][0], &c), results[i][1]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit_checks");
    TCase *t = tcase_create("checks");
    tcase_add_loop_test(t, a_page_gets_its_verdict, 0, COUNT(cases));
    tcase_add_test(t, sizes_and_times_are_held_to_their_limits);
    tcase_add_test(t, an_uncompressed_page_fails_when_gzip_would_save_1400_bytes);
    tcase_add_test(t, a_certificate_is_described_and_its_fault_named);
    tcase_add_test(t, robots_txt_decides_by_its_status_and_rules);
    tcase_add_test(t, every_check_has_an_id_of_its_own_and_a_function);
    tcase_add_test(t, every_check_is_tested_with_a_pass_and_a_fail);
    tcase_add_test(t, results_are_json_with_a_member_per_check_and_a_score_of_them);
    tcase_add_test(t, long_details_are_cut_before_anything_else);
    tcase_add_test(t, a_score_is_classified_by_the_thresholds);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
