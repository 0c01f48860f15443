/* assay backup, restore and check: the commands on a store, with a running server and without. */
#include "store/engine/schema.h"
#include "t/kit/harness.h"
#include "t/kit/harness_internal.h"

#include <pwd.h>
#include <stdatomic.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct origin *origin;
static struct server *server;

static void setup(void)
{
    origin = origin_usual();
    server = server_new(&(struct server_options){.origin = origin, .no_key = true});
}

static void teardown(void)
{
    server_free(server);
    origin_stop(origin);
}

/* ---- backup and restore ---- */

static atomic_bool writing_ends;
static atomic_uint written;

static void *write_on(void *arg)
{
    (void)arg;
    while (!writing_ends) {
        struct response *r = http(server, .method = "POST", .path = "/api/v1/reports",
                                  .body = "url=http%3A%2F%2F127.0.0.1%3A80%2F",
                                  .headers = {"Prefer: respond-async"}, .may_fail = true);
        written += r->status == 202;
        response_free(r);
    }
    return NULL;
}

/* Twenty more than in the backup. */
static bool has_written(void *arg)
{
    return written >= *(unsigned *)arg + 20;
}

static void use_workspace(void)
{
    assay_ok(server, "workspace", "create", "acme", NULL);
    server->key = key_new(server, "acme", NULL);
}

START_TEST(a_backup_during_writes_is_consistent_and_restores)
{
    char *dir = text("%s/backup", server->dir);
    pthread_t thread;
    unsigned before_it = 0;
    server_start(server);
    use_workspace();
    int64_t kept = report_new(server, origin_url(origin, "/good"));
    struct response *before = http_get(server, report_path(kept));
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, write_on, NULL), 0);
    ck_assert(wait_until(has_written, &before_it, 10000));
    before_it = written;
    struct run run = assay(server, "backup", dir, NULL);
    ck_assert_msg(run.status == 0, "%s%s", run.out, run.err);
    ck_assert_msg(written > before_it, "nothing was written during the backup");
    ck_assert(wait_until(has_written, &(unsigned){written},
                         10000)); /* which the backup does not contain */
    writing_ends = true;
    pthread_join(thread, NULL);
    expect_status(http_delete(server, report_path(kept)), 200);
    struct run refused_now = assay(server, "restore", dir, NULL);
    ck_assert_msg(refused_now.status == 1 && *refused_now.err, "restore with a running server: %d",
                  refused_now.status);
    server_stop(server);

    run = assay(server, "restore", dir, NULL);
    ck_assert_msg(run.status == 0, "%s%s", run.out, run.err);
    run = assay(server, "check", NULL);
    ck_assert_msg(run.status == 0, "%s%s", run.out, run.err);
    server_start(server);
    struct response *after = http_get(server, report_path(kept));
    expect_status(after, 200);
    json_object_object_del(at(before, "data"), "link"); /* another port */
    json_object_object_del(at(after, "data"), "link");
    ck_assert_msg(json_object_equal(at(before, "data"), at(after, "data")), "%s%s",
                  response_text(before), response_text(after));
    int64_t total = int_at(http_get(server, "/api/v1/reports"), "meta.total");
    ck_assert_msg(total >= before_it + 1 && total <= written + 1 - 20,
                  "%lld of %u, of which %u before", (long long)total, (unsigned)written, before_it);
    server_stop(server);
}
END_TEST

START_TEST(a_backup_without_a_server_restores_elsewhere)
{
    char *dir = text("%s/backup", server->dir);
    server_start(server);
    use_workspace();
    report_new(server, origin_url(origin, "/good"));
    server_stop(server);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    assay_ok(server, "backup", dir, NULL);
    struct run twice = assay(server, "backup", dir, NULL);
    ck_assert_msg(twice.status == 1 && *twice.err, "a backup over a backup: %d", twice.status);
    struct server *other = server_new(&(struct server_options){.origin = origin, .no_key = true});
    assay_ok(other, "restore", dir, NULL);
    server_start(other);
    other->key = server->key;
    expect_int(http_get(other, "/api/v1/reports"), "meta.total", 1);
    server_free(other);
}
END_TEST

static void expect_too_long(struct run run, const char *sentence)
{
    ck_assert_msg(run.status == 1 && strstr(run.err, sentence) != NULL, "%d: %s%s", run.status,
                  run.out, run.err);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit is;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &is), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, is.rlim_max}), 0);
}

START_TEST(a_file_size_limit_is_reported_and_leaves_no_file)
{
    char *dir = text("%s/backup", server->dir), *cut = text("%s/cut", server->dir);
    server_start(server);
    use_workspace();
    server_stop(server);
    assay_ok(server, "backup", dir, NULL);
    limit_files(8192);
    expect_too_long(assay(server, "workspace", "create", "more", NULL),
                    "reached the file size limit");
    expect_too_long(assay(server, "backup", cut, NULL), "the file size limit is reached");
    expect_too_long(assay(server, "restore", dir, NULL), "File too large");
    limit_files(RLIM_INFINITY);
    ck_assert_int_ne(access(cut, F_OK), 0);
    ck_assert_int_ne(access(text("%s/restore.part", server->data), F_OK), 0);
    assay_ok(server, "check", NULL);
    assay_ok(server, "workspace", "create", "more", NULL);
}
END_TEST

START_TEST(a_restore_of_an_invalid_backup_keeps_the_store)
{
    char *dir = text("%s/rubbish", server->dir);
    server_start(server);
    use_workspace();
    server_stop(server);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    FILE *file = fopen(text("%s/data.mdb", dir), "w");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 10000; i++)
        fputs("rubbish ", file);
    ck_assert_int_eq(fclose(file), 0);
    struct run run = assay(server, "restore", dir, NULL);
    ck_assert_msg(run.status == 1 && *run.err, "%d: %s%s", run.status, run.out, run.err);
    server_start(server);
    expect_status(http_get(server, "/api/v1/reports"), 200);
    server_stop(server);
}
END_TEST

static void nothing(FILE *file)
{
    (void)file;
}

static void cut_short(FILE *file)
{
    ck_assert_int_eq(ftruncate(fileno(file), 3 * 4096), 0);
}

static void overwrite_start(FILE *file)
{
    for (int i = 0; i < 1000; i++)
        fputs("rubbish ", file);
}

static void overwrite_nodes(FILE *file)
{
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    for (long at = 2 * 4096 + 16; at < size; at += 4096) {
        ck_assert_int_eq(fseek(file, at, SEEK_SET), 0);
        for (int i = 0; i < 64; i++)
            putc(0x55, file);
    }
}

static void make_empty(FILE *file)
{
    ck_assert_int_eq(ftruncate(fileno(file), 0), 0);
}

/* What is done to a backup, and the message of restore. */
static const struct {
    void (*damage)(FILE *file);
    const char *says;
} damages[] = {
    {nothing, NULL},
    {cut_short, "is damaged: data.mdb is truncated:"},
    {overwrite_start, "is damaged: data.mdb is not a store, or its first bytes were overwritten; "
                      "restore another backup"},
    {overwrite_nodes, "is damaged: data.mdb is damaged: page "},
    {make_empty, "contains no backup: name a directory that assay backup wrote"},
};

START_TEST(a_damaged_backup_is_reported_with_advice)
{
    char *dir = text("%s/backup", server->dir);
    assay_ok(server, "workspace", "create", "acme", NULL);
    assay_ok(server, "backup", dir, NULL);
    FILE *file = fopen(text("%s/data.mdb", dir), "r+");
    ck_assert_ptr_nonnull(file);
    damages[_i].damage(file);
    ck_assert_int_eq(fclose(file), 0);
    struct run run = assay(server, "restore", dir, NULL);
    if (damages[_i].says == NULL) {
        ck_assert_msg(run.status == 0, "%d: %s", run.status, run.err);
        return;
    }
    ck_assert_msg(run.status == 1 && strstr(run.err, damages[_i].says) && strstr(run.err, dir),
                  "%d: %s", run.status, run.err);
    ck_assert_msg(!strstr(run.err, "restore.part") && !strstr(run.err, "restore a backup"), "%s",
                  run.err);
    if (damages[_i].damage != make_empty)
        ck_assert_msg(strstr(run.err, text("the backup %s is damaged", dir)) &&
                          strstr(run.err, "; restore another backup\n"),
                      "%s", run.err);
    assay_ok(server, "check", NULL);
}
END_TEST

static const char *const new_dirs[] = {"new", "a/b/new", "a//b/../b/new/"};

START_TEST(a_backup_creates_its_directory_with_parents)
{
    char *dir = text("%s/%s", server->dir, new_dirs[_i]);
    struct stat st;
    assay_ok(server, "workspace", "create", "acme", NULL);
    if (strstr(dir, "..") != NULL)
        ck_assert(mkdir(text("%s/a", server->dir), 0700) == 0 &&
                  mkdir(text("%s/a/b", server->dir), 0700) == 0);
    limit_files(8192);
    expect_too_long(assay(server, "backup", dir, NULL), "the file size limit is reached");
    limit_files(RLIM_INFINITY);
    ck_assert_int_ne(access(dir, F_OK), 0);
    if (_i == 1)
        ck_assert_int_ne(access(text("%s/a", server->dir), F_OK), 0);
    assay_ok(server, "backup", dir, NULL);
    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0700);
    if (_i == 1) {
        ck_assert_int_eq(stat(text("%s/a", server->dir), &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, 0700);
    }
    assay_ok(server, "restore", dir, NULL);
}
END_TEST

static void put_back(const char *name)
{
    ck_assert_int_eq(
        rename(text("%s/%s.before-restore", server->data, name), text("%s/%s", server->data, name)),
        0);
}

START_TEST(commands_refuse_a_directory_without_a_store)
{
    char *none = text("%s/none", server->dir), *dir = text("%s/backup", server->dir);
    const char *set = text("data_dir=%s", none);
    struct run backup = assay(server, "--set", set, "backup", dir, NULL);
    struct run check = assay(server, "--set", set, "check", "--repair", NULL);
    const char *why = text("there is no store in %s", none);
    ck_assert_msg(backup.status == 1 && strstr(backup.err, why), "%d %s", backup.status,
                  backup.err);
    ck_assert_msg(check.status == 1 && strstr(check.err, why), "%d %s", check.status, check.err);
    ck_assert(access(none, F_OK) != 0 && access(dir, F_OK) != 0);
}
END_TEST

START_TEST(a_restore_keeps_the_old_data_mdb_for_a_rollback)
{
    char *dir = text("%s/backup", server->dir);
    server_start(server);
    use_workspace();
    report_new(server, origin_url(origin, "/good"));
    assay_ok(server, "backup", dir, NULL);
    ck_assert_msg(access(text("%s/data.mdb", dir), F_OK) == 0 &&
                      access(text("%s/index", dir), F_OK) != 0,
                  "a backup is one file");
    char *secrets = text("%s/secrets", server->data), *kept = text("%s.before-restore", secrets);
    ck_assert_str_eq(file_text(text("%s/secrets", dir)), file_text(secrets));
    ck_assert_ptr_nonnull(strstr(file_text(text("%s/assay.yaml", dir)), "data_dir:"));
    report_new(server, origin_url(origin, "/bad"));
    server_stop(server);
    char *original = file_text(secrets);
    ck_assert_int_eq(unlink(secrets), 0);
    server_start(server); /* which creates new ones */
    server_stop(server);
    struct run run = assay(server, "restore", dir, NULL);
    ck_assert_str_eq(file_text(secrets), original);
    ck_assert_str_ne(file_text(kept), original);
    ck_assert_msg(run.status == 0 &&
                      strstr(run.err, "kept there as data.mdb.before-restore.") != NULL,
                  "%d: %s%s", run.status, run.out, run.err);
    server_start(server);
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", 1);
    server_stop(server);
    put_back("data.mdb");
    server_start(server);
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", 2);
    server_stop(server);
}
END_TEST

START_TEST(a_restore_by_root_belongs_to_the_stores_owner)
{
    if (geteuid() != 0)
        return; /* only root can change the owner of files */
    char *dir = text("%s/backup", server->dir);
    struct passwd *nobody = getpwnam("nobody");
    ck_assert_ptr_nonnull(nobody);
    assay_ok(server, "workspace", "create", "acme", NULL);
    assay_ok(server, "backup", dir, NULL);
    struct run run = run_program("/bin/chown", "-R", text("%u:%u", nobody->pw_uid, nobody->pw_gid),
                                 server->data, NULL);
    ck_assert_int_eq(run.status, 0);
    ck_assert_int_eq(chmod(server->dir, 0755), 0);
    /* it cannot inspect a process that has become another user */
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    for (int turn = 0; turn < 2; turn++) { /* and with the store opened once between */
        assay_ok(server, "restore", dir, NULL);
        run = run_program("/usr/bin/find", server->data, "!", "-user", "nobody", NULL);
        ck_assert_msg(run.status == 0 && *run.out == '\0', "%s%s", run.out, run.err);
        assay_ok(server, "workspace", "create", "other", NULL);
        struct stat st;
        ck_assert_int_eq(stat(text("%s/index", server->data), &st), 0);
        ck_assert_uint_eq(st.st_uid, nobody->pw_uid);
    }
}
END_TEST

/* ---- check ---- */

START_TEST(check_verifies_the_store)
{
    server_start(server);
    use_workspace();
    report_new(server, origin_url(origin, "/good"));
    if (!_i)
        server_stop(server);
    assay_ok(server, "check", NULL);
    if (_i)
        expect_status(http_get(server, "/api/v1/reports"), 200);
}
END_TEST

/* Remove one entry of the sub-database ${name} directly. */
static void remove_entry(const char *name)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_cursor *cursor;
    MDB_val key, value;
    ck_assert_int_eq(mdb_env_create(&env), 0);
    mdb_env_set_maxdbs(env, DB_COUNT);
    ck_assert_int_eq(mdb_env_open(env, server->data, 0, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, name, 0, &dbi), 0);
    ck_assert_int_eq(mdb_cursor_open(txn, dbi, &cursor), 0);
    ck_assert_int_eq(mdb_cursor_get(cursor, &key, &value, MDB_LAST), 0);
    ck_assert_int_eq(mdb_cursor_del(cursor, 0), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static const int tampered[] = {DB_RECORD, DB_LIST, DB_RESULT};

START_TEST(check_finds_missing_records)
{
    server_start(server);
    use_workspace();
    report_new(server, origin_url(origin, "/good"));
    server_stop(server);
    assay_ok(server, "check", NULL);
    remove_entry(schema_db_names[tampered[_i]]);
    struct run run = assay(server, "check", NULL);
    ck_assert_msg(run.status == 1, "%s: exit status %d: %s%s", schema_db_names[tampered[_i]],
                  run.status, run.out, run.err);
    ck_assert_msg(strlen(run.out) + strlen(run.err) > 20, "no output");
}
END_TEST

START_TEST(a_deleted_workspace_leaves_no_record)
{
    server_start(server);
    use_workspace();
    for (int i = 0; i < 50; i++)
        report_queued(server, text("http://host-%d.test/", i));
    assay_ok(server, "workspace", "delete", "acme", NULL);
    expect_error(http_get(server, "/api/v1/reports"), 401, "unauthorized");
    ck_assert_uint_eq(json_object_array_length(assay_list(server, "key", "list", NULL)), 0);
    use_workspace();
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", 0);
    expect_int(http_get(server, "/api/v1/projects"), "meta.total", 0);
    assay_ok(server, "check", NULL);
    server_stop(server);
    assay_ok(server, "check", NULL);
}
END_TEST

START_TEST(a_command_never_replaces_the_store_of_a_running_server)
{
    server_start(server);
    use_workspace();
    for (int i = 0; i < 5; i++) {
        assay_ok(server, "workspace", "create", text("w-%d", i), NULL);
        report_queued(server, origin_url(origin, "/good"));
    }
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", 5);
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(2);
    Suite *suite = suite_create("store_commands");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_backup_during_writes_is_consistent_and_restores);
    tcase_add_test(tcase, a_backup_without_a_server_restores_elsewhere);
    tcase_add_test(tcase, a_file_size_limit_is_reported_and_leaves_no_file);
    tcase_add_test(tcase, a_restore_of_an_invalid_backup_keeps_the_store);
    tcase_add_loop_test(tcase, a_damaged_backup_is_reported_with_advice, 0, COUNT(damages));
    tcase_add_loop_test(tcase, a_backup_creates_its_directory_with_parents, 0, COUNT(new_dirs));
    tcase_add_test(tcase, commands_refuse_a_directory_without_a_store);
    tcase_add_test(tcase, a_restore_keeps_the_old_data_mdb_for_a_rollback);
    tcase_add_test(tcase, a_restore_by_root_belongs_to_the_stores_owner);
    tcase_add_loop_test(tcase, check_verifies_the_store, 0, 2);
    tcase_add_loop_test(tcase, check_finds_missing_records, 0, COUNT(tampered));
    tcase_add_test(tcase, a_deleted_workspace_leaves_no_record);
    tcase_add_test(tcase, a_command_never_replaces_the_store_of_a_running_server);
    return harness_main(suite);
}
