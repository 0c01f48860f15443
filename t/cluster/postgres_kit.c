/* The kit that starts PostgreSQL for tests, and the fault proxy in front of it. */
#include "t/kit/fault_proxy.h"
#include "t/kit/postgres.h"
#include "t/kit/suite.h"
#include "t/kit/supervisor.h"
#include "t/kit/wait.h"

#include <errno.h>
#include <libpq-fe.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>

enum { WITHIN_MS = 30000 };

static PGconn *connected(uint16_t port, uint16_t other, const char *name)
{
    char *info = postgres_conninfo(port, other);
    char *named = text("%s application_name=%s", info, name);
    PGconn *connection = PQconnectdb(named);
    ck_assert_msg(PQstatus(connection) == CONNECTION_OK, "%s", PQerrorMessage(connection));
    free(named);
    free(info);
    return connection;
}

/* Whether the statement has succeeded. */
static bool execute(PGconn *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static struct postgres *primary_with_table(void)
{
    struct postgres *p = postgres_new();
    PGconn *connection = connected(p->port, 0, "setup");
    ck_assert(execute(connection, "CREATE TABLE entry (id int PRIMARY KEY)"));
    PQfinish(connection);
    return p;
}

static void expect_rows(const struct postgres *p, const char *condition, const char *want)
{
    char *count = postgres_query(p, "SELECT count(*) FROM entry WHERE %s", condition);
    ck_assert_msg(!strcmp(count, want), "%s rows, not %s, where %s", count, want, condition);
    free(count);
}

/* ---- one server ---- */

static void stop(struct postgres *p, int how)
{
    if (how == 2)
        postgres_kill(p);
    else
        postgres_stop(p, how == 0 ? POSTGRES_FAST : POSTGRES_IMMEDIATE);
}

START_TEST(rows_survive_each_way_of_stopping)
{
    struct postgres *p = primary_with_table();
    PGconn *connection = connected(p->port, 0, "writer");
    ck_assert(execute(connection, "INSERT INTO entry VALUES (1)"));
    stop(p, _i);
    ck_assert(!execute(connection, "INSERT INTO entry VALUES (2)"));
    PQfinish(connection);
    postgres_start(p);
    expect_rows(p, "true", "1");
    postgres_free(p);
}
END_TEST

START_TEST(nobody_is_superuser_over_tcp)
{
    struct postgres *p = postgres_new();
    PGconn *connection = connected(p->port, 0, "client");
    ck_assert(execute(connection, "CREATE TABLE of_assay ()"));
    ck_assert(!execute(connection, "ALTER SYSTEM SET fsync = off"));
    PQfinish(connection);
    char *info = text("host=127.0.0.1 port=%u dbname=assay user=postgres", p->port);
    ck_assert_int_ne(PQping(info), PQPING_NO_RESPONSE);
    connection = PQconnectdb(info);
    ck_assert_int_eq(PQstatus(connection), CONNECTION_BAD);
    PQfinish(connection);
    free(info);
    char *fsync = postgres_query(p, "SELECT current_setting('fsync')");
    ck_assert_str_eq(fsync, "on");
    free(fsync);
    postgres_free(p);
}
END_TEST

static bool has_result(void *arg)
{
    return PQconsumeInput(arg) && !PQisBusy(arg);
}

START_TEST(a_paused_backend_stops_its_client_alone)
{
    struct postgres *p = primary_with_table();
    PGconn *paused = connected(p->port, 0, "paused"), *other = connected(p->port, 0, "other");
    pid_t pid = postgres_pause_backend(p, "paused");
    ck_assert(PQsendQuery(paused, "INSERT INTO entry VALUES (1)"));
    ck_assert(execute(other, "INSERT INTO entry VALUES (2)"));
    expect_rows(p, "true", "1");
    ck_assert(!has_result(paused));
    kill(pid, SIGCONT);
    ck_assert(wait_until(has_result, paused, WITHIN_MS));
    expect_rows(p, "true", "2");
    PQfinish(paused);
    PQfinish(other);
    postgres_free(p);
}
END_TEST

START_TEST(a_paused_server_answers_nobody_and_goes_on)
{
    struct postgres *p = primary_with_table();
    PGconn *connection = connected(p->port, 0, "client");
    postgres_pause(p);
    ck_assert(PQsendQuery(connection, "INSERT INTO entry VALUES (1)"));
    ck_assert(!wait_until(has_result, connection, 50));
    postgres_resume(p);
    ck_assert(wait_until(has_result, connection, WITHIN_MS));
    expect_rows(p, "true", "1");
    PQfinish(connection);
    postgres_free(p);
}
END_TEST

/* ---- primary and standby ---- */

static bool waits_for_standby(void *arg)
{
    char *count = postgres_query(arg, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = "
                                      "'SyncRep'");
    bool waits = !strcmp(count, "1");
    free(count);
    return waits;
}

START_TEST(a_commit_waits_for_the_synchronous_standby)
{
    struct postgres *p = primary_with_table();
    struct postgres *standby = postgres_follow(p, POSTGRES_SYNCHRONOUS);
    PGconn *connection = connected(p->port, 0, "client");
    ck_assert(execute(connection, "INSERT INTO entry VALUES (1)"));
    postgres_pause(standby);
    ck_assert(PQsendQuery(connection, "INSERT INTO entry VALUES (2)"));
    ck_assert(wait_until(waits_for_standby, p, WITHIN_MS));
    ck_assert(!has_result(connection));
    postgres_resume(standby);
    ck_assert(wait_until(has_result, connection, WITHIN_MS));
    PQfinish(connection);
    postgres_free(standby);
    postgres_free(p);
}
END_TEST

START_TEST(a_commit_waits_for_each_synchronous_standby)
{
    struct postgres *p = primary_with_table();
    struct postgres *standby = postgres_follow(p, POSTGRES_SYNCHRONOUS);
    struct postgres *second = postgres_follow(p, POSTGRES_SYNCHRONOUS);
    PGconn *connection = connected(p->port, 0, "client");
    postgres_kill(_i == 0 ? standby : second);
    ck_assert(PQsendQuery(connection, "INSERT INTO entry VALUES (2)"));
    ck_assert(wait_until(waits_for_standby, p, WITHIN_MS));
    postgres_start(_i == 0 ? standby : second);
    ck_assert(wait_until(has_result, connection, WITHIN_MS));
    PQfinish(connection);
    postgres_free(second);
    postgres_free(standby);
    postgres_free(p);
}
END_TEST

START_TEST(the_last_rows_are_not_on_an_asynchronous_standby)
{
    struct postgres *p = primary_with_table();
    struct postgres *standby = postgres_follow(p, POSTGRES_ASYNCHRONOUS);
    PGconn *connection = connected(p->port, 0, "client");
    postgres_pause_backend(p, standby->name);
    ck_assert(execute(connection, "INSERT INTO entry VALUES (1)"));
    postgres_kill(p);
    postgres_promote(standby);
    expect_rows(standby, "true", "0");
    PQfinish(connection);
    postgres_free(standby);
    postgres_free(p);
}
END_TEST

/* Inserts 1, 2, 3 … until that fails; counts what PostgreSQL has acknowledged. */
static pid_t insert_in_child(const struct postgres *p, atomic_int *acknowledged)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    PGconn *connection = connected(p->port, 0, "writer");
    for (int id = 1;; id++) {
        char *sql = text("INSERT INTO entry VALUES (%d)", id);
        if (!execute(connection, sql))
            _exit(0);
        *acknowledged = id;
        free(sql);
    }
}

static bool has_many(void *arg)
{
    return *(atomic_int *)arg >= 100;
}

START_TEST(promotion_after_kill_keeps_each_acknowledged_row)
{
    struct postgres *p = primary_with_table();
    struct postgres *standby = postgres_follow(p, POSTGRES_SYNCHRONOUS);
    atomic_int *acknowledged = mmap(NULL, sizeof(*acknowledged), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t writer = insert_in_child(p, acknowledged);
    ck_assert(wait_until(has_many, acknowledged, WITHIN_MS));
    postgres_kill(p);
    ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
    postgres_promote(standby);
    char *condition = text("id <= %d", *acknowledged), *want = text("%d", *acknowledged);
    expect_rows(standby, condition, want);
    free(condition);
    free(want);
    /* the connection string of both leads to the new primary, whose commits wait for nobody */
    PGconn *connection = connected(p->port, standby->port, "client");
    ck_assert(execute(connection, "INSERT INTO entry VALUES (0)"));
    PQfinish(connection);
    postgres_free(standby);
    postgres_free(p);
}
END_TEST

/* ---- the fault proxy in front of it ---- */

/* A commit whose client never learns its outcome. Before: it does not happen. Else it does. */
static const struct {
    enum fault_when when;
    const char *rows;
} cuts[] = {{CUT_BEFORE, "0"}, {CUT_BEHIND, "1"}, {CUT_ANSWER, "1"}};

static bool no_writer_is_left(void *arg)
{
    char *count = postgres_query(arg, "SELECT count(*) FROM pg_stat_activity WHERE "
                                      "application_name = 'writer'");
    bool none = !strcmp(count, "0");
    free(count);
    return none;
}

START_TEST(a_commit_is_lost_before_or_behind_the_server)
{
    struct postgres *p = primary_with_table();
    struct fault_proxy *proxy = fault_proxy_new(p->port);
    PGconn *connection = connected(fault_proxy_port(proxy), 0, "writer");
    ck_assert(execute(connection, "BEGIN; INSERT INTO entry VALUES (1)"));
    fault_proxy_cut_at(proxy, "COMMIT", sizeof("COMMIT"), cuts[_i].when);
    ck_assert(!execute(connection, "COMMIT"));
    ck_assert_int_eq(PQstatus(connection), CONNECTION_BAD);
    ck_assert_uint_eq(fault_proxy_cuts(proxy), 1);
    ck_assert(wait_until(no_writer_is_left, p, WITHIN_MS));
    expect_rows(p, "true", cuts[_i].rows);
    PQreset(connection);
    ck_assert(execute(connection, "INSERT INTO entry VALUES (2)"));
    PQfinish(connection);
    fault_proxy_free(proxy);
    postgres_free(p);
}
END_TEST

/* ---- what is left ---- */

struct left {
    pid_t server;
    int segment;
    char dir[256];
};

static struct left what_runs(const struct postgres *p)
{
    struct left left = {.server = supervisor_server(p->supervisor), .segment = -1};
    char *path = text("%s/data/postmaster.pid", p->supervisor->dir);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*d %*s %*d %*d %*s %*s %*d %d", &left.segment), 1);
    fclose(file);
    free(path);
    snprintf(left.dir, sizeof(left.dir), "%s", p->supervisor->dir);
    return left;
}

static bool nothing_is_left(void *arg)
{
    const struct left *left = arg;
    struct shmid_ds segment;
    return access(left->dir, F_OK) < 0 && kill(left->server, 0) < 0 &&
           shmctl(left->segment, IPC_STAT, &segment) < 0;
}

START_TEST(a_freed_server_leaves_nothing)
{
    struct postgres *p = postgres_new();
    struct left left = what_runs(p);
    struct shmid_ds segment;
    ck_assert_int_eq(shmctl(left.segment, IPC_STAT, &segment), 0);
    if (_i == 1)
        postgres_kill(p);
    if (_i == 2)
        postgres_pause(p);
    postgres_free(p);
    ck_assert(nothing_is_left(&left));
}
END_TEST

START_TEST(the_server_of_a_killed_test_leaves_nothing)
{
    struct left left;
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        left = what_runs(postgres_new());
        ck_assert_int_eq(write(fds[1], &left, sizeof(left)), sizeof(left));
        pause();
    }
    ck_assert_int_eq(read(fds[0], &left, sizeof(left)), sizeof(left));
    ck_assert(!nothing_is_left(&left));
    kill(pid, SIGKILL);
    ck_assert(wait_until(nothing_is_left, &left, WITHIN_MS));
    waitpid(pid, NULL, 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_commit_waits_for_each_synchronous_standby, 0, 2);
    tcase_add_loop_test(tcase, rows_survive_each_way_of_stopping, 0, 3);
    tcase_add_test(tcase, nobody_is_superuser_over_tcp);
    tcase_add_test(tcase, a_paused_backend_stops_its_client_alone);
    tcase_add_test(tcase, a_paused_server_answers_nobody_and_goes_on);
    tcase_add_test(tcase, a_commit_waits_for_the_synchronous_standby);
    tcase_add_test(tcase, the_last_rows_are_not_on_an_asynchronous_standby);
    tcase_add_test(tcase, promotion_after_kill_keeps_each_acknowledged_row);
    tcase_add_loop_test(tcase, a_commit_is_lost_before_or_behind_the_server, 0,
                        sizeof(cuts) / sizeof(cuts[0]));
    tcase_add_loop_test(tcase, a_freed_server_leaves_nothing, 0, 3);
    tcase_add_test(tcase, the_server_of_a_killed_test_leaves_nothing);
}

int main(void)
{
    if (postgres_missing()) {
        puts(postgres_missing());
        return SUITE_SKIPPED;
    }
    suite_processes(3);
    Suite *suite = suite_create("postgres_kit");
    TCase *tcase = tcase_create("postgres_kit");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 90);
    add_tests(tcase);
    return suite_run(suite);
}
