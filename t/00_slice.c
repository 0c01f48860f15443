/*
 * How much goes into a transaction: work in the background, and callers.
 */
#include "core/slice.h"

#include <check.h>
#include <stdlib.h>

#define MOST_US 10000

/* Columns: what a transaction takes on that disk, and each record of it; where slices end up, between two sizes. */
static const struct {
    uint64_t commit_us, record_us;
    size_t from, to;
} disks[] = {
    {500, 10, SLICE_RECORDS_MAX, SLICE_RECORDS_MAX},
    {500, 100, 30, SLICE_RECORDS_MAX},
    {4000, 5, SLICE_RECORDS_MAX, SLICE_RECORDS_MAX},
    {50000, 1, SLICE_RECORDS_MIN, SLICE_RECORDS_MIN},
    {0, 1000000, SLICE_RECORDS_MIN, SLICE_RECORDS_MIN},
    {0, 0, SLICE_RECORDS_MAX, SLICE_RECORDS_MAX},
};

START_TEST(slices_fit_the_disk_whatever_they_begin_with)
{
    static const size_t begin[] = {0, 1, SLICE_RECORDS_MIN, 117, SLICE_RECORDS_MAX, (size_t)1 << 40};
    for (size_t i = 0; i < sizeof(begin) / sizeof(*begin); i++) {
        size_t records = begin[i];
        for (int turn = 0; turn < 200; turn++) {
            records = slice_next(records, disks[_i].commit_us + records * disks[_i].record_us, MOST_US);
            ck_assert_uint_ge(records, SLICE_RECORDS_MIN);
            ck_assert_uint_le(records, SLICE_RECORDS_MAX);
            if (turn < 50)
                continue;
            ck_assert_uint_ge(records, disks[_i].from);
            ck_assert_uint_le(records, disks[_i].to);
        }
    }
}
END_TEST

START_TEST(a_slow_moment_is_forgotten)
{
    size_t records = SLICE_RECORDS_MAX;
    for (int turn = 0; turn < 10; turn++)
        records = slice_next(records, UINT64_MAX, MOST_US);
    ck_assert_uint_eq(records, SLICE_RECORDS_MIN);
    for (int turn = 0; turn < 20; turn++)
        records = slice_next(records, 0, MOST_US);
    ck_assert_uint_eq(records, SLICE_RECORDS_MAX);
}
END_TEST

/* a lone caller would wait for them at every change */
START_TEST(callers_who_left_are_forgotten_to_the_last)
{
    size_t callers = slice_callers(0, 1000);
    ck_assert_uint_eq(callers, 1000);
    for (int turn = 0; turn < 100; turn++) {
        size_t next = slice_callers(callers, 1);
        ck_assert(next < callers || callers == 1);
        ck_assert_uint_ge(next, callers - callers / 16 - 1);
        callers = next;
    }
    ck_assert_uint_eq(callers, 1);
    ck_assert_uint_eq(slice_callers(callers, 0), 0);
    ck_assert_uint_eq(slice_callers(0, 0), 0);
}
END_TEST

START_TEST(callers_go_before_a_slice_but_not_for_ever)
{
    for (int slice = 0; slice < 3; slice++) {
        unsigned yields = 0, turns = 0;
        ck_assert(!slice_yields(&yields, false));
        ck_assert(slice_yields(&yields, true));
        for (turns = 1; slice_yields(&yields, true); turns++)
            ck_assert_uint_le(turns, SLICE_YIELDS_MAX);
        ck_assert_uint_eq(turns, SLICE_YIELDS_MAX);
        ck_assert(!slice_yields(&yields, false));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slice");
    TCase *tc = tcase_create("slice");
    tcase_add_loop_test(tc, slices_fit_the_disk_whatever_they_begin_with, 0, (int)(sizeof(disks) / sizeof(*disks)));
    tcase_add_test(tc, a_slow_moment_is_forgotten);
    tcase_add_test(tc, callers_who_left_are_forgotten_to_the_last);
    tcase_add_test(tc, callers_go_before_a_slice_but_not_for_ever);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
