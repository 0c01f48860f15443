/* The strict scanner in front of json-c: json-c accepts everything that the scanner accepts. */
#include "core/text/json_scan.h"
#include "t/kit/suite.h"

#include <check.h>
#include <json-c/json.h>
#include <stdlib.h>

#define CASE(text, verdict)                                                                        \
    {                                                                                              \
        STR(text), verdict                                                                         \
    }

static const struct {
    struct str text;
    enum json_verdict verdict;
} cases[] = {
    CASE("{}", JSON_SCAN_OK),
    CASE(" \t\r\n{ \"a\" : [ 1 , -2.5e+3 , true , false , null , \"x\" ] } ", JSON_SCAN_OK),
    CASE("0", JSON_SCAN_OK),
    CASE("12", JSON_SCAN_OK),
    CASE("-0", JSON_SCAN_OK),
    CASE("\"\"", JSON_SCAN_OK),
    CASE("[]", JSON_SCAN_OK),
    CASE("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\ud83d\\ude00\"", JSON_SCAN_OK),
    CASE("\"\xc3\xa4\xf0\x9f\x98\x80\"", JSON_SCAN_OK),
    CASE("9223372036854775807", JSON_SCAN_OK),
    CASE("-9223372036854775808", JSON_SCAN_OK),
    CASE("1.7976931348623157e308", JSON_SCAN_OK),
    CASE("1e-400", JSON_SCAN_OK), /* only small ones */
    CASE("{\"a\":{\"a\":1},\"b\":{\"a\":1}}", JSON_SCAN_OK),
    CASE("", JSON_SCAN_MALFORMED),
    CASE(" ", JSON_SCAN_MALFORMED),
    CASE("{", JSON_SCAN_MALFORMED),
    CASE("{\"a\"", JSON_SCAN_MALFORMED),
    CASE("{\"a\":", JSON_SCAN_MALFORMED),
    CASE("{\"a\":1", JSON_SCAN_MALFORMED),
    CASE("{\"a\":1,}", JSON_SCAN_MALFORMED),
    CASE("{,}", JSON_SCAN_MALFORMED),
    CASE("{a:1}", JSON_SCAN_MALFORMED),
    CASE("{'a':1}", JSON_SCAN_MALFORMED),
    CASE("{\"a\" 1}", JSON_SCAN_MALFORMED),
    CASE("[1,]", JSON_SCAN_MALFORMED),
    CASE("[1 2]", JSON_SCAN_MALFORMED),
    CASE("[1", JSON_SCAN_MALFORMED),
    CASE("{}{}", JSON_SCAN_MALFORMED),
    CASE("{} x", JSON_SCAN_MALFORMED),
    CASE("/* c */{}", JSON_SCAN_MALFORMED),
    CASE("NaN", JSON_SCAN_MALFORMED),
    CASE("{\"a\":NaN}", JSON_SCAN_MALFORMED),
    CASE("Infinity", JSON_SCAN_MALFORMED),
    CASE("-Infinity", JSON_SCAN_MALFORMED),
    CASE("True", JSON_SCAN_MALFORMED),
    CASE("tru", JSON_SCAN_MALFORMED),
    CASE("nulL", JSON_SCAN_MALFORMED),
    CASE("01", JSON_SCAN_MALFORMED),
    CASE("-", JSON_SCAN_MALFORMED),
    CASE("+1", JSON_SCAN_MALFORMED),
    CASE(".5", JSON_SCAN_MALFORMED),
    CASE("1.", JSON_SCAN_MALFORMED),
    CASE("1e", JSON_SCAN_MALFORMED),
    CASE("1e+", JSON_SCAN_MALFORMED),
    CASE("0x10", JSON_SCAN_MALFORMED),
    CASE("\"\n\"", JSON_SCAN_MALFORMED),
    CASE("\"\t\"", JSON_SCAN_MALFORMED),
    CASE("\"\\x41\"", JSON_SCAN_MALFORMED),
    CASE("\"\\u12g4\"", JSON_SCAN_MALFORMED),
    CASE("\"\\u12", JSON_SCAN_MALFORMED),
    CASE("\"\\", JSON_SCAN_MALFORMED),
    CASE("\"abc", JSON_SCAN_MALFORMED),
    CASE("\xef\xbb\xbf{}", JSON_SCAN_MALFORMED),
    CASE("\"\x00\"", JSON_SCAN_ENCODING),
    CASE("{}\x00", JSON_SCAN_ENCODING),
    CASE("\"\\u0000\"", JSON_SCAN_ENCODING),
    CASE("\"\xff\"", JSON_SCAN_ENCODING),
    CASE("\"\xc0\xaf\"", JSON_SCAN_ENCODING),
    CASE("\"\xed\xa0\x80\"", JSON_SCAN_ENCODING),
    CASE("\"\\ud800\"", JSON_SCAN_ENCODING),
    CASE("\"\\ud800\\u0041\"", JSON_SCAN_ENCODING),
    CASE("\"\\udc00\"", JSON_SCAN_ENCODING),
    CASE("{\"a\":1,\"a\":2}", JSON_SCAN_DUPLICATE),
    CASE("{\"a\":1,\"b\":{},\"\\u0061\":2}", JSON_SCAN_DUPLICATE),
    CASE("[{\"x\":{\"\":1,\"\":1}}]", JSON_SCAN_DUPLICATE),
    CASE("{\"\xc3\xa4\":1,\"\\u00E4\":2}", JSON_SCAN_DUPLICATE),
    CASE("{\"\xf0\x9f\x98\x80\":1,\"\\ud83d\\ude00\":2}", JSON_SCAN_DUPLICATE),
    CASE("9223372036854775808", JSON_SCAN_RANGE),
    CASE("-9223372036854775809", JSON_SCAN_RANGE),
    CASE("{\"a\":99999999999999999999999999}", JSON_SCAN_RANGE),
    CASE("1e309", JSON_SCAN_RANGE),
    CASE("1E999", JSON_SCAN_RANGE),
    CASE("1.5e+400", JSON_SCAN_RANGE),
    CASE("9e99", JSON_SCAN_OK),
    CASE("1E-999", JSON_SCAN_OK),
    CASE("1.25e+308", JSON_SCAN_OK),
    CASE("-1e999999999", JSON_SCAN_RANGE),
};

START_TEST(each_text_has_its_verdict)
{
    enum json_verdict verdict = json_scan(cases[_i].text, 4);
    ck_assert_msg(verdict == cases[_i].verdict, "%s: %d, not %d", cases[_i].text.p, verdict,
                  cases[_i].verdict);
}
END_TEST

/* Columns: text, its error message. */
static const struct {
    struct str text;
    const char *says;
} faults[] = {
    {STR("{\"a\":1,\n \"b\" 2}"),
     "The JSON is malformed at line 2, column 6: expected a colon after the name of a member."},
    {STR("{\"a\":1,}"),
     "The JSON is malformed at line 1, column 8: expected the name of a member in double quotes."},
    {STR("{\"a\":1"),
     "The JSON is malformed at line 1, column 7: expected a comma or the closing } of the object."},
    {STR("[1 2]"),
     "The JSON is malformed at line 1, column 4: expected a comma or the closing ] of the array."},
    {STR("{\"\xc3\xa4\":blue}"), "The JSON is malformed at line 1, column 6: expected a value: an "
                                 "object, an array, a string in double "
                                 "quotes, a number, true, false or null."},
    {STR("\r\n\n  01"),
     "The JSON is malformed at line 3, column 3: expected a number without leading zeros."},
    {STR("{} x"), "The JSON is malformed at line 1, column 4: expected the end of the text."},
    {STR("\"\\x\""), "The JSON is malformed at line 1, column 3: expected one of \" \\ / b f n r t "
                     "u after the backslash."},
    {STR("\"a"),
     "The JSON is malformed at line 1, column 3: expected the closing \" of the string."},
    {STR("[\n\"\xff\"]"),
     "The JSON has invalid UTF-8, NUL or an incomplete surrogate pair at line 2, column 2."},
    {STR("[\"\\ud800\"]"),
     "The JSON has invalid UTF-8, NUL or an incomplete surrogate pair at line 1, column 3."},
    {STR("{\"a\":1,\"a\":2}"), "The JSON has two members with the same name in the object that "
                               "ends at line 1, column 13. Remove one."},
    {STR("[0,99999999999999999999]"),
     "The JSON has a number that is too large at line 1, column 4. Whole numbers have 64 bits."},
    {STR("[[[[[1]]]]]"),
     "The JSON is nested too deeply at line 1, column 5. Use fewer levels of arrays and objects."},
};

START_TEST(an_error_names_the_position_and_what_was_expected)
{
    struct json_fault fault;
    char text[JSON_FAULT_TEXT];
    ck_assert_ptr_null(json_scan_read(faults[_i].text, 4, &fault));
    json_fault_text(&fault, text);
    ck_assert_str_eq(text, faults[_i].says);
}
END_TEST

START_TEST(json_c_accepts_every_accepted_text)
{
    enum json_verdict verdict;
    struct json_object *tree = json_scan_parse(cases[_i].text, 4, &verdict);
    ck_assert_int_eq(verdict, cases[_i].verdict);
    ck_assert_msg((tree != NULL) == (verdict == JSON_SCAN_OK), "%s", cases[_i].text.p);
    json_object_put(tree);
}
END_TEST

START_TEST(depth_is_counted_in_levels)
{
    ck_assert_int_eq(json_scan(STR("[[[[1]]]]"), 4), JSON_SCAN_OK);
    ck_assert_int_eq(json_scan(STR("[[[[[1]]]]]"), 4), JSON_SCAN_DEEP);
    ck_assert_int_eq(json_scan(STR("{\"a\":{\"a\":[{\"a\":1}]}}"), 4), JSON_SCAN_OK);
    ck_assert_int_eq(json_scan(STR("{\"a\":{\"a\":[{\"a\":{}}]}}"), 4), JSON_SCAN_DEEP);
    ck_assert_int_eq(json_scan(STR("[[],[],[[]],{}]"), 3), JSON_SCAN_OK);
}
END_TEST

/* a tree takes many times the bytes of its text */
START_TEST(values_are_counted)
{
    struct buf text = {0};
    buf_adds(&text, "[1");
    for (int i = 2; i < JSON_SCAN_VALUES; i++)
        buf_adds(&text, i % 2 == 0 ? ",{}" : ",0");
    size_t most = text.n;
    buf_adds(&text, "]");
    ck_assert_int_eq(json_scan(buf_view(&text), JSON_SCAN_DEPTH), JSON_SCAN_OK);
    text.n = most;
    buf_adds(&text, ",0]");
    ck_assert_int_eq(json_scan(buf_view(&text), JSON_SCAN_DEPTH), JSON_SCAN_MANY);
    buf_free(&text);
}
END_TEST

START_TEST(a_hundred_thousand_brackets_are_refused_at_once)
{
    static char text[100000];
    memset(text, '[', sizeof(text));
    ck_assert_int_eq(json_scan((struct str){text, sizeof(text)}, JSON_SCAN_DEPTH), JSON_SCAN_DEEP);
}
END_TEST

START_TEST(values_survive_a_round_trip_through_both)
{
    enum json_verdict verdict;
    struct json_object
        *value = NULL,
        *tree = json_scan_parse(
            STR("{\"k\\u00e4\":\"a\\u0001\\ud83d\\ude00\",\"n\":-9223372036854775808}"), 4,
            &verdict);
    ck_assert(json_object_object_get_ex(tree, "k\xc3\xa4", &value));
    ck_assert_str_eq(json_object_get_string(value), "a\x01\xf0\x9f\x98\x80");
    ck_assert(json_object_object_get_ex(tree, "n", &value));
    ck_assert_int_eq(json_object_get_int64(value), INT64_MIN);
    json_object_put(tree);
}
END_TEST

static const struct {
    struct str text;
    int members; /* -1: not read flat */
} flats[] = {
    {STR("{\"a\":\"b\"}"), 1},
    {STR(" \t\r\n{ \"a\" : \"\" , \"\":\"\xc3\xa4\" } "), 2},
    {STR("{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\"}"), 3},
    /* more than fit */
    {STR("{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\",\"d\":\"4\"}"), -1},
    {STR("{}"), -1},
    {STR("{\"a\":\"b\",\"a\":\"c\"}"), -1},
    {STR("{\"a\":\"\\u0061\"}"), -1},
    {STR("{\"\\u0061\":\"b\"}"), -1},
    {STR("{\"a\":1}"), -1},
    {STR("{\"a\":null}"), -1},
    {STR("{\"a\":{}}"), -1},
    {STR("{\"a\":\"b\",}"), -1},
    {STR("{\"a\":\"b\"}}"), -1},
    {STR("{\"a\":\"b\"}x"), -1},
    {STR("{\"a\":\"b\""), -1},
    {STR("{\"a\":\"b"), -1},
    {STR("{\"a\":"), -1},
    {STR("{\"a\""), -1},
    {STR("{\"a\" \"b\"}"), -1},
    {STR("{\"a\":\"\n\"}"), -1},
    {STR("{\"a\":\"\xff\"}"), -1},
    {STR("{\"a\":\"b\"}\xff"), -1},
    {STR("[\"a\"]"), -1},
    {STR("\"a\""), -1},
    {STR("{"), -1},
    {STR(""), -1},
};

START_TEST(flat_reading_equals_the_tree)
{
    struct json_member members[3];
    enum json_verdict verdict;
    int count = json_scan_flat(flats[_i].text, members, 3);
    ck_assert_int_eq(count, flats[_i].members);
    if (count < 0)
        return;
    struct json_object *tree = json_scan_parse(flats[_i].text, JSON_SCAN_DEPTH, &verdict),
                       *value = NULL;
    ck_assert_int_eq(json_object_object_length(tree), count);
    for (int i = 0; i < count; i++) {
        char name[8] = "";
        memcpy(name, members[i].name.p, members[i].name.n);
        ck_assert(json_object_object_get_ex(tree, name, &value));
        ck_assert(str_eq(members[i].text, str_of(json_object_get_string(value))));
    }
    json_object_put(tree);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json_scan");
    TCase *tc = tcase_create("json_scan");
    const int n = (int)(sizeof(cases) / sizeof(cases[0]));
    tcase_add_loop_test(tc, each_text_has_its_verdict, 0, n);
    tcase_add_loop_test(tc, an_error_names_the_position_and_what_was_expected, 0,
                        sizeof(faults) / sizeof(faults[0]));
    tcase_add_loop_test(tc, json_c_accepts_every_accepted_text, 0, n);
    tcase_add_loop_test(tc, flat_reading_equals_the_tree, 0,
                        (int)(sizeof(flats) / sizeof(flats[0])));
    tcase_add_test(tc, depth_is_counted_in_levels);
    tcase_add_test(tc, values_are_counted);
    tcase_add_test(tc, a_hundred_thousand_brackets_are_refused_at_once);
    tcase_add_test(tc, values_survive_a_round_trip_through_both);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
