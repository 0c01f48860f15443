/* Output of the command line: reports, records, and untrusted text made harmless. */
#include "cmd/cmd.h"
#include "cmd/report_print.h"
#include "core/web/texts.h"
#include "t/kit/suite.h"

#include <check.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char results[] =
    "{\"title\":{\"category\":\"seo\",\"importance\":\"high\",\"passed\":false,\"value\":\"Shop "
    "\\u001b[31mred\\u001b]0;x\\u0007\",\"message\":\"The page has 2 titles. "
    "Keep one <title>, and let it say in few words what the page is about, so that people find "
    "it.\",\"details\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"]},"
    "\"dom_size\":{\"category\":\"performance\",\"importance\":\"low\",\"passed\":false,\"value\":"
    "9000,\"message\":\"Too many "
    "elements.\",\"details\":[]},"
    "\"language\":{\"category\":\"seo\",\"importance\":\"medium\",\"passed\":true,\"value\":\"en\","
    "\"message\":null,\"details\":[]},"
    "\"hsts\":{\"category\":\"security\",\"importance\":\"low\",\"passed\":null,\"value\":null,"
    "\"message\":null,\"details\":[]}}";

/* The printed report, to be freed. */
static char *printed(bool colour, unsigned width, const char *verdict, const char *json)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct report_look look = {.colour = colour, .width = width};
    struct json *read = json == NULL ? NULL : json_read(str_of(json));
    struct report_print report = {.url = "https://a.example/\x1b[2J\xc2\x9b",
                                  .verdict = verdict,
                                  .score = 42,
                                  .results = read};
    if (verdict == NULL) {
        report.error_code = "dns_failed";
        report.error_message = "The host name could not be found.";
    }
    report_print(out, &look, &report);
    fclose(out);
    json_free(read);
    return text;
}

static void assert_has(const char *text, const char *wanted)
{
    ck_assert_msg(strstr(text, wanted) != NULL, "wanted \"%s\" in:\n%s", wanted, text);
}

START_TEST(a_report_prints_score_verdict_and_fixes_by_category)
{
    char *text = printed(false, 80, "bad", results);
    assert_has(text, "42 / 100");
    assert_has(text, "Bad\n\n  2 issues: 1 high, 1 low\n\n  SEO · 1 of 2 passed\n\n    ✗ Title  "
                     "high\n      The page has 2 titles.");
    assert_has(text, "        e\n        and 2 more\n\n    ✓ Language\n");
    assert_has(text,
               "Performance · 0 of 1 passed\n\n    ✗ DOM size  low\n      Too many elements.\n");
    ck_assert_ptr_null(strstr(text, "9000"));
    assert_has(text, "Security · 0 of 0 passed\n\n    – HSTS\n");
    ck_assert(strstr(text, "SEO") < strstr(text, "Performance"));
    free(text);
}
END_TEST

static const char unordered[] = "{\"favicon\":{\"category\":\"seo\",\"importance\":\"low\","
                                "\"passed\":false,\"message\":\"C.\"},"
                                "\"noindex\":{\"category\":\"seo\",\"importance\":\"high\","
                                "\"passed\":false,\"message\":\"A.\"},"
                                "\"language\":{\"category\":\"seo\",\"importance\":\"medium\","
                                "\"passed\":false,\"message\":\"B.\"}}";

START_TEST(the_most_important_finding_is_first)
{
    char *text = printed(false, 80, "bad", unordered);
    assert_has(text, "3 issues: 1 high, 1 medium, 1 low\n");
    ck_assert(strstr(text, "A.") < strstr(text, "B.") && strstr(text, "B.") < strstr(text, "C."));
    free(text);
}
END_TEST

START_TEST(a_check_has_the_name_of_the_page_and_an_unknown_one_its_id)
{
    char *text = printed(
        false, 80, "good",
        "{\"server_signature\":{\"category\":\"seo\",\"importance\":\"low\",\"passed\":true},"
        "\"new\\u001b_check\":{\"category\":\"seo\",\"importance\":\"low\",\"passed\":true},"
        "\"http2\":{\"category\":\"seo\",\"importance\":\"low\",\"passed\":false}}");
    struct str name = text_find(LANGUAGE_EN, "check", STR("server_signature"), "name");
    char passed[128];
    snprintf(passed, sizeof(passed), "    ✓ %.*s  ✓ new\\u001b_check\n", (int)name.n, name.p);
    assert_has(text, passed);
    assert_has(text, "    ✗ HTTP/2  low\n");
    free(text);
}
END_TEST

START_TEST(a_page_without_findings_says_so)
{
    char *text =
        printed(false, 80, "good",
                "{\"title\":{\"category\":\"seo\",\"importance\":\"high\",\"passed\":true}}");
    assert_has(text, "Good\n\n  No issues.\n");
    free(text);
}
END_TEST

START_TEST(a_line_says_score_verdict_and_url)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct report_look look = {.width = 40};
    report_print_line(
        out, &look,
        &(struct report_print){.url = "https://a.example/", .verdict = "decent", .score = 65});
    report_print_line(out, &look, &(struct report_print){.url = "https://b.ex/\x1b"});
    report_print_line(out, &look,
                      &(struct report_print){
                          .url = "https://a.very.long.example/", .verdict = "good", .score = 100});
    fclose(out);
    ck_assert_str_eq(text, "   65  Decent      https://a.example/\n"
                           "    –  Not graded  https://b.ex/\\u001b\n"
                           "  100  Good        https://a.very.long.e\n");
    free(text);
}
END_TEST

START_TEST(no_page_content_controls_the_terminal)
{
    char *text = printed(false, 80, "bad", results);
    ck_assert_ptr_null(strchr(text, '\x1b'));
    ck_assert_ptr_null(strchr(text, '\a'));
    ck_assert_ptr_null(strstr(text, "\xc2\x9b"));
    assert_has(text, "https://a.example/\\u001b[2J\\u009b");
    free(text);
}
END_TEST

START_TEST(colour_is_printed_only_on_request)
{
    char *text = printed(true, 80, "bad", results);
    assert_has(text, "\x1b[31m");
    assert_has(text, "\x1b[0m");
    free(text);
}
END_TEST

START_TEST(lines_fit_the_width)
{
    char *text = printed(false, 50, "decent", results), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        size_t columns = 0;
        for (const char *c = line; *c != '\0'; c++)
            columns += ((unsigned char)*c & 0xc0) != 0x80;
        ck_assert_msg(columns <= 50 || strstr(line, "100  ") != NULL, "%zu: %s", columns, line);
    }
    free(text);
}
END_TEST

/* columns: a text, its width limit, the shown part, its columns */
static const struct {
    const char *text;
    size_t room;
    const char *shown;
    size_t columns;
} fits[] = {
    {"abc", 2, "ab", 2},
    {"日本語", 80, "日本語", 6},
    {"日本語", 5, "日本", 4},
    {"日本語", 1, "", 0},
    {"a\xf0\x9f\x98\x80z", 3, "a\xf0\x9f\x98\x80", 3},
    {"e\xcc\x81z", 1, "e\xcc\x81", 1},
    {"한글 x", 6, "한글 x", 6},
    {"\x1b[m\xff", 9, "\\u001b[m\xef\xbf\xbd", 9},
    {"a\xc2\x9b", 6, "a", 1},
};

START_TEST(wide_characters_take_two_columns)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    size_t columns = cmd_print_plain(out, str_of(fits[_i].text), fits[_i].room);
    fclose(out);
    ck_assert_str_eq(text, fits[_i].shown);
    ck_assert_uint_eq(columns, fits[_i].columns);
    free(text);
}
END_TEST

START_TEST(wide_text_fits_the_width)
{
    static const char wide[] =
        "{\"title\":{\"category\":\"seo\",\"importance\":\"high\",\"passed\":false,\"message\":"
        "\"Shorten it.\","
        "\"value\":\"日本語の長い題名がここにあります。とても長いので短くしましょう。\","
        "\"details\":["
        "\"日本語の長い題名がここにあります。とても長いので短くしましょう。\"]}}";
    char *text = printed(false, 50, "bad", wide), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        ck_assert_msg(cmd_print_plain(NULL, str_of(line), SIZE_MAX) <= 50 ||
                          strstr(line, "100  ") != NULL,
                      "%s", line);
    free(text);
}
END_TEST

START_TEST(an_ungraded_page_prints_its_reason)
{
    char *text = printed(false, 80, NULL, "null");
    assert_has(text, "✗ Not graded: The host name could not be found. (dns_failed)\n");
    ck_assert_ptr_null(strstr(text, "/ 100"));
    free(text);
}
END_TEST

static const char *const odd_results[] = {
    "null",       "[]",
    "{}",         "{\"a\":null}",
    "{\"a\":[]}", "{\"a\":{\"passed\":false,\"importance\":\"high\",\"category\":\"seo\"}}"};

START_TEST(unexpected_results_do_no_harm)
{
    char *text = printed(false, 80, "good", odd_results[_i]);
    assert_has(text, "42 / 100");
    free(text);
}
END_TEST

static const struct {
    const char *name;
    bool valid;
} names[] = {
    {"acme", true},          {"ünï 日本", true},       {"", false},
    {"a\nb", false},         {"\xff", false},          {"a\xc2\x80", false},
    {"\xed\xa0\x80", false}, {"a\xe2\x80\xae", false}, {"a\xd8\x9c", false},
};

START_TEST(names_are_utf_8_without_control_characters)
{
    ck_assert_msg(cmd_name_valid(names[_i].name) == names[_i].valid, "%s", names[_i].name);
}
END_TEST

START_TEST(names_are_at_most_a_hundred_characters)
{
    char name[301] = "";
    for (int i = 0; i < 100; i++)
        strcat(name, "日");
    ck_assert(cmd_name_valid(name));
    name[297] = '\0';
    strcat(name, "aa");
    ck_assert(!cmd_name_valid(name));
}
END_TEST

/* The output of ${print} to standard output, to be freed. */
static char *standard_output(void (*print)(bool json), bool json)
{
    char *text = calloc(1, 4096);
    int fds[2], kept = dup(STDOUT_FILENO);
    ck_assert_int_eq(pipe(fds), 0);
    fflush(stdout);
    ck_assert_int_ge(dup2(fds[1], STDOUT_FILENO), 0);
    close(fds[1]);
    print(json);
    fflush(stdout);
    ck_assert_int_ge(dup2(kept, STDOUT_FILENO), 0);
    close(kept);
    ck_assert_int_gt(read(fds[0], text, 4095), 0);
    close(fds[0]);
    return text;
}

static void print_two(bool json)
{
    struct records records;
    const char *const words[] = {"a:read", "a:write"};
    records_start(&records, json);
    records_number(&records, "id", 1);
    records_text(&records, "name", STR("ünï/\"日\""));
    records_list(&records, "scopes", words, 2);
    records_time(&records, "at", 1700000000123);
    records_end_row(&records);
    records_number(&records, "id", 20);
    records_text(&records, "name", (struct str){NULL, 0});
    records_list(&records, "scopes", words, 0);
    records_time(&records, "at", 0);
    records_end_row(&records);
    records_finish(&records);
}

START_TEST(records_are_a_table_for_people)
{
    char *text = standard_output(print_two, false);
    ck_assert_str_eq(text, "id  name      scopes          at\n"
                           "1   ünï/\"日\"  a:read a:write  2023-11-14T22:13:20Z\n"
                           "20  -         -               -\n");
    free(text);
}
END_TEST

START_TEST(records_are_an_object_a_line_as_json)
{
    char *text = standard_output(print_two, true);
    ck_assert_str_eq(
        text, "{\"id\":1,\"name\":\"ünï/"
              "\\\"日\\\"\",\"scopes\":[\"a:read\",\"a:write\"],\"at\":\"2023-11-14T22:13:20Z\"}\n"
              "{\"id\":20,\"name\":null,\"scopes\":[],\"at\":null}\n");
    free(text);
}
END_TEST

static void print_steering(bool json)
{
    struct records records;
    records_start(&records, json);
    records_text(&records, "name",
                 STR("a\xc2\x9b"
                     "31m\xe2\x80\xae"));
    records_end_row(&records);
    records_finish(&records);
}

START_TEST(no_record_controls_the_terminal)
{
    char *json = standard_output(print_steering, true),
         *table = standard_output(print_steering, false);
    ck_assert_str_eq(json, "{\"name\":\"a\\u009b31m\\u202e\"}\n");
    ck_assert_str_eq(table, "name\na\\u009b31m\\u202e\n");
    free(json);
    free(table);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8"); /* as assay does */
    Suite *suite = suite_create("report_print");
    TCase *tcase = tcase_create("print");
    tcase_add_test(tcase, a_report_prints_score_verdict_and_fixes_by_category);
    tcase_add_test(tcase, the_most_important_finding_is_first);
    tcase_add_test(tcase, a_check_has_the_name_of_the_page_and_an_unknown_one_its_id);
    tcase_add_test(tcase, a_page_without_findings_says_so);
    tcase_add_test(tcase, a_line_says_score_verdict_and_url);
    tcase_add_test(tcase, no_page_content_controls_the_terminal);
    tcase_add_test(tcase, colour_is_printed_only_on_request);
    tcase_add_test(tcase, lines_fit_the_width);
    tcase_add_loop_test(tcase, wide_characters_take_two_columns, 0,
                        (int)(sizeof(fits) / sizeof(*fits)));
    tcase_add_test(tcase, wide_text_fits_the_width);
    tcase_add_test(tcase, an_ungraded_page_prints_its_reason);
    tcase_add_loop_test(tcase, unexpected_results_do_no_harm, 0, COUNT(odd_results));
    tcase_add_loop_test(tcase, names_are_utf_8_without_control_characters, 0, COUNT(names));
    tcase_add_test(tcase, names_are_at_most_a_hundred_characters);
    tcase_add_test(tcase, records_are_a_table_for_people);
    tcase_add_test(tcase, records_are_an_object_a_line_as_json);
    tcase_add_test(tcase, no_record_controls_the_terminal);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
