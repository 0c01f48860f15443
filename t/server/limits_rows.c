/*
 * The built-in limiters with their default limits, on a route table of this test
 * (t/kit/limited_routes.c).
 */
#include "t/kit/harness.h"

#include <signal.h>
#include <time.h>

static struct server *server;

static void setup(void)
{
    ck_assert_int_eq(setenv("ASSAYD", "./t/kit/limited_assayd", 1), 0);
    server = server_new(&(struct server_options){.no_key = true});
}

static void teardown(void)
{
    server_discard(server);
}

static bool early_in_a_minute(void *arg)
{
    (void)arg;
    return time(NULL) % 60 < 30;
}

/* Columns: method, path, requests a minute. */
static const struct {
    const char *method, *path;
    long limit;
} rows[] = {
    {"POST", "/api/v1/widget/init", 1000},
    {"POST", "/api/v1/widget/messages", 300},
    {"POST", "/api/v1/widget/events", 300},
    {"GET", "/api/v1/widget/conversation/messages", 300},
    {"POST", "/api/v1/widget/leads", 30},
    {"POST", "/v1/wp/posts/sync", 60},
    {"POST", "/api/v1/wp/posts/sync", 60},
    {"GET", "/v1/wp/anything/else", 60},
    {"POST", "/api/v1/widget/typing", 600},
    {"POST", "/api/v1/widget/satisfaction", 60},
    {"POST", "/api/v1/widget/coupon/apply", 120},
    {"POST", "/reports/7/password", 10},
};

START_TEST(a_minute_admits_just_the_built_in_limit)
{
    struct client *client = client_new(server);
    server_start(server);
    ck_assert(wait_until(early_in_a_minute, NULL, 40000));
    for (long i = 0; i < rows[_i].limit; i++) {
        struct response *r =
            http_kept(client, .method = rows[_i].method, .path = rows[_i].path, .key = "");
        ck_assert_msg(r->status != 429 && header_number(r, "X-RateLimit-Limit") == rows[_i].limit &&
                          header_number(r, "X-RateLimit-Remaining") == rows[_i].limit - 1 - i,
                      "request %ld\n%s", i, response_text(r));
        expect(r,
               header_number(r, "X-RateLimit-Reset") % 60 == 0 && header(r, "Retry-After") == NULL);
        response_free(r);
    }
    struct response *r =
        http_kept(client, .method = rows[_i].method, .path = rows[_i].path, .key = "");
    expect_error(r, 429, "rate_limited");
    expect(r, header_number(r, "X-RateLimit-Remaining") == 0 &&
                  header_number(r, "Retry-After") <= 60 && header_number(r, "Retry-After") >= 1);
    client_free(client);
    server_stop(server);
}
END_TEST

START_TEST(both_paths_of_bulk_sync_share_one_budget)
{
    server_start(server);
    ck_assert(wait_until(early_in_a_minute, NULL, 40000));
    static const char *const paths[] = {"/v1/wp/posts/sync", "/api/v1/wp/posts/sync", "/v1/wp/none",
                                        "/api/v1/wp/none"};
    for (long i = 0; i < 8; i++)
        ck_assert_int_eq(
            header_number(http(server, .method = "POST", .path = paths[i % 4], .key = ""),
                          "X-RateLimit-Remaining"),
            59 - i);
    server_stop(server);
}
END_TEST

START_TEST(conversation_operations_share_the_sessions_budget)
{
    server_start(server);
    ck_assert(wait_until(early_in_a_minute, NULL, 40000));
    static const char *const paths[] = {"messages", "messages/stream", "events",
                                        "conversation/close"};
    for (long i = 0; i < 8; i++)
        ck_assert_int_eq(
            header_number(http(server, .method = "POST",
                               .path = text("/api/v1/widget/%s", paths[i % 4]), .key = ""),
                          "X-RateLimit-Remaining"),
            299 - i);
    ck_assert_int_eq(
        header_number(http(server, .method = "POST", .path = "/api/v1/widget/leads", .key = ""),
                      "X-RateLimit-Remaining"),
        29);
    server_stop(server);
}
END_TEST

static const int statuses[] = {200, 201, 202, 204, 304, 400, 403,
                               404, 409, 412, 422, 500, 503, 507};

START_TEST(every_handler_answer_has_the_headers)
{
    server_start(server);
    struct response *r =
        http(server, .method = "POST", .path = text("/api/v1/widget/leads?status=%d", statuses[_i]),
             .key = "", .body = "");
    expect_status(r, statuses[_i]);
    ck_assert_int_eq(header_number(r, "X-RateLimit-Limit"), 30);
    expect(r, header(r, "Retry-After") == NULL);
    header_number(r, "X-RateLimit-Remaining");
    header_number(r, "X-RateLimit-Reset");
    server_stop(server);
}
END_TEST

/* widget-init reads its key from the body: a wrong body is charged to the address */
static const struct {
    const char *body, *type;
    int status;
} bodies[] = {
    {"agent_id=x", NULL, 200},
    {"agent_id=%zz", NULL, 400},
    {"{}", "Content-Type: text/plain", 415},
    {"", NULL, 200},
};

START_TEST(a_wrong_body_is_charged)
{
    server_start(server);
    ck_assert(wait_until(early_in_a_minute, NULL, 40000));
    for (size_t i = 0; i < COUNT(bodies); i++) {
        struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init",
                                  .key = "", .body = bodies[i].body, .headers = {bodies[i].type});
        expect_status(r, bodies[i].status);
        ck_assert_int_eq(header_number(r, "X-RateLimit-Limit"), 1000);
        /* unknown agents share one bucket */
        ck_assert_int_eq(header_number(r, "X-RateLimit-Remaining"), 999 - (long)i);
    }
    char *large = malloc(1500);
    ck_assert_ptr_nonnull(large);
    memset(large, 'a', 1499);
    large[1499] = '\0';
    struct response *r =
        http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "", .body = large);
    expect_status(r, 413);
    ck_assert_int_eq(header_number(r, "X-RateLimit-Remaining"), 995);
    r = http(server, .method = "PUT", .path = "/api/v1/widget/init", .key = "", .body = "");
    expect_status(r, 405);
    ck_assert_int_eq(header_number(r, "X-RateLimit-Remaining"), 994);
    server_stop(server);
}
END_TEST

/* the second window of widget-init, with numbers that a test can reach */
START_TEST(widget_init_must_pass_both_windows)
{
    server_configure(server, "limits: { limiters: { widget-init: { windows: [ { limit: 3, seconds: "
                             "2678400, key: ip+agent }, "
                             "{ limit: 5, seconds: 1339200, key: ip } ] } } }");
    server_start(server);
    static const long expected[][2] = {{3, 2}, {3, 1}, {3, 0}, {3, 0}};
    for (size_t i = 0; i < COUNT(expected); i++) {
        struct response *r =
            http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "", .body = "");
        expect_status(r, i < 3 ? 200 : 429);
        ck_assert_int_eq(header_number(r, "X-RateLimit-Limit"), expected[i][0]);
        ck_assert_int_eq(header_number(r, "X-RateLimit-Remaining"), expected[i][1]);
    }
    /* as if another agent used the same address */
    assay_ok(server, "limits", "reset", "widget-init", "127.0.0.1/-", NULL);
    /* the address has 2 of 5 left: the refused request charged nothing */
    for (long i = 0; i < 2; i++) {
        struct response *r =
            http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "", .body = "");
        expect_status(r, 200);
        ck_assert_int_eq(header_number(r, "X-RateLimit-Limit"), 5);
        ck_assert_int_eq(header_number(r, "X-RateLimit-Remaining"), 1 - i);
    }
    struct response *r =
        http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "", .body = "");
    expect_status(r, 429);
    ck_assert_int_eq(header_number(r, "X-RateLimit-Limit"), 5);
    struct run run = assay(server, "--json", "limits", "show", "widget-init", "127.0.0.1/-", NULL);
    ck_assert_msg(strstr(run.out, "\"used\":2,") != NULL, "%s", run.out);
    server_stop(server);
}
END_TEST

/* ---- report-password: by address and by report ---- */

static struct response *try_password(const char *report, int client)
{
    return http(server, .method = "POST", .path = text("/reports/%s/password", report), .key = "",
                .headers = {text("X-Forwarded-For: 192.0.2.%d", client)});
}

/* ${more}: further configuration of the limits. */
static void start_behind_proxy(const char *more)
{
    server_start_with(server, text("trusted_proxies: [127.0.0.1]\nlimits: { %s }", more));
    ck_assert(wait_until(early_in_a_minute, NULL, 40000));
}

static void try_until_refused(const char *report)
{
    for (int i = 0; i < 30; i++)
        expect_status(try_password(report, i / 8), 200);
}

START_TEST(a_report_admits_thirty_attempts_a_minute_from_all_addresses)
{
    start_behind_proxy("");
    try_until_refused("7");
    struct response *r = try_password("7", 99);
    expect_error(r, 429, "rate_limited");
    ck_assert_int_eq(header_number(r, "X-RateLimit-Limit"), 30);
    ck_assert_int_eq(header_number(r, "X-RateLimit-Remaining"), 0);
    expect(r, header_number(r, "Retry-After") >= 1 && header_number(r, "Retry-After") <= 60);
    expect_status(try_password("007", 99), 429); /* the same number */
    expect_status(try_password("%37", 99), 429);
    r = try_password("8", 99); /* the refused requests were not charged to the address */
    expect_status(r, 200);
    ck_assert_int_eq(header_number(r, "X-RateLimit-Limit"), 10);
    ck_assert_int_eq(header_number(r, "X-RateLimit-Remaining"), 9);
    server_stop(server);
}
END_TEST

START_TEST(a_path_without_a_report_is_counted_by_address_alone)
{
    start_behind_proxy("");
    for (int i = 0; i < 40; i++)
        expect_status(try_password("seven", i / 10), 200);
    expect_status(try_password("seven", 0), 429);
    expect_status(try_password("0", 0), 429);
    expect_status(try_password("0", 9), 200);
    server_stop(server);
}
END_TEST

/* More than the override, and than the built-in limit, admits. */
static bool all_attempts_pass(void *arg)
{
    (void)arg;
    for (int i = 0; i < 31; i++)
        if (try_password("8", 60 + i)->status != 200)
            return false;
    return true;
}

START_TEST(a_report_is_a_key_of_the_commands_and_of_overrides)
{
    start_behind_proxy("limiters: { report-password: { overrides: [ { key: '8', limit: 2 } ] } }");
    try_until_refused("7");
    expect_status(try_password("7", 99), 429);
    struct run run = assay(server, "--json", "limits", "show", "report-password", "7", NULL);
    ck_assert_msg(strstr(run.out, "\"used\":30,") != NULL, "%s", run.out);
    run = assay(server, "--json", "limits", "top", NULL);
    ck_assert_msg(strstr(run.out, "\"key\":\"7\"") != NULL, "%s", run.out);
    assay_ok(server, "limits", "reset", "report-password", "7", NULL);
    expect_status(try_password("7", 99), 200);
    for (int i = 0; i < 3; i++)
        expect_status(try_password("8", 50 + i), i < 2 ? 200 : 429);
    server_configure(server, "trusted_proxies: [127.0.0.1]\nlimits: { limiters: "
                             "{ report-password: { dry_run: true } } }");
    server_signal(server, SIGHUP);
    ck_assert(wait_until(all_attempts_pass, NULL, 10000));
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(2);
    Suite *suite = suite_create("limits_rows");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_minute_admits_just_the_built_in_limit, 0, COUNT(rows));
    tcase_add_test(tcase, both_paths_of_bulk_sync_share_one_budget);
    tcase_add_test(tcase, conversation_operations_share_the_sessions_budget);
    tcase_add_loop_test(tcase, every_handler_answer_has_the_headers, 0, COUNT(statuses));
    tcase_add_test(tcase, a_wrong_body_is_charged);
    tcase_add_test(tcase, widget_init_must_pass_both_windows);
    tcase_add_test(tcase, a_report_admits_thirty_attempts_a_minute_from_all_addresses);
    tcase_add_test(tcase, a_path_without_a_report_is_counted_by_address_alone);
    tcase_add_test(tcase, a_report_is_a_key_of_the_commands_and_of_overrides);
    return harness_main(suite);
}
