/* The counts of limits after a reload, a restart and a crash, and a table that is cut off. */
#include "t/kit/limit_headers.h"

#include <signal.h>

/* ---- reloads, restarts, crashes ---- */

struct wanted {
    const char *key;
    long limit;
};

static bool limit_is(void *arg)
{
    const struct wanted *wanted = arg;
    struct response *r = list(wanted->key);
    bool same = header(r, "X-RateLimit-Limit") != NULL &&
                header_number(r, "X-RateLimit-Limit") == wanted->limit;
    response_free(r);
    return same;
}

START_TEST(a_reload_changes_the_limit_at_once_and_keeps_the_counts)
{
    server_start_with(server, limiters(API("100")));
    for (int i = 0; i < 7; i++)
        expect_status(http_get(server, "/api/v1/reports"), 200);
    server_configure(server, limiters(API("50")));
    server_signal(server, SIGHUP);
    char *other = key_new(server, "main", NULL);
    ck_assert(wait_until(limit_is, &(struct wanted){other, 50}, 10000));
    expect_headers(http_get(server, "/api/v1/reports"), 50, 50 - 8);
    server_configure(server, limiters(API("5")));
    server_signal(server, SIGHUP);
    ck_assert(wait_until(limit_is, &(struct wanted){other, 5}, 10000));
    expect_refused(http_get(server, "/api/v1/reports"), 5);
    server_stop(server);
}
END_TEST

/* a connection of the old generation, which serves it until closed */
START_TEST(workers_that_drain_follow_a_reload)
{
    /* a limit, or one that a reload removes */
    server_start_with(server, _i == 0 ? limiters(API("100")) : "");
    struct raw *raws[8];
    for (size_t i = 0; i < COUNT(raws); i++) {
        raws[i] = raw_open(server);
        raw_get(raws[i], server->key, "/api/v1/reports");
        expect_status(raw_response(raws[i], false, 5000), 200);
    }
    server_configure(server, limiters(API("50")));
    server_signal(server, SIGHUP);
    /* by any process: the statistics are shared */
    ck_assert(wait_until(limit_is, &(struct wanted){NULL, 50}, 10000));
    unsigned drained = 0;
    for (size_t i = 0; i < COUNT(raws); i++) {
        raw_get(raws[i], server->key, "/api/v1/reports");
        struct response *r = raw_response(raws[i], false, 5000);
        if (r->status == 0)
            continue; /* closed while idle */
        ck_assert_int_eq(header_number(r, "X-RateLimit-Limit"), 50);
        drained++;
    }
    ck_assert_uint_gt(drained, 0);
    for (size_t i = 0; i < COUNT(raws); i++)
        raw_close(raws[i]);
    server_stop(server);
}
END_TEST

START_TEST(counts_survive_restarts)
{
    server_start_with(server, limiters(API("10")));
    expect_headers(http_get(server, "/api/v1/reports"), 10, 9);
    server_stop(server);
    server_start(server);
    expect_headers(http_get(server, "/api/v1/reports"), 10, 8);
    server_signal(server, SIGKILL);
    server_wait(server, 5000);
    server_start(server);
    expect_headers(http_get(server, "/api/v1/reports"), 10, 7);
    server_stop(server);
    ck_assert_msg(strstr(server_log(server), "counts in") != NULL, "%s", server_log(server));
    server_configure(server, text("limits: { slots: 4096, limiters: { " API("10") " } }"));
    server_start(server);
    expect_headers(http_get(server, "/api/v1/reports"), 10, 9);
    ck_assert_msg(strstr(server_log(server), "all counts are reset") != NULL, "%s",
                  server_log(server));
    server_stop(server);
}
END_TEST

START_TEST(counts_survive_a_killed_worker)
{
    server->options.workers = 1;
    server_start_with(server, limiters(API("10")));
    expect_headers(http_get(server, "/api/v1/reports"), 10, 9);
    pid_t worker = server_process(server, "assayd: worker 0");
    kill(worker, SIGKILL);
    ck_assert(server_replaces(server, "assayd: worker 0", worker, 10000));
    int64_t deadline = now_ms() + 10000;
    struct response *r;
    do
        r = http(server, .path = "/api/v1/reports", .may_fail = true);
    while (r->status == 0 && now_ms() < deadline);
    expect_headers(r, 10, 8);
}
END_TEST

/* each connection can reach another worker: together they admit ten, so all use the new table */
START_TEST(a_truncated_table_is_recreated)
{
    unsigned allowed = 0;
    server->options.workers = 2;
    server_start_with(server, limiters(API("10")));
    expect_headers(http_get(server, "/api/v1/reports"), 10, 9);
    ck_assert_int_eq(truncate(text("%s/limits-2", server->run), 4096), 0);
    int64_t deadline = now_ms() + 20000;
    struct response *r;
    do {
        r = http(server, .path = "/api/v1/reports", .may_fail = true);
        allowed += r->status == 200;
    } while (r->status != 429 && now_ms() < deadline);
    ck_assert_int_eq(r->status, 429);
    ck_assert_uint_eq(allowed, 10);
    ck_assert_msg(strstr(server_log(server), "cut the table in") != NULL, "%s", server_log(server));
    /* replaced, which is not a crash */
    ck_assert_msg(strstr(server_log(server), "killed by signal 9") == NULL, "%s",
                  server_log(server));
    server_signal(server, SIGTERM);
    /* not server_stop, which takes a worker's exit for a crash */
    ck_assert_int_eq(server_wait(server, 10000), 0);
}
END_TEST

START_TEST(a_wrong_limiter_is_refused_with_its_line_and_the_old_one_kept)
{
    server_start_with(server, limiters(API("10")));
    server_configure(server, limiters("api: { windows: [ { limit: 1, seconds: 60, key: host } ], "
                                      "routes: [ 'GET /nowhere' ] }"));
    struct run run = run_program(assayd_path(), "-c", server->conf, "-t", NULL);
    ck_assert_int_eq(run.status, 1);
    ck_assert_msg(strstr(run.err, "key: \"host\" is not one of ip, ip+agent") &&
                      strstr(run.err, "there is no route \"GET /nowhere\""),
                  "%s", run.err);
    server_signal(server, SIGHUP);
    expect_headers(http_get(server, "/api/v1/reports"), 10, 9);
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *suite = suite_create("limits_reloads");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_reload_changes_the_limit_at_once_and_keeps_the_counts);
    tcase_add_loop_test(tcase, workers_that_drain_follow_a_reload, 0, 2);
    tcase_add_test(tcase, counts_survive_restarts);
    tcase_add_test(tcase, counts_survive_a_killed_worker);
    tcase_add_test(tcase, a_truncated_table_is_recreated);
    tcase_add_test(tcase, a_wrong_limiter_is_refused_with_its_line_and_the_old_one_kept);
    return harness_main(suite);
}
