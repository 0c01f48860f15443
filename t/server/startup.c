/* The start of a server: configuration, addresses in use, and the first and last log lines. */
#include "config.h"
#include "t/kit/harness.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct server *server;

static void setup(void)
{
    server = server_new(&(struct server_options){0});
}

static void teardown(void)
{
    server_discard(server);
}

/* ---- configuration and start ---- */

START_TEST(a_good_configuration_passes_the_check)
{
    struct run run = run_program(assayd_path(), "-t", "-c", server->conf, NULL);
    ck_assert_msg(run.status == 0, "%d: %s%s", run.status, run.out, run.err);
}
END_TEST

static const struct {
    const char *yaml;    /* line 9 on */
    const char *says[3]; /* each must be in its message */
} mistakes[] = {
    {"wrokers: 2", {":9:", "wrokers"}},
    {"reports: { wait: soon }", {":9:", "reports.wait"}},
    {"reports: { good: 101 }", {":9:", "reports.good"}},
    {"timeouts: { header: -1s }", {":9:", "timeouts.header"}},
    {"max_connections: 12abc", {":9:", "max_connections"}},
    {"trusted_proxies: [10.0.0.1/8]", {":9:", "trusted_proxies"}},
    {"log: { level: loud }", {":9:", "log.level"}},
    {"store: 5", {":9:", "store"}},
    {"reports: { good: 101 }\nlog: { level: loud }\ncolour: blue", {":9:", ":10:", ":11:"}},
    {"store: { map_size: 1GiB", {"assay.yaml"}},
    {"max_connections: 5\nmax_connections: 6", {"max_connections"}},
};

START_TEST(a_wrong_configuration_is_refused_with_file_line_and_cause)
{
    server_configure(server, mistakes[_i].yaml);
    for (int check = 0; check < 2; check++) {
        struct run run = run_program(assayd_path(), "-c", server->conf, check ? "-t" : NULL, NULL);
        ck_assert_msg(run.status == 1, "exit status %d: %s%s", run.status, run.out, run.err);
        ck_assert_msg(strstr(run.err, server->conf) != NULL, "no file in: %s", run.err);
        for (size_t i = 0; i < COUNT(mistakes[_i].says) && mistakes[_i].says[i]; i++)
            ck_assert_msg(strstr(run.err, mistakes[_i].says[i]) != NULL, "no %s in: %s",
                          mistakes[_i].says[i], run.err);
    }
}
END_TEST

START_TEST(a_missing_configuration_file_is_refused)
{
    struct run run = run_program(assayd_path(), "-c", "/nowhere/assay.yaml", NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, "/nowhere/assay.yaml"), "%d: %s", run.status,
                  run.err);
}
END_TEST

START_TEST(set_overrides_one_key)
{
    server_spawn(server, "--set", "workers=3", NULL);
    ck_assert(server_ready(server, 15000));
    ck_assert_msg(strstr(server->ready, " workers=3 auditors=1") != NULL, "%s", server->ready);
    ck_assert_int_gt(server_process(server, "assayd: worker 2"), 0);
    server_stop(server);
    struct run run = run_program(assayd_path(), "-c", server->conf, "--set", "nonsense=1", NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, "nonsense"), "%d: %s", run.status, run.err);
}
END_TEST

START_TEST(help_and_version_are_printed)
{
    struct run help = run_program(assayd_path(), "-h", NULL),
               version = run_program(assayd_path(), "-V", NULL);
    ck_assert_msg(help.status == 0 && strstr(help.out, "--set"), "%d: %s", help.status, help.out);
    ck_assert_msg(version.status == 0 && strpbrk(version.out, "0123456789"), "%d: %s",
                  version.status, version.out);
    ck_assert_int_ne(run_program(assayd_path(), "--nonsense", NULL).status, 0);
}
END_TEST

/* A second server with the given key of the first one must be refused. */
static const char *const shared_keys[] = {"listen.0.address", "data_dir", "run_dir"};

START_TEST(a_second_server_on_the_same_port_or_directory_is_refused)
{
    server_start(server);
    struct server *other = server_new(&(struct server_options){.no_key = true});
    const char *values[] = {server->address, server->data, server->run};
    struct run run = run_program(assayd_path(), "-c", other->conf, "--set",
                                 text("%s=%s", shared_keys[_i], values[_i]), NULL);
    ck_assert_msg(run.status == 2, "exit status %d: %s%s", run.status, run.out, run.err);
    ck_assert_msg(strstr(run.err, values[_i]) != NULL, "%s is not in: %s", values[_i], run.err);
    ck_assert_msg(strstr(run.err, text("in use by pid %d (assayd: master): stop", server->pid)) !=
                      NULL,
                  "%s", run.err);
    ck_assert_msg(strstr(run.err, text("or set %s to another", shared_keys[_i])) != NULL, "%s",
                  run.err);
    expect_status(http_get(server, "/api/v1/reports"), 200);
    server_free(other);
    server_stop(server);
}
END_TEST

/* Columns: the value of --set for our listening socket; the option that the message names. */
static const struct {
    const char *form, *option;
} taken[] = {
    {"listen.0.address=127.0.0.1:%u", "set listen.0.address to"},
    {"listen.0.address=0.0.0.0:%u", "set listen.0.address to"},
    {"internal_listen=127.0.0.1:%u", "set internal_listen to"},
};

START_TEST(an_address_in_use_is_reported_with_its_process)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    char name[32] = "";
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert(bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 1) == 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    prctl(PR_GET_NAME, name);
    const char *set = text(taken[_i].form, ntohs(address.sin_port));
    struct run run = run_program(assayd_path(), "-c", server->conf, "--set", set, NULL);
    ck_assert_msg(run.status == 2 && strstr(run.err, strchr(set, '=') + 1), "%d: %s", run.status,
                  run.err);
    ck_assert_msg(strstr(run.err, text("is in use by pid %d (%s)", (int)getpid(), name)), "%s",
                  run.err);
    ck_assert_msg(strstr(run.err, taken[_i].option), "%s", run.err);
    close(fd);
}
END_TEST

START_TEST(a_unix_socket_in_use_is_reported_with_its_process)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/taken.sock", server->dir);
    ck_assert(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1) == 0);
    const char *set = text("listen.0.address=unix:%s", address.sun_path);
    struct run run = run_program(assayd_path(), "-c", server->conf, "--set", set, NULL);
    ck_assert_msg(run.status == 2 && strstr(run.err, text("is in use by pid %d (", (int)getpid())),
                  "%d: %s", run.status, run.err);
    close(fd);
}
END_TEST

START_TEST(an_address_given_twice_is_reported)
{
    server_start(server); /* for a port that is free after the test */
    const char *address = text("%s", server->address);
    server_stop(server);
    struct run run = run_program(assayd_path(), "-c", server->conf, "--set",
                                 text("listen.0.address=%s", address), "--set",
                                 text("internal_listen=%s", address), NULL);
    ck_assert_msg(run.status == 2 && strstr(run.err, "by another listener of this configuration"),
                  "%d: %s", run.status, run.err);
}
END_TEST

/* ---- the first and last lines of the log ---- */

START_TEST(the_log_names_the_start_the_listeners_and_the_reason_to_stop)
{
    server_start(server);
    const char *log = server_log(server);
    ck_assert_msg(
        strstr(log, "\"process\":\"master\",\"message\":\"assayd " PACKAGE_VERSION " starts: "),
        "%s", log);
    ck_assert_msg(strstr(log, text("configuration %s", server->conf)), "%s", log);
    ck_assert_msg(strstr(log, text(", pid %d, workers 2, auditors 1, listeners http://%s",
                                   server->pid, server->address)),
                  "%s", log);
    expect_status(http_get(server, "/healthz"), 200);
    server_stop(server);
    log = strstr(server_log(server), "assayd " PACKAGE_VERSION " ends: ");
    ck_assert_msg(log != NULL, "%s", server_log(server));
    ck_assert_msg(
        strstr(log, text("ends: SIGTERM from pid %d; exit status 0, uptime ", (int)getpid())), "%s",
        log);
    ck_assert_msg(strstr(log, " requests answered") && !strstr(log, " 0 requests answered"), "%s",
                  log);
}
END_TEST

START_TEST(a_server_without_a_file_logs_that_it_uses_defaults)
{
    bool has_file = access("/etc/assay/assay.yaml", F_OK) == 0;
    struct watched *w =
        watch_start(BY_TERMINAL, NULL, assayd_path(), "--set", text("data_dir=%s", server->data),
                    "--set", text("run_dir=%s", server->run), "--set", "user=", "--set",
                    "listen.0.address=127.0.0.1:0", NULL);
    watch_expect(w, has_file ? "configuration /etc/assay/assay.yaml and 4 --set, pid"
                             : "configuration built-in defaults and 4 --set, pid");
    ck_assert_int_eq(kill(w->pid, SIGTERM), 0);
    ck_assert_int_eq(watch_wait(w), 0);
    watch_close(w);
}
END_TEST

START_TEST(a_server_that_cannot_start_logs_that_it_exits)
{
    char *dir = text("%s/none", server->dir);
    struct run run = run_program(assayd_path(), "--set", text("data_dir=%s/data", dir), "--set",
                                 text("run_dir=%s/run", server->dir), "--set", "user=", NULL);
    ck_assert_int_eq(run.status, 2);
    ck_assert_msg(strstr(run.err, "ends: it could not start; exit status 2"), "%s", run.err);
    ck_assert_msg(!strstr(run.err, " starts: "), "%s", run.err);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("startup");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_good_configuration_passes_the_check);
    tcase_add_loop_test(tcase, a_wrong_configuration_is_refused_with_file_line_and_cause, 0,
                        COUNT(mistakes));
    tcase_add_test(tcase, a_missing_configuration_file_is_refused);
    tcase_add_test(tcase, set_overrides_one_key);
    tcase_add_test(tcase, help_and_version_are_printed);
    tcase_add_loop_test(tcase, a_second_server_on_the_same_port_or_directory_is_refused, 0,
                        COUNT(shared_keys));
    tcase_add_loop_test(tcase, an_address_in_use_is_reported_with_its_process, 0, COUNT(taken));
    tcase_add_test(tcase, a_unix_socket_in_use_is_reported_with_its_process);
    tcase_add_test(tcase, an_address_given_twice_is_reported);
    tcase_add_test(tcase, the_log_names_the_start_the_listeners_and_the_reason_to_stop);
    tcase_add_test(tcase, a_server_without_a_file_logs_that_it_uses_defaults);
    tcase_add_test(tcase, a_server_that_cannot_start_logs_that_it_exits);
    return harness_main_at_once(suite);
}
