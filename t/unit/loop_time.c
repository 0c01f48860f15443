/* The longest iteration of a worker's loop: CPU time, and wall time since epoll returned. */
#include "core/loop/loop_time.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <unistd.h>

#define SPIN_US 3000
#define SLEEP_US 30000

static struct loop_time t;
static struct score score;

static void setup(void)
{
    score = (struct score){0};
    loop_time_start(&t);
}

static void spin(uint64_t us)
{
    uint64_t until = clock_thread_us() + us;
    while (clock_thread_us() < until)
        ;
}

static void iteration_ends(uint64_t polled_ms)
{
    loop_time_turn(&t, &score, polled_ms);
}

static uint64_t now_ms(void)
{
    return (uint64_t)clock_wall_ms();
}

START_TEST(the_longest_iteration_is_reported)
{
    uint64_t polled = now_ms();
    spin(SPIN_US);
    iteration_ends(polled);
    uint64_t us = score_get(score.longest_us), cpu_us = score_get(score.longest_cpu_us);
    ck_assert_uint_ge(cpu_us, SPIN_US);
    ck_assert_uint_ge(us, cpu_us);
    uint64_t began;
    do { /* until no other process used the processor in between */
        us = score_get(score.longest_us);
        began = clock_mono_us();
        polled = now_ms();
        spin(SPIN_US / 10); /* a shorter one changes nothing */
        iteration_ends(polled);
    } while (clock_mono_us() - began >= SPIN_US);
    ck_assert_uint_eq(score_get(score.longest_us), us);
    ck_assert_uint_eq(score_get(score.longest_cpu_us), cpu_us);
}
END_TEST

START_TEST(waiting_in_epoll_does_not_count)
{
    usleep(SLEEP_US);
    iteration_ends(now_ms());
    ck_assert_uint_lt(score_get(score.longest_cpu_us), SLEEP_US / 2);
    ck_assert_uint_eq(score_get(score.longest_us), score_get(score.longest_cpu_us));
}
END_TEST

START_TEST(waiting_within_an_iteration_counts_as_wall_time)
{
    uint64_t polled = now_ms();
    usleep(SLEEP_US);
    iteration_ends(polled);
    ck_assert_uint_lt(score_get(score.longest_cpu_us), SLEEP_US / 2);
    ck_assert_uint_ge(score_get(score.longest_us), SLEEP_US - 1000);
}
END_TEST

START_TEST(a_wall_clock_step_is_not_loop_time)
{
    static const int64_t set_ms[] = {-3600000, 3600000};
    usleep(SLEEP_US);
    iteration_ends((uint64_t)(clock_wall_ms() + set_ms[_i]));
    ck_assert_uint_lt(score_get(score.longest_us), SLEEP_US / 2);
}
END_TEST

START_TEST(short_iterations_are_reported_together)
{
    for (int i = 0; i < 100; i++) {
        spin(LOOP_TIME_US / 10);
        iteration_ends(now_ms());
    }
    ck_assert_uint_gt(score_get(score.longest_cpu_us), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("loop_time");
    TCase *tc = tcase_create("loop_time");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, the_longest_iteration_is_reported);
    tcase_add_test(tc, waiting_in_epoll_does_not_count);
    tcase_add_test(tc, waiting_within_an_iteration_counts_as_wall_time);
    tcase_add_loop_test(tc, a_wall_clock_step_is_not_loop_time, 0, 2);
    tcase_add_test(tc, short_iterations_are_reported_together);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
