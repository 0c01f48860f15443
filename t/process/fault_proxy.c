/* The proxy with which tests break connections. The test is both its client and its server. */
#include "t/kit/fault_proxy.h"
#include "t/kit/suite.h"
#include "t/kit/supervisor.h"
#include "t/kit/wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { WITHIN_MS = 10000 };

static int listener;
static struct fault_proxy *proxy;

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
}

static void setup(void)
{
    struct sockaddr_in at = loopback(0);
    socklen_t size = sizeof(at);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(listener, 16), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    proxy = fault_proxy_new(ntohs(at.sin_port));
}

static void teardown(void)
{
    fault_proxy_free(proxy);
    close(listener);
}

/* ---- both ends ---- */

struct ends {
    int client, server;
};

static int client_open(void)
{
    struct sockaddr_in at = loopback(fault_proxy_port(proxy));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

static struct ends ends_open(void)
{
    int client = client_open();
    struct pollfd p = {.fd = listener, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, WITHIN_MS), 1);
    return (struct ends){client, accept(listener, NULL, NULL)};
}

static void ends_close(struct ends e)
{
    close(e.client);
    close(e.server);
}

static void say(int fd, const char *words)
{
    ck_assert_int_eq(send(fd, words, strlen(words), MSG_NOSIGNAL), (ssize_t)strlen(words));
}

/* Reads until ${size} bytes are there or the connection has ended; errno says how. */
static size_t hear(int fd, char *out, size_t size)
{
    size_t have = 0;
    for (ssize_t got = 1; got > 0 && have<size; have += got> 0 ? (size_t)got : 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        errno = 0;
        ck_assert_msg(poll(&p, 1, WITHIN_MS) == 1, "nothing came after %zu bytes", have);
        got = recv(fd, out + have, size - have, 0);
    }
    return have;
}

static void expect_heard(int fd, const char *words)
{
    char got[256] = "";
    ck_assert_uint_lt(strlen(words), sizeof(got));
    hear(fd, got, strlen(words));
    ck_assert_str_eq(got, words);
}

/* ${words} and then a reset */
static void expect_reset_after(int fd, const char *words)
{
    char got[256] = "";
    hear(fd, got, sizeof(got) - 1);
    ck_assert_int_eq(errno, ECONNRESET);
    ck_assert_str_eq(got, words);
}

static void expect_pass(void)
{
    struct ends e = ends_open();
    say(e.client, "question");
    expect_heard(e.server, "question");
    say(e.server, "answer");
    expect_heard(e.client, "answer");
    ends_close(e);
}

/* ---- tests ---- */

START_TEST(bytes_and_the_end_of_file_pass_in_both_directions)
{
    struct ends e = ends_open();
    char byte;
    say(e.client, "question");
    shutdown(e.client, SHUT_WR);
    expect_heard(e.server, "question");
    ck_assert_uint_eq(hear(e.server, &byte, 1), 0);
    ck_assert_int_eq(errno, 0);
    say(e.server, "answer");
    shutdown(e.server, SHUT_WR);
    expect_heard(e.client, "answer");
    ck_assert_uint_eq(hear(e.client, &byte, 1), 0);
    ck_assert_int_eq(errno, 0);
    ends_close(e);
}
END_TEST

enum { LARGE = 8 << 20 };

static char *large_bytes(void)
{
    char *bytes = malloc(LARGE);
    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    return bytes;
}

START_TEST(more_bytes_than_buffers_hold_pass_unchanged)
{
    struct ends e = ends_open();
    char *sent = large_bytes(), *got = malloc(LARGE);
    pid_t pid = fork();
    if (pid == 0) {
        for (ssize_t at = 0, put = 1; at < LARGE && put > 0; at += put)
            put = send(e.client, sent + at, (size_t)(LARGE - at), 0);
        _exit(0);
    }
    ck_assert_uint_eq(hear(e.server, got, LARGE), LARGE);
    ck_assert_mem_eq(got, sent, LARGE);
    waitpid(pid, NULL, 0);
    ends_close(e);
    free(sent);
    free(got);
}
END_TEST

START_TEST(cut_resets_all_connections_and_new_ones_pass)
{
    struct ends one = ends_open(), two = ends_open();
    fault_proxy_cut(proxy);
    expect_reset_after(one.client, "");
    expect_reset_after(one.server, "");
    expect_reset_after(two.client, "");
    expect_reset_after(two.server, "");
    ends_close(one);
    ends_close(two);
    expect_pass();
}
END_TEST

START_TEST(cut_after_passes_exactly_that_many_bytes)
{
    struct ends e = ends_open();
    enum fault_side side = _i == 0 ? TO_SERVER : TO_CLIENT;
    int from = side == TO_SERVER ? e.client : e.server;
    int to = side == TO_SERVER ? e.server : e.client;
    fault_proxy_cut_after(proxy, side, 12);
    say(from, "12345678");
    expect_heard(to, "12345678");
    say(from, "abcdefgh");
    expect_reset_after(to, "abcd");
    expect_reset_after(from, "");
    ck_assert_uint_eq(fault_proxy_cuts(proxy), 1);
    ends_close(e);
    expect_pass();
}
END_TEST

START_TEST(a_connection_is_cut_before_the_string_reaches_the_server)
{
    struct ends e = ends_open();
    fault_proxy_cut_at(proxy, "COMMIT", 6, CUT_BEFORE);
    say(e.client, "BEGIN COMMIT and more");
    expect_reset_after(e.server, "BEGIN ");
    expect_reset_after(e.client, "");
    ck_assert_uint_eq(fault_proxy_cuts(proxy), 1);
    ends_close(e);
    expect_pass();
}
END_TEST

START_TEST(a_string_in_two_packets_is_found)
{
    struct ends e = ends_open();
    fault_proxy_cut_at(proxy, "COMMIT", 6, CUT_BEFORE);
    say(e.client, "COM COMM");
    expect_heard(e.server, "COM COMM");
    say(e.client, "IT");
    expect_reset_after(e.server, "");
    expect_reset_after(e.client, "");
    ends_close(e);
}
END_TEST

START_TEST(what_passed_before_the_string_was_set_does_not_count)
{
    struct ends e = ends_open();
    fault_proxy_cut_at(proxy, "COMMIT", 6, CUT_BEFORE);
    say(e.client, "COMM");
    expect_heard(e.server, "COMM");
    fault_proxy_cut_at(proxy, "COMMIT", 6, CUT_BEFORE);
    say(e.client, "IT");
    expect_heard(e.server, "IT");
    ends_close(e);
}
END_TEST

START_TEST(a_connection_is_cut_behind_the_string)
{
    struct ends e = ends_open();
    fault_proxy_cut_at(proxy, "COMMIT", 7, CUT_BEHIND);
    ck_assert_int_eq(send(e.client, "BEGIN COMMIT", 13, 0), 13);
    expect_reset_after(e.server, "BEGIN COMMIT");
    expect_reset_after(e.client, "");
    ck_assert_uint_eq(fault_proxy_cuts(proxy), 1);
    ends_close(e);
    expect_pass();
}
END_TEST

START_TEST(the_answer_to_the_string_is_cut_off)
{
    struct ends e = ends_open();
    fault_proxy_cut_at(proxy, "COMMIT", 6, CUT_ANSWER);
    say(e.client, "BEGIN COMMIT");
    expect_heard(e.server, "BEGIN COMMIT");
    say(e.client, "more");
    expect_heard(e.server, "more");
    say(e.server, "done");
    expect_reset_after(e.client, "");
    expect_reset_after(e.server, "");
    ck_assert_uint_eq(fault_proxy_cuts(proxy), 1);
    ends_close(e);
    expect_pass();
}
END_TEST

static bool is_acknowledged(void *arg)
{
    int left = -1;
    return ioctl(*(int *)arg, SIOCOUTQ, &left) == 0 && left == 0;
}

START_TEST(dropped_bytes_are_not_acknowledged_and_arrive_later)
{
    struct ends e = ends_open();
    fault_proxy_drop(proxy);
    say(e.client, "question");
    say(e.server, "answer");
    ck_assert(!wait_until(is_acknowledged, &e.client, 100));
    ck_assert(!is_acknowledged(&e.server));
    fault_proxy_pass(proxy);
    expect_heard(e.server, "question");
    expect_heard(e.client, "answer");
    ends_close(e);
    expect_pass();
}
END_TEST

START_TEST(a_dropped_connection_ends_by_the_timeout_of_tcp)
{
    const unsigned timeout_ms = 200;
    struct ends e = ends_open();
    char byte;
    ck_assert_int_eq(
        setsockopt(e.client, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms)), 0);
    fault_proxy_drop(proxy);
    say(e.client, "question");
    ck_assert_uint_eq(hear(e.client, &byte, 1), 0);
    ck_assert_int_eq(errno, ETIMEDOUT);
    ends_close(e);
}
END_TEST

START_TEST(nobody_connects_while_packets_are_dropped)
{
    struct sockaddr_in at = loopback(fault_proxy_port(proxy));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    fault_proxy_drop(proxy);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), -1);
    ck_assert_int_eq(errno, EINPROGRESS);
    ck_assert_int_eq(poll(&p, 1, 100), 0);
    fault_proxy_pass(proxy);
    ck_assert_int_eq(poll(&p, 1, WITHIN_MS), 1);
    close(fd);
}
END_TEST

START_TEST(each_direction_is_delayed_by_itself)
{
    struct ends e = ends_open();
    fault_proxy_delay(proxy, TO_SERVER, 150);
    fault_proxy_delay(proxy, TO_CLIENT, 100);
    int64_t start = now_ms();
    say(e.client, "question");
    expect_heard(e.server, "question");
    int64_t heard = now_ms();
    say(e.server, "answer");
    expect_heard(e.client, "answer");
    ck_assert_int_ge(heard - start, 149);
    ck_assert_int_ge(now_ms() - heard, 99);
    ends_close(e);
}
END_TEST

START_TEST(pass_ends_every_fault)
{
    struct ends e = ends_open();
    fault_proxy_delay(proxy, TO_SERVER, 60000);
    fault_proxy_cut_after(proxy, TO_CLIENT, 3);
    fault_proxy_cut_at(proxy, "question", 8, CUT_BEFORE);
    fault_proxy_pass(proxy);
    ends_close(e);
    expect_pass();
    ck_assert_uint_eq(fault_proxy_cuts(proxy), 0);
}
END_TEST

START_TEST(a_server_that_refuses_resets_the_client)
{
    struct fault_proxy *usual = proxy;
    proxy = fault_proxy_new(loopback_port());
    int fd = client_open();
    expect_reset_after(fd, "");
    close(fd);
    fault_proxy_free(proxy);
    proxy = usual;
}
END_TEST

static bool is_refused(void *arg)
{
    struct sockaddr_in at = loopback(*(uint16_t *)arg);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool refused = connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

START_TEST(the_proxy_dies_with_its_process)
{
    int ports[2];
    uint16_t port = 0;
    ck_assert_int_eq(pipe(ports), 0);
    pid_t pid = fork();
    if (pid == 0) {
        port = fault_proxy_port(fault_proxy_new(1));
        _exit(write(ports[1], &port, sizeof(port)) != sizeof(port));
    }
    ck_assert_int_eq(read(ports[0], &port, sizeof(port)), sizeof(port));
    ck_assert(wait_until(is_refused, &port, WITHIN_MS));
    waitpid(pid, NULL, 0);
}
END_TEST

int main(void)
{
    suite_processes(2);
    Suite *suite = suite_create("fault_proxy");
    TCase *tcase = tcase_create("fault_proxy");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 30);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, bytes_and_the_end_of_file_pass_in_both_directions);
    tcase_add_test(tcase, more_bytes_than_buffers_hold_pass_unchanged);
    tcase_add_test(tcase, cut_resets_all_connections_and_new_ones_pass);
    tcase_add_loop_test(tcase, cut_after_passes_exactly_that_many_bytes, 0, 2);
    tcase_add_test(tcase, a_connection_is_cut_before_the_string_reaches_the_server);
    tcase_add_test(tcase, a_string_in_two_packets_is_found);
    tcase_add_test(tcase, what_passed_before_the_string_was_set_does_not_count);
    tcase_add_test(tcase, a_connection_is_cut_behind_the_string);
    tcase_add_test(tcase, the_answer_to_the_string_is_cut_off);
    tcase_add_test(tcase, dropped_bytes_are_not_acknowledged_and_arrive_later);
    tcase_add_test(tcase, a_dropped_connection_ends_by_the_timeout_of_tcp);
    tcase_add_test(tcase, nobody_connects_while_packets_are_dropped);
    tcase_add_test(tcase, each_direction_is_delayed_by_itself);
    tcase_add_test(tcase, pass_ends_every_fault);
    tcase_add_test(tcase, a_server_that_refuses_resets_the_client);
    tcase_add_test(tcase, the_proxy_dies_with_its_process);
    return suite_run(suite);
}
