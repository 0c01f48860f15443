/* The command line of operators, with a running server and without. */
#include "t/kit/harness.h"
#include "t/kit/harness_internal.h"

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
    assay_ok(server, "workspace", "create", "acme", NULL);
    server->key = key_new(server, "acme", NULL);
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
            json_object_get_uint64(json_object_object_get(row, "turn_max_us")) > longest)
            longest = json_object_get_uint64(json_object_object_get(row, "turn_max_us"));
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
    tcase_add_test(tcase, two_concurrent_commands_both_work);
    tcase_add_test(tcase, stats_show_every_process);
    tcase_add_test(tcase, the_dumped_configuration_is_in_force);
    tcase_add_test(tcase, audit_grades_without_a_server_and_exits_with_the_verdict);
    tcase_add_test(tcase, no_page_controls_the_terminal_of_audit);
    return harness_main(suite);
}
