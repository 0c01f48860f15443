/* The log thread of the writer, with a log in memory: following, and the end in each state. */
#include "t/kit/log_loop.h"
#include "t/kit/suite.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- following ---- */

START_TEST(a_follower_applies_entries_in_order)
{
    log_double_take(60000);
    for (int i = 0; i < 7; i++) {
        char rows[8];
        snprintf(rows, sizeof(rows), "%d", i);
        log_double_add(rows);
    }
    loop_start();
    loop_expect_applied("0 1 2 3 4 5 6 ");
    loop_expect_state(LOG_FOLLOWS);
    log_double_add("7");
    loop_expect_applied("0 1 2 3 4 5 6 7 ");
    log_thread_look(loop.thread, &loop.view);
    ck_assert_uint_eq(loop.view.position.sequence, 8);
    ck_assert_int_eq(loop.view.position.log[0], 1);
    ck_assert_str_eq(loop.view.why, "");
}
END_TEST

START_TEST(what_the_loop_refuses_is_offered_again)
{
    log_double_take(60000);
    for (int i = 0; i < 4; i++)
        log_double_add("x");
    loop.verdict = STORE_FULL;
    loop_start();
    ck_assert(wait_until(loop_has_why, "the disk is full", LOOP_MS));
    ck_assert_uint_eq(loop.view.position.sequence, 0);
    loop.verdict = STORE_OK;
    loop_expect_applied("x x x x ");
    ck_assert(wait_until(loop_has_no_why, NULL, LOOP_MS));
}
END_TEST

START_TEST(a_node_leads_only_at_the_head)
{
    log_double_add("one");
    log_double_add("two");
    loop.verdict = STORE_FULL;
    loop_start();
    ck_assert(wait_until(loop_has_why, "the disk is full", LOOP_MS));
    ck_assert_uint_eq(log_double_calls(CALL_LEAD), 0);
    loop.verdict = STORE_OK;
    loop_expect_state(LOG_LEADS);
    ck_assert_str_eq(loop.applied, "one two ");
    ck_assert_uint_eq(loop.view.epoch, 1);
    ck_assert_uint_eq(loop.view.position.sequence, 2);
}
END_TEST

/* The last leader appends between the look at the head and the lead. */
START_TEST(an_entry_before_the_lead_is_applied_first)
{
    log_double_hold(CALL_LEAD, true);
    loop_start();
    loop_expect_deferred(CALL_LEAD);
    log_double_add("late");
    log_double_hold(CALL_LEAD, false);
    loop_expect_state(LOG_LEADS);
    ck_assert_str_eq(loop.applied, "late ");
    ck_assert_uint_eq(loop.view.epoch, 2);
    ck_assert(loop_append("next"));
}
END_TEST

START_TEST(a_store_that_does_not_fit_applies_nothing)
{
    struct store_position other = {.log = {2}, .sequence = 5};
    const struct cluster_log_node node = {.id = {1}};
    log_double_add("one");
    loop.thread = log_thread_new(log_double(), &node, &other, false);
    ck_assert(wait_until(loop_has_why, "another log than this store follows", LOOP_MS));
    ck_assert_int_eq(loop.view.state, LOG_CONNECTS);
    ck_assert_uint_eq(loop.view.confirmed_us, 0);
    ck_assert_uint_eq(log_double_calls(CALL_READ) + log_double_calls(CALL_LEAD), 0);
}
END_TEST

START_TEST(a_trimmed_log_is_said)
{
    log_double_add("one");
    log_double_add("two");
    log_double_trim((uint64_t)_i);
    loop_start();
    ck_assert(wait_until(loop_has_why, "trimmed", LOOP_MS));
    ck_assert_int_eq(loop.view.state, LOG_CONNECTS);
    ck_assert_str_eq(loop.applied, "");
}
END_TEST

static const struct {
    enum cluster_log_status status;
    char *why;
} aways[] = {{CLUSTER_LOG_AWAY, "the log cannot be reached: a fault of the test"},
             {CLUSTER_LOG_REFUSED, "the log cannot be reached: a fault of the test"},
             {CLUSTER_LOG_NONE, "run `assay cluster init` once"}};

START_TEST(a_log_that_is_away_is_asked_again_at_leisure)
{
    log_double_take(60000);
    log_double_fail(CALL_POSITION, aways[_i].status, 4);
    const int64_t began = now_ms();
    loop_start();
    ck_assert(wait_until(loop_has_why, aways[_i].why, LOOP_MS));
    ck_assert_int_eq(loop.view.state, LOG_CONNECTS);
    loop_expect_state(LOG_FOLLOWS);
    ck_assert_int_ge(now_ms() - began, 4 * 250);
    ck_assert_str_eq(loop.view.why, "");
    ck_assert_uint_gt(loop.view.confirmed_us, 0);
}
END_TEST

START_TEST(a_store_of_a_log_is_not_told_to_begin_one)
{
    struct store_position known = {0};
    const struct cluster_log_node node = {.id = {1}};
    memcpy(known.log, log_double_head().log, sizeof(known.log));
    log_double_fail(CALL_POSITION, CLUSTER_LOG_NONE, 4);
    loop.thread = log_thread_new(log_double(), &node, &known, false);
    ck_assert(wait_until(loop_has_why, "this store follows a log: check cluster.log", LOOP_MS));
}
END_TEST

START_TEST(an_idle_node_asks_rarely)
{
    if (_i == 0)
        log_double_take(60000);
    loop_start();
    loop_expect_state(_i == 0 ? LOG_FOLLOWS : LOG_LEADS);
    const unsigned before = log_double_calls(CALL_POSITION) + log_double_calls(CALL_LEAD);
    for (int64_t until = now_ms() + 2500; now_ms() < until;)
        loop_turn();
    const unsigned calls = log_double_calls(CALL_POSITION) + log_double_calls(CALL_LEAD) - before;
    ck_assert_uint_ge(calls, 1);
    ck_assert_uint_le(calls, 5);
}
END_TEST

START_TEST(a_node_is_noted_with_its_position)
{
    log_double_take(60000);
    log_double_add("one");
    loop_start();
    log_thread_note(loop.thread, 4711);
    loop_expect_applied("one ");
    for (int64_t until = now_ms() + LOOP_MS;
         log_double_node().sequence != 1 || log_double_node().free_bytes != 4711;) {
        ck_assert_int_lt(now_ms(), until);
        loop_turn();
    }
    ck_assert_str_eq(log_double_node().name, "own");
}
END_TEST

START_TEST(a_wake_shortens_the_wait)
{
    log_double_take(60000);
    loop_start();
    loop_expect_state(LOG_FOLLOWS);
    for (int i = 0; i < 5; i++) {
        const unsigned before = log_double_calls(CALL_POSITION);
        const int64_t began = now_ms();
        log_thread_wake(loop.thread);
        while (log_double_calls(CALL_POSITION) == before)
            ck_assert_int_lt(now_ms() - began, 900);
    }
}
END_TEST

/* ---- live nodes ---- */

enum { COUNTS_MS = 3000, SEEN_LATE = COUNTS_MS + 1 };

static bool counts(void *arg)
{
    loop_turn();
    return loop.view.nodes == *(unsigned *)arg;
}

static void expect_nodes(unsigned count)
{
    ck_assert_msg(wait_until(counts, &count, LOOP_MS), "%u nodes, not %u", loop.view.nodes, count);
}

/* A follower, and the leader. */
START_TEST(a_node_that_is_away_counts_until_it_had_time_to_come_back)
{
    if (_i == 0)
        log_double_take(60000);
    log_double_other(1, SEEN_LATE);
    loop_start();
    log_thread_counts(loop.thread, COUNTS_MS);
    loop_expect_state(_i == 0 ? LOG_FOLLOWS : LOG_LEADS);
    expect_nodes(2);
    expect_nodes(1);
    log_double_other(1, COUNTS_MS);
    expect_nodes(2);
}
END_TEST

START_TEST(while_the_log_is_away_the_number_of_nodes_stays)
{
    log_double_take(60000);
    loop_start();
    log_thread_counts(loop.thread, COUNTS_MS);
    expect_nodes(2);
    log_double_other(1, SEEN_LATE);
    log_double_fail(CALL_POSITION, CLUSTER_LOG_AWAY, 16);
    ck_assert(wait_until(loop_has_why, "the log cannot be reached", LOOP_MS));
    for (const unsigned calls = log_double_calls(CALL_POSITION); /* less than all that fail */
         log_double_calls(CALL_POSITION) < calls + 12;) {
        loop_turn();
        ck_assert_uint_eq(loop.view.nodes, 2);
    }
    expect_nodes(1);
}
END_TEST

START_TEST(without_a_look_at_the_log_no_number_is_known)
{
    log_double_fail(CALL_POSITION, CLUSTER_LOG_AWAY, 1000);
    loop_start();
    ck_assert(wait_until(loop_has_why, "the log cannot be reached", LOOP_MS));
    ck_assert_uint_eq(loop.view.nodes, 0);
}
END_TEST

enum { END_MS = 2000 };

/* ---- ending ---- */

static void expect_end(bool good)
{
    const int64_t began = now_ms();
    ck_assert_int_eq(log_thread_end(loop.thread), good);
    ck_assert_int_le(now_ms() - began, END_MS + 500);
    if (good) {
        log_thread_free(loop.thread);
        loop.thread = NULL;
    }
}

static void end_away(void)
{
    log_double_fail(CALL_POSITION, CLUSTER_LOG_AWAY, 1000);
    loop_start();
    ck_assert(wait_until(loop_has_why, "the log cannot be reached", LOOP_MS));
}

static void end_follower(void)
{
    log_double_take(60000);
    loop_start();
    loop_expect_state(LOG_FOLLOWS);
}

static void end_offering(void)
{
    log_double_take(60000);
    log_double_add("offered");
    loop_start();
    while (log_double_calls(CALL_READ) == 0)
        usleep(1000);
}

static void end_refused(void)
{
    loop.verdict = STORE_FULL;
    log_double_take(60000);
    log_double_add("refused");
    loop_start();
    ck_assert(wait_until(loop_has_why, "the disk is full", LOOP_MS));
}

static void end_unfit(void)
{
    log_double_add("one");
    log_double_trim(2);
    loop_start();
    ck_assert(wait_until(loop_has_why, "trimmed", LOOP_MS));
}

static void end_lost(void)
{
    loop_start();
    loop_expect_state(LOG_LEADS);
    log_double_take(60000);
    loop_expect_state(LOG_LOST);
}

static void (*const states[])(void) = {end_away,    end_follower, end_offering,
                                       end_refused, end_unfit,    end_lost};

START_TEST(a_thread_ends_at_once_in_each_state)
{
    states[_i]();
    const int64_t began = now_ms();
    expect_end(true);
    ck_assert_int_lt(now_ms() - began, 500);
}
END_TEST

START_TEST(a_leader_that_ends_leaves_the_lead)
{
    loop_start();
    loop_expect_state(LOG_LEADS);
    ck_assert_int_gt(log_double_head().lease_ms, 5000);
    expect_end(true);
    ck_assert_int_le(log_double_head().lease_ms, 0);
}
END_TEST

START_TEST(a_call_that_hangs_does_not_delay_the_end)
{
    loop_start();
    loop_expect_state(LOG_LEADS);
    log_double_hold(CALL_LEAD, true);
    loop_expect_deferred(CALL_LEAD);
    expect_end(false);
    log_double_hold(CALL_LEAD, false);
}
END_TEST

/* The append of an unknown outcome: the loop has given it up, and the loop.thread asks no more. */
START_TEST(a_thread_ends_while_an_append_is_unknown)
{
    int ticks = 2;
    struct store_position after;
    loop_start();
    loop_expect_state(LOG_LEADS);
    log_double_fail(CALL_APPEND, CLUSTER_LOG_UNKNOWN, 1000);
    log_double_fail(CALL_LEAD, CLUSTER_LOG_AWAY, 1000);
    const struct cluster_log_entry entry = loop_entry("unknown");
    ck_assert(!log_thread_append(loop.thread, &entry, loop_is_wanted, &ticks, &after));
    expect_end(true);
}
END_TEST

/* ${arg}: ms that the clock of the log is ahead; some more have passed in the call. */
static bool has_offset(void *arg)
{
    log_thread_look(loop.thread, &loop.view);
    return llabs(loop.view.clock_offset_ms + *(int64_t *)arg) < 1000;
}

/* A follower and the leader. */
START_TEST(the_clock_is_compared_with_that_of_the_log)
{
    int64_t day_ms = 86400000, none_ms = 0;
    log_double_ahead(day_ms);
    log_double_take(_i == 0 ? 60000 : 0);
    loop_start();
    loop_expect_state(_i == 0 ? LOG_FOLLOWS : LOG_LEADS);
    ck_assert(wait_until(has_offset, &day_ms, LOOP_MS));
    day_ms = -day_ms;
    log_double_ahead(day_ms);
    ck_assert(wait_until(has_offset, &day_ms, LOOP_MS));
    log_double_ahead(0);
    ck_assert(wait_until(has_offset, &none_ms, LOOP_MS));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_follower_applies_entries_in_order);
    tcase_add_test(tcase, what_the_loop_refuses_is_offered_again);
    tcase_add_test(tcase, a_node_leads_only_at_the_head);
    tcase_add_test(tcase, an_entry_before_the_lead_is_applied_first);
    tcase_add_test(tcase, a_store_that_does_not_fit_applies_nothing);
    tcase_add_loop_test(tcase, a_trimmed_log_is_said, 2, 4);
    tcase_add_loop_test(tcase, a_log_that_is_away_is_asked_again_at_leisure, 0,
                        sizeof(aways) / sizeof(*aways));
    tcase_add_test(tcase, a_store_of_a_log_is_not_told_to_begin_one);
    tcase_add_loop_test(tcase, an_idle_node_asks_rarely, 0, 2);
    tcase_add_test(tcase, a_node_is_noted_with_its_position);
    tcase_add_loop_test(tcase, the_clock_is_compared_with_that_of_the_log, 0, 2);
    tcase_add_test(tcase, a_wake_shortens_the_wait);
    tcase_add_loop_test(tcase, a_node_that_is_away_counts_until_it_had_time_to_come_back, 0, 2);
    tcase_add_test(tcase, while_the_log_is_away_the_number_of_nodes_stays);
    tcase_add_test(tcase, without_a_look_at_the_log_no_number_is_known);
    tcase_add_loop_test(tcase, a_thread_ends_at_once_in_each_state, 0,
                        sizeof(states) / sizeof(*states));
    tcase_add_test(tcase, a_leader_that_ends_leaves_the_lead);
    tcase_add_test(tcase, a_call_that_hangs_does_not_delay_the_end);
    tcase_add_test(tcase, a_thread_ends_while_an_append_is_unknown);
}

int main(void)
{
    suite_processes(4);
    Suite *suite = suite_create("log_thread");
    TCase *tcase = tcase_create("log_thread");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 30);
    tcase_add_checked_fixture(tcase, loop_setup, loop_teardown);
    add_tests(tcase);
    return suite_run(suite);
}
