/* Several requests on one connection: order, bodies, continuation and the end of the connection. */
#include "t/kit/raw_server.h"

/* ---- order and continuation ---- */

START_TEST(pipelined_requests_are_answered_in_order)
{
    enum { REQUESTS = 40 };
    struct raw *raw = raw_open(server);
    for (int i = 0; i < REQUESTS; i++)
        raw_text(raw,
                 "GET /api/v1/reports%s HTTP/1.1\r\nHost: x\r\nX-Request-Id: "
                 "p-%d\r\nAuthorization: Bearer %s\r\n\r\n",
                 i % 3 ? "" : "/999999", i, server->key);
    for (int i = 0; i < REQUESTS; i++) {
        struct response *r = raw_response(raw, false, 5000);
        expect_status(r, i % 3 ? 200 : 404);
        expect(r, !strcmp(header(r, "X-Request-Id"), text("p-%d", i)));
    }
    raw_close(raw);
}
END_TEST

START_TEST(a_pipelined_read_sees_the_write_before_it)
{
    struct raw *raw = raw_open(server);
    char *body = form("url", origin_url(origin, "/good"), NULL);
    for (int i = 0; i < 5; i++)
        raw_post(raw, server->key, "Prefer: respond-async\r\n", body);
    raw_get(raw, server->key, "/api/v1/reports");
    int64_t last = 0;
    for (int i = 0; i < 5; i++) {
        struct response *r = raw_response(raw, false, 5000);
        expect_status(r, 202);
        expect(r, int_at(r, "data.id") > last);
        last = int_at(r, "data.id");
    }
    struct response *r = raw_response(raw, false, 5000);
    expect_int(r, "data.0.id", last);
    raw_close(raw);
}
END_TEST

START_TEST(a_chunked_form_in_tiny_pieces_is_read)
{
    struct raw *raw = raw_open(server);
    char *body = form("url", origin_url(origin, "/good"), NULL);
    raw_text(
        raw,
        POST_REPORTS
        "Authorization: Bearer %s\r\nPrefer: respond-async\r\nTransfer-Encoding: chunked\r\n\r\n",
        server->key);
    for (const char *c = body; *c; c++)
        raw_text(raw, "1\r\n%c\r\n", *c);
    raw_text(raw, "0\r\nX-Trailer: ignored\r\n\r\n");
    struct response *r = raw_response(raw, false, 5000);
    expect_status(r, 202);
    expect_str(r, "data.url", origin_url(origin, "/good"));
}
END_TEST

START_TEST(many_pipelined_requests_do_not_count_as_one_head)
{
    enum { REQUESTS = 600 };
    struct raw *raw = raw_open(server);
    char *all = calloc(REQUESTS, 128), *end = all;
    ck_assert_ptr_nonnull(all);
    for (int i = 0; i < REQUESTS; i++)
        end += sprintf(end, LINE "Host: x\r\nX-Request-Id: m-%d\r\nX-Filler: %032d\r\n\r\n", i, i);
    ck_assert_int_gt(end - all, 48 * 1024);
    raw_send(raw, all, (size_t)(end - all));
    for (int i = 0; i < REQUESTS; i++) {
        struct response *r = raw_response(raw, false, 5000);
        expect_status(r, 200);
        expect(r, !strcmp(header(r, "X-Request-Id"), text("m-%d", i)));
        response_free(r);
    }
    raw_close(raw);
}
END_TEST

START_TEST(a_large_head_with_a_large_form_is_accepted)
{
    struct raw *raw = raw_open(server);
    char *body = text("url=&x=%016000d", 1);
    for (int i = 0; i < 2; i++)
        raw_text(raw,
                 POST_REPORTS
                 "Authorization: Bearer %s\r\nX-Long: %020000d\r\nContent-Length: %zu\r\n\r\n%s",
                 server->key, 1, strlen(body), body);
    for (int i = 0; i < 2; i++)
        expect_error(raw_response(raw, false, 5000), 422, "validation_failed");
    raw_close(raw);
}
END_TEST

START_TEST(responses_without_a_body_keep_the_connection_in_sync)
{
    struct raw *raw = raw_open(server);
    char *etag = text("%s", header(http_get(server, "/api/v1/openapi.json"), "ETag"));
    static const int statuses[] = {200, 304, 204, 404, 401, 200};
    raw_text(raw, "HEAD /api/v1/openapi.json HTTP/1.1\r\n" HOST "\r\n");
    raw_text(raw, "GET /api/v1/openapi.json HTTP/1.1\r\n" HOST "If-None-Match: %s\r\n\r\n", etag);
    raw_text(raw, "OPTIONS /api/v1/reports HTTP/1.1\r\n" HOST "\r\n");
    raw_text(raw, "HEAD /nowhere HTTP/1.1\r\n" HOST "\r\n");
    raw_text(raw, "HEAD /api/v1/reports HTTP/1.1\r\n" HOST "\r\n");
    raw_text(raw, LINE HOST "\r\n");
    for (size_t i = 0; i < COUNT(statuses); i++) {
        struct response *r = raw_response(raw, i == 0 || i == 3 || i == 4, 5000);
        expect_status(r, statuses[i]);
        if (statuses[i] == 204)
            expect(r, !header(r, "Content-Length") && !header(r, "Transfer-Encoding"));
    }
    raw_close(raw);
}
END_TEST

START_TEST(an_ambiguous_request_behind_a_held_post_is_answered_in_order)
{
    origin_held(origin, "/held-first");
    char *body = form("url", origin_url(origin, "/held-first"), NULL);
    struct raw *raw = raw_open(server);
    raw_text(
        raw,
        POST_REPORTS
        "Authorization: Bearer %s\r\nPrefer: wait=5\r\nContent-Length: %zu\r\n\r\n%s" GET_REPORTS
        "Host: y\r\n\r\n" SMUGGLED,
        server->key, strlen(body), body);
    ck_assert(origin_asked(origin, "/held-first"));
    origin_release(origin, "/held-first");
    expect_status(raw_response(raw, false, 8000), 201);
    expect_error(raw_response(raw, false, 5000), 400, "bad_request");
    ck_assert(raw_response(raw, false, 1000)->status == 0 && raw_closed(raw, 3000));
}
END_TEST

START_TEST(a_body_too_large_is_refused_without_100_continue)
{
    struct raw *raw = raw_open(server);
    raw_text(
        raw,
        POST_REPORTS
        "Authorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n",
        server->key);
    expect_error(raw_response(raw, false, 5000), 413, "payload_too_large");
}
END_TEST

START_TEST(http_1_0_closes_the_connection_by_default)
{
    struct raw *raw = raw_open(server);
    raw_text(raw, "GET /healthz HTTP/1.0\r\n\r\n");
    expect_status(raw_response(raw, false, 5000), 200);
    ck_assert(raw_closed(raw, 2000));
}
END_TEST

START_TEST(expect_100_continue_is_answered_before_the_body)
{
    struct raw *raw = raw_open(server);
    char *body = form("url", origin_url(origin, "/good"), NULL);
    raw_text(raw,
             POST_REPORTS "Authorization: Bearer %s\r\nPrefer: respond-async\r\nExpect: "
                          "100-continue\r\nContent-Length: %zu\r\n\r\n",
             server->key, strlen(body));
    expect_status(raw_response(raw, false, 5000), 100);
    raw_text(raw, "%s", body);
    expect_status(raw_response(raw, false, 5000), 202);
}
END_TEST

START_TEST(connection_close_closes_the_connection)
{
    struct raw *raw = raw_open(server);
    raw_text(raw, LINE HOST "Connection: close\r\n\r\n" SMUGGLED);
    expect_status(raw_response(raw, false, 5000), 200);
    ck_assert(raw_response(raw, false, 1000)->status == 0 && raw_closed(raw, 3000));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pipelining");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, raw_setup, raw_teardown);
    tcase_add_test(tcase, pipelined_requests_are_answered_in_order);
    tcase_add_test(tcase, a_pipelined_read_sees_the_write_before_it);
    tcase_add_test(tcase, a_chunked_form_in_tiny_pieces_is_read);
    tcase_add_test(tcase, many_pipelined_requests_do_not_count_as_one_head);
    tcase_add_test(tcase, a_large_head_with_a_large_form_is_accepted);
    tcase_add_test(tcase, responses_without_a_body_keep_the_connection_in_sync);
    tcase_add_test(tcase, an_ambiguous_request_behind_a_held_post_is_answered_in_order);
    tcase_add_test(tcase, a_body_too_large_is_refused_without_100_continue);
    tcase_add_test(tcase, http_1_0_closes_the_connection_by_default);
    tcase_add_test(tcase, expect_100_continue_is_answered_before_the_body);
    tcase_add_test(tcase, connection_close_closes_the_connection);
    return harness_main(suite);
}
