/* The processes of a server: titles, crashes and privileges. */
#include "t/kit/origin_server.h"

#include <lmdb.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>

START_TEST(process_titles_name_their_roles)
{
    server_start(server);
    static const char *const titles[] = {"assayd: worker 0", "assayd: worker 1", "assayd: writer",
                                         "assayd: auditor 0"};
    ck_assert_str_eq(process_title(server->pid), "assayd: master");
    for (size_t i = 0; i < COUNT(titles); i++)
        ck_assert_msg(server_process(server, titles[i]) > 0, "no %s", titles[i]);
    ck_assert_uint_eq(server_children(server, NULL, 0), COUNT(titles));
    server_stop(server);
}
END_TEST

/* ---- crashes ---- */

static bool serves(void *arg)
{
    const struct server *s = arg;
    struct response *r =
        http(s, .method = "POST", .path = "/api/v1/reports", .may_fail = true, .timeout_ms = 5000,
             .body = form("url", origin_url(origin, "/good"), NULL), .headers = {"Prefer: wait=4"});
    bool good = r->status == 201 && !strcmp(str_at(r, "data.status"), "done");
    response_free(r);
    return good;
}

static const char *const mortals[] = {"assayd: worker 0", "assayd: worker 1", "assayd: writer",
                                      "assayd: auditor 0"};

START_TEST(a_killed_process_is_replaced_without_an_outage)
{
    server_start(server);
    int64_t id = report_new(server, origin_url(origin, "/good"));
    for (int round = 0; round < 2; round++) {
        pid_t old = server_process(server, mortals[_i]);
        ck_assert_int_gt(old, 0);
        kill(old, SIGKILL);
        ck_assert_msg(server_replaces(server, mortals[_i], old, 8000), "%s was not replaced\n%s",
                      mortals[_i], server_log(server));
        ck_assert_msg(wait_until(serves, server, 10000), "no service after the crash of %s\n%s",
                      mortals[_i], server_log(server));
        expect_status(http_get(server, report_path(id)), 200);
    }
    ck_assert_uint_eq(server_children(server, NULL, 0), COUNT(mortals));
    server_stop(server);
}
END_TEST

/* ${arg} becomes 0 when its slot is listed */
static int is_listed(const char *line, void *arg)
{
    pid_t *pid = arg;
    if (atoi(line) == *pid)
        *pid = 0;
    return 0;
}

static bool reads_no_more(void *arg)
{
    pid_t pid = *(pid_t *)arg;
    MDB_env *env;
    ck_assert_int_eq(mdb_env_create(&env), 0);
    ck_assert_int_eq(mdb_env_set_maxdbs(env, 8), 0);
    ck_assert_int_eq(mdb_env_open(env, server->data, MDB_RDONLY, 0600), 0);
    ck_assert_int_ge(mdb_reader_list(env, is_listed, &pid), 0);
    mdb_env_close(env);
    return pid != 0;
}

static const char *const readers[] = {"assayd: worker 0", "assayd: writer"};

START_TEST(a_crash_is_logged_with_advice)
{
    setenv("ASAN_OPTIONS", "handle_sigbus=0",
           1); /* a sanitizer would turn it into an exit status */
    server_start(server);
    pid_t pid = server_process(server, readers[_i]);
    ck_assert_int_eq(kill(pid, SIGBUS), 0);
    ck_assert(server_replaces(server, readers[_i], pid, 10000));
    ck_assert(server_says(server, "the store may be damaged: stop the server and run assay check",
                          0, 5000));
    ck_assert_int_eq(kill(server->pid, SIGTERM), 0);
    ck_assert_int_eq(server_wait(server, 20000), 0);
}
END_TEST

START_TEST(a_killed_workers_snapshot_is_released_at_once)
{
    server_start(server);
    expect_status(http_get(server, "/api/v1/reports"), 200);
    pid_t worker[2] = {server_process(server, "assayd: worker 0"),
                       server_process(server, "assayd: worker 1")};
    bool first = !reads_no_more(&worker[0]);
    ck_assert(first || !reads_no_more(&worker[1]));
    pid_t *reader = first ? &worker[0] : &worker[1];
    ck_assert_int_eq(kill(*reader, SIGKILL), 0);
    ck_assert_msg(wait_until(reads_no_more, reader, 5000), "%s", server_log(server));
    server_signal(server, SIGTERM);
    ck_assert_int_eq(server_wait(server, 10000), 0);
}
END_TEST

enum { SLOTS_MAX = 65536 };

START_TEST(a_full_reader_table_stops_commands_and_not_workers)
{
    static MDB_txn *held[SLOTS_MAX];
    MDB_env *env;
    size_t count = 0;
    int rc = 0;
    server_start(server);
    expect_status(http_get(server, "/api/v1/reports"), 200);
    ck_assert_int_eq(mdb_env_create(&env), 0);
    ck_assert_int_eq(mdb_env_set_maxdbs(env, 8), 0);
    ck_assert_int_eq(mdb_env_open(env, server->data, MDB_RDONLY | MDB_NOTLS, 0600), 0);
    while (count < SLOTS_MAX && (rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &held[count])) == 0)
        count++;
    ck_assert_int_eq(rc, MDB_READERS_FULL);
    for (int i = 0; i < 8; i++)
        expect_status(http_get(server, "/api/v1/reports"), 200);
    expect_status(http(server, .method = "POST", .path = "/api/v1/reports",
                       .body = "url=http%3A%2F%2F127.0.0.1%3A80%2F",
                       .headers = {"Prefer: respond-async"}),
                  202);
    struct run run = assay(server, "key", "list", NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, "every reader slot is taken"), "%d: %s%s",
                  run.status, run.out, run.err);
    pid_t worker = server_process(server, "assayd: worker 0");
    kill(worker, SIGKILL); /* its successor takes over its data */
    ck_assert(server_replaces(server, "assayd: worker 0", worker, 8000));
    ck_assert(wait_until(serves, server, 10000));
    for (int i = 0; i < 8; i++)
        expect_status(http_get(server, "/api/v1/reports"), 200);
    while (count > 0)
        mdb_txn_abort(held[--count]);
    mdb_env_close(env);
    assay_ok(server, "key", "list", NULL);
    server_stop(server);
}
END_TEST

START_TEST(a_write_in_flight_survives_a_writer_crash)
{
    server_start(server);
    for (int round = 0; round < 3; round++) {
        enum { POSTS = 20 };
        struct raw *raws[POSTS];
        char *body = form("url", origin_url(origin, text("/good?round=%d", round)), NULL);
        for (size_t i = 0; i < POSTS; i++)
            raws[i] = raw_open(server);
        for (size_t i = 0; i < POSTS; i++) {
            raw_post(raws[i], server->key, "Prefer: respond-async\r\n", body);
            if (i == POSTS / 2)
                kill(server_process(server, "assayd: writer"), SIGKILL);
        }
        for (size_t i = 0; i < POSTS; i++) {
            struct response *r = raw_response(raws[i], false, 10000);
            expect_status(r, 202);
            expect_status(http_get(server, report_path(int_at(r, "data.id"))), 200);
            raw_close(raws[i]);
        }
        struct response *r = http_get(server, text("/api/v1/reports?search=round%%3D%d", round));
        expect_int(r, "meta.total", POSTS);
    }
    server_stop(server);
}
END_TEST

START_TEST(a_page_in_grading_survives_an_auditor_crash)
{
    server_start(server);
    origin_held(origin, "/held");
    int64_t id = report_queued(server, origin_url(origin, "/held"));
    ck_assert(origin_asked(origin, "/held"));
    kill(server_process(server, "assayd: auditor 0"), SIGKILL);
    origin_release(origin, "/held");
    struct response *r = report_wait(server, id);
    expect_str(r, "data.status", "done");
    server_stop(server);
}
END_TEST

static bool has_successor(void *auditor)
{
    pid_t now = server_process(server, "assayd: auditor 0");
    return now != 0 && now != *(pid_t *)auditor;
}

/*
 * The writer is notified at once of a new connection and of a closed one, while it waits for more
 * callers than have connected.
 */
START_TEST(a_replaced_auditor_gets_pages_after_the_writer_was_stopped)
{
    enum { CALLERS = 8, FEWER = 3 };
    struct raw *raws[CALLERS];
    server_start(server);
    char *body = text("url=%s", origin_url(origin, "/good"));
    for (size_t i = 0; i < CALLERS; i++)
        raws[i] = raw_open(server);
    for (int round = 0; round < 3; round++) {
        pid_t writer = server_process(server, "assayd: writer"),
              auditor = server_process(server, "assayd: auditor 0");
        for (size_t i = 0; i < CALLERS; i++)
            raw_post(raws[i], server->key, "Prefer: respond-async\r\n", body);
        for (size_t i = 0; i < CALLERS; i++)
            expect_status(raw_response(raws[i], false, 10000), 202);
        ck_assert_int_eq(kill(writer, SIGSTOP), 0);
        ck_assert_int_eq(kill(auditor, SIGKILL), 0);
        bool came = wait_until(has_successor, &auditor, 5000);
        for (size_t i = 0; i < FEWER; i++)
            raw_post(raws[i], server->key, "Prefer: respond-async\r\n", body);
        poll(NULL, 0, 300); /* it sends its hello to the writer */
        ck_assert_int_eq(kill(writer, SIGCONT), 0);
        ck_assert(came);
        for (size_t i = 0; i < FEWER; i++)
            expect_status(raw_response(raws[i], false, 10000), 202);
        ck_assert_msg(serves(server), "round %d", round);
    }
    for (size_t i = 0; i < CALLERS; i++)
        raw_close(raws[i]);
    server_stop(server);
}
END_TEST

START_TEST(a_page_that_crashes_auditors_fails_alone)
{
    server_start(server);
    origin_held(origin, "/deadly");
    int64_t id = report_queued(server, origin_url(origin, "/deadly"));
    struct response *r = NULL;
    unsigned deaths = 0;
    for (int64_t deadline = now_ms() + 20000; now_ms() < deadline;) {
        r = http_get(server, report_path(id));
        if (strcmp(str_at(r, "data.status"), "pending") != 0)
            break;
        pid_t auditor = server_process(server, "assayd: auditor 0");
        if (auditor && origin_hits(origin, "/deadly") > deaths) {
            kill(auditor, SIGKILL);
            deaths = origin_hits(origin, "/deadly");
        }
        poll(NULL, 0, 5);
    }
    expect_str(r, "data.status", "failed");
    expect_str(r, "data.error.code", "too_complex");
    ck_assert_msg(deaths >= 2 && deaths <= 3, "after %u crashes", deaths);
    ck_assert(wait_until(serves, server, 10000));
    server_stop(server);
}
END_TEST

START_TEST(a_killed_master_leaves_no_process)
{
    server_start(server);
    struct processes left = server_processes(server);
    int64_t id = report_queued(server, origin_url(origin, "/good"));
    ck_assert_uint_eq(left.count, 4);
    server_signal(server, SIGKILL);
    ck_assert_int_eq(server_wait(server, 5000), 128 + SIGKILL);
    ck_assert_msg(wait_until(processes_exited, &left, 5000), "processes are left");
    server_start(server);
    struct response *r = report_wait(server, id);
    expect_str(r, "data.status", "done");
    server_stop(server);
}
END_TEST

/* The value of ${name} in /proc/PID/status. */
static char *status_of(pid_t pid, const char *name)
{
    struct run run = run_program(
        "/bin/sh", "-c",
        text("sed -n 's/^%s:[ \\t]*//p' /proc/%d/status | tr -s '\\t ' ' ' | sed 's/ $//'", name,
             (int)pid),
        NULL);
    return text("%.*s", (int)strcspn(run.out, "\n"), run.out);
}

START_TEST(a_server_started_by_root_drops_every_privilege)
{
    if (geteuid() != 0)
        return; /* only root can become another user */
    struct passwd *nobody = getpwnam("nobody");
    ck_assert_ptr_nonnull(nobody);
    char *uids =
        text("%u %u %u %u", nobody->pw_uid, nobody->pw_uid, nobody->pw_uid, nobody->pw_uid);
    char *gids =
        text("%u %u %u %u", nobody->pw_gid, nobody->pw_gid, nobody->pw_gid, nobody->pw_gid);
    /* it cannot inspect a process that has become another user */
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    ck_assert_int_eq(chmod(server->dir, 0755), 0);
    ck_assert(rmdir(server->data) == 0 && rmdir(server->run) == 0); /* the master creates them */
    server_spawn(server, "--set", "user=nobody", NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    struct processes all = server_processes(server);
    ck_assert_uint_eq(all.count, 4);
    for (size_t i = 0; i < all.count; i++) {
        const char *title = process_title(all.pids[i]);
        ck_assert_msg(!strcmp(status_of(all.pids[i], "Uid"), uids), "%s: Uid %s", title,
                      status_of(all.pids[i], "Uid"));
        ck_assert_msg(!strcmp(status_of(all.pids[i], "Gid"), gids), "%s: Gid %s", title,
                      status_of(all.pids[i], "Gid"));
        ck_assert_msg(!*status_of(all.pids[i], "Groups"), "%s: Groups %s", title,
                      status_of(all.pids[i], "Groups"));
        ck_assert_str_eq(status_of(all.pids[i], "CapPrm"), "0000000000000000");
        ck_assert_str_eq(status_of(all.pids[i], "CapEff"), "0000000000000000");
    }
    /* changing the user clears a process's parent-death signal */
    server_signal(server, SIGKILL);
    ck_assert_int_eq(server_wait(server, 5000), 128 + SIGKILL);
    ck_assert_msg(wait_until(processes_exited, &all, 5000), "processes are left");
}
END_TEST

START_TEST(a_server_of_user_root_stays_root)
{
    if (geteuid() != 0)
        return;
    server_spawn(server, "--set", "user=root", NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    ck_assert_str_eq(status_of(server_process(server, "assayd: worker 0"), "Uid"), "0 0 0 0");
    server_stop(server);
}
END_TEST

START_TEST(a_queued_connection_survives_its_worker)
{
    struct raw *raws[40];
    server_start(server);
    pid_t worker = server_process(server, "assayd: worker 0");
    kill(worker, SIGSTOP); /* so that it accepts none */
    for (size_t i = 0; i < COUNT(raws); i++) {
        raws[i] = raw_open(server);
        raw_get(raws[i], server->key, "/api/v1/reports");
    }
    kill(worker, SIGKILL);
    for (size_t i = 0; i < COUNT(raws); i++) {
        expect_status(raw_response(raws[i], false, 5000), 200);
        raw_close(raws[i]);
    }
    server_stop(server);
}
END_TEST

START_TEST(a_stuck_process_is_killed_and_replaced)
{
    static const char *const titles[] = {"assayd: worker 0", "assayd: writer", "assayd: auditor 0"};
    pid_t old[COUNT(titles)];
    struct raw *raws[20];
    char *body = "url=http%3A%2F%2F127.0.0.1%3A80%2F";
    size_t made = 0;
    server_start(server);
    for (size_t i = 0; i < COUNT(titles); i++) {
        old[i] = server_process(server, titles[i]);
        ck_assert_int_gt(old[i], 0);
        kill(old[i], SIGSTOP);
    }
    for (size_t i = 0; i < COUNT(raws); i++) {
        raws[i] = raw_open(server);
        raw_post(raws[i], server->key, "Prefer: respond-async\r\n", body);
    }
    for (size_t i = 0; i < COUNT(titles); i++) {
        bool replaced = server_replaces(server, titles[i], old[i], 20000);
        if (!replaced)
            kill(old[i], SIGKILL);
        ck_assert_msg(replaced, "%s was not replaced within 20 s\n%s", titles[i],
                      server_log(server));
        ck_assert(!process_alive(old[i]));
    }
    for (size_t i = 0; i < COUNT(raws);
         /* the stuck worker accepted none, and the writer's absence is waited out */
         i++) {
        struct response *r = raw_response(raws[i], false, 10000);
        expect_status(r, 202);
        made++;
        raw_close(raws[i]);
    }
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", made);
    ck_assert(wait_until(serves, server, 10000));
    server_stop(server);
}
END_TEST

/* Twelve short lives in a row. The master waits longer before each, here at most 400 ms. */
START_TEST(a_worker_that_keeps_dying_ends_the_server_with_status_3)
{
    setenv("ASSAYD", "t/kit/small_assayd", 1);
    server_start(server);
    int status;
    while ((status = server_wait(server, 20)) == -1) {
        pid_t worker = server_process(server, "assayd: worker 0");
        if (worker)
            kill(worker, SIGKILL);
    }
    ck_assert_int_eq(status, 3);
    ck_assert_msg(strstr(server_log(server), "giving up: the worker keeps dying"), "%s",
                  server_log(server));
    ck_assert_msg(strstr(server_log(server), "ends: the worker keeps dying; exit status 3"), "%s",
                  server_log(server));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("processes");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, own_setup, own_teardown);
    tcase_add_test(tcase, process_titles_name_their_roles);
    tcase_add_loop_test(tcase, a_killed_process_is_replaced_without_an_outage, 0, COUNT(mortals));
    tcase_add_loop_test(tcase, a_crash_is_logged_with_advice, 0, COUNT(readers));
    tcase_add_test(tcase, a_killed_workers_snapshot_is_released_at_once);
    tcase_add_test(tcase, a_full_reader_table_stops_commands_and_not_workers);
    tcase_add_test(tcase, a_write_in_flight_survives_a_writer_crash);
    tcase_add_test(tcase, a_page_in_grading_survives_an_auditor_crash);
    tcase_add_test(tcase, a_replaced_auditor_gets_pages_after_the_writer_was_stopped);
    tcase_add_test(tcase, a_page_that_crashes_auditors_fails_alone);
    tcase_add_test(tcase, a_killed_master_leaves_no_process);
    tcase_add_test(tcase, a_server_started_by_root_drops_every_privilege);
    tcase_add_test(tcase, a_server_of_user_root_stays_root);
    tcase_add_test(tcase, a_queued_connection_survives_its_worker);
    TCase *lasting = harness_case(suite, "a server that gives up");
    tcase_add_checked_fixture(lasting, own_setup, own_teardown);
    tcase_add_test(lasting, a_worker_that_keeps_dying_ends_the_server_with_status_3);
    TCase *still = harness_case(suite, "a stuck server");
    tcase_add_checked_fixture(still, own_setup, own_teardown);
    tcase_add_test(still, a_stuck_process_is_killed_and_replaced);
    return harness_main_at_once(suite);
}
