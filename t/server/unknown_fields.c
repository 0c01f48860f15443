/*
 * Unknown names in a request: ignored and listed, or refused under `Prefer: handling=strict` (RFC
 * 7240).
 */
#include "t/kit/harness.h"

static struct origin *origin;
static struct server *server;
static char *key; /* with every scope that the requests here need */

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

static const char *const lists[] = {"/api/v1/reports", "/api/v1/projects", "/api/v1/conversations",
                                    "/api/v1/leads",   "/api/v1/events",   "/api/v1/ratings"};

START_TEST(a_list_names_its_ignored_parameters)
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

/* Requests with an unknown name, and the nearest name that the route knows. */
static const struct {
    const char *method, *path, *type, *body, *name, *nearest;
} unknown[] = {
    {"GET", "/api/v1/reports?reslt=good", "Accept: */*", NULL, "reslt", "result"},
    {"GET", "/api/v1/reports?privacy=1", "Accept: */*", NULL, "privacy", NULL},
    {"GET", "/api/v1/projects?srch=a", "Accept: */*", NULL, "srch", "search"},
    {"GET", "/api/v1/projects/a.test?x=1", "Accept: */*", NULL, "x", NULL},
    {"GET", "/api/v1/leads?agent=1", "Accept: */*", NULL, "agent", NULL},
    {"POST", "/api/v1/reports", JSON_TYPE, "{\"url\":\"http://a.test/\",\"privcy\":1}", "privcy",
     "privacy"},
    {"POST", "/api/v1/reports", JSON_TYPE, "{\"url\":\"http://a.test/\",\"colour\":\"red\"}",
     "colour", NULL},
    {"POST", "/api/v1/reports", "Content-Type: application/x-www-form-urlencoded",
     "url=http%3A%2F%2Fa.test&privcy=1", "privcy", "privacy"},
    {"POST", "/api/v1/reports?url=x", JSON_TYPE, "{\"url\":\"http://a.test/\"}", "url", NULL},
    {"PUT", "/api/v1/reports/1", JSON_TYPE, "{\"updat\":1}", "updat", "update"},
    {"POST", "/api/v1/conversations/x/messages", JSON_TYPE, "{\"message\":\"a\",\"mesage\":\"b\"}",
     "mesage", "message"},
};

START_TEST(strict_handling_refuses_unknown_names_with_the_nearest_known_one)
{
    struct response *r =
        http(server, .method = unknown[_i].method, .path = unknown[_i].path, .key = key,
             .headers = {unknown[_i].type, STRICT}, .body = unknown[_i].body);
    expect_error(r, 422, "validation_failed");
    ck_assert_str_eq(header(r, "Preference-Applied"), "handling=strict");
    const char *hint = unknown[_i].nearest ? text("; did you mean %s?", unknown[_i].nearest) : "";
    expect(r, strstr(r->body, text("\"%s\":[\"is unknown%s\"]", unknown[_i].name, hint)) != NULL);
}
END_TEST

START_TEST(strict_handling_reports_unknown_names_with_other_errors)
{
    struct response *r = http(server, .path = "/api/v1/reports?per_page=7&reslt=good",
                              .headers = {"Prefer: wait=1", STRICT});
    expect_error(r, 422, "validation_failed");
    expect(r, at(r, "error.errors.per_page") != NULL && at(r, "error.errors.reslt") != NULL);
}
END_TEST

START_TEST(strict_handling_accepts_known_names)
{
    expect_status(
        http(server, .path = "/api/v1/reports?per_page=10&result=good", .headers = {STRICT}), 200);
    struct response *r = http(server, .method = "POST", .path = "/api/v1/reports",
                              .headers = {JSON_TYPE, "Prefer: handling=strict, respond-async"},
                              .body = text("{\"url\":\"%s\"}", origin_url(origin, "/good")));
    expect_status(r, 202);
    expect_error(http(server, .path = "/api/v1/reports?x=%zz", .headers = {STRICT}), 400,
                 "bad_request");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unknown_fields");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_list_names_its_ignored_parameters, 0, COUNT(lists));
    tcase_add_loop_test(tcase, strict_handling_refuses_unknown_names_with_the_nearest_known_one, 0,
                        COUNT(unknown));
    tcase_add_test(tcase, strict_handling_reports_unknown_names_with_other_errors);
    tcase_add_test(tcase, strict_handling_accepts_known_names);
    return harness_main(suite);
}
