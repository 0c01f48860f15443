/*
 * Limits with limits.engine: redis: three nodes share one Redis, which answers, is slow, is away or
 * cannot be used.
 */
#include "t/kit/limited_nodes.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- while Redis answers ---- */

START_TEST(three_nodes_admit_exactly_the_limit_in_each_window)
{
    nodes_start(nodes_at_redis(PATIENT, API(40, 1, "")));
    callers_start(nodes, NODES, false);
    callers_wait(6);
    struct tally all = callers_end();
    expect_admitted(&all, 40, 40);
    ck_assert_int_eq(nodes_fallbacks(), 0);
    ck_assert_uint_eq(all.without_headers, 0);
    ck_assert_uint_eq(all.carried, 0);
    nodes_stop();
}
END_TEST

START_TEST(a_refused_request_is_charged_to_no_window)
{
    nodes_start(nodes_at_redis(PATIENT, "api: { windows: [ { limit: 7, seconds: 1, key: api_key }, "
                                        "{ limit: 100000, seconds: 2678400, key: api_key } ] }"));
    callers_start(nodes, NODES, false);
    callers_wait(4);
    struct tally all = callers_end();
    unsigned admitted = 0, refused = 0;
    for (size_t i = 0; i < all.count; i++) {
        admitted += all.windows[i].admitted;
        refused += all.windows[i].refused;
    }
    expect_admitted(&all, 7, 7);
    ck_assert_uint_gt(refused, admitted);
    struct json_object *shown = assay_list(nodes[1], "limits", "show", "api", "1", NULL);
    struct json_object *month = record_find(shown, "seconds", "2678400");
    ck_assert_ptr_nonnull(month);
    ck_assert_str_eq(record_text(month, "used"), text("%u", admitted));
    nodes_stop();
}
END_TEST

/* By name: localhost may have an address on which Redis does not listen. */
START_TEST(the_command_shows_and_resets_counts_in_redis)
{
    nodes_start(nodes_yaml(text("address: \"localhost:%u\", " PATIENT, redis->port),
                           API(30, 2678400, ", fallback: refuse")));
    for (size_t i = 0; i < NODES; i++)
        expect_status(nodes_ask(i), 200);
    struct json_object *shown = assay_list(nodes[2], "limits", "show", "api", "1", NULL);
    ck_assert_str_eq(record_text(record_find(shown, "key", "1"), "used"), "3");
    struct json_object *row =
        record_find(assay_list(nodes[2], "limits", "list", NULL), "limiter", "api");
    ck_assert_str_eq(record_text(row, "fallback"), "refuse");
    ck_assert_str_eq(record_text(row, "admitted"), "1");
    ck_assert_str_eq(record_text(row, "by_fallback"), "0");
    ck_assert_ptr_nonnull(
        strstr(assay_ok(nodes[2], "limits", "list", NULL), "It answers 2 of 2 workers."));
    assay_ok(nodes[0], "limits", "reset", "api", "1", NULL);
    struct response *r = nodes_ask(1);
    expect(r, header_number(r, "X-RateLimit-Remaining") == 29);
    nodes_stop();
}
END_TEST

static pid_t let_redis_sleep(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        redis_says(redis, "DEBUG", "SLEEP", "0.5", NULL);
        _exit(0);
    }
    return pid;
}

/* Returns when a decision was given up; Redis sleeps again if the machine was too busy. */
static void let_a_decision_time_out(void)
{
    pid_t sleeper = let_redis_sleep();
    for (long before = nodes_fallbacks(); nodes_fallbacks() == before;) {
        nodes_ask(0);
        if (waitpid(sleeper, NULL, WNOHANG) == sleeper)
            sleeper = let_redis_sleep();
    }
    waitpid(sleeper, NULL, 0);
    ck_assert(wait_until(nodes_connected, NULL, 20000));
}

/* With the late answer of an earlier decision, a request would see an earlier count. */
START_TEST(a_late_answer_is_dropped)
{
    nodes_start(nodes_at_redis("timeout: 100ms", API(1000, 2678400, "")));
    let_a_decision_time_out();
    for (int tries = 0;; tries++) { /* again if the machine was too busy */
        ck_assert(wait_until(nodes_connected, NULL, 20000));
        long before = nodes_fallbacks(),
             first = header_number(nodes_ask(0), "X-RateLimit-Remaining");
        bool in_order = true;
        for (long i = 1; i < 12; i++)
            in_order = header_number(nodes_ask(i % NODES), "X-RateLimit-Remaining") == first - i &&
                       in_order;
        if (nodes_fallbacks() == before) {
            ck_assert(in_order);
            break;
        }
        ck_assert_int_lt(tries, 20);
    }
    ck_assert(!nodes_log("its answer is not that of the script"));
    nodes_stop();
}
END_TEST

/* ---- while Redis is away ---- */

/* Stop Redis for some windows under load. */
static struct tally storm_of_a_stop(void)
{
    callers_start(nodes, NODES, false);
    callers_wait(2);
    redis_signal(redis, SIGSTOP);
    ck_assert(wait_until(nodes_fell_back, &(long){100}, 30000));
    callers_wait(5);
    redis_signal(redis, SIGCONT);
    ck_assert(wait_until(nodes_connected, NULL, 30000));
    callers_wait(8);
    return callers_end();
}

START_TEST(with_the_fallback_local_at_most_one_more_limit_is_admitted)
{
    nodes_start(nodes_at_redis("", API(30, 1, "")));
    struct tally all = storm_of_a_stop();
    expect_admitted(&all, 30 - NODES * 2, 60);
    ck_assert_uint_eq(all.unavailable, 0);
    ck_assert(nodes_log("Redis is not used"));
    ck_assert(nodes_log("is used again"));
    nodes_stop();
}
END_TEST

START_TEST(with_the_fallback_refuse_nothing_is_admitted)
{
    nodes_start(nodes_at_redis("", API(30, 1, ", fallback: refuse")));
    redis_signal(redis, SIGSTOP);
    for (size_t i = 0; i < 4 * NODES; i++) {
        struct response *r = nodes_ask(i % NODES);
        expect_error(r, 503, "service_unavailable|unavailable");
        expect(r, header_number(r, "Retry-After") == 1);
        expect(r, header(r, "X-RateLimit-Limit") == NULL);
    }
    struct response *r = http(nodes[0], .path = "/api/v1/reports", .key = "");
    expect(r, r->status == 503); /* instead of 401: keys cannot be guessed meanwhile */
    redis_signal(redis, SIGCONT);
    ck_assert(wait_until(nodes_connected, NULL, 30000));
    nodes_stop();
}
END_TEST

START_TEST(with_the_fallback_admit_all_is_admitted)
{
    nodes_start(nodes_at_redis("", API(1, 2678400, ", fallback: admit")));
    redis_signal(redis, SIGSTOP);
    for (size_t i = 0; i < 4 * NODES; i++) {
        struct response *r = nodes_ask(i % NODES);
        expect_status(r, 200);
        expect(r, header(r, "X-RateLimit-Limit") == NULL && header(r, "Retry-After") == NULL);
    }
    redis_signal(redis, SIGCONT);
    ck_assert(wait_until(nodes_connected, NULL, 30000));
    nodes_stop();
}
END_TEST

/* Redis without a data file is empty after its restart. */
START_TEST(after_a_restart_of_redis_at_most_one_more_limit_is_admitted)
{
    nodes_start(nodes_at_redis(PATIENT, API(30, 1, "")));
    callers_start(nodes, NODES, false);
    callers_wait(2);
    redis_kill(redis);
    ck_assert(wait_until(nodes_fell_back, &(long){100}, 30000));
    redis_start(redis);
    ck_assert(wait_until(nodes_connected, NULL, 30000));
    callers_wait(callers_windows() + 3);
    struct tally all = callers_end();
    expect_admitted(&all, 30, 90); /* before, by the fallback, after */
    long calm = nodes_fallbacks();
    callers_start(nodes, NODES, false);
    callers_wait(4);
    all = callers_end();
    ck_assert_int_eq(nodes_fallbacks(), calm);
    expect_admitted(&all, 30, 30);
    nodes_stop();
}
END_TEST

/* ---- a Redis that cannot be used ---- */

static bool log_has(void *words)
{
    return strstr(server_log(nodes[1]), words) != NULL;
}

/* Start a node, which refuses this Redis: its log has these words, and its fallback decides. */
static void expect_refused(const char *lines, const char *words)
{
    server_start_with(nodes[1], lines);
    ck_assert_msg(wait_until(log_has, (void *)(uintptr_t)words, 20000), "%s", server_log(nodes[1]));
    struct response *r = nodes_ask(1);
    expect_status(r, 200);
    expect(r, header_number(r, "X-RateLimit-Limit") == 30 / NODES);
    server_stop(nodes[1]);
}

START_TEST(a_wrong_password_is_an_error_in_the_log)
{
    redis_stop(redis);
    redis = redis_primary("requirepass a-long-password\n");
    char *path = text("%s/password", nodes[1]->dir);
    FILE *file = fopen(path, "w");
    ck_assert(file != NULL && fputs("a-wrong-password\n", file) > 0 && fclose(file) == 0);
    ck_assert_int_eq(chmod(path, 0600), 0);
    char *lines = nodes_at_redis(text("password_file: %s", path), API(30, 2678400, ""));
    expect_refused(lines, "AUTH: WRONGPASS");
    expect_refused(nodes_at_redis("", API(30, 2678400, "")), "ROLE: NOAUTH");
    file = fopen(path, "w");
    ck_assert(file != NULL && fputs("a-long-password\n", file) > 0 && fclose(file) == 0);
    server_start_with(nodes[1], lines);
    expect(nodes_ask(1), header_number(nodes_ask(1), "X-RateLimit-Limit") == 30);
    server_stop(nodes[1]);
}
END_TEST

START_TEST(another_key_file_is_an_error_in_the_log)
{
    char *lines = nodes_at_redis(PATIENT, API(30, 2678400, ""));
    server_start_with(nodes[0], lines);
    expect(nodes_ask(0), header_number(nodes_ask(0), "X-RateLimit-Limit") == 30);
    key_file = redis_key_file(nodes[1]->dir);
    lines = nodes_at_redis(PATIENT, API(30, 2678400, ""));
    expect_refused(lines, "another limits.redis.key_file");
    redis_says(redis, "DEL", "assay:key-file", NULL);
    server_start_with(nodes[1], lines);
    expect(nodes_ask(1), header_number(nodes_ask(1), "X-RateLimit-Limit") == 30);
    server_stop(nodes[1]);
    server_stop(nodes[0]);
}
END_TEST

START_TEST(a_redis_that_evicts_is_an_error_in_the_log)
{
    char *lines = nodes_at_redis("", API(30, 2678400, ""));
    redis_says(redis, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru", NULL);
    expect_refused(lines, "maxmemory-policy is allkeys-lru, which loses counts; set it to "
                          "noeviction");
    redis_says(redis, "CONFIG", "SET", "maxmemory-policy", "noeviction", NULL);
    server_start_with(nodes[1], lines);
    expect(nodes_ask(1), header_number(nodes_ask(1), "X-RateLimit-Limit") == 30);
    server_stop(nodes[1]);
}
END_TEST

START_TEST(a_full_redis_is_an_error_in_the_log)
{
    redis_says(redis, "CONFIG", "SET", "maxmemory", "1", NULL);
    expect_refused(nodes_at_redis("", API(30, 2678400, "")), "OOM");
}
END_TEST

START_TEST(a_replica_is_an_error_in_the_log)
{
    struct redis *primary = redis;
    redis = redis_replica(primary);
    expect_refused(nodes_at_redis("", API(30, 2678400, "")), "it is a replica");
    redis_stop(primary);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_limits");
    TCase *answers = harness_case(suite, "while Redis answers");
    TCase *away = harness_case(suite, "while Redis is away");
    TCase *unusable = harness_case(suite, "a Redis that cannot be used");
    if (!redis_installed()) {
        fputs("redis-server, redis-sentinel or redis-cli is missing\n", stderr);
        return SUITE_SKIPPED;
    }
    tcase_set_timeout(answers, 180);
    tcase_add_checked_fixture(answers, nodes_setup, nodes_teardown);
    tcase_add_test(answers, three_nodes_admit_exactly_the_limit_in_each_window);
    tcase_add_test(answers, a_refused_request_is_charged_to_no_window);
    tcase_add_test(answers, the_command_shows_and_resets_counts_in_redis);
    tcase_add_test(answers, a_late_answer_is_dropped);
    tcase_set_timeout(away, 180);
    tcase_add_checked_fixture(away, nodes_setup, nodes_teardown);
    tcase_add_test(away, with_the_fallback_local_at_most_one_more_limit_is_admitted);
    tcase_add_test(away, with_the_fallback_refuse_nothing_is_admitted);
    tcase_add_test(away, with_the_fallback_admit_all_is_admitted);
    tcase_add_test(away, after_a_restart_of_redis_at_most_one_more_limit_is_admitted);
    tcase_set_timeout(unusable, 180);
    tcase_add_checked_fixture(unusable, nodes_setup, nodes_teardown);
    tcase_add_test(unusable, a_wrong_password_is_an_error_in_the_log);
    tcase_add_test(unusable, another_key_file_is_an_error_in_the_log);
    tcase_add_test(unusable, a_redis_that_evicts_is_an_error_in_the_log);
    tcase_add_test(unusable, a_full_redis_is_an_error_in_the_log);
    tcase_add_test(unusable, a_replica_is_an_error_in_the_log);
    return harness_main(suite);
}
