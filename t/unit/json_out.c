/* JSON output: escaping, numbers and structure. */
#include "core/text/json_out.h"
#include "t/kit/suite.h"

#include <check.h>
#include <limits.h>
#include <time.h>

#define BYTES(literal)                                                                             \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

static struct buf out;

static void clean(void)
{
    buf_free(&out);
}

static const struct {
    struct str text;
    const char *json;
} string_cases[] = {
    {BYTES(""), "\"\""},
    {BYTES("plain"), "\"plain\""},
    {BYTES("a/b</script>"), "\"a/b</script>\""},
    {BYTES("\"\\"), "\"\\\"\\\\\""},
    {BYTES("\b\t\n\f\r"), "\"\\b\\t\\n\\f\\r\""},
    {BYTES("a\0b\x01\x1f\x7f"), "\"a\\u0000b\\u0001\\u001f\\u007f\""},
    {BYTES("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
    {BYTES("a\xff"
           "b"),
     "\"a\xef\xbf\xbd"
     "b\""},
    {BYTES("\xc3"), "\"\xef\xbf\xbd\""},
    {BYTES("\xe2\x82"), "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    {BYTES("\xe2\x82\""), "\"\xef\xbf\xbd\xef\xbf\xbd\\\"\""},
    {BYTES("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {BYTES("\xc0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    {BYTES("\xf8z"), "\"\xef\xbf\xbdz\""},
};

START_TEST(strings_are_escaped_and_invalid_bytes_replaced)
{
    json_string(&out, string_cases[_i].text);
    ck_assert_msg(str_eq(buf_view(&out), str_of(string_cases[_i].json)), "%.*s", (int)out.n, out.p);
}
END_TEST

START_TEST(a_byte_is_written_alike_in_every_position)
{
    char byte = (char)_i, text[24];
    struct buf alone = {0}, want = {0};
    json_string(&alone, (struct str){&byte, 1});
    for (size_t at = 0; at < sizeof(text); at++) {
        memset(text, 'x', sizeof(text));
        text[at] = byte;
        buf_reset(&want);
        buf_adds(&want, "\"");
        buf_add(&want, "xxxxxxxxxxxxxxxxxxxxxxxx", at);
        buf_add(&want, alone.p + 1, alone.n - 2);
        buf_add(&want, "xxxxxxxxxxxxxxxxxxxxxxxx", sizeof(text) - 1 - at);
        buf_adds(&want, "\"");
        buf_reset(&out);
        json_string(&out, (struct str){text, sizeof(text)});
        ck_assert_msg(str_eq(buf_view(&out), buf_view(&want)), "%.*s is not %.*s", (int)out.n,
                      out.p, (int)want.n, want.p);
    }
    buf_free(&alone);
    buf_free(&want);
}
END_TEST

START_TEST(an_absent_text_is_null)
{
    json_text(&out, (struct str){NULL, 0});
    json_text(&out, STR(""));
    json_string(&out, (struct str){NULL, 0});
    ck_assert(str_eq(buf_view(&out), STR("null\"\"\"\"")));
}
END_TEST

static const struct {
    int64_t ms;
    const char *json;
} time_cases[] = {
    {0, "null"},
    {1, "\"1970-01-01T00:00:00Z\""},
    {999, "\"1970-01-01T00:00:00Z\""},
    {1000, "\"1970-01-01T00:00:01Z\""},
    {-1, "\"1969-12-31T23:59:59Z\""},
    {1778158800000, "\"2026-05-07T13:00:00Z\""},
    {1709164799000, "\"2024-02-28T23:59:59Z\""},
    {1709164800000, "\"2024-02-29T00:00:00Z\""},
    {1709251200000, "\"2024-03-01T00:00:00Z\""},
    {4107542400000, "\"2100-03-01T00:00:00Z\""},
    {253402300799999, "\"9999-12-31T23:59:59Z\""},
    {INT64_MAX, "\"9999-12-31T23:59:59Z\""},
    {INT64_MIN, "\"0001-01-01T00:00:00Z\""},
};

START_TEST(times_are_rfc_3339_in_utc)
{
    json_time(&out, time_cases[_i].ms);
    ck_assert_msg(str_eq(buf_view(&out), str_of(time_cases[_i].json)), "%.*s", (int)out.n, out.p);
}
END_TEST

START_TEST(times_of_one_second_are_written_alike)
{
    const int64_t times[] = {1, 999, 1000, 1, 86400000, 86400999, -1, 1};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        json_time(&out, times[i]);
    ck_assert_msg(
        str_eq(buf_view(&out),
               STR("\"1970-01-01T00:00:00Z\"\"1970-01-01T00:00:00Z\"\"1970-01-01T00:00:01Z\""
                   "\"1970-01-01T00:00:00Z\"\"1970-01-02T00:00:00Z\"\"1970-01-02T00:00:00Z\""
                   "\"1969-12-31T23:59:59Z\"\"1970-01-01T00:00:00Z\"")),
        "%.*s", (int)out.n, out.p);
}
END_TEST

START_TEST(every_day_of_four_centuries_agrees_with_the_c_library)
{
    for (int64_t day = 1; day < 146097 + 366; ++day) {
        time_t at = (time_t)(day * 86400 + day % 86400);
        struct tm tm;
        char want[32];
        gmtime_r(&at, &tm);
        strftime(want, sizeof(want), "\"%Y-%m-%dT%H:%M:%SZ\"", &tm);
        buf_reset(&out);
        json_time(&out, (int64_t)at * 1000);
        ck_assert_msg(str_eq(buf_view(&out), str_of(want)), "%.*s is not %s", (int)out.n, out.p,
                      want);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json_out");
    TCase *tc = tcase_create("json_out");
    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, NULL, clean);
    tcase_add_loop_test(tc, strings_are_escaped_and_invalid_bytes_replaced, 0,
                        sizeof(string_cases) / sizeof(string_cases[0]));
    tcase_add_loop_test(tc, a_byte_is_written_alike_in_every_position, 0, 256);
    tcase_add_test(tc, an_absent_text_is_null);
    tcase_add_loop_test(tc, times_are_rfc_3339_in_utc, 0,
                        sizeof(time_cases) / sizeof(time_cases[0]));
    tcase_add_test(tc, times_of_one_second_are_written_alike);
    tcase_add_test(tc, every_day_of_four_centuries_agrees_with_the_c_library);
    return suite_run(suite);
}
