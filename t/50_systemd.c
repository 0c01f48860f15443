/* What the service manager is told: ready, reloading, stopping, and that all is well, sd_notify(3). packaging/assay.service rests on it. */
#include "harness.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WATCHDOG_MS 1000

static struct server *server;
static int told = -1;

static void setup(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    server = server_new(&(struct server_options){.workers = 2});
    snprintf(sa.sun_path, sizeof(sa.sun_path), "/tmp/assay-notify.%d", (int)getpid());
    unlink(sa.sun_path);
    told = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(told, (struct sockaddr *)&sa, sizeof(sa)), 0);
    setenv("NOTIFY_SOCKET", sa.sun_path, 1);
}

static void teardown(void)
{
    if (server->pid > 0) {
        kill(server->pid, SIGKILL);
        server_wait(server, 5000);
    }
    server_free(server);
    close(told);
    unlink(getenv("NOTIFY_SOCKET"));
}

static const char *next_told(int within_ms)
{
    static char text[512];
    if (poll(&(struct pollfd){told, POLLIN, 0}, 1, within_ms) != 1)
        return "";
    ssize_t n = recv(told, text, sizeof(text) - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

/* what comes within a time of anything but WATCHDOG=1, and how many of those before it */
static const char *told_beside_the_watchdog(int within_ms, unsigned *fed)
{
    const char *text;
    *fed = 0;
    for (int64_t end = now_ms() + within_ms; now_ms() < end; (*fed)++)
        if (strcmp(text = next_told((int)(end - now_ms()) > 0 ? (int)(end - now_ms()) : 0), "WATCHDOG=1") != 0)
            return text;
    return "";
}

START_TEST(a_start_a_reload_and_a_stop_are_told)
{
    unsetenv("WATCHDOG_USEC");
    server_start(server);
    ck_assert_str_eq(next_told(1000), "READY=1");
    server_signal(server, SIGHUP);
    const char *text = next_told(5000);
    ck_assert_msg(strncmp(text, "RELOADING=1\nMONOTONIC_USEC=", 27) == 0 && strtoull(text + 27, NULL, 10) > 0, "told: %s", text);
    ck_assert_str_eq(next_told(15000), "READY=1");
    server_signal(server, SIGTERM);
    ck_assert_str_eq(next_told(1000), "STOPPING=1");
    ck_assert_int_eq(server_wait(server, 15000), 0);
    ck_assert_str_eq(next_told(0), "");
}
END_TEST

static void start_watched(void)
{
    unsigned fed;
    char usec[32];
    snprintf(usec, sizeof(usec), "%d", WATCHDOG_MS * 1000);
    setenv("WATCHDOG_USEC", usec, 1);
    unsetenv("WATCHDOG_PID");
    server_start(server);
    ck_assert_str_eq(told_beside_the_watchdog(1000, &fed), "READY=1");
}

START_TEST(the_watchdog_is_fed_while_all_move)
{
    unsigned fed;
    start_watched();
    ck_assert_str_eq(told_beside_the_watchdog(3 * WATCHDOG_MS, &fed), "");
    ck_assert_uint_ge(fed, 4);
    server_stop(server);
}
END_TEST

static const char *const stopped[] = {"assayd: worker 0", "assayd: worker 1", "assayd: writer"};

START_TEST(the_watchdog_is_not_fed_while_one_does_not_move)
{
    unsigned fed;
    start_watched();
    pid_t pid = server_process(server, stopped[_i]);
    ck_assert_int_gt(pid, 0);
    ck_assert_str_eq(told_beside_the_watchdog(WATCHDOG_MS + WATCHDOG_MS / 2, &fed), ""); /* a process is young for an interval */
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert_str_eq(told_beside_the_watchdog(WATCHDOG_MS + WATCHDOG_MS / 2, &fed), "");
    ck_assert_str_eq(told_beside_the_watchdog(WATCHDOG_MS * 2, &fed), "");
    ck_assert_uint_eq(fed, 0);
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    ck_assert_str_eq(told_beside_the_watchdog(WATCHDOG_MS * 2, &fed), "");
    ck_assert_uint_ge(fed, 2);
    server_stop(server);
}
END_TEST

START_TEST(another_processs_watchdog_is_not_fed)
{
    unsigned fed;
    setenv("WATCHDOG_USEC", "100000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    server_start(server);
    ck_assert_str_eq(told_beside_the_watchdog(1000, &fed), "READY=1");
    ck_assert_uint_eq(fed, 0);
    ck_assert_str_eq(next_told(1000), "");
    server_stop(server);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("systemd");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_start_a_reload_and_a_stop_are_told);
    tcase_add_test(tcase, the_watchdog_is_fed_while_all_move);
    tcase_add_loop_test(tcase, the_watchdog_is_not_fed_while_one_does_not_move, 0, COUNT(stopped));
    tcase_add_test(tcase, another_processs_watchdog_is_not_fed);
    return harness_main(suite);
}
