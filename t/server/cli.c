/* The command line of operators, with a running server and without. */
#include "store/engine/schema.h"
#include "t/kit/harness.h"
#include "t/kit/harness_internal.h"

#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* Loop tests run once with a running server (1) and once without one (0). */
static void start_if(int running)
{
    if (running)
        server_start(server);
}

static struct json_object *json_of(const char *out)
{
    struct json_tokener *tokener = json_tokener_new();
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *value = json_tokener_parse_ex(tokener, out, -1);
    ck_assert_msg(value != NULL, "not JSON: %s", out);
    json_tokener_free(tokener);
    return value;
}

START_TEST(workspaces_are_created_listed_and_deleted)
{
    start_if(_i);
    char *id = assay_ok(server, "workspace", "create", "acme", NULL);
    ck_assert_msg(strspn(id, "0123456789") == strlen(id) && *id, "create printed %s", id);
    struct run again = assay(server, "workspace", "create", "acme", NULL);
    ck_assert_msg(again.status == 1 && strstr(again.err, "acme"), "%d: %s%s", again.status,
                  again.out, again.err);
    struct json_object *made =
        record_find(assay_list(server, "workspace", "list", NULL), "name", "acme");
    ck_assert_ptr_nonnull(made);
    ck_assert_str_eq(record_text(made, "id"), id);
    ck_assert(strstr(assay_ok(server, "workspace", "list", NULL), "acme") != NULL);
    assay_ok(server, "workspace", "delete", "acme", NULL);
    ck_assert_ptr_null(record_find(assay_list(server, "workspace", "list", NULL), "name", "acme"));
    struct run gone = assay(server, "workspace", "delete", "acme", NULL);
    ck_assert_msg(gone.status == 1 && strstr(gone.err, "acme"), "%d: %s%s", gone.status, gone.out,
                  gone.err);
    ck_assert_str_ne(assay_ok(server, "workspace", "create", "acme", NULL), id);
}
END_TEST

START_TEST(a_key_is_printed_alone_and_once)
{
    start_if(_i);
    assay_ok(server, "workspace", "create", "acme", NULL);
    struct run run = assay(server, "key", "create", "--workspace", "acme", "--name", "ci",
                           "--scope", "reports:read", NULL);
    ck_assert_msg(run.status == 0 && strlen(run.out) == 8 + 36 + 1 &&
                      !strncmp(run.out, "asy_key_", 8),
                  "%d: %s%s", run.status, run.out, run.err);
    ck_assert(!strstr(run.err, "asy_key_"));
    char *list = assay_ok(server, "key", "list", "--json", NULL),
         *table = assay_ok(server, "key", "list", NULL);
    ck_assert_msg(!strstr(list, "asy_key_") && !strstr(table, "asy_key_"), "%s%s", list, table);
    struct json_object *key = record_find(assay_list(server, "key", "list", NULL), "name", "ci");
    ck_assert_ptr_nonnull(key);
    static const char *const members[] = {"id",           "name",       "scopes",    "created_at",
                                          "last_used_at", "expires_at", "revoked_at"};
    for (size_t i = 0; i < COUNT(members); i++)
        record_text(key, members[i]);
    ck_assert(strstr(record_text(key, "scopes"), "reports:read") &&
              !strstr(record_text(key, "scopes"), "projects"));
    struct json_object *made = json_of(
        assay_ok(server, "key", "create", "--workspace", "acme", "--name", "json", "--json", NULL));
    ck_assert_msg(strstr(json_object_to_json_string(made), "asy_key_") != NULL, "%s",
                  json_object_to_json_string(made));
    record_text(made, "id");
}
END_TEST

START_TEST(a_key_created_before_the_start_works)
{
    assay_ok(server, "workspace", "create", "acme", NULL);
    server->key = key_new(server, "acme", NULL);
    server_start(server);
    expect_status(http_get(server, "/api/v1/reports"), 200);
    server_stop(server);
    char *id = text(
        "%s",
        record_text(json_object_array_get_idx(assay_list(server, "key", "list", NULL), 0), "id"));
    assay_ok(server, "key", "revoke", id, NULL);
    server_start(server);
    expect_error(http_get(server, "/api/v1/reports"), 401, "unauthorized");
    server_stop(server);
}
END_TEST

/* Requests that are refused (1) and usage errors (2). */
static const struct {
    const char *args[7];
    int status;
    const char *says;
} refused[] = {
    {{"nonsense"}, 2, "nonsense"},
    {{"workspace"}, 2, "create, list, delete"},
    {{"key"}, 2, "create, list, revoke, rotate"},
    {{"kye", "list"}, 2, "did you mean key?"},
    {{"key", "lst"}, 2, "did you mean key list?"},
    {{"key", "burn"}, 2, "key takes: create, list, revoke, rotate"},
    {{"help", "kye"}, 2, "did you mean key?"},
    {{"bakcup", "-h"}, 2, "did you mean backup?"},
    {{"key", "create", "--workspce", "acme"}, 2, "did you mean --workspace?"},
    {{"key", "list", "--origin", "x"}, 2, "it takes --workspace"},
    {{"key", "create", "--workspace", "acme", "--scope", "all"},
     2,
     "reports:read, reports:write, projects:read, projects:write, conversations:read, "
     "conversations:write"},
    {{"workspace", "nonsense"}, 2, "workspace takes: create, list, delete"},
    {{"workspace", "create"}, 2, NULL},
    {{"workspace", "create", ""}, 1, "1 to 100 characters"},
    {{"workspace", "create", "a", "b"}, 2, NULL},
    {{"key", "create"}, 2, "workspace"},
    {{"key", "create", "--workspace", "nowhere"}, 1, "nowhere"},
    {{"key", "create", "--workspace", "acme", "--scope", "everything"}, 2, "everything"},
    {{"key", "create", "--workspace", "acme", "--expires", "soon"}, 2, "soon"},
    {{"key", "create", "--workspace", "acme", "--nonsense"}, 2, "nonsense"},
    {{"key", "revoke"}, 2, NULL},
    {{"key", "revoke", "999999"}, 1, "999999"},
    {{"key", "revoke", "abc"}, 1, "abc"},
    {{"key", "rotate", "999999"}, 1, "999999"},
    {{"backup"}, 2, NULL},
    {{"backup", "/proc/nowhere/backup"}, 1, "/proc/nowhere/backup"},
    {{"restore", "/nowhere"}, 1, NULL},
    {{"audit"}, 2, NULL},
    {{"config", "nonsense"}, 2, "nonsense"},
    {{NULL}, 2, NULL},
};

START_TEST(an_impossible_command_is_refused_with_a_message)
{
    start_if(_i);
    assay_ok(server, "workspace", "create", "acme", NULL);
    for (size_t i = 0; i < COUNT(refused); i++) {
        const char *const *a = refused[i].args;
        struct run run = assay(server, a[0], a[1], a[2], a[3], a[4], a[5], NULL);
        ck_assert_msg(run.status == refused[i].status, "%s: exit status %d\n%s%s", run.command,
                      run.status, run.out, run.err);
        ck_assert_msg(!*run.out && strlen(run.err) > 10, "%s: %s|%s", run.command, run.out,
                      run.err);
        ck_assert_msg(!refused[i].says || strstr(run.err, refused[i].says), "%s: no %s in %s",
                      run.command, refused[i].says, run.err);
    }
}
END_TEST

START_TEST(help_is_printed)
{
    struct run run = run_program(assay_path(), "-h", NULL);
    ck_assert_msg(run.status == 0 && strstr(run.out, "workspace") && strstr(run.out, "backup"),
                  "%d: %s%s", run.status, run.out, run.err);
    struct run again = run_program(assay_path(), "help", NULL);
    ck_assert_str_eq(again.out, run.out);
}
END_TEST

static const struct {
    const char *args[4], *has, *lacks;
} helps[] = {
    {{"help", "key"}, "--scope SCOPE", "token create"},
    {{"help", "key", "create"}, "--scope SCOPE", "key list"},
    {{"key", "-h"}, "key rotate ID", "token create"},
    {{"key", "create", "-h"}, "--scope SCOPE", "key list"},
    {{"help", "backup"}, "backup DIR", "restore DIR"},
    {{"help", "all"}, "limits reset LIMITER KEY", "\nassay:"},
};

START_TEST(help_for_a_command_covers_only_that_command)
{
    const char *const *a = helps[_i].args;
    struct run run = run_program(assay_path(), a[0], a[1], a[2], a[3], NULL);
    ck_assert_msg(run.status == 0 && !*run.err && strstr(run.out, helps[_i].has) &&
                      !strstr(run.out, helps[_i].lacks),
                  "%s: %d\n%s%s", run.command, run.status, run.out, run.err);
}
END_TEST

START_TEST(configuration_errors_are_reported)
{
    server_configure(server, "colour: blue");
    struct run run = assay(server, "workspace", "list", NULL);
    ck_assert_msg(run.status != 0 && strstr(run.err, "colour") && strstr(run.err, server->conf),
                  "%d: %s", run.status, run.err);
}
END_TEST

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
    struct passwd *unused_user = getpwnam("nobody");
    ck_assert_ptr_nonnull(unused_user);
    assay_ok(server, "workspace", "create", "acme", NULL);
    assay_ok(server, "backup", dir, NULL);
    struct run run =
        run_program("/bin/chown", "-R", text("%u:%u", unused_user->pw_uid, unused_user->pw_gid),
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
        ck_assert_uint_eq(st.st_uid, unused_user->pw_uid);
    }
}
END_TEST

/* ---- the rest ---- */

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

START_TEST(two_concurrent_commands_both_work)
{
    assay_ok(server, "workspace", "create", "acme", NULL);
    pid_t pids[6];
    for (size_t i = 0; i < COUNT(pids); i++) {
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0)
            _exit(assay(server, "workspace", "create", text("w-%zu", i), NULL).status);
    }
    for (size_t i = 0; i < COUNT(pids); i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) <= 1, "status %d", status);
        struct json_object *made =
            record_find(assay_list(server, "workspace", "list", NULL), "name", text("w-%zu", i));
        ck_assert_int_eq(made != NULL, WEXITSTATUS(status) == 0);
    }
    assay_ok(server, "check", NULL);
}
END_TEST

START_TEST(stats_show_every_process)
{
    server_start(server);
    use_workspace();
    for (int i = 0; i < 10; i++)
        expect_status(http_get(server, "/api/v1/reports"), 200);
    char *table = assay_ok(server, "stats", NULL);
    static const char *const names[] = {"worker", "writer", "auditor"};
    for (size_t i = 0; i < COUNT(names); i++)
        ck_assert_msg(strstr(table, names[i]) != NULL, "no %s in %s", names[i], table);
    struct json_object *all = assay_list(server, "stats", NULL);
    ck_assert_uint_eq(json_object_array_length(all), 4);
    ck_assert_ptr_nonnull(record_find(all, "process", "auditor"));
    uint64_t longest = 0; /* an iteration of a worker's loop; some worker had one */
    for (size_t i = 0; i < json_object_array_length(all); i++) {
        struct json_object *row = json_object_array_get_idx(all, i);
        if (strcmp(json_object_get_string(json_object_object_get(row, "process")), "worker") == 0 &&
            json_object_get_uint64(json_object_object_get(row, "stretch_us")) > longest)
            longest = json_object_get_uint64(json_object_object_get(row, "stretch_us"));
    }
    ck_assert_uint_gt(longest, 0);
    server_stop(server);
    struct run run = assay(server, "stats", NULL);
    ck_assert_msg(run.status == 1 && !*run.out && strstr(run.err, "no server runs"), "%d: %s%s",
                  run.status, run.out, run.err);
}
END_TEST

START_TEST(the_dumped_configuration_is_in_force)
{
    server_configure(server, "base_url: https://api.example.test\nreports: { good: 91 }\ntimeouts: "
                             "{ idle: 7s }\ntrusted_proxies: "
                             "[10.0.0.0/8, \"2001:db8::/32\"]");
    char *yaml = assay_ok(server, "config", "dump", NULL),
         *path = text("%s/dumped.yaml", server->dir);
    ck_assert_msg(strstr(yaml, "https://api.example.test") && strstr(yaml, server->data) &&
                      strstr(yaml, "91") && strstr(yaml, "7s"),
                  "%s", yaml);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(yaml, file);
    ck_assert_int_eq(fclose(file), 0);
    struct run run = run_program(assayd_path(), "-t", "-c", path, NULL);
    ck_assert_msg(run.status == 0, "%s%s", run.out, run.err);
    struct run again = run_program(assay_path(), "-c", path, "config", "dump", NULL);
    ck_assert_str_eq(again.out, text("%s\n", yaml));
}
END_TEST

static const struct {
    const char *page;
    int status;
} audits[] = {{"/good", 0}, {"/decent", 1}, {"/bad", 1}, {"/missing", 2}};

START_TEST(audit_grades_without_a_server_and_exits_with_the_verdict)
{
    server_configure(server, "reports: { good: 75, decent: 50 }");
    for (size_t i = 0; i < COUNT(audits); i++) {
        struct run run = assay(server, "audit", origin_url(origin, audits[i].page), NULL);
        ck_assert_msg(run.status == audits[i].status, "%s: %d\n%s%s", audits[i].page, run.status,
                      run.out, run.err);
        ck_assert_msg(!strstr(run.out, "\x1b["), "colour into a file: %s", run.out);
    }
    struct run run = assay(server, "audit", "--json", origin_url(origin, "/decent"), NULL);
    struct json_object *record = json_of(run.out);
    ck_assert_msg(strstr(json_object_to_json_string(record), "\"score\"") != NULL, "%s", run.out);
    run = assay(server, "audit", "ftp://alpha.test/", NULL);
    ck_assert_msg(run.status == 2 && strstr(run.out, "http://"), "%d: %s%s", run.status, run.out,
                  run.err);
}
END_TEST

static const char *const audit_forms[] = {NULL, "--json"};

START_TEST(no_page_controls_the_terminal_of_audit)
{
    origin_page(origin, "/steers", 200, "",
                "<title>a\xc2\x9b"
                "31mb\xe2\x80\xae\xe2\x80\xa8</title><title>b</title>");
    const char *url = origin_url(origin, "/steers");
    for (size_t i = 0; i < COUNT(audit_forms); i++) {
        struct run run = audit_forms[i] == NULL ? assay(server, "audit", url, NULL)
                                                : assay(server, "audit", audit_forms[i], url, NULL);
        ck_assert_msg(strstr(run.out, "a\\u009b31mb\\u202e") != NULL, "%s%s", run.out, run.err);
        ck_assert_msg(!strstr(run.out, "\xc2\x9b") && !strstr(run.out, "\xe2\x80\xae") &&
                          !strstr(run.out, "\xe2\x80\xa8"),
                      "%s", run.out);
    }
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
    Suite *suite = suite_create("cli");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, workspaces_are_created_listed_and_deleted, 0, 2);
    tcase_add_loop_test(tcase, a_key_is_printed_alone_and_once, 0, 2);
    tcase_add_test(tcase, a_key_created_before_the_start_works);
    tcase_add_loop_test(tcase, an_impossible_command_is_refused_with_a_message, 0, 2);
    tcase_add_test(tcase, help_is_printed);
    tcase_add_loop_test(tcase, help_for_a_command_covers_only_that_command, 0, COUNT(helps));
    tcase_add_test(tcase, configuration_errors_are_reported);
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
    tcase_add_test(tcase, two_concurrent_commands_both_work);
    tcase_add_test(tcase, stats_show_every_process);
    tcase_add_test(tcase, the_dumped_configuration_is_in_force);
    tcase_add_test(tcase, audit_grades_without_a_server_and_exits_with_the_verdict);
    tcase_add_test(tcase, no_page_controls_the_terminal_of_audit);
    tcase_add_test(tcase, a_command_never_replaces_the_store_of_a_running_server);
    return harness_main(suite);
}
