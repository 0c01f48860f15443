/* The log thread of the leader, with a log in memory: appends, and the loss of the lead. */
#include "t/kit/log_loop.h"
#include "t/kit/suite.h"

#include <pthread.h>

START_TEST(a_leader_appends)
{
    loop_start();
    loop_expect_state(LOG_LEADS);
    for (int i = 0; i < 100; i++)
        ck_assert(loop_append("rows"));
    ck_assert_uint_eq(log_double_head().sequence, 100);
    log_thread_look(loop.thread, &loop.view);
    ck_assert_uint_eq(loop.view.position.sequence, 100);
    ck_assert_mem_eq(loop.view.position.chain, log_double_head().chain, STORE_CHAIN_BYTES);
}
END_TEST

/* An append that fails once, and what the log has then. */
static const struct {
    enum cluster_log_status status;
    bool appends, stolen; /* it appends nevertheless; another node takes the lead */
    bool good;
} failures[] = {
    {CLUSTER_LOG_UNKNOWN, true, false, true},  {CLUSTER_LOG_UNKNOWN, false, false, true},
    {CLUSTER_LOG_AWAY, false, false, true},    {CLUSTER_LOG_REFUSED, false, false, true},
    {CLUSTER_LOG_NONE, false, false, true},    {CLUSTER_LOG_UNKNOWN, true, true, false},
    {CLUSTER_LOG_UNKNOWN, false, true, false}, {CLUSTER_LOG_AWAY, false, true, false},
    {CLUSTER_LOG_LED, false, true, false},
};

static void *steal(void *arg)
{
    (void)arg;
    while (log_double_calls(CALL_APPEND) < 2 || !log_double_is_held(CALL_LEAD))
        usleep(1000);
    log_double_take(60000);
    log_double_hold(CALL_LEAD, false);
    return NULL;
}

START_TEST(an_append_that_fails_is_resolved)
{
    pthread_t thief;
    loop_start();
    loop_expect_state(LOG_LEADS);
    ck_assert(loop_append("first"));
    log_double_fail(CALL_APPEND, failures[_i].status, 1);
    if (failures[_i].appends)
        log_double_append_too();
    if (failures[_i].stolen) {
        log_double_hold(CALL_LEAD, true);
        ck_assert_int_eq(pthread_create(&thief, NULL, steal, NULL), 0);
    }
    ck_assert_int_eq(loop_append("second"), failures[_i].good);
    if (failures[_i].stolen)
        pthread_join(thief, NULL);
    ck_assert_uint_eq(log_double_head().sequence, 1 + (failures[_i].good || failures[_i].appends));
    loop_expect_state(failures[_i].good ? LOG_LEADS : LOG_LOST);
    ck_assert_int_eq(loop_append("third"), failures[_i].good);
    log_thread_look(loop.thread, &loop.view);
    if (failures[_i].good)
        ck_assert_str_eq(loop.view.why, "");
}
END_TEST

START_TEST(an_append_waits_for_a_log_that_is_away)
{
    loop_start();
    loop_expect_state(LOG_LEADS);
    log_double_fail(CALL_APPEND, CLUSTER_LOG_AWAY, 1);
    log_double_fail(CALL_LEAD, CLUSTER_LOG_AWAY, 4);
    const int64_t began = now_ms();
    ck_assert(loop_append("patient"));
    ck_assert_int_ge(now_ms() - began, 4 * 250);
    ck_assert_uint_eq(log_double_head().sequence, 1);
}
END_TEST

/* A renewal fails before the append: it is repeated at leisure too. */
START_TEST(an_append_during_failed_renewals_makes_no_haste)
{
    loop_start();
    loop_expect_state(LOG_LEADS);
    log_double_fail(CALL_LEAD, CLUSTER_LOG_AWAY, 4);
    ck_assert(wait_until(loop_has_why, "the log cannot be reached", LOOP_MS));
    const int64_t began = now_ms();
    ck_assert(loop_append("patient"));
    ck_assert_int_ge(now_ms() - began, 2 * 250);
    ck_assert(wait_until(loop_has_no_why, NULL, LOOP_MS));
}
END_TEST

START_TEST(the_loop_gives_up_an_append_by_its_tick)
{
    int ticks = 3;
    struct store_position after;
    loop_start();
    loop_expect_state(LOG_LEADS);
    log_double_hold(CALL_APPEND, true);
    const struct cluster_log_entry entry = loop_entry("given up");
    ck_assert(!log_thread_append(loop.thread, &entry, loop_is_wanted, &ticks, &after));
    ck_assert_uint_eq(after.sequence, 0);
    ck_assert_int_lt(ticks, 0);
    log_double_hold(CALL_APPEND, false);
}
END_TEST

START_TEST(a_stolen_lead_is_lost)
{
    loop_start();
    loop_expect_state(LOG_LEADS);
    log_double_take(60000);
    loop_expect_state(LOG_LOST);
    ck_assert_str_eq(loop.view.why, "another node leads");
    ck_assert(!loop_append("late"));
    ck_assert_uint_eq(log_double_head().sequence, 0);
}
END_TEST

static void *release(void *arg)
{
    (void)arg;
    usleep(200000); /* the loop waits for its append by then; it is right before that as well */
    log_double_take(60000);
    log_double_hold(CALL_LEAD, false);
    return NULL;
}

/* The renewal that learns of it has begun before the append is asked for. */
START_TEST(an_append_ends_when_a_renewal_finds_the_lead_lost)
{
    pthread_t other;
    loop_start();
    loop_expect_state(LOG_LEADS);
    log_double_hold(CALL_LEAD, true);
    loop_expect_deferred(CALL_LEAD);
    ck_assert_int_eq(pthread_create(&other, NULL, release, NULL), 0);
    ck_assert(!loop_append("late"));
    pthread_join(other, NULL);
    loop_expect_state(LOG_LOST);
    ck_assert_uint_eq(log_double_calls(CALL_APPEND), 0);
}
END_TEST

START_TEST(an_entry_that_another_node_appended_ends_the_lead)
{
    loop_start();
    loop_expect_state(LOG_LEADS);
    log_double_add("of nobody knows whom");
    loop_expect_state(LOG_LOST);
}
END_TEST

static bool names_full_node(void *arg)
{
    loop_turn();
    return strcmp(loop.view.full_node, arg) == 0;
}

START_TEST(a_live_node_without_space_is_named)
{
    loop_start();
    loop_expect_state(LOG_LEADS);
    log_double_other(0, 100);
    ck_assert(wait_until(names_full_node, "other", LOOP_MS));
    log_double_other(0, CLUSTER_LOG_LEASE_MS);
    ck_assert(wait_until(names_full_node, "", LOOP_MS));
    log_double_other(0, 100);
    ck_assert(wait_until(names_full_node, "other", LOOP_MS));
    log_double_other(1, 100);
    ck_assert(wait_until(names_full_node, "", LOOP_MS));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_leader_appends);
    tcase_add_loop_test(tcase, an_append_that_fails_is_resolved, 0,
                        sizeof(failures) / sizeof(*failures));
    tcase_add_test(tcase, an_append_waits_for_a_log_that_is_away);
    tcase_add_test(tcase, an_append_during_failed_renewals_makes_no_haste);
    tcase_add_test(tcase, the_loop_gives_up_an_append_by_its_tick);
    tcase_add_test(tcase, a_stolen_lead_is_lost);
    tcase_add_test(tcase, an_append_ends_when_a_renewal_finds_the_lead_lost);
    tcase_add_test(tcase, a_live_node_without_space_is_named);
    tcase_add_test(tcase, an_entry_that_another_node_appended_ends_the_lead);
}

int main(void)
{
    suite_processes(4);
    Suite *suite = suite_create("log_thread_lead");
    TCase *tcase = tcase_create("log_thread_lead");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 30);
    tcase_add_checked_fixture(tcase, loop_setup, loop_teardown);
    add_tests(tcase);
    return suite_run(suite);
}
