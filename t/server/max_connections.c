/* A reload raises max_connections, with the descriptors and tables that it needs. */
#include "t/kit/harness.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct server *server;

enum { MANY = 1500, AGAIN = 300 };

static void setup(void)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 512; /* the server's limit until it raises it */
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    server = server_new(&(struct server_options){.workers = 1, .no_key = true});
    server_start_with(server, "max_connections: 100\ninternal_listen: 127.0.0.1:0");
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_msg(limit.rlim_max > 2 * MANY + 1024, "the test needs more than %d descriptors",
                  2 * MANY + 1024);
}

static void teardown(void)
{
    server_discard(server);
}

/* The status of a request on a connection from 127.1.x.y, which stays open in ${fd}. */
static int status_from(unsigned number, int *fd)
{
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(0x7f010000 + number)};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(server->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    struct timeval patience = {.tv_sec = 5};
    char answer[64] = "";
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert(*fd >= 0 &&
              setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
    ck_assert_int_eq(bind(*fd, (struct sockaddr *)&from, sizeof(from)), 0);
    ck_assert_int_eq(connect(*fd, (struct sockaddr *)&to, sizeof(to)), 0);
    ck_assert_int_gt(send(*fd, request, sizeof(request) - 1, MSG_NOSIGNAL), 0);
    return recv(*fd, answer, sizeof(answer) - 1, 0) > 12 ? atoi(answer + 9) : 0;
}

START_TEST(a_reload_raises_max_connections)
{
    struct server inside = server_internal(server);
    int fds[MANY], fd;
    pid_t old = server_process(server, "assayd: worker 0");
    server_configure(
        server, "max_connections: 3000\nmax_connections_per_ip: 1\ninternal_listen: 127.0.0.1:0");
    server_signal(server, SIGHUP);
    ck_assert_msg(server_replaces(server, "assayd: worker 0", old, 10000), "%s",
                  server_log(server));
    for (int64_t deadline = now_ms() + 20000; process_alive(old);)
        ck_assert(now_ms() < deadline);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_msg(status_from(i, &fds[i]) == 200, "the %u. connection", i + 1);
    for (unsigned i = 0; i < AGAIN; i++) {
        ck_assert_msg(status_from(MANY - 1 - i, &fd) == 503,
                      "the second connection of the %u. address", MANY - i);
        close(fd);
    }
    ck_assert_int_ge(metric(&inside, "assay_store_readers_max"),
                     4 * 512); /* the number of workers can be raised as well */
    size_t from = strlen(server_log(server));
    server_configure(server, "max_connections: 1000000\ninternal_listen: 127.0.0.1:0");
    server_signal(server, SIGHUP);
    ck_assert_msg(
        server_says(
            server,
            "reload refused: max_connections: raising it from 3000 to 1000000 needs a restart",
            from, 10000),
        "%s", server_log(server));
    for (unsigned i = 0; i < MANY; i++)
        close(fds[i]);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *suite = suite_create("max_connections");
    TCase *tcase = harness_case(suite, "few");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_reload_raises_max_connections);
    return harness_main(suite);
}
