/* JSON bodies of reports: accepted as forms are, and refused with the position of the error. */
#include "t/kit/origin_server.h"

#define JSON_TYPE "Content-Type: application/json"

static struct response *send_json(const char *method, const char *path, const char *body)
{
    return http(server, .method = method, .path = path, .headers = {JSON_TYPE}, .body = body);
}

START_TEST(a_report_is_created_by_json_as_by_a_form)
{
    struct response *r =
        send_json("POST", "/api/v1/reports",
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

/* What is wrong with a body, and the expected error. */
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

START_TEST(a_wrong_json_body_is_refused_like_a_form)
{
    struct response *r = send_json("POST", "/api/v1/reports", wrong[_i].body);
    expect_status(r, wrong[_i].status);
    expect_error(r, wrong[_i].status, wrong[_i].code);
    if (wrong[_i].field)
        expect(r, at(r, text("error.errors.%s", wrong[_i].field)) != NULL);
}
END_TEST

START_TEST(malformed_json_is_reported_with_line_and_column)
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

int main(void)
{
    Suite *suite = suite_create("json_bodies");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, shared_setup, shared_teardown);
    tcase_add_test(tcase, a_report_is_created_by_json_as_by_a_form);
    tcase_add_test(tcase, a_report_is_changed_by_json_as_by_a_form);
    tcase_add_loop_test(tcase, a_wrong_json_body_is_refused_like_a_form, 0, COUNT(wrong));
    tcase_add_test(tcase, malformed_json_is_reported_with_line_and_column);
    tcase_add_test(tcase, a_repeat_of_a_json_body_under_a_key_is_replayed);
    return harness_main(suite);
}
