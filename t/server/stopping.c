/* Stopping a server: draining, signals, its timeout, and starting it again at once. */
#include "t/kit/origin_server.h"

#include <lmdb.h>
#include <poll.h>
#include <signal.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* ---- stopping ---- */

static const int gentle[] = {SIGTERM, SIGQUIT};

START_TEST(a_graceful_stop_answers_held_posts_as_pending)
{
    server_start(server);
    struct raw *raw = held_post(server, origin, "/held-stop"), *idle = raw_open(server),
               *half = raw_open(server);
    raw_text(idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_status(raw_response(idle, false, 5000), 200);
    raw_text(half,
             "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /api/v1/reports HTTP/1.1\r\nHost: x\r\n");
    expect_status(raw_response(half, false, 5000), 200);
    server_signal(server, gentle[_i]);
    struct response *r = raw_response(raw, false, 5000);
    expect_status(r, 201);
    expect_str(r, "data.status", "pending");
    expect(r, header(r, "Connection") && !strcasecmp(header(r, "Connection"), "close"));
    raw_text(half, "Authorization: Bearer %s\r\n\r\n", server->key);
    r = raw_response(half, false, 5000);
    /* with Connection: close, unless its worker has not received the stop yet */
    expect_status(r, 200);
    ck_assert(raw_closed(half, 5000));
    ck_assert_msg(server_wait(server, 10000) == 0, "wrong exit status\n%s", server_log(server));
    ck_assert(raw_closed(idle, 1000));
    server_start(server);
    r = http_get(server, "/api/v1/reports?search=held-stop");
    expect_int(r, "meta.total", 1);
    origin_release(origin, "/held-stop");
    expect_str(report_wait(server, int_at(r, "data.0.id")), "data.status", "done");
    server_stop(server);
}
END_TEST

START_TEST(an_interrupt_stops_at_once)
{
    server_start(server);
    struct processes left = server_processes(server);
    struct raw *raw = held_post(server, origin, "/held-interrupt");
    server_signal(server, SIGINT);
    ck_assert_int_eq(server_wait(server, 3000), 0);
    ck_assert(wait_until(processes_exited, &left, 1000));
    ck_assert(raw_closed(raw, 1000));
}
END_TEST

/*
 * Connections that systemd queued before a restart are served after a worker accepted them; so are
 * consecutive requests of one client.
 */
START_TEST(a_stop_answers_new_connections)
{
    server_start(server);
    struct raw *used = raw_open(server), *fresh = raw_open(server);
    raw_text(used, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_status(raw_response(used, false, 5000), 200);
    poll(NULL, 0, 50);
    server_signal(server, gentle[_i]);
    poll(NULL, 0, 150);
    struct raw *both[] = {used, fresh};
    for (size_t i = 0; i < COUNT(both); i++)
        raw_text(both[i], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    for (size_t i = 0; i < COUNT(both); i++) {
        struct response *r = raw_response(both[i], false, 5000);
        expect_status(r, 200);
        expect(r, header(r, "Connection") && !strcasecmp(header(r, "Connection"), "close"));
    }
    ck_assert_msg(server_wait(server, 3000) == 0, "wrong exit status\n%s", server_log(server));
}
END_TEST

/* as by Nice= in a unit, or by nice(1) */
START_TEST(a_given_process_priority_is_kept)
{
    int given = getpriority(PRIO_PROCESS, 0) + 2;
    ck_assert_int_eq(setpriority(PRIO_PROCESS, 0, given), 0);
    server_start(server);
    int worker = getpriority(PRIO_PROCESS, (id_t)server_process(server, "assayd: worker 0"));
    int auditor = getpriority(PRIO_PROCESS, (id_t)server_process(server, "assayd: auditor 0"));
    ck_assert_int_eq(worker, given < 19 ? given : 19);
    ck_assert_int_eq(auditor, given + 10 < 19 ? given + 10 : 19);
    server_stop(server);
}
END_TEST

START_TEST(a_second_stop_signal_stops_at_once)
{
    server_start(server);
    struct raw *half = raw_open(server);
    raw_text(half, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\n");
    expect_status(raw_response(half, false, 5000), 200);
    server_signal(server, SIGTERM);
    ck_assert_msg(server_wait(server, 1000) == -1, "did not wait for a started request");
    server_signal(server, SIGTERM);
    ck_assert_int_eq(server_wait(server, 3000), 0);
}
END_TEST

/*
 * The stop timeout ends what does not end by itself: half a body that may take an hour, and an
 * unread answer.
 */
START_TEST(a_drain_ends_at_its_timeout)
{
    static const char request[] = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
    server_configure(server, "timeouts: { drain: 1s, body: 1h, send: 1h }");
    server_start(server);
    struct raw *half = raw_open(server), *stopped = raw_open(server);
    raw_text(half, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nPOST /api/v1/reports HTTP/1.1\r\nHost: "
                   "x\r\nContent-Length: 1000\r\n\r\nurl=");
    expect_status(raw_response(half, false, 5000), 200);
    raw_text(stopped, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_status(raw_response(stopped, false, 5000), 200);
    for (int i = 0; i < 1000 && send(stopped->fd, request, sizeof(request) - 1,
                                     MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
         i++)
        ;
    int64_t since = now_ms();
    server_signal(server, SIGTERM);
    ck_assert_msg(server_wait(server, 10000) == 0, "%s", server_log(server));
    ck_assert_msg(now_ms() - since >= 900 && now_ms() - since < 6000, "after %lld ms",
                  (long long)(now_ms() - since));
    ck_assert(raw_closed(half, 1000));
}
END_TEST

START_TEST(a_server_restarts_on_the_same_port_at_once)
{
    server_start(server);
    struct raw *idle = raw_open(server);
    raw_text(idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_status(raw_response(idle, false, 5000), 200);
    char *address = text("listen.0.address=%s", server->address);
    server_stop(server);
    for (int i = 0; i < 3; i++) {
        server_spawn(server, "--set", address, NULL);
        ck_assert_msg(server_ready(server, 10000), "%s", server_log(server));
        expect_status(http_get(server, "/healthz"), 200);
        server_stop(server);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stopping");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, own_setup, own_teardown);
    tcase_add_loop_test(tcase, a_graceful_stop_answers_held_posts_as_pending, 0, COUNT(gentle));
    tcase_add_test(tcase, an_interrupt_stops_at_once);
    tcase_add_loop_test(tcase, a_stop_answers_new_connections, 0, COUNT(gentle));
    tcase_add_test(tcase, a_given_process_priority_is_kept);
    tcase_add_test(tcase, a_second_stop_signal_stops_at_once);
    tcase_add_test(tcase, a_drain_ends_at_its_timeout);
    tcase_add_test(tcase, a_server_restarts_on_the_same_port_at_once);
    return harness_main_at_once(suite);
}
