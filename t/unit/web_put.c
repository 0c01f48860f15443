/* What pages show: escaped values, texts of a language, times and shortened names. */
#include "core/web/put.h"
#include "core/web/report_view.h"
#include "core/web/texts.h"
#include "t/kit/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* Bytes with their size, so that a zero counts. */
#define BYTES(literal) ((struct str){literal, sizeof(literal) - 1})

typedef void put_fn(struct buf *out, struct str value);

static void expect_put(put_fn *put, struct str value, struct str want)
{
    struct buf out = {0};
    put(&out, value);
    ck_assert(buf_ok(&out));
    ck_assert_msg(str_eq(buf_view(&out), want), "%.*s, not %.*s", (int)out.n,
                  out.p == NULL ? "" : out.p, (int)want.n, want.p);
    buf_free(&out);
}

static const struct {
    struct str text, html;
} texts[] = {
    {BYTES(""), BYTES("")},
    {BYTES("plain"), BYTES("plain")},
    {BYTES("<>&\"'"), BYTES("&lt;&gt;&amp;&quot;'")},
    {BYTES("a<b"), BYTES("a&lt;b")},
    {BYTES("&lt;"), BYTES("&amp;lt;")},
    {BYTES("\xe2\x80\xae\xc3\xa9\xff"), BYTES("\xe2\x80\xae\xc3\xa9\xff")},
    {BYTES("a\0<"), BYTES("a\0&lt;")},
    {BYTES("`={{}}"), BYTES("`={{}}")},
    {BYTES("1234567<"), BYTES("1234567&lt;")},
    {BYTES("12345678>"), BYTES("12345678&gt;")},
    {BYTES("\"234567812345678&"), BYTES("&quot;234567812345678&amp;")},
    {BYTES("<<<<<<<<\"\"\"\"\"\"\"\"\""),
     BYTES("&lt;&lt;&lt;&lt;&lt;&lt;&lt;&lt;"
           "&quot;&quot;&quot;&quot;&quot;&quot;&quot;&quot;&quot;")},
    {BYTES("\xbc\xbe\xa6\xa2\xbc\xbe\xa6\xa2"), BYTES("\xbc\xbe\xa6\xa2\xbc\xbe\xa6\xa2")},
    {BYTES("=;?:'%# $!,.12345"), BYTES("=;?:'%# $!,.12345")},
};

START_TEST(markup_is_escaped)
{
    expect_put(put_text, texts[_i].text, texts[_i].html);
}
END_TEST

/* ${text} as a JSON string, of which the first quote is taken, is ${want} as HTML. */
static void expect_json(struct str text, struct str want)
{
    char *json = malloc(2 * text.n + sizeof("\",")), *to = json,
         *html = malloc(HTML_MAX(2 * text.n + 2));
    ck_assert(json != NULL && html != NULL);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            *to++ = '\\';
        *to++ = text.p[i];
    }
    to = stpcpy(to, "\",");
    struct str rest = {json, (size_t)(to - json)};
    char *end = html_write_json(html, &rest);
    ck_assert(str_eq((struct str){html, (size_t)(end - html)}, want));
    ck_assert(str_eq(rest, STR(",")));
    free(html);
    free(json);
}

START_TEST(a_json_string_ends_with_its_text)
{
    static const char *const unfinished[] = {"", "a", "12345678", "1234567\\", "\\"};
    for (size_t i = 0; i < COUNT(unfinished); i++) {
        char html[HTML_MAX(8)];
        struct str rest = str_of(unfinished[i]);
        char *end = html_write_json(html, &rest);
        ck_assert(str_eq((struct str){html, (size_t)(end - html)}, str_of(unfinished[i])));
        ck_assert_uint_eq(rest.n, 0);
    }
}
END_TEST

/* Each byte, in each place of a text of up to 20 bytes. */
START_TEST(a_byte_is_escaped_wherever_it_stands)
{
    static const char *const entities[256] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"};
    char text[20], want[64];
    for (int c = 0; c < 256; c++)
        for (size_t n = 1; n <= sizeof(text); n++)
            for (size_t at = 0; at < n; at++) {
                memset(text, 'a', n);
                memset(want, 'a', sizeof(want));
                text[at] = want[at] = (char)c;
                size_t more = entities[c] == NULL ? 0 : strlen(entities[c]) - 1;
                if (more > 0)
                    memcpy(want + at, entities[c], more + 1);
                expect_put(put_text, (struct str){text, n}, (struct str){want, n + more});
                expect_json((struct str){text, n}, (struct str){want, n + more});
            }
}
END_TEST

static const struct {
    struct str url, html;
} urls[] = {
    {BYTES("http://a/?b=c&d=\"'<>"), BYTES("http://a/?b=c&amp;d=&quot;'&lt;&gt;")},
    {BYTES("https://a"), BYTES("https://a")},
    {BYTES(""), BYTES("")},
    {BYTES("/a"), BYTES("/a")},
    {BYTES("//host/a"), BYTES("//host/a")},
    {BYTES("?a"), BYTES("?a")},
    {BYTES("#a"), BYTES("#a")},
    {BYTES("./a:b"), BYTES("./a:b")},
    {BYTES("javascript:alert(1)"), BYTES("#")},
    {BYTES("JAVASCRIPT:alert(1)"), BYTES("#")},
    {BYTES("java\nscript:alert(1)"), BYTES("#")},
    {BYTES(" javascript:alert(1)"), BYTES("#")},
    {BYTES("\1javascript:alert(1)"), BYTES("#")},
    {BYTES("\0javascript:alert(1)"), BYTES("#")},
    {BYTES("data:text/html,x"), BYTES("#")},
    {BYTES("vbscript:x"), BYTES("#")},
    {BYTES("blob:https://a"), BYTES("#")},
    {BYTES("file:///etc/passwd"), BYTES("#")},
    {BYTES("http:/a"), BYTES("#")},
    {BYTES("https"), BYTES("#")},
    {BYTES("a"), BYTES("#")},
};

START_TEST(only_web_addresses_are_urls)
{
    expect_put(put_url, urls[_i].url, urls[_i].html);
}
END_TEST

START_TEST(a_part_of_a_url_has_only_unreserved_characters)
{
    expect_put(put_url_part, BYTES("AZaz09-._~"), BYTES("AZaz09-._~"));
    expect_put(put_url_part, BYTES("/?#[]@!$&'()*+,;=:%"),
               BYTES("%2F%3F%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%25"));
    expect_put(put_url_part, BYTES("\0 \n\"<\xc3\xa9\xff"), BYTES("%00%20%0A%22%3C%C3%A9%FF"));
    expect_put(put_url_part, BYTES(""), BYTES(""));
}
END_TEST

/* ---- texts ---- */

START_TEST(a_text_is_found_by_its_whole_key_alone)
{
    char long_id[200];
    memset(long_id, 'a', sizeof(long_id));
    ck_assert(str_eq(text_find(LANGUAGE_EN, "check", STR("title"), "name"), STR("Title")));
    ck_assert(str_eq(text_find(LANGUAGE_EN, "result", STR("good"), NULL), STR("Good")));
    ck_assert(str_eq(text_find(LANGUAGE_DE, "result", STR("good"), NULL), STR("Gut")));
    ck_assert_uint_eq(text_find(LANGUAGE_EN, "check", STR("titl"), "name").n, 0);
    ck_assert_uint_eq(text_find(LANGUAGE_EN, "check", STR("title"), NULL).n, 0);
    ck_assert_uint_eq(text_find(LANGUAGE_EN, "check", STR(""), "name").n, 0);
    ck_assert_uint_eq(text_find(LANGUAGE_EN, "check", (struct str){long_id, 200}, "name").n, 0);
}
END_TEST

/* Names that are the same in German. */
static const char *const same[] = {
    "badge.label",     "check.csp.name",   "check.doctype.name",       "check.favicon.name",
    "check.hsts.name", "check.http2.name", "check.meta_viewport.name", "check.sitemap.name"};

START_TEST(a_german_text_is_not_the_english_one)
{
    const struct text_table *english = &text_tables[LANGUAGE_EN],
                            *german = &text_tables[LANGUAGE_DE];
    ck_assert_uint_eq(english->count, german->count);
    for (size_t i = 0; i < english->count; i++) {
        bool may = false;
        for (size_t j = 0; j < COUNT(same); j++)
            may = may || strcmp(same[j], english->rows[i].key.p) == 0;
        ck_assert_str_eq(english->rows[i].key.p, german->rows[i].key.p);
        ck_assert_msg(may || !str_eq(english->rows[i].text, german->rows[i].text),
                      "%s is not translated", english->rows[i].key.p);
    }
}
END_TEST

/* Pages show the HTML of a text as it stands. */
START_TEST(the_html_of_every_text_is_escaped)
{
    for (enum language l = 0; l < LANGUAGES; l++)
        for (size_t i = 0; i < text_tables[l].count; i++) {
            const struct text_row *row = &text_tables[l].rows[i];
            expect_put(put_text, row->text, (struct str){row->html.p, row->html.n});
        }
}
END_TEST

START_TEST(every_text_is_found)
{
    for (enum language l = 0; l < LANGUAGES; l++) {
        const struct text_table *table = &text_tables[l];
        ck_assert_uint_gt(table->count, 100);
        for (size_t i = 0; i < table->count; i++) {
            const char *dot = strchr(table->rows[i].key.p, '.');
            char group[64];
            if (dot == NULL)
                continue;
            snprintf(group, sizeof(group), "%.*s", (int)(dot - table->rows[i].key.p),
                     table->rows[i].key.p);
            struct str text = text_find(l, group, str_of(dot + 1), NULL);
            ck_assert_msg(str_eq(text, table->rows[i].text) && text.n > 0, "%s of %s",
                          table->rows[i].key.p, table->code.p);
        }
    }
}
END_TEST

static void expect_check(const struct text_table *table, size_t check, const char *field,
                         const struct text_row *row)
{
    char key[128];
    snprintf(key, sizeof(key), "check.%s.%s", table->checks[check].id.p, field);
    ck_assert_str_eq(row->key.p, key);
}

START_TEST(a_check_has_its_own_texts)
{
    const struct text_table *table = &text_tables[_i];
    ck_assert_uint_gt(table->check_count, 40);
    for (size_t i = 0; i < table->check_count; i++) {
        const struct check_texts *check = &table->checks[i];
        expect_check(table, i, "name", check->name);
        expect_check(table, i, "wrong", check->wrong);
        expect_check(table, i, "why", check->why);
        expect_check(table, i, "mend", check->mend);
    }
}
END_TEST

START_TEST(a_check_is_found_wherever_the_search_begins)
{
    const struct text_table *table = &text_tables[_i];
    for (size_t from = 0; from < table->check_count; from++) {
        size_t next = from;
        ck_assert_ptr_null(texts_of_check(_i, STR("titl"), &next));
        ck_assert_ptr_null(texts_of_check(_i, STR(""), &next));
        for (size_t i = 0; i < table->check_count; i++) {
            next = from;
            ck_assert_ptr_eq(texts_of_check(_i, table->checks[i].id, &next), &table->checks[i]);
            ck_assert_uint_eq(next, (i + 1) % table->check_count);
        }
    }
}
END_TEST

static const struct {
    const char *header;
    enum language want;
} headers[] = {
    {"", LANGUAGE_EN},
    {"en", LANGUAGE_EN},
    {"de", LANGUAGE_DE},
    {"DE", LANGUAGE_DE},
    {"de-AT", LANGUAGE_DE},
    {"De-at-1996", LANGUAGE_DE},
    {"den", LANGUAGE_EN},
    {"x-de", LANGUAGE_EN},
    {"fr", LANGUAGE_EN},
    {"fr, de;q=0.1", LANGUAGE_DE},
    {"fr;q=0.9, *;q=0.1", LANGUAGE_EN},
    {"*", LANGUAGE_EN},
    {"*, de;q=0.1", LANGUAGE_EN},
    {"en;q=0, *", LANGUAGE_DE},
    {"de;q=0, *", LANGUAGE_EN},
    {"de;q=0", LANGUAGE_EN},
    {"en;q=0.5, de;q=0.6", LANGUAGE_DE},
    {"en;q=0.6, de;q=0.5", LANGUAGE_EN},
    {"en, de", LANGUAGE_EN},
    {"de, en", LANGUAGE_EN},
    {"de-AT, en;q=0.9", LANGUAGE_DE},
    {"en-GB;q=0.3,de-CH;q=0.4", LANGUAGE_DE},
    {"en;q=0.501,de;q=0.502", LANGUAGE_DE},
    {"\tde-AT", LANGUAGE_DE},
    {"en;q=0.1,\tde-AT;q=0.2", LANGUAGE_DE},
    {"en ; q=0.1 , de-DE ; q=0.8", LANGUAGE_DE},
    {"de-;q=1", LANGUAGE_DE},
    {",,;;q=,;=,-,de-AT", LANGUAGE_DE},
    {";q=1;q=0", LANGUAGE_EN},
    {"\xff\xfe\x80,\x01", LANGUAGE_EN},
};

START_TEST(the_language_of_the_highest_quality_is_chosen)
{
    ck_assert_int_eq(language_accepted(str_of(headers[_i].header)), headers[_i].want);
}
END_TEST

/* ${piece} as often as it fits, then ${end}: 8 KiB, in memory of exactly that size. */
static enum language of_long_header(const char *piece, const char *end)
{
    enum { SIZE = 8192 };
    const size_t length = strlen(piece), last = SIZE - strlen(end);
    char *header = malloc(SIZE);
    ck_assert_ptr_nonnull(header);
    memset(header, ',', SIZE);
    for (size_t i = 0; i + length <= last; i += length)
        memcpy(header + i, piece, length);
    memcpy(header + last, end, strlen(end));
    enum language language = language_accepted((struct str){header, SIZE});
    free(header);
    return language;
}

START_TEST(a_header_of_8_kib_is_read_to_its_end)
{
    ck_assert_int_eq(of_long_header("fr,", ",de-AT;q=0.3"), LANGUAGE_DE);
    ck_assert_int_eq(of_long_header("en-XX;q=0.1,", ",de"), LANGUAGE_DE);
    ck_assert_int_eq(of_long_header("de-AT;q=0.1,", ",en"), LANGUAGE_EN);
    ck_assert_int_eq(of_long_header("d", "-"), LANGUAGE_EN);
    ck_assert_int_eq(of_long_header(",", ",de-"), LANGUAGE_DE);
}
END_TEST

START_TEST(codes_name_languages)
{
    ck_assert_int_eq(language_of(STR("en")), LANGUAGE_EN);
    ck_assert_int_eq(language_of(STR("dE")), LANGUAGE_DE);
    ck_assert_int_eq(language_of(STR("de-AT")), LANGUAGES);
    ck_assert_int_eq(language_of(STR("")), LANGUAGES);
}
END_TEST

/* ---- views ---- */

static void *allocated[16]; /* freed after each test */
static size_t allocations;

static void *alloc(void *of, size_t size)
{
    (void)of;
    ck_assert_uint_lt(allocations, COUNT(allocated));
    void *p = calloc(1, size);
    ck_assert_ptr_nonnull(p);
    return allocated[allocations++] = p;
}

static void free_all(void)
{
    while (allocations > 0)
        free(allocated[--allocations]);
}

static const struct view_memory memory = {alloc, NULL};

START_TEST(a_time_is_utc_for_people_and_for_machines)
{
    static const struct {
        int64_t ms;
        const char *iso, *date;
    } times[] = {
        {0, "1970-01-01T00:00:00Z", "1970-01-01 00:00 UTC"},
        {INT64_C(951782400000), "2000-02-29T00:00:00Z", "2000-02-29 00:00 UTC"},
        {INT64_C(1795752719999), "2026-11-27T04:11:59Z", "2026-11-27 04:11 UTC"},
        {INT64_C(253402300799999), "9999-12-31T23:59:59Z", "9999-12-31 23:59 UTC"},
    };
    for (size_t i = 0; i < COUNT(times); i++) {
        struct str iso, date = view_time(&memory, times[i].ms, &iso);
        ck_assert(str_eq(iso, str_of(times[i].iso)));
        ck_assert(str_eq(date, str_of(times[i].date)));
    }
}
END_TEST

START_TEST(joined_texts_follow_each_other)
{
    char digits[STR_U64_MAX];
    struct str joined =
        VIEW_JOIN(&memory, STR("a="), str_u64(digits, UINT64_MAX), (struct str){0}, STR("<"));
    ck_assert(str_eq(joined, STR("a=18446744073709551615<")));
    ck_assert(str_eq(VIEW_JOIN(&memory, str_u64(digits, 0)), STR("0")));
    ck_assert_uint_eq(VIEW_JOIN(&memory, STR("")).n, 0);
}
END_TEST

static struct str name_of(const char *url)
{
    const struct store_report report = {
        .id = 1, .url = str_of(url), .status = REPORT_PENDING, .score = -1};
    const struct report_source source = {.report = &report};
    struct report_view view = {0};
    report_view_make(&view, &source, &memory);
    return view.name;
}

#define TEN "0123456789"
#define FIFTY TEN TEN TEN TEN TEN

static const struct {
    const char *url, *name;
} names[] = {
    {"https://example.com/", "example.com"},
    {"http://example.com/a/", "example.com/a"},
    {"http://example.com/a:b", "example.com/a:b"},
    {"https://" FIFTY "12345678/", FIFTY "12345678"},
    {"https://" FIFTY TEN, FIFTY TEN},
    {"https://" FIFTY TEN "1", FIFTY TEN "…"},
    {"https://" FIFTY "12345678é", FIFTY "12345678é"},
    {"https://" FIFTY "123456789é1", FIFTY "123456789…"},
    {"https://" FIFTY "1234567日本", FIFTY "1234567日…"},
    {"https://" FIFTY "12345678日本", FIFTY "12345678…"},
    {"https://" FIFTY "1234567😀a", FIFTY "1234567…"},
    {"https://" FIFTY "123456😀a", FIFTY "123456😀…"},
    {"https://" FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY, FIFTY TEN "…"},
    {"", ""},
    {"a:", "a:"},
    {"a://", "a:/"},
};

START_TEST(a_name_is_cut_between_characters)
{
    struct str name = name_of(names[_i].url);
    ck_assert_msg(str_eq(name, str_of(names[_i].name)), "%.*s, not %s", (int)name.n, name.p,
                  names[_i].name);
}
END_TEST

/* The thresholds changed after the last grading. */
START_TEST(the_row_of_the_last_grading_has_the_verdict_of_the_page)
{
    const struct store_report report = {.id = 1,
                                        .url = STR("https://example.com/"),
                                        .status = REPORT_DONE,
                                        .score = 61,
                                        .result = RESULT_GOOD,
                                        .results = STR("{}")};
    const struct store_grading gradings[] = {
        {.number = 2, .score = 61, .result = RESULT_DECENT},
        {.number = 1, .score = 60, .result = RESULT_DECENT},
    };
    const struct report_source source = {
        .report = &report, .gradings = gradings, .count = COUNT(gradings)};
    struct report_view view = {0};
    report_view_make(&view, &source, &memory);
    ck_assert(str_eq(view.result, STR("Good")));
    ck_assert(str_eq(view.history.at[0].result, STR("Good")));
    ck_assert(str_eq(view.history.at[1].result, STR("Decent")));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("web_put");
    TCase *tcase = tcase_create("web_put");
    tcase_add_checked_fixture(tcase, NULL, free_all);
    tcase_add_loop_test(tcase, markup_is_escaped, 0, COUNT(texts));
    tcase_add_test(tcase, a_json_string_ends_with_its_text);
    tcase_add_test(tcase, a_byte_is_escaped_wherever_it_stands);
    tcase_add_loop_test(tcase, only_web_addresses_are_urls, 0, COUNT(urls));
    tcase_add_test(tcase, a_part_of_a_url_has_only_unreserved_characters);
    tcase_add_test(tcase, a_text_is_found_by_its_whole_key_alone);
    tcase_add_test(tcase, a_german_text_is_not_the_english_one);
    tcase_add_test(tcase, the_html_of_every_text_is_escaped);
    tcase_add_test(tcase, every_text_is_found);
    tcase_add_loop_test(tcase, a_check_has_its_own_texts, 0, LANGUAGES);
    tcase_add_loop_test(tcase, a_check_is_found_wherever_the_search_begins, 0, LANGUAGES);
    tcase_add_loop_test(tcase, the_language_of_the_highest_quality_is_chosen, 0, COUNT(headers));
    tcase_add_test(tcase, a_header_of_8_kib_is_read_to_its_end);
    tcase_add_test(tcase, codes_name_languages);
    tcase_add_test(tcase, a_time_is_utc_for_people_and_for_machines);
    tcase_add_test(tcase, joined_texts_follow_each_other);
    tcase_add_loop_test(tcase, a_name_is_cut_between_characters, 0, COUNT(names));
    tcase_add_test(tcase, the_row_of_the_last_grading_has_the_verdict_of_the_page);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
