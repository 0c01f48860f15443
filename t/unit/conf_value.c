/* Values of options: durations, sizes and numbers. */
#include "t/kit/conf.h"
#include "t/kit/suite.h"
#include "core/conf/values.h"

#include <check.h>
#include <stdlib.h>

static const struct {
    const char *text;
    uint64_t ms; /* UINT64_MAX: refused */
} durations[] = {
    {"10s", 10000},
    {"500ms", 500},
    {"2m", 120000},
    {"24h", 86400000},
    {"90d", 7776000000},
    {"0", 0},
    {"0s", 0},
    {"5 ms", 5},
    {"007s", 7000},
    {"", UINT64_MAX},
    {"10", UINT64_MAX},
    {"s", UINT64_MAX},
    {"-1s", UINT64_MAX},
    {"+1s", UINT64_MAX},
    {"1.5s", UINT64_MAX},
    {"1sec", UINT64_MAX},
    {"1S", UINT64_MAX},
    {"1s ", UINT64_MAX},
    {" 1s", UINT64_MAX},
    {"1  s", UINT64_MAX},
    {"1 ", UINT64_MAX},
    {"1m30s", UINT64_MAX},
    {"99999999999999999999s", UINT64_MAX},
    {"18446744073709551615d", UINT64_MAX},
    {"1w", UINT64_MAX},
};

START_TEST(durations_are_parsed_strictly)
{
    uint64_t ms = UINT64_MAX;
    bool read = value_duration(durations[_i].text, &ms);
    ck_assert_msg(read == (durations[_i].ms != UINT64_MAX), "%s", durations[_i].text);
    if (read)
        ck_assert_uint_eq(ms, durations[_i].ms);
}
END_TEST

static const struct {
    const char *text;
    uint64_t bytes; /* UINT64_MAX: refused */
} sizes[] = {
    {"64GiB", (uint64_t)64 << 30},
    {"5MiB", 5 << 20},
    {"512KiB", 512 << 10},
    {"2TiB", (uint64_t)2 << 40},
    {"1234", 1234},
    {"0", 0},
    {"1 KiB", 1024},
    {"", UINT64_MAX},
    {"1KB", UINT64_MAX},
    {"1K", UINT64_MAX},
    {"1kib", UINT64_MAX},
    {"1.5GiB", UINT64_MAX},
    {"-1", UINT64_MAX},
    {"0x10", UINT64_MAX},
    {"1 ", UINT64_MAX},
    {"16777216TiB", UINT64_MAX},
    {"18446744073709551616", UINT64_MAX},
};

START_TEST(sizes_are_parsed_strictly)
{
    uint64_t bytes = UINT64_MAX;
    bool read = value_size(sizes[_i].text, &bytes);
    ck_assert_msg(read == (sizes[_i].bytes != UINT64_MAX), "%s", sizes[_i].text);
    if (read)
        ck_assert_uint_eq(bytes, sizes[_i].bytes);
}
END_TEST

static const uint64_t numbers[] = {0,         1,     999,     1000,     1024,    1025,
                                   60000,     61000, 3600000, 86400000, 1 << 20, (uint64_t)3 << 40,
                                   UINT64_MAX};

START_TEST(written_numbers_parse_back)
{
    char text[VALUE_TEXT_SIZE];
    uint64_t back = 7;
    value_duration_text(numbers[_i], text);
    ck_assert_msg(value_duration(text, &back) && back == numbers[_i], "%s", text);
    value_size_text(numbers[_i], text);
    ck_assert_msg(value_size(text, &back) && back == numbers[_i], "%s", text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conf_value");
    TCase *tcase = tcase_create("conf_value");
    tcase_add_loop_test(tcase, durations_are_parsed_strictly, 0, COUNT(durations));
    tcase_add_loop_test(tcase, sizes_are_parsed_strictly, 0, COUNT(sizes));
    tcase_add_loop_test(tcase, written_numbers_parse_back, 0, COUNT(numbers));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
