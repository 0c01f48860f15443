/*
 * JSON bodies of reports, and names that a route does not know: ignored and named by lists, refused
 * under `Prefer: handling=strict` (RFC 7240). api.md §2 and §4.
 */
#include "harness.h"

static struct origin *origin;
static struct server *server;
static char *key; /* of every scope that the requests here need */

static void setup(void)
{
    origin = origin_usual();
    server = server_shared(&(struct server_options){.origin = origin});
    key = key_new(server, "main", "reports:read", "reports:write", "projects:read",
                  "conversations:read", "conversations:write", NULL);
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}

#define JSON_TYPE "Content-Type: application/json"
#define STRICT "Prefer: handling=strict"

static struct response *send_json(const char *method, const char *path, const char *body)
{
    return http(server, .method = method, .path = path, .headers = {JSON_TYPE}, .body = body);
}

/* ---- JSON ---- */

START_TEST(a_report_is_created_by_json_as_by_a_form)
{
    struct response *r = send_json("POST", "/api/v1/reports",
                                   text("{\"url\":\"%s\",\"privacy\":2,\"password\":\"s\\u00e9cret\"}",
                                        origin_url(origin, "/good")));
    expect_status(r, 201);
    expect_str(r, "data.status", "done");
    expect_str(r, "data.url", origin_url(origin, "/good"));
    expect_int(r, "data.privacy", 2);
    expect(r, bool_at(r, "data.password"));
}
END_TEST

START_TEST(a_report_is_changed_by_json_as_by_a_form)
{
    char *path = report_path(report_new(server, origin_url(origin, "/good")));
    expect_int(send_json("PUT", path, "{\"privacy\":1}"), "data.privacy", 1);
    expect_int(send_json("PUT", path, "{\"privacy\":\"0\",\"password\":null}"), "data.privacy", 0);
    expect_int(send_json("PUT", path, "{}"), "data.privacy", 0);
    struct response *r = http(server, .method = "PUT", .path = path,
                              .headers = {JSON_TYPE, "Prefer: wait=10"}, .body = "{\"update\":1}");
    expect_status(r, 200);
    expect_str(r, "data.status", "done");
}
END_TEST

/* What is wrong with a body, and how it is told. */
static const struct {
    const char *body;
    int status;
    const char *code, *field; /* field: in `errors`; NULL: none */
} wrong[] = {
    {"{}", 422, "validation_failed", "url"},
    {"{\"url\":7}", 422, "validation_failed", "url"},
    {"{\"url\":null}", 422, "validation_failed", "url"},
    {"{\"url\":\"\"}", 422, "validation_failed", "url"},
    {"{\"url\":\"ftp://a.test/\"}", 422, "validation_failed", "url"},
    {"{\"url\":\"http://a.test/\",\"privacy\":3}", 422, "validation_failed", "privacy"},
    {"{\"url\":\"http://a.test/\",\"privacy\":true}", 422, "validation_failed", "privacy"},
    {"{\"url\":\"http://a.test/\",\"privacy\":1.0}", 422, "validation_failed", "privacy"},
    {"{\"url\":\"http://a.test/\",\"privacy\":2}", 422, "validation_failed", "password"},
    {"[\"url\"]", 400, "bad_request", NULL},
    {"\"url\"", 400, "bad_request", NULL},
    {"{\"url\":\"a\",}", 400, "bad_request", NULL},
    {"{\"url\":\"a\",\"url\":\"b\"}", 400, "bad_request", NULL},
    {"{\"url\":\"\\u0000\"}", 400, "bad_request", NULL},
};

START_TEST(a_wrong_json_body_is_refused_as_a_form_is)
{
    struct response *r = send_json("POST", "/api/v1/reports", wrong[_i].body);
    expect_status(r, wrong[_i].status);
    expect_error(r, wrong[_i].status, wrong[_i].code);
    if (wrong[_i].field)
        expect(r, at(r, text("error.errors.%s", wrong[_i].field)) != NULL);
}
END_TEST

START_TEST(malformed_json_is_told_with_line_and_column)
{
    struct response *r = send_json("POST", "/api/v1/reports", "{\"url\":\n  nothing}");
    expect_error(r, 400, "bad_request");
    expect(r, strstr(r->body, "line 2, column 3") != NULL);
}
END_TEST

START_TEST(a_repeat_of_a_json_body_under_a_key_is_replayed)
{
    const char *body = text("{\"url\":\"%s\"}", origin_url(origin, "/good"));
    const char *once = text("Idempotency-Key: json-%d", (int)getpid());
    struct response *first = http(server, .method = "POST", .path = "/api/v1/reports",
                                  .headers = {JSON_TYPE, once}, .body = body);
    struct response *again = http(server, .method = "POST", .path = "/api/v1/reports",
                                  .headers = {JSON_TYPE, once}, .body = body);
    expect_status(first, 201);
    expect_status(again, 201);
    ck_assert_str_eq(header(again, "Idempotent-Replayed"), "true");
    ck_assert_str_eq(header(again, "Location"), header(first, "Location"));
}
END_TEST

/* ---- unknown names ---- */

static const char *const lists[] = {"/api/v1/reports", "/api/v1/projects", "/api/v1/conversations",
                                    "/api/v1/leads", "/api/v1/events", "/api/v1/ratings"};

START_TEST(a_list_names_the_parameters_that_it_ignores)
{
    const char *path = text("%s?reslt=good&per_page=10&%%22%%3Cb%%3E=1&reslt=2", lists[_i]);
    struct response *r = http(server, .path = path, .key = key);
    expect_status(r, 200);
    expect(r, strstr(r->body, "\"ignored\":[\"reslt\",\"\\\"<b>\"]") != NULL);
    r = http(server, .path = text("%s?per_page=10", lists[_i]), .key = key);
    expect_status(r, 200);
    expect(r, strstr(r->body, "ignored") == NULL);
}
END_TEST

/* Requests with a name that their route does not know, and the nearest that it does. */
static const struct {
    const char *method, *path, *type, *body, *name, *nearest;
} unknown[] = {
    {"GET", "/api/v1/reports?reslt=good", "Accept: */*", NULL, "reslt", "result"},
    {"GET", "/api/v1/reports?privacy=1", "Accept: */*", NULL, "privacy", NULL},
    {"GET", "/api/v1/projects?srch=a", "Accept: */*", NULL, "srch", "search"},
    {"GET", "/api/v1/projects/a.test?x=1", "Accept: */*", NULL, "x", NULL},
    {"GET", "/api/v1/leads?agent=1", "Accept: */*", NULL, "agent", NULL},
    {"POST", "/api/v1/reports", JSON_TYPE, "{\"url\":\"http://a.test/\",\"privcy\":1}", "privcy", "privacy"},
    {"POST", "/api/v1/reports", JSON_TYPE, "{\"url\":\"http://a.test/\",\"colour\":\"red\"}", "colour", NULL},
    {"POST", "/api/v1/reports", "Content-Type: application/x-www-form-urlencoded",
     "url=http%3A%2F%2Fa.test&privcy=1", "privcy", "privacy"},
    {"POST", "/api/v1/reports?url=x", JSON_TYPE, "{\"url\":\"http://a.test/\"}", "url", NULL},
    {"PUT", "/api/v1/reports/1", JSON_TYPE, "{\"updat\":1}", "updat", "update"},
    {"POST", "/api/v1/conversations/x/messages", JSON_TYPE, "{\"message\":\"a\",\"mesage\":\"b\"}",
     "mesage", "message"},
};

START_TEST(strict_handling_refuses_unknown_names_with_the_nearest_known_one)
{
    struct response *r = http(server, .method = unknown[_i].method, .path = unknown[_i].path, .key = key,
                              .headers = {unknown[_i].type, STRICT}, .body = unknown[_i].body);
    expect_error(r, 422, "validation_failed");
    ck_assert_str_eq(header(r, "Preference-Applied"), "handling=strict");
    const char *hint = unknown[_i].nearest ? text("; did you mean %s?", unknown[_i].nearest) : "";
    expect(r, strstr(r->body, text("\"%s\":[\"is not known here%s\"]", unknown[_i].name, hint)) != NULL);
}
END_TEST

START_TEST(strict_handling_tells_unknown_names_beside_other_mistakes)
{
    struct response *r = http(server, .path = "/api/v1/reports?per_page=7&reslt=good",
                              .headers = {"Prefer: wait=1", STRICT});
    expect_error(r, 422, "validation_failed");
    expect(r, at(r, "error.errors.per_page") != NULL && at(r, "error.errors.reslt") != NULL);
}
END_TEST

START_TEST(strict_handling_lets_pass_what_is_known)
{
    expect_status(http(server, .path = "/api/v1/reports?per_page=10&result=good", .headers = {STRICT}), 200);
    struct response *r = http(server, .method = "POST", .path = "/api/v1/reports",
                              .headers = {JSON_TYPE, "Prefer: handling=strict, respond-async"},
                              .body = text("{\"url\":\"%s\"}", origin_url(origin, "/good")));
    expect_status(r, 202);
    expect_error(http(server, .path = "/api/v1/reports?x=%zz", .headers = {STRICT}), 400, "bad_request");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unknown_fields");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_report_is_created_by_json_as_by_a_form);
    tcase_add_test(tcase, a_report_is_changed_by_json_as_by_a_form);
    tcase_add_loop_test(tcase, a_wrong_json_body_is_refused_as_a_form_is, 0, COUNT(wrong));
    tcase_add_test(tcase, malformed_json_is_told_with_line_and_column);
    tcase_add_test(tcase, a_repeat_of_a_json_body_under_a_key_is_replayed);
    tcase_add_loop_test(tcase, a_list_names_the_parameters_that_it_ignores, 0, COUNT(lists));
    tcase_add_loop_test(tcase, strict_handling_refuses_unknown_names_with_the_nearest_known_one, 0,
                        COUNT(unknown));
    tcase_add_test(tcase, strict_handling_tells_unknown_names_beside_other_mistakes);
    tcase_add_test(tcase, strict_handling_lets_pass_what_is_known);
    return harness_main(suite);
}
