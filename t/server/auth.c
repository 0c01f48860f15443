/* Credentials: which are accepted, with which scopes, until when, and for which workspace. */
#include "t/kit/harness.h"

static struct origin *origin;
static struct server *server;
static int64_t a_report;

static void setup(void)
{
    origin = origin_usual();
    server = server_shared(&(struct server_options){.origin = origin});
    a_report = report_queued(server, "http://alpha.test/");
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}

/* The routes that need a credential, and their scopes. */
static const struct {
    const char *method, *path, *body, *scope;
} routes[] = {
    {"GET", "/api/v1/reports", NULL, "reports:read"},
    {"GET", "/api/v1/reports/999999", NULL, "reports:read"},
    {"GET", "/api/v1/reports/999999/history", NULL, "reports:read"},
    {"HEAD", "/api/v1/reports", NULL, "reports:read"},
    {"POST", "/api/v1/reports", "url=", "reports:write"},
    {"PUT", "/api/v1/reports/999999", "", "reports:write"},
    {"DELETE", "/api/v1/reports/999999", NULL, "reports:write"},
    {"GET", "/api/v1/projects", NULL, "projects:read"},
    {"GET", "/api/v1/projects/nowhere.test", NULL, "projects:read"},
    {"DELETE", "/api/v1/projects/nowhere.test", NULL, "projects:write"},
};
static const char *const scopes[] = {"reports:read",   "reports:write",      "projects:read",
                                     "projects:write", "conversations:read", "conversations:write"};

static struct response *call_route(size_t route, const char *key, const char *extra)
{
    return http(server, .method = routes[route].method, .path = routes[route].path,
                .body = routes[route].body, .key = key, .headers = {extra});
}

START_TEST(every_route_without_a_credential_is_401_and_requests_one)
{
    struct response *r = call_route((size_t)_i, "", NULL);
    if (strcmp(routes[_i].method, "HEAD") != 0)
        expect_error(r, 401, "unauthorized");
    expect_status(r, 401);
    const char *asked = header(r, "WWW-Authenticate");
    expect(r, asked && !strcmp(asked, "Bearer realm=\"assay\""));
}
END_TEST

static char *changed(const char *key, size_t position)
{
    char *copy = text("%s", key);
    copy[position] = copy[position] == 'a' ? 'b' : 'a';
    return copy;
}

/* Wrong credentials. */
enum { WRONG = 16 };
static const char *wrong_authorization(int which)
{
    const char *key = server->key;
    size_t size = strlen(key);
    switch (which) {
    case 0:
        return text("Authorization: Bearer %s", changed(key, size - 1));
    case 1:
        return text("Authorization: Bearer %s", changed(key, 8));
    case 2:
        return text("Authorization: Bearer %.*s", (int)size - 1, key);
    case 3:
        return text("Authorization: Bearer %sx", key);
    case 4:
        return text("Authorization: Bearer asy_wp_%s", key + 8);
    case 5:
        return text("Authorization: Bearer %s", key + 8);
    case 6:
        return "Authorization: Bearer nonsense";
    case 7:
        return text("Authorization: Bearer %s %s", key, key);
    case 8:
        return text("Authorization: Basic %s", key);
    case 9:
        return text("Authorization: Bearer%s", key);
    case 10:
        return text("Authorization: %s", key);
    case 11:
        return text("Authorization: Bearer \"%s\"", key);
    case 12:
        return text("Authorization: Bearer %s,", key);
    case 13:
        return text("Authorization: Bearer %08000d", 1);
    case 14:
        return "Authorization: Bearer asy_key_000000000000000000000000000000000000";
    default:
        return "Authorization: Bearer \xff\xfe";
    }
}

START_TEST(a_wrong_credential_is_401_invalid_token)
{
    struct response *r =
        http(server, .path = "/api/v1/reports", .key = "", .headers = {wrong_authorization(_i)});
    expect_error(r, 401, "unauthorized");
    const char *asked = header(r, "WWW-Authenticate");
    expect(r, asked && !strncmp(asked, "Bearer realm=\"assay\"", 20));
    if (!strncmp(wrong_authorization(_i), "Authorization: Bearer ", 22))
        expect(r, strstr(asked, "error=\"invalid_token\""));
}
END_TEST

/* Columns: the path; what is sent; the accepted and the sent kind that the answer names. */
static const struct {
    const char *path, *sent, *takes, *was;
} kinds[] = {
    {"/api/v1/reports", "asy_wp_000000000000000000000000000000000000", "needs an API key",
     "like a workspace token"},
    {"/api/v1/reports", "asy_wp_x", "needs an API key", "like a workspace token"},
    {"/api/v1/reports", "eyJhbGciOiJIUzI1NiJ9.e30.c2ln", "needs an API key",
     "like a visitor's token"},
    {"/v1/wp/status", "asy_key_000000000000000000000000000000000000", "needs a workspace token",
     "like an API key"},
    {"/v1/wp/status", "eyJhbGciOiJIUzI1NiJ9.e30.c2ln", "needs a workspace token",
     "like a visitor's token"},
    {"/api/v1/widget/conversation/messages", "asy_key_x", "needs a visitor's token",
     "like an API key"},
    {"/api/v1/widget/conversation/messages", "anon_x", "needs a visitor's token",
     "like a visitor's anonymous id"},
};

START_TEST(a_credential_of_another_kind_is_recognized_by_its_prefix)
{
    struct response *r = http(server, .path = kinds[_i].path, .key = kinds[_i].sent);
    expect_error(r, 401, "unauthorized");
    expect(r, strstr(str_at(r, "error.message"), kinds[_i].takes) &&
                  strstr(str_at(r, "error.message"), kinds[_i].was));
    expect(r, strstr(header(r, "WWW-Authenticate"), "error=\"invalid_token\""));
}
END_TEST

/* A good one must not differ from a bad one. */
START_TEST(a_good_credential_of_another_kind_is_refused_as_a_bad_one)
{
    char *token = assay_ok(server, "token", "create", "--workspace", "main", NULL);
    const char *sent[] = {token, "asy_wp_000000000000000000000000000000000000"};
    char *bodies[COUNT(sent)];
    for (size_t i = 0; i < COUNT(sent); i++) {
        struct response *r = http(server, .path = "/api/v1/reports", .key = sent[i]);
        expect_error(r, 401, "unauthorized");
        bodies[i] = text("%s", r->body);
    }
    ck_assert_str_eq(bodies[0], bodies[1]);
}
END_TEST

START_TEST(the_scheme_is_case_insensitive)
{
    static const char *const schemes[] = {"bearer", "BEARER", "Bearer "};
    for (size_t i = 0; i < COUNT(schemes); i++) {
        struct response *r =
            http(server, .path = "/api/v1/reports", .key = "",
                 .headers = {text("Authorization: %s %s", schemes[i], server->key)});
        expect_status(r, 200);
    }
}
END_TEST

START_TEST(a_key_in_the_query_is_no_credential)
{
    struct response *r =
        http(server,
             .path = text("/api/v1/reports?api_key=%s&access_token=%s", server->key, server->key),
             .key = "");
    expect_error(r, 401, "unauthorized");
    expect(r, !strstr(r->body, server->key));
}
END_TEST

START_TEST(a_well_formed_key_of_another_installation_is_401)
{
    struct server *other = server_new(&(struct server_options){.no_key = true});
    assay_ok(other, "workspace", "create", "main", NULL);
    char *key = key_new(other, "main", NULL);
    struct response *r = http(server, .path = "/api/v1/reports", .key = key);
    expect_error(r, 401, "unauthorized");
    expect(r, strstr(header(r, "WWW-Authenticate"), "error=\"invalid_token\""));
    server_free(other);
}
END_TEST

START_TEST(a_new_key_is_its_prefix_and_36_base62_characters)
{
    ck_assert_uint_eq(strlen(server->key), strlen("asy_key_") + 36);
    ck_assert_uint_eq(
        strspn(server->key + 8, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
        36);
}
END_TEST

START_TEST(each_route_needs_exactly_its_scope)
{
    const char *needed = routes[_i].scope, *others[COUNT(scopes)];
    size_t count = 0;
    for (size_t i = 0; i < COUNT(scopes); i++)
        if (strcmp(scopes[i], needed) != 0)
            others[count++] = scopes[i];
    ck_assert_uint_eq(count, 5);
    char *without =
        key_new(server, "main", others[0], others[1], others[2], others[3], others[4], NULL);
    char *with = key_new(server, "main", needed, NULL);
    struct response *r = call_route((size_t)_i, without, NULL);
    if (strcmp(routes[_i].method, "HEAD") != 0)
        expect_error(r, 403, "insufficient_scope");
    expect_status(r, 403);
    ck_assert_str_eq(
        header(r, "WWW-Authenticate"),
        text("Bearer realm=\"assay\", error=\"insufficient_scope\", scope=\"%s\"", needed));
    if (strcmp(routes[_i].method, "HEAD") != 0)
        expect(r, strstr(str_at(r, "error.message"), text(" %s,", needed)) != NULL);
    r = call_route((size_t)_i, with, NULL);
    expect(r, r->status != 401 && r->status != 403 && r->status < 500);
}
END_TEST

/* ---- expiry of a key ---- */

struct use {
    const char *key;
    int status;
};

static bool answers(void *arg)
{
    struct use *use = arg;
    struct response *r = http(server, .path = "/api/v1/reports", .key = use->key);
    bool same = r->status == use->status;
    response_free(r);
    return same;
}

START_TEST(an_expired_key_is_refused)
{
    char *key = assay_ok(server, "key", "create", "--workspace", "main", "--scope", "reports:read",
                         "--expires", "2s", NULL);
    struct response *r = http(server, .path = "/api/v1/reports", .key = key);
    expect_status(r, 200);
    ck_assert_msg(wait_until(answers, &(struct use){key, 401}, 5000),
                  "still valid after it expired");
    r = http(server, .path = "/api/v1/reports", .key = key);
    expect_error(r, 401, "unauthorized");
    expect(r, strstr(header(r, "WWW-Authenticate"), "error=\"invalid_token\""));
}
END_TEST

/* The id of the newest key of that name. */
static char *key_id(const char *name)
{
    char *id = NULL;
    struct json_object *keys = assay_list(server, "key", "list", NULL), *value;
    for (size_t i = 0; i < json_object_array_length(keys); i++) {
        struct json_object *key = json_object_array_get_idx(keys, i);
        if (json_object_object_get_ex(key, "name", &value) && value &&
            !strcmp(json_object_get_string(value), name) &&
            json_object_object_get_ex(key, "id", &value))
            id = text("%s", json_object_get_string(value));
    }
    ck_assert_msg(id != NULL, "no key %s in %s", name, json_object_to_json_string(keys));
    json_object_put(keys);
    return id;
}

enum { CONNECTIONS = 24 };

static void ask(struct raw *raw, const char *key)
{
    raw_get(raw, key, "/api/v1/reports");
}

/* enough connections to reach every worker */
static void use_on_every_worker(struct raw *raws[CONNECTIONS], const char *key)
{
    for (size_t i = 0; i < CONNECTIONS; i++) {
        raws[i] = raw_open(server);
        ask(raws[i], key);
        expect_status(raw_response(raws[i], false, 5000), 200);
    }
}

static void expect_refused_within_a_second(struct raw *raws[CONNECTIONS], const char *key)
{
    int64_t deadline = now_ms() + 1000;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct response *r;
        do {
            ask(raws[i], key);
            r = raw_response(raws[i], false, 5000);
        } while (r->status == 200 && now_ms() < deadline);
        expect_error(r, 401, "unauthorized");
        raw_close(raws[i]);
    }
    ck_assert_int_le(now_ms(), deadline + 1000);
}

START_TEST(a_revoked_key_is_refused_within_a_second_on_every_worker)
{
    struct raw *raws[CONNECTIONS];
    char *key = assay_ok(server, "key", "create", "--workspace", "main", "--name", "short-lived",
                         "--scope", "reports:read", NULL);
    char *id = key_id("short-lived");
    use_on_every_worker(raws, key);
    assay_ok(server, "key", "revoke", id, NULL);
    expect_refused_within_a_second(raws, key);
}
END_TEST

START_TEST(a_rotated_key_is_valid_until_its_overlap_ends)
{
    char *old = assay_ok(server, "key", "create", "--workspace", "main", "--name", "rotating",
                         "--scope", "reports:read", NULL);
    char *new = assay_ok(server, "key", "rotate", key_id("rotating"), "--overlap", "2s", NULL);
    ck_assert_str_ne(old, new);
    struct response *r = http(server, .path = "/api/v1/reports", .key = new);
    expect_status(r, 200);
    expect_status(http(server, .path = "/api/v1/reports", .key = old), 200);
    expect_error(
        http(server, .method = "POST", .path = "/api/v1/reports", .body = "url=x", .key = new), 403,
        "insufficient_scope");
    ck_assert_msg(wait_until(answers, &(struct use){old, 401}, 5000),
                  "the old key is still valid after the overlap");
    expect_status(http(server, .path = "/api/v1/reports", .key = new), 200);
}
END_TEST

START_TEST(deleting_a_workspace_ends_its_keys_within_a_second)
{
    assay_ok(server, "workspace", "create", "doomed", NULL);
    char *key = key_new(server, "doomed", NULL);
    struct raw *raws[CONNECTIONS];
    use_on_every_worker(raws, key);
    assay_ok(server, "workspace", "delete", "doomed", NULL);
    expect_refused_within_a_second(raws, key);
}
END_TEST

START_TEST(nothing_crosses_workspaces)
{
    assay_ok(server, "workspace", "create", "neighbour", NULL);
    char *key = key_new(server, "neighbour", NULL);
    struct response *r = http(server, .path = "/api/v1/reports", .key = key);
    expect_int(r, "meta.total", 0);
    r = http(server, .path = "/api/v1/projects", .key = key);
    expect_int(r, "meta.total", 0);
    r = http(server, .path = "/api/v1/reports?search=alpha&project=alpha.test", .key = key);
    expect_int(r, "meta.total", 0);
    static const char *const methods[] = {"GET", "PUT", "DELETE"};
    for (size_t i = 0; i < COUNT(methods); i++)
        expect_error(http(server, .method = methods[i], .path = report_path(a_report), .key = key),
                     404, "not_found");
    expect_error(http(server, .path = text("%s/history", report_path(a_report)), .key = key), 404,
                 "not_found");
    expect_error(http(server, .path = "/api/v1/projects/alpha.test", .key = key), 404, "not_found");
    expect_error(
        http(server, .method = "DELETE", .path = "/api/v1/projects/alpha.test", .key = key), 404,
        "not_found");
    expect_status(http_get(server, report_path(a_report)), 200);
    expect_status(http_get(server, "/api/v1/projects/alpha.test"), 200);
}
END_TEST

START_TEST(a_new_key_works_at_once_on_every_worker)
{
    char *key = key_new(server, "main", "reports:read", NULL);
    for (int i = 0; i < 12; i++)
        expect_status(http(server, .path = "/api/v1/reports", .key = key), 200);
}
END_TEST

static bool was_used(void *arg)
{
    bool used = false;
    struct json_object *keys = assay_list(server, "key", "list", NULL), *name, *at_time;
    for (size_t i = 0; i < json_object_array_length(keys); i++) {
        struct json_object *key = json_object_array_get_idx(keys, i);
        if (json_object_object_get_ex(key, "name", &name) && name &&
            !strcmp(json_object_get_string(name), arg) &&
            json_object_object_get_ex(key, "last_used_at", &at_time))
            used |= at_time != NULL;
    }
    json_object_put(keys);
    return used;
}

START_TEST(the_last_use_of_a_key_is_recorded)
{
    char *key = assay_ok(server, "key", "create", "--workspace", "main", "--name", "noted",
                         "--scope", "reports:read", NULL);
    ck_assert(!was_used("noted"));
    expect_status(http(server, .path = "/api/v1/reports", .key = key), 200);
    ck_assert(wait_until(was_used, "noted", 10000));
}
END_TEST

START_TEST(no_secret_is_in_the_log_or_the_store)
{
    char *key = key_new(server, "main", "reports:write", NULL);
    struct response *r = http(server, .method = "POST", .path = "/api/v1/reports", .key = key,
                              .body = form("url", "http://alpha.test/", "privacy", "2", "password",
                                           "Xyzzy-Plugh-42", NULL),
                              .headers = {"Prefer: respond-async"});
    expect_status(r, 202);
    ck_assert(!strstr(server_log(server), key));
    ck_assert(!strstr(server_log(server), "Xyzzy-Plugh-42"));
    struct run run = run_program("/bin/grep", "-rlaF", "-e", key, "-e", "Xyzzy-Plugh-42",
                                 server->data, server->run, NULL);
    ck_assert_msg(run.status == 1, "found in %s%s", run.out, run.err);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("auth");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, every_route_without_a_credential_is_401_and_requests_one, 0,
                        COUNT(routes));
    tcase_add_loop_test(tcase, a_wrong_credential_is_401_invalid_token, 0, WRONG);
    tcase_add_loop_test(tcase, a_credential_of_another_kind_is_recognized_by_its_prefix, 0,
                        COUNT(kinds));
    tcase_add_test(tcase, a_good_credential_of_another_kind_is_refused_as_a_bad_one);
    tcase_add_test(tcase, the_scheme_is_case_insensitive);
    tcase_add_test(tcase, a_key_in_the_query_is_no_credential);
    tcase_add_test(tcase, a_well_formed_key_of_another_installation_is_401);
    tcase_add_test(tcase, a_new_key_is_its_prefix_and_36_base62_characters);
    tcase_add_loop_test(tcase, each_route_needs_exactly_its_scope, 0, COUNT(routes));
    tcase_add_test(tcase, an_expired_key_is_refused);
    tcase_add_test(tcase, a_revoked_key_is_refused_within_a_second_on_every_worker);
    tcase_add_test(tcase, a_rotated_key_is_valid_until_its_overlap_ends);
    tcase_add_test(tcase, deleting_a_workspace_ends_its_keys_within_a_second);
    tcase_add_test(tcase, nothing_crosses_workspaces);
    tcase_add_test(tcase, a_new_key_works_at_once_on_every_worker);
    tcase_add_test(tcase, the_last_use_of_a_key_is_recorded);
    tcase_add_test(tcase, no_secret_is_in_the_log_or_the_store);
    return harness_main(suite);
}
