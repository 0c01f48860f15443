/*
 * Pages and robots.txt that cost much time or memory: each ends within its bounds. Times are CPU
 * times.
 */
#include "t/kit/audit.h"
#include "t/kit/suite.h"
#include "core/audit/results_internal.h"
#include "core/audit/robots_internal.h"

#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define URL "https://example.com/"
#define ALL "User-agent: *\n"

static const struct conf conf = {
    .reports_weight_high = 10, .reports_weight_medium = 5, .reports_weight_low = 1};
static struct page page;

/* with a sanitizer; a plain build keeps the bound with any compiler */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLOWED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SLOWED
#endif

#ifdef SLOWED
#define BUSY_SECONDS 40
#define BUSY_BYTES ((size_t)1024 * 1024)
#else
#define BUSY_SECONDS 3
#define BUSY_BYTES ((size_t)5 * 1024 * 1024)
#endif

/* ---- hostile markup: start, repeated part, end, repetitions ---- */

static const struct {
    const char *what, *begin, *repeat, *end;
    unsigned times;
    bool may_give_up;
} hostile[] = {
    {"100 KB of nested b", "<body>", "<b>", "", 34000, false},
    {"nested div", "<body>", "<div>", "", 20000, false},
    {"5 MB of nested b", "<body>", "<b>", "", 1700000, true},
    {"a tag with 500 KB of attributes", "<p ", "a b=c d ", ">x", 63000, false},
    {"a tag with one attribute of 500 KB", "<p a=\"", "xxxxxxxx", "\">x", 63000, false},
    {"a tag that never ends", "<p ", "a=b ", "", 125000, false},
    {"80 tags with a thousand attributes each", "",
     "<p q w=1 e r=2 t y=3 u i=4 o p=5 a s=6 d f=7 g h=8 j k=9 l z=0 x c v b n m>", "", 13000,
     false},
    {"unmatched end tags under deep nesting", "<body>", "<b></i>", "", 90000, true},
    {"5 MB of text", "<body>", "word ", "", 1000000, false},
    {"5 MB of <", "<body>", "<", "", 5000000, true},
    {"5 MB of &", "<body>", "&", "", 5000000, true},
    {"entities", "<body>", "&amp;&#x41;&nope;", "", 200000, true},
    {"comments that never end", "<body>", "<!--", "", 1000000, false},
    {"declarations", "<body>", "<!x", "", 1000000, false},
    {"processing instructions", "<body>", "<?x", "", 1000000, false},
    {"end tags", "<body>", "</p>", "", 1000000, true},
    {"a million links", "<body>", "<a href=x>", "", 500000, true},
    {"nested tables", "<body>", "<table><tr><td>", "", 30000, true},
    {"forms and selects", "<body>", "<form><select><option>", "", 50000, true},
    {"titles", "", "<title>x</title>", "", 300000, true},
    {"scripts", "", "<script type=application/ld+json>{", "", 100000, true},
    {"svg in math", "<body>", "<svg><math>", "", 50000, true},
    {"headings", "<body>", "<h1>x", "", 300000, true},
    {"quotes", "<p ", "\"'", ">", 500000, false},
    {"equals", "<p ", "= ", ">", 500000, false},
    {"plaintext within plaintext", "", "<plaintext>x", "", 400000, false},
    {"styles", "", "<style>a{b:url(c)}</style>", "", 200000, true},
    {"styled spans with languages", "<body>", "<i style=a:url(b) lang=de>", "", 150000, true},
    {"a comment of 5 MB", "<!--", "- - --", "", 800000, false},
    {"character references in attributes", "<a href=\"", "&amp;", "\">x", 1000000, false},
    {"a title of 5 MB", "<title>", "&eacute;", "", 650000, false},
};

START_TEST(hostile_markup_stays_within_bounds)
{
    struct buf html = {0};
    struct timespec from, to;
    buf_adds(&html, hostile[_i].begin);
    for (unsigned i = 0; i < hostile[_i].times; i++)
        buf_adds(&html, hostile[_i].repeat);
    buf_adds(&html, hostile[_i].end);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    enum page_status status = page_read(&page, buf_view(&html), 1000);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    double spent = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    if (getenv("SHOW_TIMES") != NULL)
        fprintf(stderr, "%-45s %d %.3f s %zu KiB\n", hostile[_i].what, status, spent,
                page.arena.bytes / 1024);
        /*
         * a sanitizer slows everything, so that more pages time out, but never much later than the
         * deadline
         */
#ifdef SLOWED
    ck_assert_msg(spent < 40, "%s: %.1f s", hostile[_i].what, spent);
#else
    ck_assert_msg(spent < 4, "%s: %.1f s", hostile[_i].what, spent);
    if (!hostile[_i].may_give_up)
        ck_assert_msg(status == PAGE_OK, "%s: %d after %.1f s", hostile[_i].what, status, spent);
#endif
    ck_assert(status == PAGE_OK || status == PAGE_TOO_COMPLEX);
    page_free(&page);
    buf_free(&html);
}
END_TEST

START_TEST(a_parse_stops_at_its_deadline)
{
    struct buf html = {0};
    for (unsigned i = 0; i < 100000; i++)
        buf_adds(&html, "<p>x");
    ck_assert_int_eq(page_read(&page, buf_view(&html), 0), PAGE_TOO_COMPLEX);
    page_free(&page);
    buf_free(&html);
}
END_TEST

/* ---- pages that cost checks much time: the repeated part, up to 5 MiB, the fetch limit ---- */

static const char *const busy[] = {
    "<a href='http://x y' onclick>here</a>",
    "<a href=/x>here</a>",
    "<a href=//x.com/y target=_blank>z</a>",
    "<a href='//\xE4\xBE\x8B.\xE4\xBE\x8B.\xE4\xBE\x8B.\xE4\xBE\x8B.jp/'>here</a>",
    ("<link rel=alternate hreflang=en href='//\xE4\xBE\x8B.jp/'><link rel=canonical "
     "href='//\xE4\xBE\x8B.\xE4\xBE\x8B.jp/'>"),
    "<link rel=canonical href=/x>",
    "<link rel=alternate hreflang=en href=http://a.b>",
    "<p style='a:url(b'>",
    "<style>@import 'a';a:url(b)</style>",
    "<meta name=robots content='unavailable_after: 1 2 3, noindex,,,,'>",
    "<script type=application/ld+json>[[[[[[</script>",
    "<img srcset='a 1x,b 2x,,,,' style='width:;;;;;'>",
    "a@b.cc a@",
    "aaaa@aaaa.aaaa.",
    "\xE5\x92\x96",
    "&amp;&#x41;&nope;",
    "<h1>x</h1>",
    "<title>x y</title>",
    "<b lang=de>x",
};

/* to its verdict or to too_complex, within the time limit of a page */
static void assert_judged_in_time(const struct buf *html, const char *what)
{
    struct facts f;
    struct audit_findings findings = {0};
    struct buf json = {0};
    struct timespec from, to;
    audit_kit_facts(
        &f, URL "page",
        "X-Robots-Tag: all\nContent-Encoding: gzip\nContent-Type: text/html; charset=utf-8", "");
    page_free(&f.page);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    enum page_status status = facts_read(&f, buf_view(html), 1000);
    bool judged = status == PAGE_OK && results_make(&f, &conf, &findings, &json);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    double spent = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    if (getenv("SHOW_TIMES") != NULL)
        fprintf(stderr, "%-70s %d %d %.3f s\n", what, status, judged, spent);
    ck_assert(judged || status == PAGE_TOO_COMPLEX);
    ck_assert_msg(spent < BUSY_SECONDS, "%s: %.1f s", what, spent);
    facts_free(&f);
    buf_free(&json);
}

START_TEST(complex_pages_are_graded_in_time)
{
    struct buf html = {0};
    buf_adds(&html, "<title>word \xE5\x92\x97</title>");
    while (html.n < BUSY_BYTES)
        buf_adds(&html, busy[_i]);
    assert_judged_in_time(&html, busy[_i]);
    buf_free(&html);
}
END_TEST

/* the base is parsed again for every relative URL */
static const struct {
    const char *unit;
    unsigned units, times;
    const char *link;
} based[] = {
    {"\xE4\xBE\x8B", 1300, 10000, "<a href=a>here</a>"},
    {"\xE4\xBE\x8B", 1300, 10000, "<a href=http:a\xE4\xBE\x8B>here</a>"},
    {"a/", 2000, 9900, "<a href=http:a>here</a>"},
    {"a/", 1000, 9900, "<a href=http:a>here</a>"},
    {"\xE4\xBE\x8B", 220, 9900, "<a href=http:a\xE4\xBE\x8B>here</a>"},
    {"\xE4\xBE\x8B", 1300, 30000, "<link rel=alternate hreflang=en href=a>"},
    {"\xE4\xBE\x8B", 220, 30000, "<link rel=canonical href=a>"},
};

START_TEST(a_long_base_url_costs_little)
{
    struct buf html = {0};
    buf_adds(&html, "<title>x</title><base href='http://x.example/");
    for (unsigned i = 0; i < based[_i].units; i++)
        buf_adds(&html, based[_i].unit);
    buf_adds(&html, "/'><link rel=canonical href=http://x.y/z>");
    for (unsigned i = 0; i < based[_i].times; i++)
        buf_adds(&html, based[_i].link);
    assert_judged_in_time(&html, based[_i].link);
    buf_free(&html);
}
END_TEST

START_TEST(half_a_megabyte_of_robots_rules_is_read_in_time)
{
    struct buf text = {0};
    struct robots_verdict out;
    char target[2048];
    buf_adds(&text, ALL);
    while (text.n < ROBOTS_MAX_BYTES)
        buf_adds(&text, "Disallow: /*a*a*a*a*a*b\n");
    memset(target, 'a', sizeof(target));
    target[0] = '/';
    clock_t from = clock();
    robots_judge(buf_view(&text), "Googlebot", (struct str){target, sizeof(target)}, &out);
    ck_assert(out.allowed);
    ck_assert_int_lt((int)((clock() - from) / (CLOCKS_PER_SEC / 1000)), 4000);
    buf_free(&text);
}
END_TEST

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8"); /* like audit_new */
    Suite *s = suite_create("audit_hostile");
    TCase *t = tcase_create("hostile");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, hostile_markup_stays_within_bounds, 0, COUNT(hostile));
    tcase_add_test(t, a_parse_stops_at_its_deadline);
    tcase_add_loop_test(t, complex_pages_are_graded_in_time, 0, COUNT(busy));
    tcase_add_loop_test(t, a_long_base_url_costs_little, 0, COUNT(based));
    tcase_add_test(t, half_a_megabyte_of_robots_rules_is_read_in_time);
    suite_add_tcase(s, t);
    return suite_run(s);
}
