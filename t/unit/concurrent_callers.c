/* How many callers the writer waits for. */
#include "core/writer/concurrent_callers.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>

/* a lone caller would scan them at every change */
START_TEST(the_estimate_falls_to_the_actual_callers)
{
    size_t callers = concurrent_callers_next(0, 1000);
    ck_assert_uint_eq(callers, 1000);
    for (int turn = 0; turn < 100; turn++) {
        size_t next = concurrent_callers_next(callers, 1);
        ck_assert(next < callers || callers == 1);
        ck_assert_uint_ge(next, callers - callers / 16 - 1);
        callers = next;
    }
    ck_assert_uint_eq(callers, 1);
    ck_assert_uint_eq(concurrent_callers_next(callers, 0), 0);
    ck_assert_uint_eq(concurrent_callers_next(0, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("concurrent_callers");
    TCase *tc = tcase_create("callers");
    tcase_add_test(tc, the_estimate_falls_to_the_actual_callers);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
