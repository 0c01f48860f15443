/*
 * The log thread of a node that may not follow, with a log in memory: it applies nothing, says why
 * once, and is not noted, so that nobody counts on it.
 */
#include "t/kit/log_loop.h"
#include "t/kit/suite.h"

#include <stdio.h>

enum { LOOKS = 2, SOON_MS = 1000 };

static void start_at(const struct store_position *position)
{
    const struct cluster_log_node node = {.id = {1}, .name = "own", .free_bytes = 1};
    loop.thread = log_thread_new(log_double(), &node, position, false);
    ck_assert_ptr_nonnull(loop.thread);
}

/* Neither state nor reason changes, and the log gets the reason once. */
static void expect_stopped(char *why)
{
    char before[POSITION_WHY];
    unsigned stops;
    ck_assert_msg(wait_until(loop_has_why, why, LOOP_MS), "%s", loop.view.why);
    snprintf(before, sizeof(before), "%s", loop.view.why);
    const unsigned notes = log_double_notes(), leads = log_double_calls(CALL_LEAD);
    const unsigned looks = log_double_calls(CALL_POSITION);
    while (log_double_calls(CALL_POSITION) <= looks + LOOKS) {
        loop_turn();
        ck_assert_str_eq(loop.view.why, before);
        ck_assert_int_eq(loop.view.state, LOG_CONNECTS);
    }
    ck_assert_uint_eq(log_double_notes(), notes);
    ck_assert_uint_eq(log_double_calls(CALL_LEAD), leads);
    ck_assert_str_eq(log_double_stopped(&stops).stopped, before);
    ck_assert_uint_eq(stops, 1);
}

/* ---- from the start ---- */

static void another_log(void)
{
    start_at(&(struct store_position){.log = {2}, .sequence = 5});
}

static void records_of_its_own(void)
{
    start_at(NULL);
}

static void ahead(void)
{
    start_at(&(struct store_position){.log = {1}, .sequence = 5});
}

static void trimmed(void)
{
    log_double_trim(2);
    loop_start();
}

static void all_trimmed(void)
{
    log_double_trim(3);
    loop_start();
}

/* Not the first entry of this log. */
static void another_chain(void)
{
    start_at(&(struct store_position){.log = {1}, .chain = {1}});
}

static const struct {
    void (*start)(void);
    char *why;
} refused[] = {
    {another_log, "another log than this store follows"},
    {records_of_its_own, "data_dir has records"},
    {ahead, "and the log ends before it"},
    {trimmed, "the next entry of the log is 2"},
    {all_trimmed, "no entry after 0"},
    {another_chain, "entry 1 of the log does not continue"},
};

START_TEST(a_node_that_does_not_fit_is_not_registered)
{
    log_double_take(60000);
    log_double_add("one");
    log_double_add("two");
    refused[_i].start();
    expect_stopped(refused[_i].why);
    ck_assert_uint_eq(log_double_notes(), 0);
    ck_assert_uint_eq(loop.view.confirmed_us, 0);
    ck_assert_str_eq(loop.applied, "");
}
END_TEST

/* ---- later ---- */

START_TEST(a_node_that_stops_is_noted_no_more)
{
    log_double_take(60000);
    log_double_add("one");
    loop_start();
    loop_expect_applied("one ");
    loop_expect_state(LOG_FOLLOWS);
    log_double_hold(CALL_POSITION, true);
    loop_expect_deferred(CALL_POSITION);
    log_double_add("two");
    log_double_add("three");
    log_double_trim(3);
    log_double_hold(CALL_POSITION, false);
    expect_stopped("trimmed");
    ck_assert_uint_ge(log_double_notes(), 1);
    log_double_trim(1);
    loop_expect_applied("one two three ");
    const unsigned before = log_double_notes();
    ck_assert_uint_ge(before, 2);
    loop_expect_state(LOG_FOLLOWS);
    ck_assert_str_eq(loop.view.why, "");
}
END_TEST

static bool is_told(void *arg)
{
    unsigned stops;
    loop_turn();
    return strstr(log_double_stopped(&stops).stopped, arg) != NULL;
}

static bool is_noted(void *arg)
{
    loop_turn();
    return log_double_notes() > *(unsigned *)arg;
}

/* Columns: what the store says; the space that it has; whether the node is noted meanwhile. */
static const struct {
    enum store_status status;
    uint64_t free_bytes;
    bool noted;
} refusals[] = {
    {STORE_FULL, 1, true}, {STORE_CORRUPT, 1, false}, {STORE_IO, 1, false}, {STORE_IO, 0, true}};

START_TEST(a_node_with_a_damaged_store_is_not_noted_and_one_that_is_full_is)
{
    log_double_take(60000);
    log_double_add("one");
    loop.verdict = refusals[_i].status;
    loop_start();
    ck_assert(wait_until(loop_has_why, "the disk is full", LOOP_MS)); /* it always says that */
    unsigned notes = log_double_notes();
    ck_assert_uint_eq(notes, 1);
    log_thread_note(loop.thread, refusals[_i].free_bytes);
    ck_assert_int_eq(wait_until(is_noted, &notes, 3 * SOON_MS), refusals[_i].noted);
    if (!refusals[_i].noted)
        ck_assert(wait_until(is_told, "the disk is full", LOOP_MS));
    notes = log_double_notes();
    loop.verdict = STORE_OK;
    loop_expect_applied("one ");
    ck_assert(wait_until(is_noted, &notes, LOOP_MS));
}
END_TEST

/* ---- two servers with one id ---- */

START_TEST(a_node_whose_id_another_server_has_waits)
{
    log_double_add("one");
    log_double_taken(true);
    loop_start();
    expect_stopped("node first at 127.0.0.1:1 has the same store");
    ck_assert_str_eq(loop.applied, "");
    ck_assert_uint_eq(log_double_calls(CALL_LEAD), 0);
    log_double_taken(false); /* it has ended */
    loop_expect_state(LOG_LEADS);
    ck_assert_str_eq(loop.applied, "one ");
}
END_TEST

START_TEST(a_leader_whose_id_another_server_has_steps_down)
{
    loop_start();
    loop_expect_state(LOG_LEADS);
    log_double_taken(true);
    loop_expect_state(LOG_LOST);
    ck_assert_ptr_nonnull(strstr(loop.view.why, "has the same store"));
    ck_assert_int_le(log_double_head().lease_ms, 0);
}
END_TEST

int main(void)
{
    suite_processes(6);
    Suite *suite = suite_create("log_thread_stopped");
    TCase *tcase = tcase_create("log_thread_stopped");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, loop_setup, loop_teardown);
    tcase_add_loop_test(tcase, a_node_that_does_not_fit_is_not_registered, 0,
                        sizeof(refused) / sizeof(*refused));
    tcase_add_test(tcase, a_node_that_stops_is_noted_no_more);
    tcase_add_loop_test(tcase, a_node_with_a_damaged_store_is_not_noted_and_one_that_is_full_is, 0,
                        sizeof(refusals) / sizeof(*refusals));
    tcase_add_test(tcase, a_node_whose_id_another_server_has_waits);
    tcase_add_test(tcase, a_leader_whose_id_another_server_has_steps_down);
    return suite_run(suite);
}
