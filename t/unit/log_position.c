/* Positions in the log of a cluster as text. */
#include "core/text/log_position.h"
#include "t/kit/suite.h"

#include <check.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    const char *text;
    struct log_position position;
} good[] = {
    {"0123456789abcdef-0", {0x0123456789abcdef, 0}},
    {"ffffffffffffffff-18446744073709551615", {UINT64_MAX, UINT64_MAX}},
    {"0000000000000001-42", {1, 42}},
};

START_TEST(a_position_is_written_and_read)
{
    char text[LOG_POSITION_SIZE];
    struct log_position read;
    size_t n = log_position_write(&good[_i].position, text);
    ck_assert_str_eq(text, good[_i].text);
    ck_assert(log_position_read((struct str){text, n}, &read));
    ck_assert_uint_eq(read.log, good[_i].position.log);
    ck_assert_uint_eq(read.entry, good[_i].position.entry);
}
END_TEST

static const char *const bad[] = {"",
                                  "-",
                                  "0123456789abcdef",
                                  "0123456789abcdef-",
                                  "0123456789abcdef-01",
                                  "0123456789abcdef--1",
                                  "0123456789abcdef-+1",
                                  "0123456789abcdef- 1",
                                  "0123456789abcdef-1 ",
                                  "0123456789abcdef-1,0123456789abcdef-2",
                                  "0123456789abcdef-18446744073709551616",
                                  "0123456789ABCDEF-1",
                                  "0123456789abcdeg-1",
                                  "123456789abcdef-1",
                                  "00123456789abcdef-1",
                                  "0x23456789abcdef-1",
                                  "0000000000000000-1"};

START_TEST(a_position_has_one_spelling)
{
    struct log_position read;
    ck_assert_msg(!log_position_read(str_of(bad[_i]), &read), "%s", bad[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log_position");
    TCase *tcase = tcase_create("log_position");
    tcase_add_loop_test(tcase, a_position_is_written_and_read, 0, COUNT(good));
    tcase_add_loop_test(tcase, a_position_has_one_spelling, 0, COUNT(bad));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
