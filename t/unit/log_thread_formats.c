/*
 * The log thread of a version that knows the formats 2 and 3 of entries, with a log in memory:
 * which format it writes, and what it refuses to read.
 */
#include "config.h"

#include "t/kit/log_loop.h"
#include "t/kit/suite.h"

enum { OLD = 2, NEW = 3, LIVE_MS = 100 };

/* ---- the leader ---- */

static bool writes(void *arg)
{
    loop_turn();
    return loop.view.format == *(uint32_t *)arg;
}

static void expect_written(uint32_t format)
{
    ck_assert_msg(wait_until(writes, &format, LOOP_MS), "the leader writes format %u",
                  loop.view.format);
    ck_assert(loop_append("rows"));
    ck_assert_uint_eq(log_double_format(log_double_head().sequence), format);
}

static unsigned looks(void)
{
    return log_double_calls(CALL_POSITION);
}

static bool looks_reach(void *arg)
{
    loop_turn();
    return looks() >= *(unsigned *)arg;
}

/* The leader has looked at the nodes again, at least once as a whole. */
static void await_looks(void)
{
    unsigned more = looks() + 2;
    ck_assert(wait_until(looks_reach, &more, LOOP_MS));
}

static void away(void)
{
    log_double_other(1, CLUSTER_LOG_LEASE_MS);
    log_double_other_knows(OLD);
}

static void upgraded(void)
{
    log_double_other_knows(NEW);
}

static void (*const after[])(void) = {away, upgraded};

START_TEST(a_live_node_holds_the_earlier_format_until_it_is_away_or_upgraded)
{
    log_double_other(1, LIVE_MS);
    log_double_other_knows(OLD);
    loop_start();
    loop_expect_state(LOG_LEADS);
    expect_written(OLD);
    await_looks();
    expect_written(OLD);
    after[_i]();
    expect_written(NEW);
}
END_TEST

START_TEST(the_log_never_goes_back_to_an_earlier_format)
{
    loop_start();
    loop_expect_state(LOG_LEADS);
    expect_written(NEW);
    log_double_other_knows(OLD);
    await_looks();
    expect_written(NEW);
}
END_TEST

/* It has not looked at the nodes. */
START_TEST(a_new_leader_continues_in_the_format_of_the_last_entry)
{
    if (_i != 0)
        log_double_add_in((uint32_t)_i, "before");
    log_double_hold(CALL_LEAD, true);
    loop_start();
    loop_expect_applied(_i != 0 ? "before " : "");
    loop_expect_deferred(CALL_LEAD);
    log_double_fail(CALL_POSITION, CLUSTER_LOG_AWAY, 1000);
    log_double_hold(CALL_LEAD, false);
    loop_expect_state(LOG_LEADS);
    expect_written(_i == NEW ? NEW : OLD);
}
END_TEST

/* ---- a node that follows ---- */

START_TEST(a_follower_applies_both_formats)
{
    log_double_take(60000);
    log_double_add_in(OLD, "old");
    log_double_add_in(NEW, "new");
    loop_start();
    loop_expect_applied("old new ");
    ck_assert_uint_eq(log_double_node().format, NEW);
    ck_assert_str_eq(loop.view.why, "");
}
END_TEST

static const struct {
    uint32_t format;
    char *why;
} others[] = {
    {NEW + 1, "the log is written in format 4, and Assay " PACKAGE_VERSION
              " reads formats 2 to 3: upgrade this node"},
    {OLD - 1, "the log is written in format 1, and Assay " PACKAGE_VERSION
              " reads formats 2 to 3: first upgrade all nodes to a version that reads format 2"},
};

static void expect_refused(char *why)
{
    ck_assert_msg(wait_until(loop_has_why, why, LOOP_MS), "it says: %s", loop.view.why);
    ck_assert_int_eq(loop.view.state, LOG_CONNECTS);
}

/* The entry before is one that it could read. */
START_TEST(a_node_that_cannot_read_the_log_applies_nothing)
{
    log_double_take(0);
    log_double_add_in(OLD, "readable");
    log_double_add_in(others[_i].format, "unreadable");
    loop_start();
    expect_refused(others[_i].why);
    ck_assert_str_eq(loop.applied, "");
    ck_assert_uint_eq(log_double_calls(CALL_READ) + log_double_calls(CALL_LEAD), 0);
}
END_TEST

START_TEST(a_follower_stops_when_the_log_goes_on_in_another_format)
{
    log_double_take(60000);
    log_double_add_in(NEW, "readable");
    loop_start();
    loop_expect_applied("readable ");
    log_double_add_in(NEW + 1, "unreadable");
    expect_refused(others[0].why);
    log_double_add_in(NEW, "after");
    expect_refused("entry 2 of the log has format 4, and Assay " PACKAGE_VERSION
                   " reads formats 2 to 3: upgrade this node");
    ck_assert_str_eq(loop.applied, "readable ");
    ck_assert_uint_eq(loop.view.position.sequence, 1);
}
END_TEST

/* It was away while the log went on from format 1 to format 2. */
START_TEST(a_node_behind_entries_that_it_does_not_know_is_to_join)
{
    log_double_take(60000);
    log_double_add_in(OLD - 1, "unreadable");
    log_double_add_in(OLD, "readable");
    loop_start();
    expect_refused("entry 1 of the log has format 1, and Assay " PACKAGE_VERSION
                   " reads formats 2 to 3: copy the store of another node");
    ck_assert_str_eq(loop.applied, "");
}
END_TEST

int main(void)
{
    suite_processes(4);
    Suite *suite = suite_create("log_thread_formats");
    TCase *tcase = tcase_create("formats 2 and 3");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, loop_setup, loop_teardown);
    tcase_add_loop_test(tcase, a_live_node_holds_the_earlier_format_until_it_is_away_or_upgraded, 0,
                        2);
    tcase_add_test(tcase, the_log_never_goes_back_to_an_earlier_format);
    tcase_add_loop_test(tcase, a_new_leader_continues_in_the_format_of_the_last_entry, 2, 4);
    tcase_add_test(tcase, a_follower_applies_both_formats);
    tcase_add_loop_test(tcase, a_node_that_cannot_read_the_log_applies_nothing, 0, 2);
    tcase_add_test(tcase, a_follower_stops_when_the_log_goes_on_in_another_format);
    tcase_add_test(tcase, a_node_behind_entries_that_it_does_not_know_is_to_join);
    return suite_run(suite);
}
