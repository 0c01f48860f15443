/*
 * What a node of a cluster knows of the log in shared memory, and what a request that waits for the
 * log decides by it. The test sets the clock.
 */
#include "core/async/log_waits.h"
#include "core/conn/connection.h"
#include "t/kit/suite.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- what a request waits for ---- */

enum { ENTRY_HEAD = -1 };

/* The request came at 100. */
static const struct {
    struct cluster_view view;
    int entry;
    enum log_verdict verdict;
} verdicts[] = {
    /* an entry that the store has */
    {{.role = CLUSTER_CONNECTS, .head = 5, .applied = 5}, 5, LOG_REACHED},
    {{.role = CLUSTER_FOLLOWS, .head = 9, .applied = 5, .confirmed_us = 500}, 4, LOG_REACHED},
    /* one that is known to be in the log */
    {{.role = CLUSTER_FOLLOWS, .head = 9, .applied = 5, .confirmed_us = 50}, 6, LOG_NOT_YET},
    {{.role = CLUSTER_CONNECTS, .head = 9, .applied = 5}, 9, LOG_NOT_YET},
    /* one that may have been appended since the head was read */
    {{.role = CLUSTER_FOLLOWS, .head = 9, .applied = 9, .confirmed_us = 50}, 10, LOG_UNCONFIRMED},
    {{.role = CLUSTER_FOLLOWS, .head = 9, .applied = 9, .confirmed_us = 100}, 10, LOG_UNCONFIRMED},
    {{.role = CLUSTER_LEADS, .head = 9, .applied = 9, .confirmed_us = 99}, 10, LOG_UNCONFIRMED},
    {{.role = CLUSTER_CONNECTS, .head = 9, .applied = 9, .confirmed_us = 150}, 10, LOG_UNCONFIRMED},
    /* one that the log does not have */
    {{.role = CLUSTER_FOLLOWS, .head = 9, .applied = 9, .confirmed_us = 101}, 10, LOG_ABOVE_HEAD},
    {{.role = CLUSTER_LEADS, .head = 9, .applied = 9, .confirmed_us = 101}, 10, LOG_ABOVE_HEAD},
    /* all that was in the log at 100 */
    {{.role = CLUSTER_FOLLOWS, .confirmed_us = 50, .current_us = 50}, ENTRY_HEAD, LOG_UNCONFIRMED},
    {{.role = CLUSTER_FOLLOWS, .confirmed_us = 100, .current_us = 100},
     ENTRY_HEAD,
     LOG_UNCONFIRMED},
    {{.role = CLUSTER_FOLLOWS, .head = 9, .applied = 5, .confirmed_us = 150, .current_us = 50},
     ENTRY_HEAD,
     LOG_NOT_YET},
    {{.role = CLUSTER_FOLLOWS, .head = 9, .applied = 9, .confirmed_us = 101, .current_us = 101},
     ENTRY_HEAD,
     LOG_REACHED},
    /* later entries do not matter */
    {{.role = CLUSTER_FOLLOWS, .head = 20, .applied = 12, .confirmed_us = 500, .current_us = 200},
     ENTRY_HEAD,
     LOG_REACHED},
};

START_TEST(a_wait_ends_by_what_was_in_the_log_when_the_request_came)
{
    const uint64_t entry =
        verdicts[_i].entry == ENTRY_HEAD ? LOG_WAIT_HEAD : (uint64_t)verdicts[_i].entry;
    ck_assert_int_eq(log_verdict(&verdicts[_i].view, entry, 100), verdicts[_i].verdict);
}
END_TEST

START_TEST(a_node_that_never_had_all_entries_is_behind_for_ever)
{
    ck_assert_uint_eq(cluster_view_lag_us(&(struct cluster_view){.confirmed_us = 90}, 100),
                      UINT64_MAX);
    ck_assert_uint_eq(
        cluster_view_lag_us(&(struct cluster_view){.confirmed_us = 90, .current_us = 30}, 100), 70);
    ck_assert_uint_eq(cluster_view_lag_us(&(struct cluster_view){.current_us = 120}, 100), 0);
}
END_TEST

/* ---- shared memory ---- */

static struct cluster_score score;

enum { VIEWS = 200000 };

static struct cluster_view view_number(uint64_t i)
{
    return (struct cluster_view){.role = i,
                                 .log = i + 1,
                                 .epoch = i + 2,
                                 .head = i + 3,
                                 .applied = i + 4,
                                 .confirmed_us = i + 5,
                                 .current_us = i + 6,
                                 .nodes = i + 7};
}

static void *publish_all(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= VIEWS; i++) {
        const struct cluster_view view = view_number(i);
        cluster_score_publish(&score, &view);
    }
    return NULL;
}

START_TEST(a_view_is_read_whole_while_others_are_published)
{
    pthread_t writer;
    struct cluster_view seen = view_number(0), want;
    uint64_t turn = 0, last = 0;
    score = (struct cluster_score){0};
    cluster_score_publish(&score, &seen);
    ck_assert_int_eq(pthread_create(&writer, NULL, publish_all, NULL), 0);
    while (seen.role < VIEWS) {
        turn = cluster_score_read(&score, &seen);
        want = view_number(seen.role);
        ck_assert_mem_eq(&seen, &want, sizeof(seen));
        ck_assert_uint_eq(turn, seen.role + 1);
        ck_assert_uint_ge(turn, last);
        last = turn;
    }
    pthread_join(writer, NULL);
    ck_assert_uint_eq(cluster_score_turn(&score), VIEWS + 1);
}
END_TEST

START_TEST(one_process_asks_in_each_interval)
{
    score = (struct cluster_score){0};
    ck_assert(cluster_score_may_ask(&score, 1000, 50));
    ck_assert(!cluster_score_may_ask(&score, 1000, 50));
    ck_assert(!cluster_score_may_ask(&score, 1049, 50));
    ck_assert(cluster_score_may_ask(&score, 1050, 50));
    ck_assert(!cluster_score_may_ask(&score, 1099, 50));
}
END_TEST

/* ---- waits, with a writer that is played ---- */

static struct scoreboard board;
static struct process process = {.scoreboard = &board};
static struct loop loop = {.process = &process};
static struct log_waits *waits;
static struct {
    unsigned frames, confirmations;
    uint64_t turn;
} asked;
static unsigned ended[LOG_UNCONFIRMED + 1];
static int watched;

bool writer_client_connected(const struct writer_client *c)
{
    (void)c;
    return true;
}

void writer_client_ask_position(struct writer_client *c, uint64_t turn, bool confirm)
{
    (void)c;
    asked.frames++;
    asked.confirmations += confirm;
    asked.turn = turn;
}

void conn_watch(struct conn *c)
{
    (void)c;
    watched++;
}

void conn_unwatch(struct conn *c)
{
    (void)c;
    watched--;
}

static void end(struct waiter *w, enum log_verdict verdict)
{
    (void)w;
    ended[verdict]++;
}

static struct conn connection;
static struct waiter waiter[8];

static void setup(void)
{
    const struct cluster_view view = {.role = CLUSTER_FOLLOWS,
                                      .head = 9,
                                      .applied = 9,
                                      .confirmed_us = clock_mono_us(),
                                      .current_us = clock_mono_us()};
    cluster_score_publish(&board.cluster, &view);
    loop.now_ms = 1000;
    for (size_t i = 0; i < COUNT(waiter); i++)
        waiter[i].conn = &connection;
    waits = log_waits_new(&loop);
    ck_assert_ptr_nonnull(waits);
}

static void teardown(void)
{
    log_waits_free(waits);
}

static void add(size_t i, uint64_t entry, uint64_t since_us)
{
    ck_assert(log_waits_add(waits, entry, since_us, 100, &waiter[i], end));
}

static void apply(uint64_t entry, uint64_t confirmed_us)
{
    const struct cluster_view view = {.role = CLUSTER_FOLLOWS,
                                      .head = entry,
                                      .applied = entry,
                                      .confirmed_us = confirmed_us,
                                      .current_us = confirmed_us};
    cluster_score_publish(&board.cluster, &view);
    log_waits_look(waits, NULL);
}

START_TEST(all_waits_share_a_confirmation)
{
    uint64_t now_us = clock_mono_us();
    for (size_t i = 0; i < 4; i++)
        add(i, LOG_WAIT_HEAD, now_us);
    for (int i = 0; i < 5; i++)
        log_waits_look(waits, NULL);
    ck_assert_uint_eq(asked.frames, 1);
    ck_assert_uint_eq(asked.confirmations, 1);
    ck_assert_uint_eq(asked.turn, cluster_score_turn(&board.cluster));
    /* the next confirmation is a little later than one that was asked for in this moment */
    const uint64_t asked_us = clock_mono_us();
    atomic_store(&board.cluster.asked_us, asked_us);
    add(4, LOG_WAIT_HEAD, asked_us + 1);
    log_waits_look(waits, NULL);
    ck_assert_uint_eq(asked.confirmations, 1);
    ck_assert_int_eq(log_waits_wake_ms(waits, 250), LOG_ASK_US / 1000);
    apply(9, now_us + 1);
    ck_assert_uint_eq(ended[LOG_REACHED], 4);
    ck_assert_uint_eq(log_waits_count(waits), 1);
    ck_assert_int_eq(watched, 1);
}
END_TEST

START_TEST(a_wait_for_an_entry_ends_when_it_is_applied)
{
    add(0, 11, 100);
    add(1, 12, 100);
    apply(10, 50);
    ck_assert_uint_eq(asked.frames, 1);
    apply(11, 50);
    ck_assert_uint_eq(ended[LOG_REACHED], 1);
    ck_assert_uint_eq(asked.frames, 2);
    ck_assert_uint_eq(asked.confirmations, 1);
    apply(11, 200);
    ck_assert_uint_eq(ended[LOG_ABOVE_HEAD], 1);
    ck_assert_uint_eq(log_waits_count(waits), 0);
    ck_assert_int_eq(watched, 0);
}
END_TEST

START_TEST(a_wait_ends_with_its_time_its_client_or_its_request)
{
    for (size_t i = 0; i < 3; i++)
        add(i, 99, clock_mono_us());
    waiter_cancel(&waiter[0]);
    log_waits_look(waits, NULL);
    ck_assert_uint_eq(log_waits_count(waits), 2);
    ck_assert_uint_eq(ended[LOG_UNCONFIRMED] + ended[LOG_NOT_YET], 0);
    loop.now_ms += 99;
    log_waits_look(waits, NULL);
    ck_assert_uint_eq(log_waits_count(waits), 2);
    loop.now_ms++;
    log_waits_look(waits, NULL);
    ck_assert_uint_eq(log_waits_count(waits), 0);
    ck_assert_uint_eq(ended[LOG_UNCONFIRMED] + ended[LOG_ABOVE_HEAD], 2);
    add(3, LOG_WAIT_HEAD, clock_mono_us());
    connection.hung_up = true;
    log_waits_look(waits, NULL);
    ck_assert_uint_eq(log_waits_count(waits), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log_waits");
    TCase *tcase = tcase_create("log_waits");
    tcase_add_loop_test(tcase, a_wait_ends_by_what_was_in_the_log_when_the_request_came, 0,
                        COUNT(verdicts));
    tcase_add_test(tcase, a_node_that_never_had_all_entries_is_behind_for_ever);
    tcase_add_test(tcase, a_view_is_read_whole_while_others_are_published);
    tcase_add_test(tcase, one_process_asks_in_each_interval);
    suite_add_tcase(suite, tcase);
    TCase *looks = tcase_create("looks");
    tcase_add_checked_fixture(looks, setup, teardown);
    tcase_add_test(looks, all_waits_share_a_confirmation);
    tcase_add_test(looks, a_wait_for_an_entry_ends_when_it_is_applied);
    tcase_add_test(looks, a_wait_ends_with_its_time_its_client_or_its_request);
    suite_add_tcase(suite, looks);
    return suite_run(suite);
}
