/* Clients that are slow or disappear: every wait for them ends, and nothing is lost. */
#include "t/kit/raw_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>

static void expect_end(struct raw *raw, int64_t since, int64_t at_least, int64_t at_most)
{
    struct response *r = raw_response(raw, false, (int)at_most);
    expect(r, r->status == 0 && r->body == NULL); /* a client that does not finish gets no answer */
    ck_assert_msg(raw_closed(raw, (int)at_most), "still open");
    int64_t took = now_ms() - since;
    ck_assert_msg(took >= at_least && took <= at_most, "ended after %lld ms", (long long)took);
    raw_close(raw);
}

START_TEST(an_unfinished_head_times_out)
{
    int64_t since = now_ms();
    struct raw *raw = raw_open(server);
    raw_text(raw, LINE "Ho");
    expect_end(raw, since, 900, 5000);
}
END_TEST

START_TEST(a_trickling_head_times_out)
{
    int64_t since = now_ms();
    struct raw *raw = raw_open(server);
    raw_text(raw, LINE HOST);
    while (now_ms() - since < 5000 && !raw_closed(raw, 100))
        raw_text(raw, "X: y\r\n");
    expect_end(raw, since, 900, 5000);
}
END_TEST

START_TEST(a_missing_body_times_out)
{
    int64_t since = now_ms();
    struct raw *raw = raw_open(server);
    raw_text(raw, POST_REPORTS "Authorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nurl=",
             server->key);
    expect_end(raw, since, 1300, 6000);
}
END_TEST

START_TEST(a_trickling_body_times_out)
{
    int64_t since = now_ms();
    struct raw *raw = raw_open(server);
    raw_text(raw, POST_REPORTS "Authorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n",
             server->key);
    while (now_ms() - since < 6000 && !raw_closed(raw, 100))
        raw_text(raw, "1\r\nx\r\n");
    expect_end(raw, since, 1300, 6000);
}
END_TEST

START_TEST(a_connection_without_requests_is_closed_when_idle)
{
    int64_t since = now_ms();
    struct raw *fresh = raw_open(server), *used = raw_open(server);
    raw_text(used, LINE HOST "\r\n");
    expect_status(raw_response(used, false, 5000), 200);
    expect_end(used, since, 2000, 8000);
    expect_end(fresh, since, 800, 9000);
}
END_TEST

START_TEST(a_held_request_is_not_idle)
{
    origin_held(origin, "/held");
    char *body = form("url", origin_url(origin, "/held"), NULL);
    struct raw *raw = raw_open(server);
    raw_post(raw, server->key, "Prefer: wait=5\r\n", body);
    struct response *r = raw_response(raw, false, 12000);
    origin_release(origin, "/held");
    expect_status(r, 201);
}
END_TEST

/*
 * Whether a process still holds the server's end of this connection: an orphaned socket has inode
 * 0.
 */
static bool is_given_up(void *arg)
{
    const struct raw *raw = arg;
    struct sockaddr_in mine = {0};
    socklen_t size = sizeof(mine);
    char line[512];
    bool held = false;
    FILE *table = fopen("/proc/net/tcp", "r");
    ck_assert_ptr_nonnull(table);
    ck_assert_int_eq(getsockname(raw->fd, (struct sockaddr *)&mine, &size), 0);
    while (fgets(line, sizeof(line), table)) {
        unsigned local, remote;
        unsigned long inode;
        if (sscanf(line, " %*d: %*8x:%x %*8x:%x %*x %*x:%*x %*x:%*x %*x %*u %*d %lu", &local,
                   &remote, &inode) == 3)
            held |= local == server->port && remote == ntohs(mine.sin_port) && inode != 0;
    }
    fclose(table);
    return !held;
}

START_TEST(a_client_that_does_not_read_is_disconnected)
{
    static const char request[] = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
    struct raw *raw = raw_open(server);
    setsockopt(raw->fd, SOL_SOCKET, SO_RCVBUF, &(int){2048}, sizeof(int));
    raw_text(raw, LINE HOST "\r\n");
    expect_status(raw_response(raw, false, 5000), 200);
    ck_assert(!is_given_up(raw));
    int64_t since = now_ms();
    for (int i = 0; i < 1000; i++) /* far more answers than the two sockets hold */
        if (send(raw->fd, request, sizeof(request) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break;
    ck_assert_msg(wait_until(is_given_up, raw, 12000), "still held after 12 s");
    ck_assert_int_ge(now_ms() - since, 1500);
    raw_close(raw);
    expect_status(http_get(server, "/healthz"), 200);
}
END_TEST

START_TEST(half_a_body_leaves_no_report)
{
    struct response *before = http_get(server, "/api/v1/reports");
    for (int i = 0; i < 20; i++) {
        struct raw *raw = raw_open(server);
        raw_text(raw,
                 POST_REPORTS "Authorization: Bearer %s\r\nContent-Length: "
                              "200\r\n\r\nurl=http%%3A%%2F%%2Falpha.test%%2F&x=",
                 server->key);
        if (i % 2)
            shutdown(raw->fd, SHUT_WR);
        raw_close(raw);
    }
    struct response *after = http_get(server, "/api/v1/reports");
    expect_int(after, "meta.total", int_at(before, "meta.total"));
}
END_TEST

START_TEST(a_client_that_disconnects_during_a_held_post_keeps_its_report)
{
    origin_held(origin, "/vanish");
    char *body = form("url", origin_url(origin, "/vanish"), NULL);
    struct raw *raw = raw_open(server);
    raw_post(raw, server->key, "Prefer: wait=20\r\n", body);
    int64_t id = report_listed(server, "vanish");
    raw_close(raw);
    origin_release(origin, "/vanish");
    expect_str(report_wait(server, id), "data.status", "done");
}
END_TEST

START_TEST(a_request_sent_during_a_held_post_is_answered_after_it)
{
    enum { BEHIND = 60 };
    origin_held(origin, "/behind");
    char *body = form("url", origin_url(origin, "/behind"), NULL);
    struct raw *raw = raw_open(server);
    raw_post(raw, server->key, "Prefer: wait=20\r\n", body);
    report_listed(server, "behind");
    for (int i = 0; i < BEHIND; i++) /* more than one read */
        raw_text(raw,
                 "GET /api/v1/reports/999999 HTTP/1.1\r\nHost: x\r\nX-Request-Id: "
                 "b-%d\r\nAuthorization: Bearer %s\r\n\r\n",
                 i, server->key);
    ck_assert_int_eq(raw_response(raw, false, 500)->status, 0);
    origin_release(origin, "/behind");
    struct response *r = raw_response(raw, false, 5000);
    expect_status(r, 201);
    expect_str(r, "data.status", "done");
    for (int i = 0; i < BEHIND; i++) {
        r = raw_response(raw, false, 5000);
        expect_status(r, 404);
        expect(r, !strcmp(header(r, "X-Request-Id"), text("b-%d", i)));
    }
    raw_close(raw);
}
END_TEST

START_TEST(a_held_post_ends_when_its_client_disconnects)
{
    origin_held(origin, "/hangs-up");
    char *body = form("url", origin_url(origin, "/hangs-up"), NULL);
    struct raw *raw = raw_open(server);
    raw_post(raw, server->key, "Prefer: wait=25\r\n", body);
    shutdown(raw->fd, SHUT_WR);
    int64_t since = now_ms();
    /* a client that only shuts down its sending side gets its answer */
    struct response *r = raw_response(raw, false, 20000);
    int64_t took = now_ms() - since;
    expect_status(r, 201);
    expect_str(r, "data.status", "pending");
    ck_assert_msg(took < 8000, "answered after %lld ms", (long long)took);
    ck_assert_msg(wait_until(is_given_up, raw, 5000), "its connection is still held");
    raw_close(raw);
    origin_release(origin, "/hangs-up");
}
END_TEST

START_TEST(a_client_that_closes_its_side_still_gets_its_answer)
{
    struct raw *raw = raw_open(server);
    raw_get(raw, server->key, "/api/v1/reports");
    shutdown(raw->fd, SHUT_WR);
    struct response *r = raw_response(raw, false, 5000);
    expect_status(r, 200);
}
END_TEST

START_TEST(hundreds_of_unfinished_requests_block_nobody)
{
    enum { HALVES = 400 };
    struct raw *raws[HALVES];
    for (int i = 0; i < HALVES; i++) {
        raws[i] = raw_open(server);
        raw_text(raws[i], i % 2 ? "GET /hea" : POST_REPORTS "Content-Length: 4000\r\n\r\nurl=");
    }
    int64_t before = now_ms();
    for (int i = 0; i < 20; i++)
        expect_status(http_get(server, "/api/v1/reports"), 200);
    ck_assert_int_lt(now_ms() - before, 3000);
    for (int i = 0; i < HALVES; i++) {
        raw_closed(raws[i], 6000);
        ck_assert(raws[i]->closed);
        raw_close(raws[i]);
    }
}
END_TEST

/* its own server */
static TCase *case_new(Suite *suite, const char *name)
{
    TCase *tcase = harness_case(suite, name);
    tcase_add_unchecked_fixture(tcase, raw_setup, raw_teardown);
    return tcase;
}

int main(void)
{
    Suite *suite = suite_create("slow_clients");
    TCase *halves = case_new(suite, "halves"), *heads = case_new(suite, "heads and bodies");
    TCase *idle = case_new(suite, "idle connections"), *held = case_new(suite, "held requests");
    tcase_add_test(halves, hundreds_of_unfinished_requests_block_nobody);
    tcase_add_test(halves, a_client_that_does_not_read_is_disconnected);
    tcase_add_test(heads, an_unfinished_head_times_out);
    tcase_add_test(heads, a_trickling_head_times_out);
    tcase_add_test(heads, a_missing_body_times_out);
    tcase_add_test(idle, a_trickling_body_times_out);
    tcase_add_test(idle, a_connection_without_requests_is_closed_when_idle);
    tcase_add_test(held, a_held_request_is_not_idle);
    tcase_add_test(held, half_a_body_leaves_no_report);
    tcase_add_test(held, a_client_that_disconnects_during_a_held_post_keeps_its_report);
    tcase_add_test(held, a_request_sent_during_a_held_post_is_answered_after_it);
    tcase_add_test(held, a_held_post_ends_when_its_client_disconnects);
    tcase_add_test(held, a_client_that_closes_its_side_still_gets_its_answer);
    return harness_main_at_once(suite);
}
