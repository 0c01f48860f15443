/*
 * USR2: another binary takes over, or the old one continues when either fails
 * (core/master/upgrade.h).
 */
#include "t/kit/upgrades.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* a shell script in place of the program */
static void point_at_script(const char *script)
{
    char *path = text("%s/script", server->dir);
    unlink(path);
    FILE *file = fopen(path, "w");
    ck_assert(file != NULL && fprintf(file, "#!/bin/sh\n%s\n", script) > 0);
    ck_assert(fchmod(fileno(file), 0755) == 0 && fclose(file) == 0);
    upgrades_point_at(path);
}

static size_t log_size(void)
{
    char *log = server_log(server);
    size_t size = strlen(log);
    free(log);
    return size;
}

static struct response *create(void)
{
    return http(server, .method = "POST", .path = "/api/v1/reports",
                .headers = {"Prefer: respond-async"}, .body = "url=http://x.test/");
}

START_TEST(a_new_binary_takes_over_and_the_old_one_exits)
{
    struct response *r = http_get(server, "/api/v1/reports");
    long before = atol(header(r, "X-RateLimit-Remaining"));
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(upgrades_master(), server->pid);
        if (i == 3) { /* what a restart would reset */
            upgrades_slots = 4096;
            upgrades_configure("");
        }
        expect_end(upgrade());
        r = http_get(server, "/api/v1/reports");
        ck_assert_int_eq(atol(header(r, "X-RateLimit-Remaining")), before - i);
    }
    ck_assert(server_ready(server, 1000));
    expect_service(2);
    ck_assert_str_eq(process_title(server->pid), "assayd: master");
    server_stop(server);
    ck_assert_int_eq(access(text("%s/assayd.pid", server->run), F_OK), -1);
    server_start(server);
    expect_service(2);
    server_stop(server);
}
END_TEST

START_TEST(an_upgrade_passes_unix_sockets_of_any_path)
{
    server_stop(server);
    upgrades_configure(text("internal_listen: \"unix:%s/of operators 1,2.sock\"", server->dir));
    server_start(server);
    for (int i = 0; i < 2; i++)
        expect_end(upgrade());
    expect_service(2);
    struct run stats = assay(server, "stats", NULL);
    ck_assert_msg(strstr(stats.out, ", configuration generation 2,") != NULL, "%s", stats.out);
    server_stop(server);
}
END_TEST

static const unsigned worker_counts[] = {4, 1, 3};

START_TEST(the_new_master_has_its_own_workers)
{
    for (size_t i = 0; i < COUNT(worker_counts); i++) {
        server->options.workers = worker_counts[i];
        upgrades_configure("");
        expect_end(upgrade());
        for (int k = 0; k < 20; k++)
            expect_status(http_get(server, "/api/v1/reports"), 200);
        expect_service(worker_counts[i]);
    }
    server_stop(server);
}
END_TEST

/* ---- the old master continues ---- */

/* The program started instead, the configuration, and the message of the old master. */
#define OTHER_DATA "# another data_dir"
static const struct {
    const char *script, *yaml, *says;
} failures[] = {
    {"exit 7", "", "ended with status 7"},
    {"kill -9 $$", "", "killed by signal 9"},
    {NULL, "", "ended with status 127"}, /* there is none */
    {"exec sleep 100", "timeouts: { upgrade: 1s, drain: 20s }\nlimits: { slots: 65536 }",
     "does not serve in time"},
    {NULL, "colour: blue", "ended with status 1"},
    {NULL, OTHER_DATA, "ended with status 2"},
    {NULL, "internal_listen: 192.0.2.1:1", "ended with status 2"},
};

static bool have_exited(void *pids)
{
    bool gone = true;
    for (size_t i = 0; i < 4; i++)
        gone = gone && !process_alive(((pid_t *)pids)[i]);
    return gone;
}

START_TEST(the_old_master_continues_when_the_new_one_fails)
{
    pid_t before[8], after[8];
    ck_assert_uint_eq(server_children(server, before, COUNT(before)), 4);
    if (strstr(failures[_i].yaml, "upgrade: 1s")) { /* the old master's timeout */
        server_configure(server, failures[_i].yaml);
        server_signal(server, SIGHUP);
        expect_logged("reloading", 0, 10000);
        ck_assert(wait_until(have_exited, before, 30000) &&
                  wait_until(upgrades_has_children, &(size_t){4}, 30000));
    }
    ck_assert_uint_eq(server_children(server, before, COUNT(before)), 4);
    if (failures[_i].script != NULL)
        point_at_script(text(failures[_i].script, upgrades_assayd));
    else if (failures[_i].yaml[0] == '\0')
        upgrades_point_at("/nowhere/assayd");
    else {
        char *data = server->data;
        if (strcmp(failures[_i].yaml, OTHER_DATA) == 0)
            server->data = text("%s.other", data);
        server_configure(server, failures[_i].yaml);
        server->data = data;
    }
    size_t from = log_size();
    server_signal(server, SIGUSR2);
    for (int i = 0; i < 20; i++)
        expect_status(http_get(server, "/api/v1/reports"), 200);
    expect_logged(failures[_i].says, from, 20000);
    expect_logged("this one continues", from, 5000);
    upgrades_configure("");
    expect_service(2);
    ck_assert_uint_eq(server_children(server, after, COUNT(after)), 4);
    ck_assert_msg(memcmp(before, after, sizeof(pid_t) * 4) == 0, "a process was replaced\n%s",
                  server_log(server));
    ck_assert_int_eq(upgrades_master(), server->pid);
    upgrades_point_at(upgrades_assayd);
    expect_end(upgrade());
    expect_service(2);
    kill(server->pid, SIGTERM);
    ck_assert_int_eq(server_wait(server, 20000), 0);
}
END_TEST

/*
 * The program started instead, which leaves a process (its pid is in a file); whether that process
 * exits by itself; the message of the old master.
 */
static const struct {
    const char *script, *says;
    bool ends;
} left_behind[] = {
    {"sleep 300 & echo $! >%s/left; exit 7", "ended with status 7", false},
    {"sleep 300 & echo $! >%s/left; kill -9 $$", "killed by signal 9", false},
    /* a binary that daemonizes */
    {"real=%2$s; $real \"$@\" & echo $! >%1$s/left; exit 0", "this one continues", true},
    /* a script that wraps it */
    {"sh -c 'echo $$ >%1$s/left; exec %2$s \"$@\"' sh \"$@\"; exit 9",
     "is not the process that was started", true},
};

static bool has_exited(void *pid)
{
    return !process_alive(*(pid_t *)pid);
}

/* If it held a lock or a listener, the next server could not start. */
START_TEST(a_process_of_a_failed_upgrade_inherits_nothing)
{
    int left = 0;
    point_at_script(text(left_behind[_i].script, server->dir, upgrades_assayd));
    server_signal(server, SIGUSR2);
    expect_logged(left_behind[_i].says, 0, 10000);
    expect_logged("this one continues", 0, 10000);
    FILE *file = fopen(text("%s/left", server->dir), "r");
    ck_assert(file != NULL && fscanf(file, "%d", &left) == 1 && fclose(file) == 0);
    pid_t pid = left;
    if (left_behind[_i].ends)
        ck_assert_msg(wait_until(has_exited, &pid, 5000), "pid %d still runs\n%s", left,
                      server_log(server));
    else
        ck_assert(process_alive(pid));
    expect_service(2);
    kill(server->pid, SIGTERM);
    ck_assert_int_eq(server_wait(server, 20000), 0);
    upgrades_point_at(upgrades_assayd);
    server_start(server);
    expect_service(2);
    kill(server->pid, SIGTERM); /* the log reports an intended exit */
    ck_assert_int_eq(server_wait(server, 20000), 0);
    kill(pid, SIGKILL);
}
END_TEST

static bool no_child_is_left(void *arg)
{
    (void)arg;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

static bool new_master_runs(void *pid)
{
    pid_t pids[16];
    size_t count = server_children(server, pids, COUNT(pids));
    for (size_t i = 0; i < count && i < COUNT(pids); i++)
        if (strcmp(process_title(pids[i]), "assayd: master") == 0 ||
            strstr(process_title(pids[i]), "sleep") != NULL)
            *(pid_t *)pid = pids[i];
    /* it serves, and the old master has exited */
    if (*(pid_t *)pid == 0 && upgrades_master() != server->pid)
        *(pid_t *)pid = upgrades_master();
    return *(pid_t *)pid != 0;
}

/*
 * Whichever master is killed at any time, one server remains, and there are never two writers
 * (assay check; every created report is there).
 */
START_TEST(a_master_killed_during_an_upgrade_leaves_the_other_serving)
{
    bool old_exits = _i % 2 == 0;
    int delay_ms = _i / 2 * 7;
    pid_t old = server->pid, new_master = 0;
    expect_status(create(), 202);
    server_signal(server, SIGUSR2);
    ck_assert_msg(wait_until(new_master_runs, &new_master, 5000), "no new master\n%s",
                  server_log(server));
    poll(NULL, 0, delay_ms);
    kill(old_exits ? old : new_master, SIGKILL);
    if (old_exits) {
        ck_assert_int_eq(waitpid(old, NULL, 0), old);
        ck_assert_msg(wait_until(upgrades_is_other_master, &old, 20000),
                      "no new master: %d is%s alive, the file says %d\n%s", (int)new_master,
                      process_alive(new_master) ? "" : " not", (int)upgrades_master(),
                      server_log(server));
        server->pid = new_master;
        ck_assert_int_eq(upgrades_master(), new_master);
    } else if (!server_says(server, "drains its workers and ends", 0, 500)) {
        expect_logged("this one continues", 0, 5000);
        ck_assert_int_eq(upgrades_master(), old);
    } else { /* it was the server, and died as one */
        bool drained = !server_says(server, "ended while this one still drained", 0, 500);
        expect_status_at_end(old, drained ? 0 : 3);
        ck_assert(wait_until(no_child_is_left, NULL, 10000));
        server->pid = 0;
        server_start(server);
    }
    expect_service(2);
    struct run check = assay(server, "check", NULL);
    ck_assert_msg(check.status == 0, "%s%s", check.out, check.err);
    expect_end(upgrade());
    expect_service(2);
}
END_TEST

/*
 * When the new server dies, the old master does not drain: its supervisor must start another
 * server.
 */
START_TEST(the_death_of_a_new_master_during_takeover_ends_the_server)
{
    struct raw *under_way = raw_open(server);
    raw_text(under_way, "GET /healthz HTTP/1.1\r\nHo");
    poll(NULL, 0, 100);
    pid_t old = upgrade();
    int64_t died = now_ms();
    ck_assert_int_eq(kill(server->pid, SIGKILL), 0);
    expect_status_at_end(old, 3);
    ck_assert_int_lt(now_ms() - died, 10000); /* timeouts.drain is 20 s */
    raw_close(under_way);
    ck_assert(wait_until(no_child_is_left, NULL, 10000));
    server->pid = 0;
    server_start(server);
    expect_service(2);
    server_stop(server);
}
END_TEST

/*
 * The holder of the lock in data_dir is the writer. Another writer waits, however it was started.
 */
START_TEST(a_new_writer_waits_for_the_old_one_to_exit)
{
    server_stop(server);
    int taken = open(text("%s/writer.lock", server->data), O_RDWR | O_CLOEXEC);
    ck_assert(taken >= 0 && flock(taken, LOCK_EX | LOCK_NB) == 0);
    server_spawn(server, NULL);
    ck_assert_msg(!server_ready(server, 700), "two writers at the same time");
    close(taken);
    ck_assert_msg(server_ready(server, 10000), "%s", server_log(server));
    expect_service(2);
    server_stop(server);
}
END_TEST

/* ---- other signals during an upgrade ---- */

/* Returns the pid of the new master. */
static pid_t begin_slow_upgrade(void)
{
    int pid = 0;
    point_at_script(text("sleep 0.3\nexec %s \"$@\"", upgrades_assayd));
    server_signal(server, SIGUSR2);
    expect_logged("starts as pid", 0, 5000);
    ck_assert(sscanf(strstr(server_log(server), "starts as pid"), "starts as pid %d", &pid) == 1);
    return pid;
}

START_TEST(a_second_upgrade_signal_changes_nothing)
{
    pid_t old = server->pid;
    begin_slow_upgrade();
    server_signal(server, SIGUSR2);
    expect_logged("one is in progress", 0, 5000);
    ck_assert(wait_until(upgrades_is_other_master, &old, 20000));
    server->pid = upgrades_master();
    expect_end(old);
    expect_service(2);
    server_stop(server);
}
END_TEST

START_TEST(a_reload_during_an_upgrade_reaches_the_new_master)
{
    pid_t old = server->pid;
    begin_slow_upgrade();
    upgrades_configure("base_url: http://meanwhile.test");
    server_signal(server, SIGHUP);
    ck_assert(wait_until(upgrades_is_other_master, &old, 20000));
    server->pid = upgrades_master();
    ck_assert_msg(wait_until(links_begin_with, "http://meanwhile.test", 10000), "%s",
                  server_log(server));
    expect_end(old);
    expect_service(2);
    server_stop(server);
}
END_TEST

/*
 * The new master's writer also serves the old one's workers: a stop keeps it for as long as they
 * answer.
 */
START_TEST(a_stop_during_an_upgrade_lets_the_old_master_answer)
{
    const char *body = "url=http%3A%2F%2Fx.test%2F";
    struct raw *under_way = raw_open(server);
    raw_text(under_way,
             "POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nPrefer: "
             "respond-async\r\n"
             "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%.3s",
             server->key, strlen(body), body);
    poll(NULL, 0, 100);
    pid_t old = upgrade();
    server_signal(server, SIGTERM);
    poll(NULL, 0, 1500); /* its own workers have nothing to answer */
    ck_assert_msg(process_alive(server->pid), "it did not wait\n%s", server_log(server));
    raw_text(under_way, "%s", body + 3);
    expect_status(raw_response(under_way, false, 5000), 202);
    raw_close(under_way);
    expect_end(old);
    expect_end(server->pid);
    server->pid = 0;
}
END_TEST

static const int stops[] = {SIGTERM, SIGINT, SIGQUIT};

START_TEST(a_stop_during_an_upgrade_stops_both_masters)
{
    struct raw *idle = raw_open(server); /* so that the old master takes a while to exit */
    raw_text(idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_status(raw_response(idle, false, 5000), 200);
    pid_t new_master = begin_slow_upgrade();
    if (_i >= (int)COUNT(stops)) {
        /* the new master's: it is about to start workers */
        expect_logged("counts in", log_size(), 5000);
        poll(NULL, 0, (_i / (int)COUNT(stops) - 1) * 10);
    }
    server_signal(server, stops[_i % (int)COUNT(stops)]);
    /* a supervisor that waits for the signalled master has waited for both */
    if (stops[_i % (int)COUNT(stops)] != SIGINT) {
        expect_end(server->pid);
        ck_assert_msg(!process_alive(new_master), "the new master survives the old one\n%s",
                      server_log(server));
    }
    ck_assert_msg(wait_until(no_child_is_left, NULL, 20000), "a process is left\n%s",
                  server_log(server));
    server->pid = 0;
    unsetenv("ASSAYD");
    server_start(server);
    expect_status(http_get(server, "/api/v1/reports"), 200);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *suite = suite_create("upgrade");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, upgrades_setup, upgrades_teardown);
    tcase_add_test(tcase, a_new_binary_takes_over_and_the_old_one_exits);
    tcase_add_test(tcase, an_upgrade_passes_unix_sockets_of_any_path);
    tcase_add_test(tcase, the_new_master_has_its_own_workers);
    tcase_add_loop_test(tcase, the_old_master_continues_when_the_new_one_fails, 0, COUNT(failures));
    tcase_add_loop_test(tcase, a_process_of_a_failed_upgrade_inherits_nothing, 0,
                        COUNT(left_behind));
    tcase_add_test(tcase, the_death_of_a_new_master_during_takeover_ends_the_server);
    tcase_add_test(tcase, a_new_writer_waits_for_the_old_one_to_exit);
    tcase_add_test(tcase, a_second_upgrade_signal_changes_nothing);
    tcase_add_test(tcase, a_reload_during_an_upgrade_reaches_the_new_master);
    tcase_add_test(tcase, a_stop_during_an_upgrade_lets_the_old_master_answer);
    tcase_add_loop_test(tcase, a_stop_during_an_upgrade_stops_both_masters, 0, 5 * COUNT(stops));
    tcase = harness_case(suite, "a master killed");
    tcase_add_checked_fixture(tcase, upgrades_setup, upgrades_teardown);
    tcase_add_loop_test(tcase, a_master_killed_during_an_upgrade_leaves_the_other_serving, 0,
                        (int)upgrades_setting("ASSAY_T_KILLS", 8));
    return harness_main(suite);
}
