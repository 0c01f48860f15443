/*
 * Limits over HTTP, with the limiter `api` on projects and reports: the charged key, the headers of
 * every response, and exactness over workers. Windows of 31 days do not end during a test. Reloads
 * are in limits_reloads.c.
 */
#include "t/kit/limit_headers.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* ---- headers ---- */

START_TEST(without_a_limit_there_are_no_headers)
{
    server_start(server);
    expect_no_headers(http_get(server, "/api/v1/reports"));
    expect_no_headers(list(""));
    expect_no_headers(http_get(server, "/api/v1/nowhere"));
    server_stop(server);
}
END_TEST

static const struct {
    const char *method, *path, *body, *header;
    int status;
    bool by_address; /* charged to the caller's address instead of its key */
} answers[] = {
    {"GET", "/api/v1/reports", NULL, NULL, 200, false},
    {"GET", "/api/v1/projects", NULL, NULL, 200, false},
    {"HEAD", "/api/v1/reports", NULL, NULL, 200, false},
    {"POST", "/api/v1/reports", "url=http%3A%2F%2Fa.test%2F", "Prefer: respond-async", 202, false},
    {"GET", "/api/v1/reports/1", NULL, "If-None-Match: *", 304, false},
    {"POST", "/api/v1/reports", "url=%zz", NULL, 400, false},
    {"GET", "/api/v1/reports?search=%zz", NULL, NULL, 400, false},
    {"GET", "/api/v1/reports", NULL,
     "Authorization: Bearer asy_key_000000000000000000000000000000000000", 401, true},
    {"GET", "/api/v1/reports", NULL, "Authorization: Basic x", 401, true},
    {"GET", "/api/v1/reports/1/history", NULL, NULL, 200, false},
    {"GET", "/api/v1/reports/1/history", NULL, "If-None-Match: *", 304, false},
    {"GET", "/api/v1/reports/1/history?after=0", NULL, NULL, 422, false},
    {"GET", "/api/v1/reports/999", NULL, NULL, 404, false},
    {"GET", "/api/v1/reports/999/history", NULL, NULL, 404, false},
    {"DELETE", "/api/v1/projects/none.test", NULL, NULL, 404, false},
    {"PATCH", "/api/v1/reports/1", NULL, NULL, 405, true},
    {"GET", "/api/v1/reports", NULL, "Accept: text/html", 406, true},
    {"PUT", "/api/v1/reports/1", "", "If-Match: \"0-0\"", 412, false},
    {"POST", "/api/v1/reports", "url=a", "Content-Type: text/plain", 415, false},
    {"POST", "/api/v1/reports", "url=a", "Expect: a miracle", 417, true},
    {"GET", "/api/v1/reports?per_page=7", NULL, NULL, 422, false},
    {"POST", "/api/v1/reports", "", NULL, 422, false},
};

START_TEST(every_answer_of_a_limited_route_has_the_headers)
{
    long by_key = 1000, by_address = 1000;
    server_start_with(server, limiters(API("1000")));
    for (size_t i = 0; i < COUNT(answers); i++) {
        const char *extra = answers[i].header;
        bool own = extra != NULL && !strncmp(extra, "Authorization:", 14);
        struct response *r =
            http(server, .method = answers[i].method, .path = answers[i].path,
                 .body = answers[i].body, .key = own ? "" : NULL, .headers = {extra});
        expect_status(r, answers[i].status);
        expect_headers(r, 1000, answers[i].by_address ? --by_address : --by_key);
    }
    struct response *r = http(server, .path = "/api/v1/reports",
                              .key = key_new(server, "main", "projects:read", NULL));
    expect_status(r, 403);
    expect_headers(r, 1000, 999);
    server_stop(server);
}
END_TEST

START_TEST(a_body_too_large_for_the_library_is_charged_to_the_address)
{
    char *body = calloc(1, (8 << 20) + 1);
    ck_assert_ptr_nonnull(body);
    memset(body, 'a', 8 << 20);
    server_start_with(server, limiters(API("10")));
    struct response *r = http(server, .method = "POST", .path = "/api/v1/reports", .body = body,
                              .body_size = 8 << 20, .headers = {"Expect:"});
    expect_error(r, 413, "payload_too_large");
    expect_headers(r, 10, 9);
    r = http(server, .method = "POST", .path = "/api/v1/reports", .body = body, .body_size = 16385);
    expect_error(r, 413, "payload_too_large");
    free(body);
    server_stop(server);
}
END_TEST

START_TEST(a_malformed_head_is_charged_to_the_address)
{
    server_start_with(server, limiters(API("2")));
    for (int i = 0; i < 3; i++) {
        struct raw *raw = raw_open(server);
        raw_text(raw, "GET /api/v1/reports HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n");
        struct response *r = raw_response(raw, false, 5000);
        expect_status(r, i < 2 ? 400 : 429);
        expect_headers(r, 2, i < 2 ? 1 - i : 0);
        expect(r, raw_closed(raw, 5000));
        raw_close(raw);
    }
    server_stop(server);
}
END_TEST

START_TEST(an_options_request_is_neither_charged_nor_has_headers)
{
    server_start_with(server, limiters(API("2")));
    for (int i = 0; i < 5; i++) {
        struct response *r =
            http(server, .method = "OPTIONS", .path = "/api/v1/reports",
                 .headers = {"Origin: http://a.test", "Access-Control-Request-Method: GET"});
        expect_status(r, 204);
        expect_no_headers(r);
        expect_no_headers(http(server, .method = "OPTIONS", .path = "/v1/wp/none"));
    }
    expect_headers(http_get(server, "/api/v1/reports"), 2, 1);
    server_stop(server);
}
END_TEST

START_TEST(an_unlimited_route_has_no_limit_headers)
{
    static const char *const paths[] = {"/healthz",        "/readyz", "/api/v1/openapi.json",
                                        "/api/v1/nowhere", "/",       "/v1/wpx"};
    server_start_with(server, limiters(API("2")));
    for (size_t i = 0; i < COUNT(paths); i++)
        expect_no_headers(http_get(server, paths[i]));
    server_stop(server);
}
END_TEST

/* ---- refusal ---- */

START_TEST(a_request_over_the_limit_is_429_and_not_counted)
{
    server_start_with(server, limiters(API("3")));
    for (int i = 0; i < 3; i++)
        expect_headers(http_get(server, "/api/v1/reports"), 3, 2 - i);
    for (int i = 0; i < 20; i++)
        expect_refused(http_get(server, "/api/v1/reports"), 3);
    expect_refused(http_post(server, "/api/v1/reports", "url=http%3A%2F%2Fa.test%2F"), 3);
    /* if refused requests counted, nothing would be left of five */
    server_configure(server, limiters(API("5")));
    server_signal(server, SIGHUP);
    int64_t deadline = now_ms() + 15000;
    struct response *r = http_get(server, "/api/v1/reports");
    while (r->status == 429 && now_ms() < deadline)
        r = http_get(server, "/api/v1/reports");
    expect_headers(r, 5, 1);
    server_stop(server);
}
END_TEST

START_TEST(each_key_has_its_own_budget)
{
    server_start_with(server, limiters(API("2")));
    char *other = key_new(server, "main", NULL);
    for (int i = 0; i < 2; i++) {
        expect_headers(list(NULL), 2, 1 - i);
        expect_headers(list(other), 2, 1 - i);
    }
    expect_refused(list(NULL), 2);
    expect_refused(list(other), 2);
    server_stop(server);
}
END_TEST

START_TEST(a_wrong_credential_is_charged_to_the_address_and_then_429)
{
    server_start_with(server, limiters(API("3")));
    static const char *const wrong[] = {"", "asy_key_000000000000000000000000000000000000",
                                        "nonsense"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct response *r = list(wrong[i]);
        expect_error(r, 401, "unauthorized");
        expect_headers(r, 3, 2 - (long)i);
    }
    struct response *r = list("another");
    expect_refused(r, 3);
    expect(r, header(r, "WWW-Authenticate") == NULL);
    expect_headers(list(NULL), 3, 2); /* the key's budget is unchanged */
    server_stop(server);
}
END_TEST

/* ---- windows ---- */

START_TEST(one_window_that_refuses_charges_no_other)
{
    server_start_with(server, limiters("api: { windows: [ " WINDOW("7", "ip") ", " WINDOW(
                                  "2", "api_key") " ] }"));
    char *keys[] = {server->key, key_new(server, "main", NULL), key_new(server, "main", NULL)};
    expect_headers(list(keys[0]), 2,
                   1); /* the headers describe the window with the fewest remaining */
    expect_headers(list(keys[0]), 2, 0);
    for (int i = 0; i < 10; i++)
        expect_refused(list(keys[0]), 2);
    expect_headers(list(keys[1]), 2, 1); /* the address has used 3 */
    expect_headers(list(keys[1]), 2, 0);
    expect_headers(list(keys[2]), 2, 1);
    expect_headers(list(keys[2]), 2, 0);
    expect_error(list("x"), 401, "unauthorized"); /* the seventh */
    struct response *r = list("x");
    expect_refused(r, 7);
    server_stop(server);
}
END_TEST

START_TEST(the_later_end_of_two_refusing_windows_is_reported)
{
    server_start_with(
        server, limiters("api: { windows: [ { limit: 1, seconds: 3600, key: api_key }, " WINDOW(
                    "1", "ip") " ] }"));
    expect_status(http_get(server, "/api/v1/reports"), 200);
    struct response *r = http_get(server, "/api/v1/reports");
    expect_status(r, 429);
    expect_headers(r, 1, 0);
    server_stop(server);
}
END_TEST

/* Waits for the Retry-After of a 429, then sends one request, which must be admitted. */
START_TEST(one_retry_after_the_reported_time_succeeds)
{
    server_start_with(server,
                      limiters("api: { windows: [ { limit: 2, seconds: 2, key: api_key } ] }"));
    for (int round = 0; round < 3; round++) {
        struct response *r = http_get(server, "/api/v1/reports");
        for (int i = 0; r->status != 429; i++, r = http_get(server, "/api/v1/reports"))
            expect(r, i < 100);
        long seconds = header_number(r, "Retry-After");
        expect(r, seconds >= 1 && seconds <= 2);
        sleep((unsigned)seconds);
        expect_status(http_get(server, "/api/v1/reports"), 200);
    }
    server_stop(server);
}
END_TEST

/* ---- exactness over workers ---- */

static atomic_uint admitted, refused, others;

static void *request_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        struct response *r = http(server, .path = "/api/v1/reports");
        if (r->status == 200)
            admitted++;
        else if (r->status == 429)
            refused++;
        else
            others++;
        response_free(r);
    }
    return NULL;
}

START_TEST(all_workers_together_admit_just_the_limit)
{
    pthread_t threads[4];
    server->options.workers = 3;
    server_start_with(server, limiters(API("150")));
    for (size_t i = 0; i < COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, request_often, NULL), 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(admitted, 150);
    ck_assert_uint_eq(refused, 250);
    ck_assert_uint_eq(others, 0);
    server_stop(server);
}
END_TEST

/* ---- configuration ---- */

static const char *const lenient[] = {
    "limits: { limiters: { api: { dry_run: true, windows: [ " WINDOW("2", "api_key") " ] } } }",
    "limits: { exempt: [127.0.0.0/8], limiters: { " API("2") " } }",
};

START_TEST(dry_run_and_exempt_callers_get_headers_and_no_refusal)
{
    server_start_with(server, lenient[_i]);
    for (int i = 0; i < 6; i++) {
        struct response *r = http_get(server, "/api/v1/reports");
        expect_status(r, 200);
        expect_headers(r, 2, i < 2 ? 1 - i : 0);
    }
    expect_error(list("x"), 401, "unauthorized");
    bool logged =
        strstr(server_log(server), "limiter api would refuse 1: over 2 in 2678400 s") != NULL;
    ck_assert_int_eq(logged, _i == 0);
    server_stop(server);
}
END_TEST

START_TEST(an_unrelated_exempt_network_exempts_nobody)
{
    server_start_with(server,
                      "limits: { exempt: [10.0.0.0/8, '::/0'], limiters: { " API("1") " } }");
    expect_status(http_get(server, "/api/v1/reports"), 200);
    expect_refused(http_get(server, "/api/v1/reports"), 1);
    server_stop(server);
}
END_TEST

START_TEST(an_override_applies_only_to_its_key)
{
    server_start_with(
        server, limiters("api: { windows: [ " WINDOW(
                    "2", "api_key") " ], overrides: [ { key: 2, limit: 1 }, { key: 3, limit: 0 }, "
                                    "{ key: 127.0.0.1, limit: 50 } ] }"));
    char *second = key_new(server, "main", NULL), *third = key_new(server, "main", NULL);
    expect_headers(list(NULL), 2, 1);
    expect_headers(list(second), 1, 0);
    expect_refused(list(second), 1);
    for (int i = 0; i < 5; i++)
        expect_no_headers(list(third));
    expect_headers(list("x"), 50, 49);
    server_stop(server);
}
END_TEST

START_TEST(an_added_limiter_limits_its_routes)
{
    server_start_with(
        server, limiters(API("100") "\n    creates: { windows: [ " WINDOW(
                    "1", "api_key") " ], routes: [ 'POST /api/v1/reports' ] }\n"
                                    "    reads: { windows: [ " WINDOW(
                                        "5", "ip") " ], routes: [ 'GET /api/v1/reports/{id}', 'GET "
                                                   "/api/v1/openapi.json' ] }"));
    expect_headers(http_get(server, "/api/v1/reports"), 100, 99);
    expect_headers(http_post(server, "/api/v1/reports", ""), 1, 0);
    expect_refused(http_post(server, "/api/v1/reports", ""), 1);
    expect_headers(http_get(server, "/api/v1/reports/7"), 5, 4);
    expect_headers(http_get(server, "/api/v1/openapi.json"), 5, 3);
    expect_headers(http_delete(server, "/api/v1/reports/7"), 100, 98);
    server_stop(server);
}
END_TEST

START_TEST(an_unknown_path_of_a_surface_is_limited)
{
    server_start(server);
    static const char *const paths[] = {"/v1/wp/none", "/v1/wp/posts/none", "/api/v1/wp/none",
                                        "http://x/v1/wp/none?a=b"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct raw *raw = raw_open(server);
        raw_text(raw, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", i % 2 ? "GET" : "PUT", paths[i]);
        struct response *r = raw_response(raw, false, 5000);
        expect_error(r, 404, "not_found");
        ck_assert_int_eq(header_number(r, "X-RateLimit-Limit"), 60);
        raw_close(raw);
    }
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *suite = suite_create("limits");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, without_a_limit_there_are_no_headers);
    tcase_add_test(tcase, every_answer_of_a_limited_route_has_the_headers);
    tcase_add_test(tcase, a_body_too_large_for_the_library_is_charged_to_the_address);
    tcase_add_test(tcase, a_malformed_head_is_charged_to_the_address);
    tcase_add_test(tcase, an_options_request_is_neither_charged_nor_has_headers);
    tcase_add_test(tcase, an_unlimited_route_has_no_limit_headers);
    tcase_add_test(tcase, a_request_over_the_limit_is_429_and_not_counted);
    tcase_add_test(tcase, each_key_has_its_own_budget);
    tcase_add_test(tcase, a_wrong_credential_is_charged_to_the_address_and_then_429);
    tcase_add_test(tcase, one_window_that_refuses_charges_no_other);
    tcase_add_test(tcase, the_later_end_of_two_refusing_windows_is_reported);
    tcase_add_test(tcase, one_retry_after_the_reported_time_succeeds);
    tcase_add_test(tcase, all_workers_together_admit_just_the_limit);
    tcase_add_loop_test(tcase, dry_run_and_exempt_callers_get_headers_and_no_refusal, 0,
                        COUNT(lenient));
    tcase_add_test(tcase, an_unrelated_exempt_network_exempts_nobody);
    tcase_add_test(tcase, an_override_applies_only_to_its_key);
    tcase_add_test(tcase, an_added_limiter_limits_its_routes);
    tcase_add_test(tcase, an_unknown_path_of_a_surface_is_limited);
    return harness_main(suite);
}
