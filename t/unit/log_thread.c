/* The log thread of the writer, with a log in memory: following, leading, appending, ending. */
#include "t/kit/log_double.h"
#include "t/kit/suite.h"
#include "t/kit/wait.h"

#include "core/writer/log_thread.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>

enum { MS = 10000, END_MS = 2000 };

static struct log_thread *thread;
static struct log_view view;
static char applied[4096]; /* rows that the loop has applied, each with a space after it */
static enum store_status verdict;

static void setup(void)
{
    log_double_new();
}

static void teardown(void)
{
    if (thread != NULL)
        ck_assert(log_thread_end(thread));
    log_thread_free(thread);
    log_double_free();
}

static void start(void)
{
    const struct cluster_log_node node = {.id = {1}, .name = "own"};
    thread = log_thread_new(log_double(), &node, NULL, true);
    ck_assert_ptr_nonnull(thread);
}

/* ---- the loop ---- */

static void apply(const struct log_batch *b)
{
    for (size_t i = 0; i < b->count && verdict == STORE_OK; i++) {
        const struct str rows = log_batch_rows(b, i);
        size_t n = strlen(applied);
        snprintf(applied + n, sizeof(applied) - n, "%.*s ", (int)rows.n, rows.p);
    }
    log_thread_applied(thread, verdict, "the disk is full");
}

static void turn(void)
{
    struct pollfd fd = {log_thread_fd(thread), POLLIN, 0};
    if (poll(&fd, 1, 5) <= 0)
        return;
    log_thread_look(thread, &view);
    const struct log_batch *b = log_thread_take(thread);
    if (b != NULL)
        apply(b);
}

static bool state_is(void *arg)
{
    turn();
    return view.state == *(enum log_state *)arg;
}

static void expect_state(enum log_state state)
{
    ck_assert_msg(wait_until(state_is, &state, MS), "state %d, %s", view.state, view.why);
}

static bool has_why(void *arg)
{
    turn();
    return strstr(view.why, arg) != NULL;
}

static bool has_no_why(void *arg)
{
    (void)arg;
    turn();
    return view.why[0] == '\0';
}

static bool has_applied(void *arg)
{
    turn();
    return strcmp(applied, arg) == 0;
}

static void expect_applied(char *rows)
{
    ck_assert_msg(wait_until(has_applied, rows, MS), "applied: %s", applied);
}

static bool is_held(void *arg)
{
    return log_double_is_held(*(enum log_double_call *)arg);
}

static void expect_held(enum log_double_call call)
{
    ck_assert(wait_until(is_held, &call, MS));
}

static bool is_wanted(void *arg)
{
    return arg == NULL || (*(int *)arg)-- > 0;
}

static bool append(const char *rows)
{
    struct store_position after;
    const uint64_t before = log_double_head().sequence;
    bool good =
        log_thread_append(thread, (struct str){rows, strlen(rows)}, 1, is_wanted, NULL, &after);
    ck_assert(!good || after.sequence == before + 1);
    return good;
}

/* ---- following ---- */

START_TEST(a_follower_applies_entries_in_order)
{
    log_double_take(60000);
    for (int i = 0; i < 7; i++) {
        char rows[8];
        snprintf(rows, sizeof(rows), "%d", i);
        log_double_add(rows);
    }
    start();
    expect_applied("0 1 2 3 4 5 6 ");
    expect_state(LOG_FOLLOWS);
    log_double_add("7");
    expect_applied("0 1 2 3 4 5 6 7 ");
    log_thread_look(thread, &view);
    ck_assert_uint_eq(view.position.sequence, 8);
    ck_assert_int_eq(view.position.log[0], 1);
    ck_assert_str_eq(view.why, "");
}
END_TEST

START_TEST(what_the_loop_refuses_is_offered_again)
{
    log_double_take(60000);
    for (int i = 0; i < 4; i++)
        log_double_add("x");
    verdict = STORE_FULL;
    start();
    ck_assert(wait_until(has_why, "the disk is full", MS));
    log_thread_look(thread, &view);
    ck_assert_uint_eq(view.position.sequence, 0);
    verdict = STORE_OK;
    expect_applied("x x x x ");
    ck_assert(wait_until(has_no_why, NULL, MS));
}
END_TEST

START_TEST(a_node_leads_only_at_the_head)
{
    log_double_add("one");
    log_double_add("two");
    verdict = STORE_FULL;
    start();
    ck_assert(wait_until(has_why, "the disk is full", MS));
    ck_assert_uint_eq(log_double_calls(CALL_LEAD), 0);
    verdict = STORE_OK;
    expect_state(LOG_LEADS);
    ck_assert_str_eq(applied, "one two ");
    ck_assert_uint_eq(view.epoch, 1);
    ck_assert_uint_eq(view.position.sequence, 2);
}
END_TEST

/* The last leader appends between the look at the head and the lead. */
START_TEST(an_entry_before_the_lead_is_applied_first)
{
    log_double_hold(CALL_LEAD, true);
    start();
    expect_held(CALL_LEAD);
    log_double_add("late");
    log_double_hold(CALL_LEAD, false);
    expect_state(LOG_LEADS);
    ck_assert_str_eq(applied, "late ");
    ck_assert_uint_eq(view.epoch, 2);
    ck_assert(append("next"));
}
END_TEST

START_TEST(a_store_that_does_not_fit_applies_nothing)
{
    struct store_position other = {.log = {2}, .sequence = 5};
    const struct cluster_log_node node = {.id = {1}};
    log_double_add("one");
    thread = log_thread_new(log_double(), &node, &other, false);
    ck_assert(wait_until(has_why, "the store is of another log", MS));
    ck_assert_int_eq(view.state, LOG_CONNECTS);
    ck_assert_uint_eq(view.confirmed_ms, 0);
    ck_assert_uint_eq(log_double_calls(CALL_READ) + log_double_calls(CALL_LEAD), 0);
}
END_TEST

START_TEST(a_trimmed_log_is_said)
{
    log_double_add("one");
    log_double_add("two");
    log_double_trim((uint64_t)_i);
    start();
    ck_assert(wait_until(has_why, "trimmed", MS));
    ck_assert_int_eq(view.state, LOG_CONNECTS);
    ck_assert_str_eq(applied, "");
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
    start();
    ck_assert(wait_until(has_why, aways[_i].why, MS));
    ck_assert_int_eq(view.state, LOG_CONNECTS);
    expect_state(LOG_FOLLOWS);
    ck_assert_int_ge(now_ms() - began, 4 * 250);
    ck_assert_str_eq(view.why, "");
    ck_assert_uint_gt(view.confirmed_ms, 0);
}
END_TEST

START_TEST(an_idle_node_asks_rarely)
{
    if (_i == 0)
        log_double_take(60000);
    start();
    expect_state(_i == 0 ? LOG_FOLLOWS : LOG_LEADS);
    const unsigned before = log_double_calls(CALL_POSITION) + log_double_calls(CALL_LEAD);
    for (int64_t until = now_ms() + 2500; now_ms() < until;)
        turn();
    const unsigned calls = log_double_calls(CALL_POSITION) + log_double_calls(CALL_LEAD) - before;
    ck_assert_uint_ge(calls, 1);
    ck_assert_uint_le(calls, 5);
}
END_TEST

START_TEST(a_node_is_noted_with_its_position)
{
    log_double_take(60000);
    log_double_add("one");
    start();
    log_thread_note(thread, 4711);
    expect_applied("one ");
    for (int64_t until = now_ms() + MS;
         log_double_node().sequence != 1 || log_double_node().free_bytes != 4711;) {
        ck_assert_int_lt(now_ms(), until);
        turn();
    }
    ck_assert_str_eq(log_double_node().name, "own");
}
END_TEST

START_TEST(a_wake_shortens_the_wait)
{
    log_double_take(60000);
    start();
    expect_state(LOG_FOLLOWS);
    for (int i = 0; i < 5; i++) {
        const unsigned before = log_double_calls(CALL_POSITION);
        const int64_t began = now_ms();
        log_thread_wake(thread);
        while (log_double_calls(CALL_POSITION) == before)
            ck_assert_int_lt(now_ms() - began, 900);
    }
}
END_TEST

/* ---- leading ---- */

START_TEST(a_leader_appends)
{
    start();
    expect_state(LOG_LEADS);
    for (int i = 0; i < 100; i++)
        ck_assert(append("rows"));
    ck_assert_uint_eq(log_double_head().sequence, 100);
    log_thread_look(thread, &view);
    ck_assert_uint_eq(view.position.sequence, 100);
    ck_assert_mem_eq(view.position.chain, log_double_head().chain, STORE_CHAIN_BYTES);
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
    start();
    expect_state(LOG_LEADS);
    ck_assert(append("first"));
    log_double_fail(CALL_APPEND, failures[_i].status, 1);
    if (failures[_i].appends)
        log_double_append_too();
    if (failures[_i].stolen) {
        log_double_hold(CALL_LEAD, true);
        ck_assert_int_eq(pthread_create(&thief, NULL, steal, NULL), 0);
    }
    ck_assert_int_eq(append("second"), failures[_i].good);
    if (failures[_i].stolen)
        pthread_join(thief, NULL);
    ck_assert_uint_eq(log_double_head().sequence, 1 + (failures[_i].good || failures[_i].appends));
    expect_state(failures[_i].good ? LOG_LEADS : LOG_LOST);
    ck_assert_int_eq(append("third"), failures[_i].good);
    log_thread_look(thread, &view);
    if (failures[_i].good)
        ck_assert_str_eq(view.why, "");
}
END_TEST

START_TEST(an_append_waits_for_a_log_that_is_away)
{
    start();
    expect_state(LOG_LEADS);
    log_double_fail(CALL_APPEND, CLUSTER_LOG_AWAY, 1);
    log_double_fail(CALL_LEAD, CLUSTER_LOG_AWAY, 4);
    const int64_t began = now_ms();
    ck_assert(append("patient"));
    ck_assert_int_ge(now_ms() - began, 4 * 250);
    ck_assert_uint_eq(log_double_head().sequence, 1);
}
END_TEST

/* A renewal fails before the append: it is repeated at leisure too. */
START_TEST(an_append_during_failed_renewals_makes_no_haste)
{
    start();
    expect_state(LOG_LEADS);
    log_double_fail(CALL_LEAD, CLUSTER_LOG_AWAY, 4);
    ck_assert(wait_until(has_why, "the log cannot be reached", MS));
    const int64_t began = now_ms();
    ck_assert(append("patient"));
    ck_assert_int_ge(now_ms() - began, 2 * 250);
    ck_assert(wait_until(has_no_why, NULL, MS));
}
END_TEST

START_TEST(the_loop_gives_up_an_append_by_its_tick)
{
    int ticks = 3;
    struct store_position after;
    start();
    expect_state(LOG_LEADS);
    log_double_hold(CALL_APPEND, true);
    ck_assert(!log_thread_append(thread, STR("given up"), 1, is_wanted, &ticks, &after));
    ck_assert_uint_eq(after.sequence, 0);
    ck_assert_int_lt(ticks, 0);
    log_double_hold(CALL_APPEND, false);
}
END_TEST

START_TEST(a_stolen_lead_is_lost)
{
    start();
    expect_state(LOG_LEADS);
    log_double_take(60000);
    expect_state(LOG_LOST);
    ck_assert_str_eq(view.why, "another node leads");
    ck_assert(!append("late"));
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
    start();
    expect_state(LOG_LEADS);
    log_double_hold(CALL_LEAD, true);
    expect_held(CALL_LEAD);
    ck_assert_int_eq(pthread_create(&other, NULL, release, NULL), 0);
    ck_assert(!append("late"));
    pthread_join(other, NULL);
    expect_state(LOG_LOST);
    ck_assert_uint_eq(log_double_calls(CALL_APPEND), 0);
}
END_TEST

START_TEST(an_entry_that_another_node_appended_ends_the_lead)
{
    start();
    expect_state(LOG_LEADS);
    log_double_add("of nobody knows whom");
    expect_state(LOG_LOST);
}
END_TEST

/* ---- ending ---- */

static void expect_end(bool good)
{
    const int64_t began = now_ms();
    ck_assert_int_eq(log_thread_end(thread), good);
    ck_assert_int_le(now_ms() - began, END_MS + 500);
    if (good) {
        log_thread_free(thread);
        thread = NULL;
    }
}

static void end_away(void)
{
    log_double_fail(CALL_POSITION, CLUSTER_LOG_AWAY, 1000);
    start();
    ck_assert(wait_until(has_why, "the log cannot be reached", MS));
}

static void end_follower(void)
{
    log_double_take(60000);
    start();
    expect_state(LOG_FOLLOWS);
}

static void end_offering(void)
{
    log_double_take(60000);
    log_double_add("offered");
    start();
    while (log_double_calls(CALL_READ) == 0)
        usleep(1000);
}

static void end_refused(void)
{
    verdict = STORE_FULL;
    log_double_take(60000);
    log_double_add("refused");
    start();
    ck_assert(wait_until(has_why, "the disk is full", MS));
}

static void end_unfit(void)
{
    log_double_add("one");
    log_double_trim(2);
    start();
    ck_assert(wait_until(has_why, "trimmed", MS));
}

static void end_lost(void)
{
    start();
    expect_state(LOG_LEADS);
    log_double_take(60000);
    expect_state(LOG_LOST);
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
    start();
    expect_state(LOG_LEADS);
    ck_assert_int_gt(log_double_head().lease_ms, 5000);
    expect_end(true);
    ck_assert_int_le(log_double_head().lease_ms, 0);
}
END_TEST

START_TEST(a_call_that_hangs_does_not_delay_the_end)
{
    start();
    expect_state(LOG_LEADS);
    log_double_hold(CALL_LEAD, true);
    expect_held(CALL_LEAD);
    expect_end(false);
    log_double_hold(CALL_LEAD, false);
}
END_TEST

/* The append of an unknown outcome: the loop has given it up, and the thread asks no more. */
START_TEST(a_thread_ends_while_an_append_is_unknown)
{
    int ticks = 2;
    struct store_position after;
    start();
    expect_state(LOG_LEADS);
    log_double_fail(CALL_APPEND, CLUSTER_LOG_UNKNOWN, 1000);
    log_double_fail(CALL_LEAD, CLUSTER_LOG_AWAY, 1000);
    ck_assert(!log_thread_append(thread, STR("unknown"), 1, is_wanted, &ticks, &after));
    expect_end(true);
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
    tcase_add_loop_test(tcase, an_idle_node_asks_rarely, 0, 2);
    tcase_add_test(tcase, a_node_is_noted_with_its_position);
    tcase_add_test(tcase, a_wake_shortens_the_wait);
    tcase_add_test(tcase, a_leader_appends);
    tcase_add_loop_test(tcase, an_append_that_fails_is_resolved, 0,
                        sizeof(failures) / sizeof(*failures));
    tcase_add_test(tcase, an_append_waits_for_a_log_that_is_away);
    tcase_add_test(tcase, an_append_during_failed_renewals_makes_no_haste);
    tcase_add_test(tcase, the_loop_gives_up_an_append_by_its_tick);
    tcase_add_test(tcase, a_stolen_lead_is_lost);
    tcase_add_test(tcase, an_append_ends_when_a_renewal_finds_the_lead_lost);
    tcase_add_test(tcase, an_entry_that_another_node_appended_ends_the_lead);
    tcase_add_loop_test(tcase, a_thread_ends_at_once_in_each_state, 0,
                        sizeof(states) / sizeof(*states));
    tcase_add_test(tcase, a_leader_that_ends_leaves_the_lead);
    tcase_add_test(tcase, a_call_that_hangs_does_not_delay_the_end);
    tcase_add_test(tcase, a_thread_ends_while_an_append_is_unknown);
}

int main(void)
{
    suite_processes(6);
    Suite *suite = suite_create("log_thread");
    TCase *tcase = tcase_create("log_thread");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 30);
    tcase_add_checked_fixture(tcase, setup, teardown);
    add_tests(tcase);
    return suite_run(suite);
}
