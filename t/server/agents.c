/*
 * Agents, workspace tokens and signing keys on the command line, with a running server (1) and
 * without (0).
 */
#include "t/kit/harness.h"

#include <sys/stat.h>

static struct server *server;

static void setup(void)
{
    server = server_new(&(struct server_options){.no_key = true});
}

static void teardown(void)
{
    server_free(server);
}

static void start_if(int running)
{
    if (running)
        server_start(server);
    assay_ok(server, "workspace", "create", "acme", NULL);
}

static struct json_object *only(struct json_object *list)
{
    ck_assert_uint_eq(json_object_array_length(list), 1);
    return json_object_array_get_idx(list, 0);
}

START_TEST(an_agent_is_created_listed_updated_and_deleted)
{
    start_if(_i);
    char *id = assay_ok(server, "agent", "create", "--workspace", "acme", "--name", "Shop",
                        "--origin", "HTTPS://Example.com:443", "--prompt", "Where is my order?",
                        "--theme", "{\"color\":\"#0a7\"}", "--lead-fields",
                        "[{\"name\":\"company\"}]", "--language", "de", "--require-lead", NULL);
    ck_assert_msg(strlen(id) == 26 && strspn(id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == 26,
                  "create printed %s", id);
    struct json_object *agent = only(assay_list(server, "agent", "list", NULL));
    ck_assert_str_eq(record_text(agent, "id"), id);
    ck_assert_str_eq(record_text(agent, "name"), "Shop");
    ck_assert_str_eq(record_text(agent, "is_published"), "true");
    ck_assert_str_eq(record_text(agent, "require_lead_before_chat"), "true");
    ck_assert_str_eq(record_text(agent, "allowed_origins"), "[ \"https:\\/\\/example.com\" ]");
    ck_assert_str_eq(record_text(agent, "starter_prompts"), "[ \"Where is my order?\" ]");
    ck_assert_str_eq(record_text(agent, "theme"), "{ \"color\": \"#0a7\" }");
    ck_assert_str_eq(record_text(agent, "language_default"), "de");
    assay_ok(server, "agent", "update", id, "--unpublished", "--prompt", "", "--origin", "*",
             "--no-require-lead", NULL);
    agent = only(assay_list(server, "agent", "list", "--workspace", "acme", NULL));
    ck_assert_str_eq(record_text(agent, "is_published"), "false");
    ck_assert_str_eq(record_text(agent, "starter_prompts"), "[ ]");
    ck_assert_str_eq(record_text(agent, "allowed_origins"), "[ \"*\" ]");
    ck_assert_str_eq(record_text(agent, "theme"), "{ \"color\": \"#0a7\" }");
    ck_assert_str_eq(record_text(agent, "lead_form_fields"), "[ { \"name\": \"company\" } ]");
    ck_assert_str_eq(record_text(agent, "name"), "Shop");
    assay_ok(server, "agent", "delete", id, NULL);
    ck_assert_uint_eq(json_object_array_length(assay_list(server, "agent", "list", NULL)), 0);
    struct run again = assay(server, "agent", "delete", id, NULL);
    ck_assert_msg(again.status == 1 && strstr(again.err, id), "%d: %s", again.status, again.err);
    assay_ok(server, "check", NULL);
}
END_TEST

static const struct {
    const char *args[10];
    int status;
    const char *says;
} refused[] = {
    {{"agent", "create", "--name", "x"}, 2, "--workspace"},
    {{"agent", "create", "--workspace", "acme"}, 2, "--name"},
    {{"agent", "create", "--workspace", "nobody", "--name", "x"}, 1, "nobody"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--origin", "https://a/b"},
     1,
     "https://a/b"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--theme", "{\"color\":blue}"},
     1,
     "--theme: The JSON is malformed at line 1, column 10: expected a value"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--theme", "[]"},
     1,
     "--theme: must be an object with the keys color, position, title and greeting"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--theme", "{\"colour\":\"#0a7\"}"},
     1,
     "--theme: unknown key \"colour\", did you mean \"color\"?; the keys are color, position, "
     "title and greeting"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--theme", "{\"a\":{}}"},
     1,
     "--theme: unknown key \"a\"; the keys are"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--theme", "{\"color\":\"blue\"}"},
     1,
     "--theme: \"color\" must be a color as #rgb or #rrggbb"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--theme",
      "{\"color\":\"#12345g\"}"},
     1,
     "--theme: \"color\" must be"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--theme", "{\"color\":\"#12345\"}"},
     1,
     "--theme: \"color\" must be"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--theme", "{\"color\":7}"},
     1,
     "--theme: \"color\" must be"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--theme", "{\"position\":\"top\"}"},
     1,
     "--theme: \"position\" must be \"left\" or \"right\""},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--theme", "{\"title\":\"\"}"},
     1,
     "--theme: \"title\" must be a text"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--lead-fields",
      "[{\"label\":\"x\"}]"},
     1,
     "--lead-fields: field 1 of the lead form has no name"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--lead-fields",
      "[{\"name\":\"x\",\"type\":\"file\"}]"},
     1,
     "--lead-fields: field 1 of the lead form: \"type\" must be text, email, tel or textarea"},
    {{"agent", "create", "--workspace", "acme", "--name", "x", "--language", "<b>"},
     1,
     "assay: --language: must be a language tag"},
    {{"agent", "update", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--published"},
     1,
     "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
    {{"agent", "update", "7", "--published"}, 1, "7"},
    {{"agent", "delete", "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, 1, "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
    {{"token", "create"}, 2, "--workspace"},
    {{"token", "revoke", "99"}, 1, "99"},
    {{"token", "rotate", "x"}, 1, "x"},
    {{"key", "create", "--workspace", "acme", "--scope", "wp:sync"}, 2, "wp:sync"},
};

START_TEST(a_wrong_call_is_refused_with_a_message)
{
    const char *const *a = refused[_i].args;
    start_if(0);
    struct run run =
        assay(server, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], NULL);
    ck_assert_msg(run.status == refused[_i].status && strstr(run.err, refused[_i].says) &&
                      run.out[0] == '\0',
                  "%d: %s%s", run.status, run.out, run.err);
    ck_assert_uint_eq(json_object_array_length(assay_list(server, "agent", "list", NULL)), 0);
}
END_TEST

START_TEST(an_empty_update_is_refused)
{
    start_if(1);
    char *id = assay_ok(server, "agent", "create", "--workspace", "acme", "--name", "Shop", NULL);
    struct run run = assay(server, "agent", "update", id, NULL);
    ck_assert_msg(run.status == 2 && strstr(run.err, "option"), "%d: %s", run.status, run.err);
}
END_TEST

START_TEST(a_token_is_created_listed_rotated_and_revoked)
{
    start_if(_i);
    struct run run = assay(server, "token", "create", "--workspace", "acme", "--name", "shop",
                           "--require-signature", NULL);
    ck_assert_msg(run.status == 0 && strlen(run.out) == 7 + 36 + 1 &&
                      !strncmp(run.out, "asy_wp_", 7),
                  "%d: %s%s", run.status, run.out, run.err);
    ck_assert(!strstr(run.err, "asy_wp_"));
    struct json_object *token = only(assay_list(server, "token", "list", NULL));
    ck_assert_str_eq(record_text(token, "scopes"), "[ \"wp:sync\" ]");
    ck_assert_str_eq(record_text(token, "require_signature"), "true");
    ck_assert_str_eq(record_text(token, "state"), "active");
    ck_assert_uint_eq(json_object_array_length(assay_list(server, "key", "list", NULL)), 0);
    char *id = text("%s", record_text(token, "id"));
    ck_assert_int_eq(assay(server, "key", "revoke", id, NULL).status, 1);
    ck_assert_int_eq(assay(server, "key", "rotate", id, NULL).status, 1);
    char *secret = assay_ok(server, "token", "rotate", id, "--overlap", "0", NULL);
    ck_assert_msg(!strncmp(secret, "asy_wp_", 7) && strncmp(secret, run.out, 43) != 0, "%s",
                  secret);
    struct json_object *both = assay_list(server, "token", "list", NULL);
    ck_assert_uint_eq(json_object_array_length(both), 2);
    ck_assert_str_eq(record_text(json_object_array_get_idx(both, 0), "state"), "expired");
    ck_assert_str_eq(record_text(json_object_array_get_idx(both, 1), "require_signature"), "true");
    id = text("%s", record_text(json_object_array_get_idx(both, 1), "id"));
    assay_ok(server, "token", "revoke", id, NULL);
    ck_assert_str_eq(
        record_text(json_object_array_get_idx(assay_list(server, "token", "list", NULL), 1),
                    "state"),
        "revoked");
    assay_ok(server, "key", "create", "--workspace", "acme", NULL);
    id = text("%s", record_text(only(assay_list(server, "key", "list", NULL)), "id"));
    ck_assert_int_eq(assay(server, "token", "revoke", id, NULL).status, 1);
    assay_ok(server, "check", NULL);
}
END_TEST

START_TEST(a_token_is_refused_on_api_key_routes)
{
    start_if(1);
    char *token = assay_ok(server, "token", "create", "--workspace", "acme", NULL);
    expect_error(http(server, .path = "/api/v1/reports", .key = token), 401, "unauthorized");
}
END_TEST

START_TEST(the_master_creates_the_secrets_once_and_rotation_adds_one)
{
    struct stat first, again, rotated;
    char *path = text("%s/secrets", server->data);
    server_start(server);
    ck_assert_int_eq(stat(path, &first), 0);
    ck_assert_int_eq(first.st_mode & 0777, 0600);
    server_stop(server);
    server_start(server);
    ck_assert_int_eq(stat(path, &again), 0);
    ck_assert_uint_eq(first.st_ino, again.st_ino);
    assay_ok(server, "secret", "rotate", NULL);
    ck_assert_int_eq(stat(path, &rotated), 0);
    ck_assert_int_eq(rotated.st_mode & 0777, 0600);
    ck_assert_int_gt(rotated.st_size, first.st_size);
    server_stop(server);
    assay_ok(server, "secret", "rotate", NULL);
    server_start(server);
}
END_TEST

START_TEST(a_missing_configured_file_is_reported_at_startup)
{
    server_configure(server, text("jwt: { secrets_file: %s/elsewhere }\n", server->dir));
    server_spawn(server, NULL);
    ck_assert_int_eq(server_wait(server, 10000), 1);
    ck_assert_msg(strstr(server_log(server), "elsewhere") != NULL, "%s", server_log(server));
    assay_ok(server, "secret", "rotate", NULL);
    server_start(server);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *suite = suite_create("agents");
    TCase *tc = harness_case(suite, "agents");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, an_agent_is_created_listed_updated_and_deleted, 0, 2);
    tcase_add_loop_test(tc, a_wrong_call_is_refused_with_a_message, 0, (int)COUNT(refused));
    tcase_add_test(tc, an_empty_update_is_refused);
    tcase_add_loop_test(tc, a_token_is_created_listed_rotated_and_revoked, 0, 2);
    tcase_add_test(tc, a_token_is_refused_on_api_key_routes);
    tcase_add_test(tc, the_master_creates_the_secrets_once_and_rotation_adds_one);
    tcase_add_test(tc, a_missing_configured_file_is_reported_at_startup);
    return harness_main(suite);
}
