/*
 * A server on a store of another format: an older one is copied, then brought up to date, through kills of the writer; a newer one is refused.
 * Format 1 is the example: the same records, and lists from a sub-database "index", of which it matters only that it goes.
 */
#include "harness.h"

#include "../store/store.h"

#include <dirent.h>
#include <lmdb.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

enum { REPORTS = 300 };

static struct server *server;

static void setup(void)
{
    server = server_new(&(struct server_options){0});
    server_start(server);
    for (int i = 0; i < REPORTS; i++) {
        struct response *r = http(server, .method = "POST", .path = "/api/v1/reports", .headers = {"Prefer: respond-async"},
                                  .body = form("url", text("http://127.0.0.1/%d", i), NULL));
        expect_status(r, 202);
        response_free(r);
    }
    server_stop(server);
}

static void teardown(void)
{
    server_discard(server);
}

/* Behind the server's back: the store says that it is of ${format}; of an old one, its lists are gone. */
static void make_format(uint32_t format)
{
    uint32_t record[7] = {format, 1};
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi base, list;
    MDB_val key = {2, "mf"}, value = {sizeof(record), record};
    ck_assert_int_eq(mdb_env_create(&env), 0);
    mdb_env_set_maxdbs(env, 8);
    ck_assert_int_eq(mdb_env_open(env, server->data, 0, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, "base", 0, &base), 0);
    ck_assert_int_eq(mdb_put(txn, base, &key, &value, 0), 0);
    if (format < 4) { /* which had no parts.dat */
        key = (MDB_val){2, "mp"};
        ck_assert_int_eq(mdb_del(txn, base, &key, NULL), 0);
        unlink(text("%s/parts.dat", server->data));
    }
    if (format == 1) {
        ck_assert_int_eq(mdb_dbi_open(txn, "list", 0, &list), 0);
        ck_assert_int_eq(mdb_drop(txn, list, 1), 0);
    }
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

/* The only copy in data_dir, to be freed; NULL without one. */
static char *copy_dir(void)
{
    char *found = NULL;
    DIR *dir = opendir(server->data);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (strncmp(e->d_name, "format-", 7) == 0) {
            ck_assert_msg(found == NULL, "another copy: %s", e->d_name);
            found = text("%s/%s", server->data, e->d_name);
        }
    closedir(dir);
    return found;
}

static void expect_all(void)
{
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", REPORTS);
    assay_ok(server, "check", NULL);
}

START_TEST(an_older_format_is_copied_and_brought_up_and_the_copy_can_be_restored)
{
    make_format(1);
    server_start(server);
    char *copy = copy_dir();
    ck_assert_msg(strstr(server_log(server), "copying the store of format 1 to ") != NULL, "%s", server_log(server));
    ck_assert_msg(strstr(server_log(server), "bringing the store from format 1 to 2") != NULL, "%s", server_log(server));
    ck_assert_msg(strstr(server_log(server), "bringing the store from format 2 to 3") != NULL, "%s", server_log(server));
    ck_assert_msg(strstr(server_log(server), "bringing the store from format 3 to 4") != NULL, "%s", server_log(server));
    ck_assert_ptr_nonnull(copy);
    expect_all();
    server_stop(server);
    assay_ok(server, "restore", copy, NULL);
    server_start(server);
    expect_all();
    server_stop(server);
}
END_TEST

START_TEST(a_writer_killed_while_it_starts_is_followed_by_one_that_goes_on)
{
    make_format(1);
    server_spawn(server, NULL);
    unsigned kills = 0;
    for (int64_t deadline = now_ms() + 5000; kills < 3 && now_ms() < deadline;) {
        pid_t writer = server_process(server, "assayd: writer");
        if (writer == 0)
            continue;
        for (unsigned i = 0; i < kills * 200; i++) /* a little later each time */
            sched_yield();
        kills += kill(writer, SIGKILL) == 0;
        while (process_alive(writer))
            sched_yield();
    }
    ck_assert_uint_eq(kills, 3);
    ck_assert_msg(server_ready(server, 20000), "%s", server_log(server));
    ck_assert_ptr_nonnull(copy_dir());
    expect_all();
    server_signal(server, SIGTERM);
    ck_assert_int_eq(server_wait(server, 10000), 0);
}
END_TEST

START_TEST(a_command_brings_it_up_too_and_without_a_copy_if_so_configured)
{
    make_format(1);
    server_configure(server, "store: { copy_before_upgrade: false }");
    assay_ok(server, "check", NULL);
    ck_assert_ptr_null(copy_dir());
    server_start(server);
    expect_all();
    server_stop(server);
}
END_TEST

START_TEST(a_newer_format_is_refused_with_a_sentence_and_left_alone)
{
    make_format(STORE_FORMAT_VERSION + 1);
    server_spawn(server, NULL);
    int status = server_wait(server, 60000);
    ck_assert_msg(status > 0 && status < 128, "exit status %d\n%s", status, server_log(server));
    const char *said = text("the store has format %d and this Assay knows up to %d: use the newer Assay", STORE_FORMAT_VERSION + 1, STORE_FORMAT_VERSION);
    ck_assert_msg(strstr(server_log(server), said) != NULL, "%s", server_log(server));
    struct run run = assay(server, "workspace", "list", NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, "use the newer Assay") != NULL, "%d: %s", run.status, run.err);
    ck_assert_ptr_null(copy_dir());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("formats");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, an_older_format_is_copied_and_brought_up_and_the_copy_can_be_restored);
    tcase_add_test(tcase, a_writer_killed_while_it_starts_is_followed_by_one_that_goes_on);
    tcase_add_test(tcase, a_command_brings_it_up_too_and_without_a_copy_if_so_configured);
    tcase_add_test(tcase, a_newer_format_is_refused_with_a_sentence_and_left_alone);
    return harness_main(suite);
}
