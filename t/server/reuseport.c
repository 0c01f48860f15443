/*
 * Reloads that change `workers`: sockets are added and removed. Runs in a network namespace, where
 * a handshake ends within seconds.
 */
#include "t/kit/load.h"

#include "t/kit/audit_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static struct server *server;

static void handshakes_are_repeated(unsigned times)
{
    FILE *file = fopen("/proc/sys/net/ipv4/tcp_synack_retries", "w");
    ck_assert_msg(file && fprintf(file, "%u\n", times) > 0 && fclose(file) == 0,
                  "tcp_synack_retries: %s", strerror(errno));
}

static void setup(void)
{
    handshakes_are_repeated(0);
    server = server_new(&(struct server_options){.workers = 8});
}

static void teardown(void)
{
    server_discard(server);
}

/* sockets that listen on the server's port */
static unsigned listening(void)
{
    char line[512];
    unsigned port, state, count = 0;
    FILE *file = fopen("/proc/self/net/tcp", "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, " %*d: %*8x:%4x %*8x:%*4x %2x", &port, &state) == 2 &&
            port == server->port && state == 0x0a)
            count++;
    fclose(file);
    return count;
}

static bool listening_are(void *count)
{
    return listening() == *(unsigned *)count;
}

static bool children_are(void *workers)
{
    return server_children(server, NULL, 0) == 2 + *(unsigned *)workers;
}

/* every worker is a new one */
static void reload(unsigned workers)
{
    pid_t first = server_process(server, "assayd: worker 0");
    server->options.workers = workers;
    server_configure(server, "");
    server_signal(server, SIGHUP);
    bool done = false;
    for (int64_t deadline = now_ms() + 30000; !done && now_ms() < deadline; poll(NULL, 0, 20))
        done = server_process(server, "assayd: worker 0") != first && children_are(&workers);
    ck_assert_msg(done, "not %u workers\n%s", workers, server_log(server));
}

START_TEST(workers_and_their_sockets_change_under_load)
{
    static struct load loads[6] = {{.fresh = true}, {.fresh = true}, {.fresh = true},
                                   {.fresh = true}, {.fresh = true}, {.fresh = true}};
    static unsigned many = 8, few = 2;
    server_start(server);
    ck_assert_uint_eq(listening(), many);
    load_start(server, loads, COUNT(loads));
    for (int cycle = 0; cycle < 10; cycle++) {
        reload(few);
        /* otherwise they are reused before or while they are closed */
        if (cycle % 2 == 0)
            ck_assert_msg(wait_until(listening_are, &few, 20000), "%u sockets listen\n%s",
                          listening(), server_log(server));
        reload(many);
        ck_assert_msg(wait_until(listening_are, &many, 5000), "%u sockets listen\n%s", listening(),
                      server_log(server));
    }
    load_end(loads, COUNT(loads), 21);
    server_stop(server);
}
END_TEST

/* ---- handshakes ---- */

/*
 * ${deaf}: the server's listening sockets accept only SYNs, so that clients see a connection and
 * the server does not
 */
static void make_unresponsive(bool unresponsive)
{
    struct sock_filter flags_with_ack_are_dropped[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x10, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog filter = {.len = COUNT(flags_with_ack_are_dropped),
                                .filter = flags_with_ack_are_dropped};
    int master = (int)syscall(SYS_pidfd_open, server->pid, 0), is_listening = 0, done = 0;
    ck_assert_msg(master >= 0, "pidfd_open: %s", strerror(errno));
    for (int theirs = 3; theirs < 64; theirs++) {
        int fd = (int)syscall(SYS_pidfd_getfd, master, theirs, 0);
        struct sockaddr_in at = {0};
        if (fd >= 0 &&
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening,
                       &(socklen_t){sizeof(is_listening)}) == 0 &&
            is_listening &&
            getsockname(fd, (struct sockaddr *)&at, &(socklen_t){sizeof(at)}) == 0 &&
            at.sin_family == AF_INET)
            done += !(unresponsive
                          ? setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter))
                          : setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &(int){0}, sizeof(int)));
        close(fd);
    }
    close(master);
    ck_assert_int_ge(done, unresponsive ? 8 : 2);
}

START_TEST(a_handshake_before_a_slot_is_removed_is_answered)
{
    struct raw *raws[48];
    unsigned few = 2;
    server_start(server);
    handshakes_are_repeated(4);
    make_unresponsive(true);
    for (size_t i = 0; i < COUNT(raws); i++) {
        raws[i] = raw_open(server);
        raw_text(raws[i], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    reload(few);
    make_unresponsive(false);
    for (size_t i = 0; i < COUNT(raws); i++)
        expect_status(raw_response(raws[i], false, 20000), 200);
    server_stop(server);
}
END_TEST

/* ---- new slots ---- */

START_TEST(a_refused_reload_with_more_workers_leaves_no_connection_waiting)
{
    char *certificate = text("%s/cert.pem", server->dir);
    server->options.workers = 1;
    server_configure(server, "");
    ck_assert(net_write_good(server->dir));
    server_spawn(server, "--set", "listen.1.address=127.0.0.1:0", "--set",
                 text("listen.1.tls.certificate=%s", certificate), "--set",
                 text("listen.1.tls.key=%s/key.pem", server->dir), NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    FILE *file = fopen(certificate, "w");
    ck_assert(file && fputs("no certificate\n", file) > 0 && fclose(file) == 0);
    server->options.workers = 8;
    server_configure(server, "");
    server_signal(server, SIGHUP);
    ck_assert_msg(server_says(server, "reload refused", 0, 10000), "%s", server_log(server));
    for (int i = 0; i < 40; i++)
        expect_status(http(server, .path = "/healthz", .timeout_ms = 5000), 200);
    server_stop(server);
}
END_TEST

START_TEST(connections_do_not_wait_for_workers_that_fail_to_start)
{
    static unsigned many = 8;
    char *secrets = text("%s/secrets", server->data), *away = text("%s/away", server->data);
    server->options.workers = 1;
    server_configure(server, "");
    server_start(server);
    ck_assert_int_eq(rename(secrets, away), 0); /* a worker started from here on fails */
    server->options.workers = many;
    server_configure(server, "");
    server_signal(server, SIGHUP);
    ck_assert_msg(server_says(server, "did not start", 0, 10000), "%s", server_log(server));
    for (int i = 0; i < 40; i++)
        expect_status(http(server, .path = "/healthz", .timeout_ms = 3000), 200);
    ck_assert_int_eq(rename(away, secrets), 0);
    ck_assert_msg(wait_until(children_are, &many, 20000), "%s", server_log(server));
    server_signal(server, SIGTERM);
    ck_assert_int_eq(server_wait(server, 10000), 0);
}
END_TEST

int main(void)
{
    const char *why;
    if (!net_enter("10.9.8.7", &why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    Suite *suite = suite_create("reuseport");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, workers_and_their_sockets_change_under_load);
    tcase_add_test(tcase, a_handshake_before_a_slot_is_removed_is_answered);
    tcase_add_test(tcase, a_refused_reload_with_more_workers_leaves_no_connection_waiting);
    tcase_add_test(tcase, connections_do_not_wait_for_workers_that_fail_to_start);
    return harness_main(suite);
}
