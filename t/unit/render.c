/* JSON of reports and lists as the API returns them. */
#include "core/api/render_internal.h"
#include "core/api/render_widget_internal.h"
#include "t/kit/suite.h"

#include <check.h>
#include <json-c/json.h>
#include <stdio.h>

static struct buf out;

static void clean(void)
{
    buf_free(&out);
}

static const struct {
    struct store_report report;
    const char *json; /* @ stands for base_url, # for the results */
} report_cases[] = {
    /* just created */
    {{.id = 41,
      .score = -1,
      .created_at = 1778158800123,
      .updated_at = 1778158800123,
      .url = {"https://example.com/", 20},
      .project_name = {"example.com", 11}},
     "{\"id\":41,\"url\":\"https://example.com/"
     "\",\"project\":\"example.com\",\"status\":\"pending\",\"score\":null,\"result\":null,"
     "\"privacy\":0,\"password\":false,"
     "\"link\":\"@/reports/"
     "41\",\"issues\":null#,\"error\":null,\"generated_at\":null,\"created_at\":\"2026-05-07T13:00:"
     "00Z\",\"updated_at\":\"2026-05-07T13:00:00Z\"}"},
    /* done, with a password */
    {{.id = UINT64_MAX,
      .status = REPORT_DONE,
      .privacy = PRIVACY_PASSWORD,
      .result = RESULT_GOOD,
      .score = 100,
      .issues_high = 1,
      .issues_medium = 2,
      .issues_low = 3,
      .issues_passed = 21,
      .created_at = 1778158800000,
      .updated_at = 1778158802000,
      .generated_at = 1778158801999,
      .url = {"https://example.com/?a=\"\\", 25},
      .project_name = {"example.com", 11},
      .password_hash = {"$scrypt$", 8}},
     "{\"id\":18446744073709551615,\"url\":\"https://example.com/"
     "?a=\\\"\\\\\",\"project\":\"example.com\",\"status\":\"done\",\"score\":100,\"result\":"
     "\"good\",\"privacy\":2,"
     "\"password\":true,\"link\":\"@/reports/"
     "18446744073709551615\",\"issues\":{\"high\":1,\"medium\":2,\"low\":3,\"passed\":21}#,"
     "\"error\":null,"
     "\"generated_at\":\"2026-05-07T13:00:01Z\",\"created_at\":\"2026-05-07T13:00:00Z\",\"updated_"
     "at\":\"2026-05-07T13:00:02Z\"}"},
    /* never graded: a score of 0 is a score, and fails */
    {{.id = 1,
      .status = REPORT_FAILED,
      .privacy = PRIVACY_PRIVATE,
      .score = -1,
      .created_at = 1000,
      .updated_at = 1000,
      .error_code = {"dns_failed", 10},
      .error_message = {"No \"host\"\n\xff", 11}},
     "{\"id\":1,\"url\":\"\",\"project\":\"\",\"status\":\"failed\",\"score\":null,\"result\":null,"
     "\"privacy\":1,\"password\":false,\"link\":\"@/reports/1\",\"issues\":null#,"
     "\"error\":{\"code\":\"dns_failed\",\"message\":\"No "
     "\\\"host\\\"\\n\xef\xbf\xbd\"},\"generated_at\":null,\"created_at\":\"1970-01-01T00:00:01Z\","
     "\"updated_at\":\"1970-01-01T00:00:01Z\"}"},
    /* graded, then failed: the results stay */
    {{.id = 2,
      .status = REPORT_FAILED,
      .result = RESULT_BAD,
      .score = 0,
      .issues_high = 9,
      .generated_at = 2000,
      .created_at = 1000,
      .updated_at = 3000,
      .error_code = {"timeout", 7},
      .error_message = {"Late.", 5}},
     "{\"id\":2,\"url\":\"\",\"project\":\"\",\"status\":\"failed\",\"score\":0,\"result\":\"bad\","
     "\"privacy\":0,\"password\":false,\"link\":\"@/reports/2\","
     "\"issues\":{\"high\":9,\"medium\":0,\"low\":0,\"passed\":0}#,\"error\":{\"code\":\"timeout\","
     "\"message\":\"Late.\"},\"generated_at\":\"1970-01-01T00:00:02Z\","
     "\"created_at\":\"1970-01-01T00:00:01Z\",\"updated_at\":\"1970-01-01T00:00:03Z\"}"},
    /* graded, and grading again: the old error is removed, the grade stays */
    {{.id = 3,
      .status = REPORT_PENDING,
      .result = RESULT_DECENT,
      .score = 50,
      .generated_at = 2000,
      .created_at = 1000,
      .updated_at = 3000,
      .error_code = {"timeout", 7},
      .error_message = {"Late.", 5}},
     "{\"id\":3,\"url\":\"\",\"project\":\"\",\"status\":\"pending\",\"score\":50,\"result\":"
     "\"decent\",\"privacy\":0,\"password\":false,\"link\":\"@/reports/3\","
     "\"issues\":{\"high\":0,\"medium\":0,\"low\":0,\"passed\":0}#,\"error\":null,\"generated_at\":"
     "\"1970-01-01T00:00:02Z\",\"created_at\":\"1970-01-01T00:00:01Z\","
     "\"updated_at\":\"1970-01-01T00:00:03Z\"}"},
};

/* The case's JSON with base_url, with or without results. */
static const char *wanted(const char *json, const char *results)
{
    static char text[4096];
    size_t n = 0;
    for (const char *p = json; *p != '\0'; p++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s",
                              *p == '@'   ? "https://a.test"
                              : *p == '#' ? results
                                          : (char[]){*p, '\0'});
    return text;
}

START_TEST(a_report_is_rendered_as_documented)
{
    struct store_report r = report_cases[_i].report;
    render_report(&r, STR("https://a.test"), false, &out);
    ck_assert_msg(str_eq(buf_view(&out), str_of(wanted(report_cases[_i].json, ""))), "%.*s",
                  (int)out.n, out.p);
    buf_reset(&out);
    render_report(&r, STR("https://a.test"), true, &out);
    ck_assert_msg(
        str_eq(buf_view(&out), str_of(wanted(report_cases[_i].json, ",\"results\":null"))), "%.*s",
        (int)out.n, out.p);
    buf_reset(&out);
    r.results = STR("{\"title\":{}}");
    render_report(&r, STR("https://a.test"), true, &out);
    ck_assert_msg(str_eq(buf_view(&out),
                         str_of(wanted(report_cases[_i].json, ",\"results\":{\"title\":{}}"))),
                  "%.*s", (int)out.n, out.p);
    buf_add(&out, "", 1);
    struct json_object *json = json_tokener_parse(out.p);
    ck_assert_ptr_nonnull(json);
    json_object_put(json);
}
END_TEST

static const struct {
    struct store_grading grading;
    const char *json;
} grading_cases[] = {
    {{.number = 1,
      .score = 0,
      .result = RESULT_BAD,
      .issues_high = 1,
      .issues_medium = 2,
      .issues_low = 3,
      .issues_passed = 4,
      .generated_at = 1000,
      .failed = {"ignored without facts", 21}},
     "{\"number\":1,\"score\":0,\"result\":\"bad\",\"issues\":{\"high\":1,\"medium\":2,\"low\":3,"
     "\"passed\":4},\"failed\":null,\"final_url\":null,\"http_status\":null,\"protocol\":null,"
     "\"ttfb_ms\":null,\"load_ms\":null,\"page_bytes\":null,\"version\":null,"
     "\"generated_at\":\"1970-01-01T00:00:01Z\"}"},
    {{.number = UINT32_MAX,
      .score = 100,
      .result = RESULT_GOOD,
      .generated_at = 1000,
      .facts = {.http_status = 200,
                .ttfb_ms = 0,
                .load_ms = UINT32_MAX,
                .page_bytes = UINT64_MAX,
                .protocol = {"HTTP/1.1", 8},
                .version = {"1.0.0", 5}}},
     "{\"number\":4294967295,\"score\":100,\"result\":\"good\",\"issues\":{\"high\":0,\"medium\":0,"
     "\"low\":0,\"passed\":0},\"failed\":[],\"final_url\":\"https://a.test/\","
     "\"http_status\":200,\"protocol\":\"HTTP/1.1\",\"ttfb_ms\":0,\"load_ms\":4294967295,"
     "\"page_bytes\":18446744073709551615,\"version\":\"1.0.0\","
     "\"generated_at\":\"1970-01-01T00:00:01Z\"}"},
    {{.number = 7,
      .score = 60,
      .result = RESULT_DECENT,
      .generated_at = 1000,
      .failed = {"title h1 alt", 12},
      .facts = {.http_status = 203,
                .ttfb_ms = 5,
                .load_ms = 9,
                .page_bytes = 77,
                .protocol = {"HTTP/2", 6},
                .final_url = {"https://b.test/?\"", 17},
                .version = {"1.0.0", 5}}},
     "{\"number\":7,\"score\":60,\"result\":\"decent\",\"issues\":{\"high\":0,\"medium\":0,"
     "\"low\":0,\"passed\":0},\"failed\":[\"title\",\"h1\",\"alt\"],"
     "\"final_url\":\"https://b.test/?\\\"\",\"http_status\":203,\"protocol\":\"HTTP/2\","
     "\"ttfb_ms\":5,\"load_ms\":9,\"page_bytes\":77,\"version\":\"1.0.0\","
     "\"generated_at\":\"1970-01-01T00:00:01Z\"}"},
};

START_TEST(a_grading_is_rendered_with_null_for_what_is_unknown)
{
    render_grading(&grading_cases[_i].grading, STR("https://a.test/"), &out);
    ck_assert_msg(str_eq(buf_view(&out), str_of(grading_cases[_i].json)), "%.*s", (int)out.n,
                  out.p);
}
END_TEST

static const struct {
    struct store_project project;
    const char *json;
} project_cases[] = {
    {{.id = 3, .name = {"example.com", 11}, .reports = 12, .created_at = 1000, .updated_at = 2000},
     "{\"id\":3,\"project\":\"example.com\",\"reports_count\":12,\"score\":null,\"created_at\":"
     "\"1970-01-01T00:00:01Z\",\"updated_at\":\"1970-01-01T00:00:02Z\"}"},
    {{.id = 3,
      .name = {"example.com", 11},
      .reports = 3,
      .scored = 2,
      .score_total = 161,
      .created_at = 1000,
      .updated_at = 1000},
     "{\"id\":3,\"project\":\"example.com\",\"reports_count\":3,\"score\":81,\"created_at\":\"1970-"
     "01-01T00:00:01Z\",\"updated_at\":\"1970-01-01T00:00:01Z\"}"},
    {{.id = 3,
      .name = {"example.com", 11},
      .reports = 3,
      .scored = 3,
      .score_total = 241,
      .created_at = 1000,
      .updated_at = 1000},
     "{\"id\":3,\"project\":\"example.com\",\"reports_count\":3,\"score\":80,\"created_at\":\"1970-"
     "01-01T00:00:01Z\",\"updated_at\":\"1970-01-01T00:00:01Z\"}"},
    {{.id = 3,
      .name = {"example.com", 11},
      .reports = 3,
      .scored = 3,
      .score_total = 242,
      .created_at = 1000,
      .updated_at = 1000},
     "{\"id\":3,\"project\":\"example.com\",\"reports_count\":3,\"score\":81,\"created_at\":\"1970-"
     "01-01T00:00:01Z\",\"updated_at\":\"1970-01-01T00:00:01Z\"}"},
    {{.id = 3,
      .name = {"example.com", 11},
      .reports = 1,
      .scored = 1,
      .score_total = 0,
      .created_at = 1000,
      .updated_at = 1000},
     "{\"id\":3,\"project\":\"example.com\",\"reports_count\":1,\"score\":0,\"created_at\":\"1970-"
     "01-01T00:00:01Z\",\"updated_at\":\"1970-01-01T00:00:01Z\"}"},
};

START_TEST(a_project_is_rendered_with_its_rounded_mean)
{
    render_project(&project_cases[_i].project, &out);
    ck_assert_msg(str_eq(buf_view(&out), str_of(project_cases[_i].json)), "%.*s", (int)out.n,
                  out.p);
}
END_TEST

/* ---- the widget ---- */

#define S(literal)                                                                                 \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
#define ULID_OF(byte)                                                                              \
    {                                                                                              \
        {                                                                                          \
            byte, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16                               \
        }                                                                                          \
    }

/* A message, and its JSON from `role` on. */
static const struct {
    struct store_message message;
    const char *json;
} messages[] = {
    {{.id = ULID_OF(1), .role = ROLE_OF_VISITOR, .created_at = 1000, .text = S("x")},
     "\"role\":\"visitor\",\"content\":\"x\",\"client_message_id\":null,\"page_url\":null,\"page_"
     "context\":null,"
     "\"created_at\":\"1970-01-01T00:00:01Z\"}"},
    {{.id = ULID_OF(2),
      .role = ROLE_OF_VISITOR,
      .created_at = 1794000000000,
      .text = S("\"q\" \\ / \n\t\x01 <b> ä 😀"),
      .client_id = S("c\"1"),
      .page_url = S("https://a/?b=\""),
      .page_context = S("{\"a\":[1.50,1e3,\"}\\\"\",null],\"content\":{}}")},
     "\"role\":\"visitor\",\"content\":\"\\\"q\\\" \\\\ / \\n\\t\\u0001 <b> ä "
     "😀\",\"client_message_id\":\"c\\\"1\","
     "\"page_url\":\"https://a/"
     "?b=\\\"\",\"page_context\":{\"a\":[1.50,1e3,\"}\\\"\",null],\"content\":{}},"
     "\"created_at\":\"2026-11-06T21:20:00Z\"}"},
    {{.id = ULID_OF(3),
      .role = ROLE_OF_ASSISTANT,
      .created_at = 5000,
      .text = S("found"),
      .low_confidence = true},
     "\"role\":\"assistant\",\"content\":\"found\",\"citations\":[],\"low_confidence\":true,"
     "\"created_at\":\"1970-01-01T00:00:05Z\"}"},
    {{.id = ULID_OF(4),
      .role = ROLE_OF_ASSISTANT,
      .created_at = 5000,
      .text = S("found"),
      .citations = S("[{\"title\":\"a ] b\",\"wp_id\":12}]")},
     "\"role\":\"assistant\",\"content\":\"found\",\"citations\":[{\"title\":\"a ] "
     "b\",\"wp_id\":12}],\"low_confidence\":false,"
     "\"created_at\":\"1970-01-01T00:00:05Z\"}"},
    {{.id = ULID_OF(5), .role = ROLE_OF_OPERATOR, .created_at = 5000, .text = S("null")},
     "\"role\":\"operator\",\"content\":\"null\",\"created_at\":\"1970-01-01T00:00:05Z\"}"},
};

static void expect_from(const char *member, const char *want)
{
    buf_add(&out, "", 1);
    const char *from = strstr(out.p, member);
    ck_assert_msg(from != NULL && strcmp(from, want) == 0, "%s\n%s", out.p, want);
    struct json_object *json = json_tokener_parse(out.p);
    ck_assert_ptr_nonnull(json);
    json_object_put(json);
    buf_reset(&out);
}

START_TEST(a_message_is_rendered_for_both_sides)
{
    render_message(&messages[_i].message, &out);
    expect_from("\"role\":", messages[_i].json);
}
END_TEST

START_TEST(an_answer_has_the_message_and_its_confidence)
{
    render_message_result(&messages[2].message, &out);
    ck_assert(str_eq(buf_view(&out),
                     STR("\"content\":\"found\",\"citations\":[],\"low_confidence\":true")));
}
END_TEST

START_TEST(events_and_ratings_render_absent_values_as_null)
{
    static const struct store_event_row events[] = {
        {.id = ULID_OF(1),
         .agent = ULID_OF(2),
         .visitor = ULID_OF(3),
         .conversation = ULID_OF(4),
         .created_at = 7000,
         .kind = S("a.b")},
        {.id = ULID_OF(1),
         .agent = ULID_OF(2),
         .visitor = ULID_OF(3),
         .conversation = ULID_OF(4),
         .created_at = 7000,
         .at = 6000,
         .kind = S("a"),
         .payload = S("{\"kind\":[1.0]}")},
    };
    static const struct store_rating ratings[] = {
        {.id = ULID_OF(1),
         .agent = ULID_OF(2),
         .visitor = ULID_OF(3),
         .conversation = ULID_OF(4),
         .rating = 5,
         .created_at = 1000,
         .updated_at = 9000},
        {.id = ULID_OF(1),
         .agent = ULID_OF(2),
         .visitor = ULID_OF(3),
         .conversation = ULID_OF(4),
         .rating = 1,
         .created_at = 1000,
         .updated_at = 1000,
         .comment = S("so \"so\"")},
    };
    static const char *const want[][2] = {
        {"\"kind\":\"a.b\",\"payload\":null,\"at\":null,\"created_at\":\"1970-01-01T00:00:07Z\"}",
         "\"rating\":5,\"comment\":null,\"created_at\":\"1970-01-01T00:00:01Z\",\"updated_at\":"
         "\"1970-01-01T00:00:09Z\"}"},
        {"\"kind\":\"a\",\"payload\":{\"kind\":[1.0]},\"at\":\"1970-01-01T00:00:06Z\",\"created_"
         "at\":\"1970-01-01T00:00:07Z\"}",
         "\"rating\":1,\"comment\":\"so "
         "\\\"so\\\"\",\"created_at\":\"1970-01-01T00:00:01Z\",\"updated_at\":\"1970-01-01T00:00:"
         "01Z\"}"},
    };
    for (size_t i = 0; i < 2; i++) {
        render_event(&events[i], &out);
        expect_from("\"kind\":", want[i][0]);
        render_rating(&ratings[i], &out);
        expect_from("\"rating\":", want[i][1]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("render");
    TCase *tc = tcase_create("render");
    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, NULL, clean);
    tcase_add_loop_test(tc, a_report_is_rendered_as_documented, 0,
                        sizeof(report_cases) / sizeof(report_cases[0]));
    tcase_add_loop_test(tc, a_grading_is_rendered_with_null_for_what_is_unknown, 0,
                        sizeof(grading_cases) / sizeof(grading_cases[0]));
    tcase_add_loop_test(tc, a_project_is_rendered_with_its_rounded_mean, 0,
                        sizeof(project_cases) / sizeof(project_cases[0]));
    tcase_add_loop_test(tc, a_message_is_rendered_for_both_sides, 0,
                        sizeof(messages) / sizeof(messages[0]));
    tcase_add_test(tc, events_and_ratings_render_absent_values_as_null);
    tcase_add_test(tc, an_answer_has_the_message_and_its_confidence);
    return suite_run(suite);
}
