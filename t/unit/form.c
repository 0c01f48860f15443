/* Decoding of URL-encoded forms. */
#include "core/text/form.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>

#define BYTES(literal)                                                                             \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

static const struct {
    struct str text;
    bool valid;
} utf8_cases[] = {
    {BYTES(""), true},
    {BYTES("plain ascii, longer than eight bytes"), true},
    {BYTES("\x7f\x01 controls are characters"), true},
    {BYTES("12345678\xc3\xa9"), true},
    {BYTES("1234567\xc3\xa9"), true},
    {BYTES("\xe2\x82\xac and \xf0\x9f\x98\x80"), true},
    {BYTES("\xf4\x8f\xbf\xbf"), true},
    {BYTES("\xed\x9f\xbf\xee\x80\x80"), true},
    {BYTES("\0"), false},
    {BYTES("12345678\0"), false},
    {BYTES("1234\0"
           "678"),
     false},
    {BYTES("1234567\0"
           "12345678"),
     false},
    {BYTES("\x80"), false}, /* a continuation byte alone */
    {BYTES("\xc3"), false}, /* cut short */
    {BYTES("\xe2\x82"), false},
    {BYTES("\xf0\x9f\x98"), false},
    {BYTES("\xc3("), false}, /* no continuation byte */
    {BYTES("\xe2\x82("), false},
    {BYTES("\xc0\x80"), false}, /* overlong NUL */
    {BYTES("\xc1\xbf"), false},
    {BYTES("\xe0\x9f\xbf"), false},
    {BYTES("\xf0\x8f\xbf\xbf"), false},
    {BYTES("\xed\xa0\x80"), false}, /* surrogates */
    {BYTES("\xed\xbf\xbf"), false},
    {BYTES("\xf4\x90\x80\x80"), false}, /* above U+10FFFF */
    {BYTES("\xf5\x80\x80\x80"), false},
    {BYTES("\xff"), false},
    {BYTES("aaaaaaaaaaaaaaaaaaaaaaa\xfe"), false},
};

START_TEST(invalid_utf8_is_detected)
{
    ck_assert_int_eq(utf8_valid(utf8_cases[_i].text), utf8_cases[_i].valid);
}
END_TEST

START_TEST(every_position_of_a_bad_byte_is_found)
{
    static const char bad[] = {'\0', '\x80', '\xff'};
    char text[40];
    for (size_t n = 1; n <= sizeof(text); ++n) {
        for (size_t at = 0; at < n; ++at) {
            memset(text, 'a', sizeof(text));
            ck_assert(utf8_valid((struct str){text, n}));
            text[at] = bad[(n + at) % sizeof(bad)];
            ck_assert(!utf8_valid((struct str){text, n}));
        }
    }
}
END_TEST

static const struct {
    struct str in;
    bool plus;
    struct str out; /* p NULL: malformed */
} decode_cases[] = {
    {BYTES(""), true, BYTES("")},
    {BYTES("a+b%20c"), true, BYTES("a b c")},
    {BYTES("a+b%20c"), false, BYTES("a+b c")},
    {BYTES("%2B%2b"), true, BYTES("++")},
    {BYTES("%c3%A9"), true, BYTES("\xc3\xa9")},
    {BYTES("%25%32%35"), true, BYTES("%25")},
    {BYTES("%"), true, {NULL, 0}},
    {BYTES("%4"), true, {NULL, 0}},
    {BYTES("a%"), true, {NULL, 0}},
    {BYTES("%zz"), true, {NULL, 0}},
    {BYTES("%4g"), true, {NULL, 0}},
    {BYTES("%g4"), true, {NULL, 0}},
    {BYTES("%%41"), true, {NULL, 0}},
    {BYTES("% 41"), true, {NULL, 0}},
    {BYTES("%-1"), true, {NULL, 0}},
    {BYTES("%00"), true, {NULL, 0}},
    {BYTES("a\0b"), true, {NULL, 0}},
    {BYTES("%c3"), true, {NULL, 0}},
    {BYTES("%c0%80"), true, {NULL, 0}},
    {BYTES("%ed%a0%80"), true, {NULL, 0}},
    {BYTES("\xff"), true, {NULL, 0}},
};

START_TEST(percent_encoding_is_parsed_strictly)
{
    struct str in = decode_cases[_i].in, want = decode_cases[_i].out;
    char *out = malloc(in.n + 1); /* its own block, so that a sanitizer detects one byte too many */
    char *text = malloc(in.n + 2);
    memset(text, '4', in.n + 2); /* the following bytes must not be taken for the missing digits */
    memcpy(text, in.p, in.n);
    struct str got = form_decode((struct str){text, in.n}, decode_cases[_i].plus, out);
    ck_assert_int_eq(got.p == NULL, want.p == NULL);
    ck_assert(str_eq(got, want));
    free(text);
    free(out);
}
END_TEST

START_TEST(decoding_works_in_place)
{
    char text[] = "%41+%42";
    struct str got = form_decode((struct str){text, sizeof(text) - 1}, true, text);
    ck_assert(str_eq(got, STR("A B")));
}
END_TEST

START_TEST(pairs_keep_their_order_and_empty_ones_are_skipped)
{
    static const char *const want[][2] = {{"a", "1"}, {"b", ""},    {"c", ""},
                                          {"", "x"},  {"d", "e=f"}, {"a", "2"}};
    struct form f = {STR("&&a=1&b&c=&=x&&&d=e=f&a=2&")};
    struct str name, value;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); ++i) {
        ck_assert(form_next(&f, &name, &value));
        ck_assert(str_eq(name, str_of(want[i][0])));
        ck_assert(str_eq(value, str_of(want[i][1])));
        ck_assert_ptr_nonnull(value.p);
    }
    ck_assert(!form_next(&f, &name, &value));
    ck_assert(!form_next(&f, &name, &value));
}
END_TEST

START_TEST(empty_form_has_no_pairs)
{
    struct form f = {{NULL, 0}};
    struct str name, value;
    ck_assert(!form_next(&f, &name, &value));
}
END_TEST

static const struct {
    const char *text;
    uint64_t max;
    bool valid;
    uint64_t number;
} number_cases[] = {
    {"0", 10, true, 0},
    {"10", 10, true, 10},
    {"007", 10, true, 7},
    {"11", 10, false, 0},
    {"7", 5, false, 0},
    {"", 10, false, 0},
    {"-1", 10, false, 0},
    {"+1", 10, false, 0},
    {" 1", 10, false, 0},
    {"1 ", 10, false, 0},
    {"1.0", 10, false, 0},
    {"1e1", 10, false, 0},
    {"0x1", 10, false, 0},
    {"\xd9\xa1", 10, false, 0}, /* an Arabic digit one */
    {"18446744073709551615", UINT64_MAX, true, UINT64_MAX},
    {"18446744073709551616", UINT64_MAX, false, 0},
    {"99999999999999999999999999999999999999", UINT64_MAX, false, 0},
    {"9223372036854775807", INT64_MAX, true, INT64_MAX},
    {"9223372036854775808", INT64_MAX, false, 0},
};

START_TEST(numbers_are_digits_within_their_range)
{
    uint64_t got = 0;
    ck_assert_int_eq(number_parse(str_of(number_cases[_i].text), number_cases[_i].max, &got),
                     number_cases[_i].valid);
    ck_assert_uint_eq(got, number_cases[_i].number);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("form");
    TCase *tc = tcase_create("form");
    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, invalid_utf8_is_detected, 0,
                        sizeof(utf8_cases) / sizeof(utf8_cases[0]));
    tcase_add_test(tc, every_position_of_a_bad_byte_is_found);
    tcase_add_loop_test(tc, percent_encoding_is_parsed_strictly, 0,
                        sizeof(decode_cases) / sizeof(decode_cases[0]));
    tcase_add_test(tc, decoding_works_in_place);
    tcase_add_test(tc, pairs_keep_their_order_and_empty_ones_are_skipped);
    tcase_add_test(tc, empty_form_has_no_pairs);
    tcase_add_loop_test(tc, numbers_are_digits_within_their_range, 0,
                        sizeof(number_cases) / sizeof(number_cases[0]));
    return suite_run(suite);
}
