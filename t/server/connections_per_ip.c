/*
 * Connections by client address: how many max_connections_per_ip admits, which it refuses, and
 * whose address a connection through a proxy has.
 */
#include "t/kit/connections.h"

#include <poll.h>
#include <signal.h>

enum { PER_IP = 8 };

static void expect_refused(struct raw *raw)
{
    struct response *r = raw_response(raw, false, 5000);
    expect_error(r, 503, "unavailable");
    expect(r, header(r, "Retry-After") != NULL);
    ck_assert(raw_closed(raw, 5000));
    raw_close(raw);
}

static bool is_over(void *arg)
{
    return raw_closed(arg, 0);
}

static bool accepts(void *arg)
{
    struct raw *raw = raw_from(arg);
    raw_text(raw, HEALTHZ);
    bool in = raw_response(raw, false, 5000)->status == 200;
    raw_close(raw);
    return in;
}

START_TEST(the_limit_per_address_holds_over_all_workers)
{
    struct raw *raws[PER_IP];
    server_start_with(server,
                      text("max_connections_per_ip: %d\ninternal_listen: 127.0.0.1:0", PER_IP));
    struct server internal = server_internal(server);
    for (int i = 0; i < PER_IP; i++)
        ask(raws[i] = raw_from("127.0.0.2"));
    for (int i = 0; i < 10; i++)
        expect_refused(raw_from("127.0.0.2"));
    expect_status(http_get(server, "/healthz"), 200); /* another address */
    ck_assert_int_eq(metric(&internal, "assay_connections_refused_total"), 10);
    for (int i = 0; i < PER_IP; i++)
        ask(raws[i]); /* existing connections stay */
    raw_close(raws[0]);
    ck_assert_msg(wait_until(accepts, (void *)"127.0.0.2", 5000), "a freed slot is not reused");
    ck_assert_msg(strstr(server_log(server), "127.0.0.2") != NULL, "%s", server_log(server));
    close_all(raws + 1, PER_IP - 1);
    server_stop(server);
}
END_TEST

START_TEST(a_refused_connection_evicts_nobody)
{
    struct raw *raws[PER_IP * 2];
    server->options.workers = 1;
    server_start_with(
        server,
        text("max_connections: %d\nmax_connections_per_ip: %d\ninternal_listen: 127.0.0.1:0",
             PER_IP * 2, PER_IP));
    struct server internal = server_internal(server);
    for (size_t i = 0; i < COUNT(raws); i++)
        ask(raws[i] = raw_from(i % 2 == 0 ? "127.0.0.2" : "127.0.0.3"));
    for (int i = 0; i < 10; i++)
        expect_refused(raw_from("127.0.0.2"));
    ck_assert_uint_eq(still_open(raws, COUNT(raws)), COUNT(raws));
    ck_assert_int_eq(metric(&internal, "assay_connections_evicted_total"), 0);
    close_all(raws, COUNT(raws));
    server_stop(server);
}
END_TEST

START_TEST(a_killed_worker_releases_its_connections)
{
    struct raw *raws[PER_IP];
    server_start_with(server,
                      text("max_connections: %d\nmax_connections_per_ip: %d", PER_IP, PER_IP));
    for (int i = 0; i < PER_IP; i++)
        ask(raws[i] = raw_open(server));
    for (int i = 0; i < 2; i++) {
        pid_t pid = server_process(server, text("assayd: worker %d", i));
        ck_assert_int_gt(pid, 0);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
    }
    for (int i = 0; i < PER_IP; i++) {
        ck_assert(wait_until(is_over, raws[i], 5000));
        raw_close(raws[i]);
    }
    ck_assert_msg(wait_until(accepts, (void *)"127.0.0.1", 10000), "%s", server_log(server));
    int64_t deadline = now_ms() + 5000;
    /* all at once; the requesting connection above may still be open */
    for (int in = 0; in < PER_IP;) {
        ck_assert_int_lt(now_ms(), deadline);
        raws[in] = raw_open(server);
        raw_text(raws[in], HEALTHZ);
        if (raw_response(raws[in], false, 5000)->status == 200)
            in++;
        else
            raw_close(raws[in]);
    }
    close_all(raws, PER_IP);
    server_stop(server);
}
END_TEST

/* configurations in which 127.0.0.1 stands for many callers and is not counted as one address */
static const char *const standing_for_many[] = {
    "limits: { exempt: [127.0.0.0/8] }",
    "trusted_proxies: [127.0.0.0/8]",
};

START_TEST(proxies_and_exempt_networks_have_no_address_limit)
{
    struct raw *raws[PER_IP * 3];
    server_start_with(server,
                      text("max_connections_per_ip: %d\n%s", PER_IP, standing_for_many[_i]));
    for (size_t i = 0; i < COUNT(raws); i++)
        ask(raws[i] = raw_open(server));
    close_all(raws, COUNT(raws));
    server_stop(server);
}
END_TEST

static struct raw *raw_through_proxy(const char *client)
{
    struct raw *raw = raw_open(server);
    raw_text(raw, "PROXY TCP4 %s 127.0.0.1 1000 80\r\n", client);
    return raw;
}

START_TEST(the_client_behind_the_proxy_protocol_is_counted)
{
    struct raw *raws[PER_IP];
    server_configure(server,
                     text("max_connections_per_ip: %d\ntrusted_proxies: [127.0.0.0/8]", PER_IP));
    server_spawn(server, "--set", "listen.0.proxy_protocol=true", NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    for (int i = 0; i < PER_IP; i++)
        ask(raws[i] = raw_through_proxy("198.51.100.7"));
    expect_refused(raw_through_proxy("198.51.100.7"));
    struct raw *other = raw_through_proxy("198.51.100.8");
    ask(other);
    raw_close(other);
    close_all(raws, PER_IP);
    server_stop(server);
}
END_TEST

START_TEST(an_untrusted_proxy_evicts_nobody)
{
    struct raw *raws[PER_IP];
    server->options.workers = 1;
    server_configure(
        server,
        text("max_connections: %d\ntrusted_proxies: [127.0.0.1/32]\ninternal_listen: 127.0.0.1:0",
             PER_IP));
    server_spawn(server, "--set", "listen.0.proxy_protocol=true", NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    struct server internal = server_internal(server);
    for (int i = 0; i < PER_IP; i++)
        ask(raws[i] = raw_through_proxy("198.51.100.7"));
    poll(NULL, 0, 500); /* all are idle */
    for (int i = 0; i < 10; i++) {
        struct raw *other_client = raw_from("127.0.0.2");
        ck_assert(raw_closed(other_client, 5000));
        raw_close(other_client);
    }
    ck_assert_uint_eq(still_open(raws, PER_IP), PER_IP);
    ck_assert_int_eq(metric(&internal, "assay_connections_evicted_total"), 0);
    struct raw *other = raw_through_proxy("198.51.100.8");
    ask(other);
    ck_assert_int_eq(metric(&internal, "assay_connections_evicted_total"), 1);
    raw_close(other);
    close_all(raws, PER_IP);
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *suite = suite_create("connections_per_ip");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, connections_setup, connections_teardown);
    tcase_add_test(tcase, the_limit_per_address_holds_over_all_workers);
    tcase_add_test(tcase, a_refused_connection_evicts_nobody);
    tcase_add_test(tcase, a_killed_worker_releases_its_connections);
    tcase_add_loop_test(tcase, proxies_and_exempt_networks_have_no_address_limit, 0,
                        COUNT(standing_for_many));
    tcase_add_test(tcase, the_client_behind_the_proxy_protocol_is_counted);
    tcase_add_test(tcase, an_untrusted_proxy_evicts_nobody);
    return harness_main(suite);
}
