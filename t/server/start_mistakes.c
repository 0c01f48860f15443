/*
 * Errors at the start of a server: a refused or failed start neither removes nor creates files of
 * others, and says why.
 */
#include "t/kit/harness.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct server *server;

static void setup(void)
{
    server = server_new(&(struct server_options){0});
}

static void teardown(void)
{
    server_free(server);
}

/* A refused server must not remove the Unix socket that the running server listens on. */
START_TEST(a_refused_second_server_leaves_the_first_ones_socket)
{
    char *path = text("%s/http.sock", server->dir), *set = text("listen.1.address=unix:%s", path);
    struct stat before, after;
    server_spawn(server, "--set", set, NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    ck_assert_int_eq(stat(path, &before), 0);
    struct run run = run_program(assayd_path(), "-c", server->conf, "--set", set, NULL);
    ck_assert_int_eq(run.status, 2);
    run = run_program(assayd_path(), "-c", server->conf, "--set", set, "--set",
                      text("data_dir=%s/other", server->dir), "--set",
                      text("run_dir=%s/other-run", server->dir), NULL);
    ck_assert_msg(run.status == 2 && strstr(run.err, "is in use by pid "), "%d: %s", run.status,
                  run.err);
    ck_assert_msg(stat(path, &after) == 0 && after.st_ino == before.st_ino,
                  "the socket was removed");
    server_stop(server);
}
END_TEST

/* A server must not remove a file at the path of a Unix listener. */
START_TEST(a_file_at_a_socket_path_is_unchanged)
{
    char *path = text("%s/precious", server->dir);
    struct stat st;
    FILE *file = fopen(path, "w");
    ck_assert(file && fputs("kept", file) >= 0 && fclose(file) == 0);
    struct run run = run_program(assayd_path(), "-c", server->conf, "--set",
                                 text("listen.1.address=unix:%s", path), NULL);
    ck_assert_int_eq(run.status, 2);
    ck_assert(stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 4);
}
END_TEST

/*
 * When the old writer's disk is lost, a new writer must not create an empty store while workers use
 * the old one.
 */
START_TEST(a_writer_creates_no_store_in_place_of_a_lost_one)
{
    struct stat st;
    server_start(server);
    ck_assert_int_eq(unlink(text("%s/data.mdb", server->data)), 0);
    kill(server_process(server, "assayd: writer"), SIGKILL);
    ck_assert_msg(server_says(server, "has no store: mount its disk", 0, 10000), "%s",
                  server_log(server));
    ck_assert_msg(stat(text("%s/data.mdb", server->data), &st) != 0, "a store was created");
    expect_status(http_get(server, "/readyz"), 503);
    /* workers still read their mapped data */
    expect_status(http_get(server, "/api/v1/reports"), 200);
    server_signal(server, SIGKILL);
    server_wait(server, 5000);
}
END_TEST

/* The configuration check reads the certificates. */
START_TEST(the_check_of_the_configuration_reads_the_certificates)
{
    char *bad = text("%s/bad.pem", server->dir);
    FILE *file = fopen(bad, "w");
    ck_assert(file && fputs("no certificate\n", file) >= 0 && fclose(file) == 0);
    struct run run = run_program(assayd_path(), "-c", server->conf, "-t", "--set",
                                 text("listen.0.tls.certificate=%s", bad), "--set",
                                 text("listen.0.tls.key=%s", bad), NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, bad), "%d: %s", run.status, run.err);
}
END_TEST

/*
 * The command line creates data_dir, and the master its lock, as root, while the server runs as
 * another user: each must be able to use the other's files.
 */
START_TEST(root_and_the_servers_user_share_the_data)
{
    if (geteuid() != 0)
        return; /* only root can become another user */
    struct stat st;
    /* only in this test: it cannot inspect a process that has become another user */
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    ck_assert_int_eq(chmod(server->dir, 0755), 0);
    rmdir(server->data);
    rmdir(server->run); /* the first one to start creates both */
    assay_ok(server, "--set", "user=nobody", "workspace", "create", "early", NULL);
    ck_assert(stat(server->data, &st) == 0 && st.st_uid != 0);
    ck_assert_int_eq(unlink(text("%s/lock", server->data)), 0); /* the master creates it */
    server_spawn(server, "--set", "user=nobody", NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    assay_ok(server, "--set", "user=nobody", "workspace", "create", "beside", NULL);
    server_stop(server);
    ck_assert(stat(text("%s/lock", server->data), &st) == 0 && st.st_uid != 0);
    assay_ok(server, "--set", "user=nobody", "workspace", "create", "late", NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("start_mistakes");
    TCase *tcase = tcase_create("a server each");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_refused_second_server_leaves_the_first_ones_socket);
    tcase_add_test(tcase, a_file_at_a_socket_path_is_unchanged);
    tcase_add_test(tcase, a_writer_creates_no_store_in_place_of_a_lost_one);
    tcase_add_test(tcase, the_check_of_the_configuration_reads_the_certificates);
    tcase_add_test(tcase, root_and_the_servers_user_share_the_data);
    suite_add_tcase(suite, tcase);
    return harness_main(suite);
}
