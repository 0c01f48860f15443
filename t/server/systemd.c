/*
 * Notifications to the service manager (sd_notify(3)): ready, reloading, stopping, main process,
 * watchdog; and sockets from it (sd_listen_fds(3)). packaging/assay.service and assay.socket rely
 * on both.
 */
#include "t/kit/harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WATCHDOG_MS 1000

static struct server *server;
static int notifications = -1;

static void setup(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    server = server_new(&(struct server_options){.workers = 2});
    snprintf(sa.sun_path, sizeof(sa.sun_path), "/tmp/assay-notify.%d", (int)getpid());
    unlink(sa.sun_path);
    notifications = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(notifications, (struct sockaddr *)&sa, sizeof(sa)), 0);
    setenv("NOTIFY_SOCKET", sa.sun_path, 1);
}

static void teardown(void)
{
    server_discard(server);
    close(notifications);
    unlink(getenv("NOTIFY_SOCKET"));
}

static const char *next_notification(int within_ms)
{
    static char text[512];
    if (poll(&(struct pollfd){notifications, POLLIN, 0}, 1, within_ms) != 1)
        return "";
    ssize_t n = recv(notifications, text, sizeof(text) - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

/* the next message other than WATCHDOG=1 within a time, and how many of those came before it */
static const char *other_notification(int within_ms, unsigned *notified)
{
    const char *text;
    *notified = 0;
    for (int64_t end = now_ms() + within_ms; now_ms() < end; (*notified)++)
        if (strcmp(text = next_notification((int)(end - now_ms()) > 0 ? (int)(end - now_ms()) : 0),
                   "WATCHDOG=1") != 0)
            return text;
    return "";
}

START_TEST(systemd_is_notified_of_start_reload_and_stop)
{
    unsetenv("WATCHDOG_USEC");
    server_start(server);
    ck_assert_str_eq(next_notification(1000), "READY=1");
    server_signal(server, SIGHUP);
    const char *text = next_notification(5000);
    ck_assert_msg(strncmp(text, "RELOADING=1\nMONOTONIC_USEC=", 27) == 0 &&
                      strtoull(text + 27, NULL, 10) > 0,
                  "got: %s", text);
    ck_assert_str_eq(next_notification(15000), "READY=1");
    server_signal(server, SIGTERM);
    ck_assert_str_eq(next_notification(1000), "STOPPING=1");
    ck_assert_int_eq(server_wait(server, 15000), 0);
    ck_assert_str_eq(next_notification(0), "");
}
END_TEST

START_TEST(a_long_start_extends_its_timeout)
{
    unsetenv("WATCHDOG_USEC");
    /* so that the writer waits */
    int lock = open(text("%s/writer.lock", server->data), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0);
    server_spawn(server, NULL);
    for (int i = 0; i < 2; i++)
        ck_assert_str_eq(next_notification(10000), "EXTEND_TIMEOUT_USEC=60000000");
    close(lock);
    ck_assert_str_eq(next_notification(4000), "READY=1");
    server_stop(server);
}
END_TEST

START_TEST(a_long_stop_extends_its_timeout)
{
    unsetenv("WATCHDOG_USEC");
    server_start(server);
    struct raw *under_way = raw_open(server);
    raw_text(under_way, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_status(raw_response(under_way, false, 5000), 200);
    ck_assert_str_eq(next_notification(1000), "READY=1");
    raw_text(under_way,
             "GET /healthz HTTP/1.1\r\nHo"); /* the writer answers, so the server waits for it */
    poll(NULL, 0, 100);
    server_signal(server, SIGTERM);
    ck_assert_str_eq(next_notification(1000), "STOPPING=1");
    ck_assert_str_eq(next_notification(10000), "EXTEND_TIMEOUT_USEC=60000000");
    raw_text(under_way, "st: x\r\n\r\n");
    expect_status(raw_response(under_way, false, 5000), 200);
    raw_close(under_way);
    ck_assert_int_eq(server_wait(server, 15000), 0);
}
END_TEST

static void start_watched(void)
{
    unsigned notified;
    char usec[32];
    snprintf(usec, sizeof(usec), "%d", WATCHDOG_MS * 1000);
    setenv("WATCHDOG_USEC", usec, 1);
    unsetenv("WATCHDOG_PID");
    server_start(server);
    ck_assert_str_eq(other_notification(1000, &notified), "READY=1");
}

START_TEST(the_watchdog_is_notified_while_all_processes_progress)
{
    unsigned notified;
    start_watched();
    ck_assert_str_eq(other_notification(3 * WATCHDOG_MS, &notified), "");
    ck_assert_uint_ge(notified, 4);
    server_stop(server);
}
END_TEST

static const char *const stopped[] = {"assayd: worker 0", "assayd: worker 1", "assayd: writer"};

START_TEST(the_watchdog_is_not_notified_while_a_process_is_stuck)
{
    unsigned notified;
    start_watched();
    pid_t pid = server_process(server, stopped[_i]);
    ck_assert_int_gt(pid, 0);
    /* a process is new for an interval */
    ck_assert_str_eq(other_notification(WATCHDOG_MS + WATCHDOG_MS / 2, &notified), "");
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert_str_eq(other_notification(WATCHDOG_MS + WATCHDOG_MS / 2, &notified), "");
    ck_assert_str_eq(other_notification(WATCHDOG_MS * 2, &notified), "");
    ck_assert_uint_eq(notified, 0);
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    ck_assert_str_eq(other_notification(WATCHDOG_MS * 2, &notified), "");
    ck_assert_uint_ge(notified, 2);
    server_stop(server);
}
END_TEST

START_TEST(another_processs_watchdog_is_not_notified)
{
    unsigned notified;
    setenv("WATCHDOG_USEC", "100000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    server_start(server);
    ck_assert_str_eq(other_notification(1000, &notified), "READY=1");
    ck_assert_uint_eq(notified, 0);
    ck_assert_str_eq(next_notification(1000), "");
    server_stop(server);
}
END_TEST

/* ---- an upgrade ---- */

static char *line_of(const char *path)
{
    char line[256] = "";
    FILE *file = fopen(path, "r");
    if (file && !fgets(line, sizeof(line), file))
        line[0] = '\0';
    if (file)
        fclose(file);
    return text("%.*s", (int)strcspn(line, "\n"), line);
}

/* a notification and its sender */
static pid_t sender(char **state, int within_ms)
{
    static char buffer[512];
    char control[CMSG_SPACE(sizeof(struct ucred))];
    struct iovec io = {buffer, sizeof(buffer) - 1};
    struct msghdr message = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct ucred who = {0};
    *state = "";
    if (poll(&(struct pollfd){notifications, POLLIN, 0}, 1, within_ms) != 1)
        return 0;
    ssize_t n = recvmsg(notifications, &message, 0);
    buffer[n < 0 ? 0 : n] = '\0';
    *state = buffer;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_type == SCM_CREDENTIALS)
            memcpy(&who, CMSG_DATA(c), sizeof(who));
    return who.pid;
}

/*
 * A manager that accepts only the main process (NotifyAccess=main) misses nothing and gets nothing
 * from other processes.
 */
START_TEST(an_upgrade_names_the_new_main_process)
{
    int one = 1;
    char *state;
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    ck_assert_int_eq(setsockopt(notifications, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)), 0);
    setenv("WATCHDOG_USEC", "1000000", 1);
    unsetenv("WATCHDOG_PID");
    server_start(server);
    pid_t main_pid = server->pid;
    do
        ck_assert_int_eq(sender(&state, 1000), main_pid);
    while (strcmp(state, "WATCHDOG=1") == 0);
    ck_assert_str_eq(state, "READY=1");
    for (int round = 0; round < 2; round++) {
        bool named = false, ready = false;
        unsigned notified = 0;
        pid_t old = main_pid;
        kill(main_pid, SIGUSR2);
        for (int64_t deadline = now_ms() + 15000; now_ms() < deadline && notified < 3;) {
            pid_t who = sender(&state, 2000);
            ck_assert_msg(who == main_pid, "%d sends %s, but the main process is %d", (int)who,
                          state, (int)main_pid);
            named = named || sscanf(state, "MAINPID=%d", &main_pid) == 1;
            ready = ready || (named && strcmp(state, "READY=1") == 0);
            notified += ready && strcmp(state, "WATCHDOG=1") == 0;
        }
        ck_assert_msg(named && ready && notified == 3,
                      "named %d, ready %d, %u watchdog notifications\n%s", named, ready, notified,
                      server_log(server));
        ck_assert_int_ne(main_pid, old);
        ck_assert_int_eq(atoi(line_of(text("%s/assayd.pid", server->run))), main_pid);
        ck_assert_int_eq(server_wait(server, 15000), 0);
        server->pid = main_pid;
    }
    server_stop(server);
}
END_TEST

/*
 * Each of the two masters notifies twice per interval: the gap between the old one's last and the
 * new one's first must be shorter.
 */
START_TEST(the_new_main_process_notifies_the_watchdog_at_once)
{
    const char *state;
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    setenv("WATCHDOG_USEC", "20000000", 1);
    unsetenv("WATCHDOG_PID");
    server_start(server);
    server_signal(server, SIGUSR2);
    do
        state = next_notification(10000);
    while (strncmp(state, "MAINPID=", 8) != 0 && state[0] != '\0');
    ck_assert_msg(state[0] != '\0', "no new main process\n%s", server_log(server));
    pid_t new_master = atoi(state + 8);
    const char *first = strdup(next_notification(3000)), *second = strdup(next_notification(3000));
    bool ready = strcmp(first, "READY=1") == 0 || strcmp(second, "READY=1") == 0;
    bool notified = strcmp(first, "WATCHDOG=1") == 0 || strcmp(second, "WATCHDOG=1") == 0;
    ck_assert_msg(ready && notified, "got: %s, %s", first, second);
    ck_assert_int_eq(server_wait(server, 15000), 0);
    server->pid = new_master;
    server_stop(server);
}
END_TEST

START_TEST(systemd_is_notified_of_a_failed_upgrade)
{
    unsetenv("WATCHDOG_USEC");
    server_start(server);
    ck_assert_str_eq(next_notification(1000), "READY=1");
    server_configure(server, "colour: blue");
    for (int i = 0; i < 2; i++) {
        server_signal(server, SIGUSR2);
        ck_assert_str_eq(next_notification(1000), "STATUS=");
        const char *status = next_notification(15000);
        ck_assert_msg(strncmp(status, "STATUS=upgrade failed", 21) == 0, "got: %s", status);
    }
    /* and not server_stop, which takes the logged refusal for an error */
    kill(server->pid, SIGTERM);
    ck_assert_int_eq(server_wait(server, 20000), 0);
}
END_TEST

/* ---- socket activation ---- */

static int listen_at(int family, const char *path, uint16_t *port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    socklen_t size = sizeof(in);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (family == AF_UNIX) {
        strcpy(un.sun_path, path);
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    } else {
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
        ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &size), 0);
        *port = ntohs(in.sin_port);
    }
    ck_assert_int_eq(listen(fd, 64), 0);
    return fd;
}

/* as systemd starts it: sockets from descriptor 3 on, for the process ${whose} (0: itself) */
static void activate(const int *fds, int count, pid_t owner, const char *address)
{
    int out[2], log = open(server->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    pid_t self = getpid();
    server->pid = fork();
    ck_assert_int_ge(server->pid, 0);
    if (server->pid == 0) {
        int given[8];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self)
            _exit(127);
        for (int i = 0; i < count; i++)
            given[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64);
        dup2(out[1], 1);
        dup2(log, 2);
        for (int i = 0; i < count; i++)
            dup2(given[i], 3 + i);
        setenv("LISTEN_FDS", text("%d", count), 1);
        setenv("LISTEN_PID", text("%d", (int)(owner != 0 ? owner : getpid())), 1);
        execl(assayd_path(), assayd_path(), "-c", server->conf, "--set",
              text("listen.0.address=%s", address), NULL);
        _exit(127);
    }
    close(out[1]);
    close(log);
    server->output = out[0];
}

static struct response *ask(int fd, bool send_it)
{
    struct raw *raw = calloc(1, sizeof(*raw));
    raw->fd = fd;
    if (send_it)
        raw_text(raw, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return raw_response(raw, false, 15000);
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    return fd;
}

START_TEST(a_passed_socket_is_served_with_its_queued_connections)
{
    uint16_t port;
    int given = listen_at(AF_INET, NULL, &port), early = connect_to(port);
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    unsetenv("WATCHDOG_USEC");
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    ck_assert_int_eq(write(early, request, sizeof(request) - 1), (ssize_t)sizeof(request) - 1);
    activate(&given, 1, 0, text("127.0.0.1:%u", port));
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    ck_assert_uint_eq(server->port, port);
    expect_status(ask(early, false), 200);
    int unsent = 0;
    socklen_t size = sizeof(unsent);
    ck_assert_int_eq(getsockopt(given, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, &size), 0);
    ck_assert_int_eq(unsent, 128 << 10); /* like its own socket */
    close(given);
    for (int i = 0; i < 20; i++)
        expect_status(ask(connect_to(port), true), 200);
    pid_t first = server_process(server, "assayd: worker 0");
    ck_assert_int_gt(first, 0);
    server_signal(server, SIGUSR2);
    ck_assert_int_eq(server_wait(server, 20000), 0);
    server->pid = (pid_t)atoi(line_of(text("%s/assayd.pid", server->run)));
    ck_assert_int_ne(server_process(server, "assayd: worker 0"), 0);
    for (int i = 0; i < 20; i++)
        expect_status(ask(connect_to(port), true), 200);
    server_stop(server);
}
END_TEST

START_TEST(a_passed_unix_socket_keeps_its_path)
{
    char *path = text("%s/http.sock", server->run);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int given = listen_at(AF_UNIX, path, NULL), fd;
    unsetenv("WATCHDOG_USEC");
    activate(&given, 1, 0, text("unix:%s", path));
    char line[128] = "";
    for (size_t n = 0;
         n < sizeof(line) - 1 && read(server->output, line + n, 1) == 1 && line[n] != '\n'; n++)
        ;
    ck_assert_msg(strstr(line, text("ready unix:%s", path)) != NULL, "%s\n%s", line,
                  server_log(server));
    strcpy(un.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    expect_status(ask(fd, true), 200);
    server_stop(server);
    ck_assert_int_eq(access(path, F_OK), 0);
    close(given);
}
END_TEST

START_TEST(a_socket_passed_to_another_process_is_ignored)
{
    uint16_t port;
    int given = listen_at(AF_INET, NULL, &port);
    unsetenv("WATCHDOG_USEC");
    activate(&given, 1, 1, text("127.0.0.1:%u", port));
    ck_assert_int_eq(server_wait(server, 15000), 2);
    ck_assert_msg(strstr(server_log(server), "in use") != NULL, "%s", server_log(server));
    close(given);
}
END_TEST

START_TEST(an_unused_passed_socket_is_closed_with_a_warning)
{
    uint16_t port;
    int given = listen_at(AF_INET, NULL, &port), ends[2];
    unsetenv("WATCHDOG_USEC");
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    activate((int[]){given, ends[1]}, 2, 0, "127.0.0.1:0");
    close(ends[1]);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    ck_assert_uint_ne(server->port, port);
    ck_assert_msg(strstr(server_log(server), "descriptor 3 matches no address") != NULL, "%s",
                  server_log(server));
    ck_assert_msg(strstr(server_log(server), "descriptor 4 is not a listening stream socket") !=
                      NULL,
                  "%s", server_log(server));
    /* its other end is closed */
    ck_assert_int_eq(poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, 1000), 1);
    close(ends[0]);
    expect_status(ask(connect_to(server->port), true), 200);
    server_stop(server);
    close(given);
}
END_TEST

static TCase *case_new(Suite *suite, const char *name)
{
    TCase *tcase = harness_case(suite, name);
    tcase_add_checked_fixture(tcase, setup, teardown);
    return tcase;
}

int main(void)
{
    Suite *suite = suite_create("systemd");
    TCase *tcase = case_new(suite, "a server each");
    tcase_add_test(tcase, systemd_is_notified_of_start_reload_and_stop);
    tcase_add_test(tcase, another_processs_watchdog_is_not_notified);
    tcase_add_test(tcase, an_upgrade_names_the_new_main_process);
    tcase_add_test(tcase, the_new_main_process_notifies_the_watchdog_at_once);
    tcase_add_test(tcase, systemd_is_notified_of_a_failed_upgrade);
    tcase_add_test(tcase, a_passed_socket_is_served_with_its_queued_connections);
    tcase_add_test(tcase, a_passed_unix_socket_keeps_its_path);
    tcase_add_test(tcase, a_socket_passed_to_another_process_is_ignored);
    tcase_add_test(tcase, an_unused_passed_socket_is_closed_with_a_warning);
    /* these wait for 5 to 10 seconds of the server's time */
    tcase_add_test(case_new(suite, "a long start"), a_long_start_extends_its_timeout);
    tcase = case_new(suite, "a long stop, and a watchdog that is fed");
    tcase_add_test(tcase, a_long_stop_extends_its_timeout);
    tcase_add_test(tcase, the_watchdog_is_notified_while_all_processes_progress);
    for (int i = 0; i < (int)COUNT(stopped); i++)
        tcase_add_loop_test(case_new(suite, text("a watchdog %d", i)),
                            the_watchdog_is_not_notified_while_a_process_is_stuck, i, i + 1);
    return harness_main_at_once(suite);
}
