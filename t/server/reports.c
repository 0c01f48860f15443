/* Single reports: create, read, delete, conditional requests and representations. */
#include "t/kit/harness.h"

#include <regex.h>

#define RECORD                                                                                     \
    "id url project status score result privacy password link issues results error generated_at "  \
    "created_at updated_at"
#define ITEM                                                                                       \
    "id url project status score result privacy password link issues error generated_at "          \
    "created_at updated_at"

static struct origin *origin;
static struct server *server;

static void setup(void)
{
    origin = origin_usual();
    server = server_shared(&(struct server_options){.origin = origin,
                                                    .audit = "timeout: 2s, max_bytes: 256KiB",
                                                    .yaml = "reports: { wait: 8s }"});
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}

static struct response *create(const char *path, const char *prefer)
{
    return http(server, .method = "POST", .path = "/api/v1/reports",
                .body = form("url", origin_url(origin, path), NULL), .headers = {prefer});
}

static bool matches(const char *pattern, const char *value)
{
    regex_t compiled;
    ck_assert_int_eq(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool match = regexec(&compiled, value, 0, NULL, 0) == 0;
    regfree(&compiled);
    return match;
}

static void expect_time(const struct response *r, const char *path)
{
    expect(r, matches("^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z$",
                      str_at(r, path)));
}

/* ---- create ---- */

START_TEST(a_created_report_is_201_with_location_and_the_whole_record)
{
    struct response *r = create("/good", NULL);
    expect_status(r, 201);
    int64_t id = int_at(r, "data.id");
    expect(r, has_exactly(r, "", "data status"));
    expect_int(r, "status", 201);
    expect(r, has_exactly(r, "data", RECORD));
    expect(r, has_exactly(r, "data.issues", "high medium low passed"));
    expect_str(r, "data.status", "done");
    expect_str(r, "data.url", origin_url(origin, "/good"));
    expect_str(r, "data.project", "127.0.0.1");
    expect_int(r, "data.privacy", 0);
    expect(r, !bool_at(r, "data.password"));
    expect_str(r, "data.link", text("%s/reports/%lld", server->url, (long long)id));
    expect(r, has(r, "data.error") && !at(r, "data.error"));
    expect_time(r, "data.created_at");
    expect_time(r, "data.updated_at");
    expect_time(r, "data.generated_at");
    const char *type = header(r, "Content-Type"), *location = header(r, "Location");
    expect(r, type && !strcmp(type, "application/json"));
    expect(r, location && strlen(location) >= strlen(report_path(id)));
    expect(r, !strcmp(location + strlen(location) - strlen(report_path(id)), report_path(id)));
}
END_TEST

START_TEST(every_result_has_its_six_members_and_the_issues_count_them)
{
    struct response *r = create("/decent", NULL);
    expect_status(r, 201);
    int64_t failed = int_at(r, "data.issues.high") + int_at(r, "data.issues.medium") +
                     int_at(r, "data.issues.low");
    int64_t passed = int_at(r, "data.issues.passed");
    expect(r, failed > 0 && passed > 0);
    struct json_object *results = at(r, "data.results");
    int64_t seen_passed = 0, seen_failed = 0;
    json_object_object_foreach(results, id, result)
    {
        (void)result;
        expect(r, has_exactly(r, text("data.results.%s", id),
                              "category importance passed value message details"));
        expect(r, matches("^(seo|performance|security|misc)$",
                          str_at(r, text("data.results.%s.category", id))));
        expect(r,
               matches("^(high|medium|low)$", str_at(r, text("data.results.%s.importance", id))));
        len_at(r, text("data.results.%s.details", id));
        struct json_object *verdict = at(r, text("data.results.%s.passed", id));
        seen_passed += verdict && json_object_get_boolean(verdict);
        seen_failed += verdict && !json_object_get_boolean(verdict);
    }
    expect(r, seen_passed == passed);
    expect(r, seen_failed == failed);
}
END_TEST

START_TEST(scores_follow_the_pages_and_results_follow_the_scores)
{
    static const char *const paths[] = {"/good", "/decent", "/bad"};
    int64_t last = 101;
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct response *r = create(paths[i], NULL);
        expect_status(r, 201);
        int64_t score = int_at(r, "data.score");
        expect(r, score >= 0 && score < last);
        expect_str(r, "data.result", score >= 80 ? "good" : score >= 50 ? "decent" : "bad");
        last = score;
    }
}
END_TEST

START_TEST(respond_async_is_202_at_once)
{
    origin_held(origin, "/held-async");
    struct response *r = create("/held-async", "Prefer: respond-async");
    expect_status(r, 202);
    expect_int(r, "status", 202);
    expect_str(r, "data.status", "pending");
    expect(r, has_exactly(r, "data", RECORD));
    static const char *const null[] = {"data.score", "data.result", "data.generated_at",
                                       "data.error"};
    for (size_t i = 0; i < COUNT(null); i++)
        expect(r, has(r, null[i]) && !at(r, null[i]));
    const char *applied = header(r, "Preference-Applied");
    expect(r, applied && !strcmp(applied, "respond-async"));
    expect(r, header(r, "Location") != NULL);
    origin_release(origin, "/held-async");
    r = report_wait(server, int_at(r, "data.id"));
    expect_str(r, "data.status", "done");
}
END_TEST

START_TEST(a_wait_that_runs_out_answers_201_pending)
{
    origin_held(origin, "/held-wait");
    int64_t before = now_ms();
    struct response *r = create("/held-wait", "Prefer: wait=1");
    int64_t took = now_ms() - before;
    origin_release(origin, "/held-wait");
    expect_status(r, 201);
    expect_str(r, "data.status", "pending");
    const char *applied = header(r, "Preference-Applied");
    expect(r, applied && !strcmp(applied, "wait=1"));
    ck_assert_msg(took >= 900 && took < 6000, "took %lld ms\n%s", (long long)took,
                  response_text(r));
}
END_TEST

START_TEST(a_held_post_is_answered_when_the_report_is_done)
{
    origin_page(origin, "/slow", 200, "", "<title>x</title>");
    origin_delay(origin, "/slow", 500);
    int64_t before = now_ms();
    struct response *r = create("/slow", "Prefer: wait=30");
    int64_t took = now_ms() - before;
    expect_status(r, 201);
    expect_str(r, "data.status", "done");
    ck_assert_msg(took >= 450 && took < 6000, "took %lld ms\n%s", (long long)took,
                  response_text(r));
}
END_TEST

static const struct {
    const char *prefer;
    int status;
    const char *applied; /* NULL: no such header */
} preferences[] = {
    {"Prefer: wait=5", 201, "wait=5"},
    {"Prefer: wait=\"5\"", 201, "wait=5"},
    {"Prefer: WAIT=5", 201, "wait=5"},
    {"Prefer: foo=bar, wait=5", 201, "wait=5"},
    {"Prefer: Respond-Async", 202, "respond-async"},
    {"Prefer: wait=abc", 201, NULL},
    {"Prefer: wait=-1", 201, NULL},
    {"Prefer: return=minimal", 201, NULL},
    {"Prefer: ", 201, NULL},
};

START_TEST(preferences_are_parsed_by_rfc_7240)
{
    struct response *r = create("/good", preferences[_i].prefer);
    expect_status(r, preferences[_i].status);
    const char *applied = header(r, "Preference-Applied");
    if (preferences[_i].applied)
        expect(r, applied && !strcmp(applied, preferences[_i].applied));
    else
        expect(r, !applied);
}
END_TEST

static const struct {
    const char *url, *project;
} hosts[] = {
    {"http://WWW.Example.TEST/Path", "example.test"},
    {"https://example.test:443/a", "example.test"},
    {"http://example.test:80", "example.test"},
    {"http://www.www.example.test/", "www.example.test"},
    {"http://b\xc3\xbc"
     "cher.test/",
     "xn--bcher-kva.test"},
    {"http://sub.example.test./", "sub.example.test"},
};

START_TEST(the_project_is_the_lower_case_punycode_host_without_www_and_port)
{
    struct response *r =
        http(server, .method = "POST", .path = "/api/v1/reports",
             .body = form("url", hosts[_i].url, NULL), .headers = {"Prefer: respond-async"});
    expect_status(r, 202);
    expect_str(r, "data.project", hosts[_i].project);
}
END_TEST

START_TEST(the_same_url_twice_makes_two_reports_with_growing_ids)
{
    int64_t first = report_queued(server, origin_url(origin, "/good"));
    int64_t second = report_queued(server, origin_url(origin, "/good"));
    ck_assert_int_gt(second, first);
}
END_TEST

START_TEST(a_password_without_privacy_2_is_ignored_on_creation)
{
    for (int privacy = 0; privacy < 2; privacy++) {
        struct response *r = http_post(server, "/api/v1/reports",
                                       form("url", origin_url(origin, "/good"), "privacy",
                                            privacy ? "1" : "0", "password", "x", NULL));
        expect_status(r, 201);
        expect_int(r, "data.privacy", privacy);
        expect(r, !bool_at(r, "data.password"));
    }
}
END_TEST

START_TEST(a_password_is_stored_with_privacy_2_and_never_shown)
{
    struct response *r = http_post(server, "/api/v1/reports",
                                   form("url", origin_url(origin, "/good"), "privacy", "2",
                                        "password", "s3cr\xc3\xa9t-Pa55", NULL));
    expect_status(r, 201);
    expect_int(r, "data.privacy", 2);
    expect(r, bool_at(r, "data.password"));
    expect(r, !strstr(r->body, "s3cr"));
    r = http_get(server, report_path(int_at(r, "data.id")));
    expect(r, bool_at(r, "data.password"));
    expect(r, !strstr(r->body, "s3cr") && !strstr(r->body, "scrypt") && !strstr(r->body, "argon"));
}
END_TEST

START_TEST(a_password_may_be_255_bytes_long)
{
    char *password = text("%0255d", 7);
    struct response *r = http_post(
        server, "/api/v1/reports",
        form("url", origin_url(origin, "/good"), "privacy", "2", "password", password, NULL));
    expect_status(r, 201);
}
END_TEST

START_TEST(many_passwords_are_hashed_or_503_and_block_nobody)
{
    enum { POSTS = 80 };
    struct raw *raws[POSTS];
    size_t made = 0;
    char *body = form("url", "http://127.0.0.1:80/", "privacy", "2", "password", "x", NULL);
    for (size_t i = 0; i < POSTS; i++) {
        raws[i] = raw_open(server);
        raw_post(raws[i], server->key, "Prefer: respond-async\r\n", body);
    }
    for (int i = 0; i < 10; i++) {
        int64_t before = now_ms();
        expect_status(http_get(server, "/healthz"), 200);
        ck_assert_int_lt(now_ms() - before, 500);
    }
    for (size_t i = 0; i < POSTS; i++) {
        struct response *r = raw_response(raws[i], false, 20000);
        if (r->status != 202)
            expect_error(r, 503, "unavailable");
        made += r->status == 202;
        raw_close(raws[i]);
    }
    ck_assert_uint_ge(made, 16);
    ck_assert_uint_lt(made, POSTS); /* the queues are bounded */
}
END_TEST

START_TEST(a_form_may_name_its_charset)
{
    struct response *r =
        http(server, .method = "POST", .path = "/api/v1/reports",
             .body = form("url", origin_url(origin, "/good"), NULL),
             .headers = {"Content-Type: Application/X-WWW-Form-Urlencoded; charset=UTF-8",
                         "Prefer: respond-async"});
    expect_status(r, 202);
}
END_TEST

/* ---- read ---- */

START_TEST(a_report_reads_as_it_was_created)
{
    struct response *created = create("/decent", NULL);
    struct response *r = http_get(server, report_path(int_at(created, "data.id")));
    expect_status(r, 200);
    expect(r, has_exactly(r, "", "data status"));
    expect_int(r, "status", 200);
    ck_assert_msg(json_object_equal(at(created, "data"), at(r, "data")), "%s%s",
                  response_text(created), response_text(r));
}
END_TEST

static const char *const no_ids[] = {
    "abc",  "0",  "-1",  "1.0", "999999999", "99999999999999999999999999", "18446744073709551617",
    "%31x", "+1", "0x1", "1%20"};

START_TEST(a_malformed_id_is_404_for_every_method)
{
    static const char *const methods[] = {"GET", "PUT", "DELETE"};
    for (size_t i = 0; i < COUNT(methods); i++) {
        struct response *r =
            http(server, .method = methods[i], .path = text("/api/v1/reports/%s", no_ids[_i]));
        expect_error(r, 404, "not_found");
    }
}
END_TEST

START_TEST(another_workspaces_report_is_404)
{
    int64_t id = report_queued(server, origin_url(origin, "/good"));
    assay_ok(server, "workspace", "create", "stranger", NULL);
    char *key = key_new(server, "stranger", NULL);
    static const char *const methods[] = {"GET", "PUT", "DELETE"};
    for (size_t i = 0; i < COUNT(methods); i++) {
        struct response *r =
            http(server, .method = methods[i], .path = report_path(id), .key = key);
        expect_error(r, 404, "not_found");
    }
    expect_status(http_get(server, report_path(id)), 200);
}
END_TEST

/* ---- delete ---- */

START_TEST(a_deleted_report_is_gone_and_a_repeat_is_404)
{
    int64_t id = report_new(server, origin_url(origin, "/good"));
    struct response *r = http_delete(server, report_path(id));
    expect_status(r, 200);
    expect(r, has_exactly(r, "", "id object deleted status"));
    expect_int(r, "id", id);
    expect_str(r, "object", "report");
    expect(r, bool_at(r, "deleted"));
    expect_int(r, "status", 200);
    expect_error(http_delete(server, report_path(id)), 404, "not_found");
    expect_error(http_get(server, report_path(id)), 404, "not_found");
    expect_error(http_put(server, report_path(id), "privacy=1"), 404, "not_found");
}
END_TEST

enum whole { THE_REPORT, THE_PROJECT, THE_WORKSPACE };

static void delete_whole(enum whole whole, const char *name, const char *key, int64_t id)
{
    if (whole == THE_REPORT)
        expect_status(http(server, .method = "DELETE", .path = report_path(id), .key = key), 200);
    else if (whole == THE_PROJECT)
        expect_status(
            http(server, .method = "DELETE", .path = "/api/v1/projects/127.0.0.1", .key = key),
            200);
    else
        assay_ok(server, "workspace", "delete", name, NULL);
}

START_TEST(a_report_deleted_while_its_post_is_held_ends_the_wait)
{
    char *name = text("doomed-%d", _i), *path = text("/held-delete-%d", _i);
    assay_ok(server, "workspace", "create", name, NULL);
    char *key = key_new(server, name, NULL), *body = form("url", origin_url(origin, path), NULL);
    origin_held(origin, path);
    struct raw *raw = raw_open(server);
    raw_post(raw, key, "Prefer: wait=20\r\nIdempotency-Key: doomed\r\n", body);
    ck_assert(origin_asked(origin, path));
    struct response *list = http(server, .path = "/api/v1/reports", .key = key);
    delete_whole((enum whole)_i, name, key, int_at(list, "data.0.id"));
    struct response *r = raw_response(raw, false, 3000);
    expect_error(r, 410, "gone");
    expect(r, strstr(str_at(r, "error.message"),
                     text("Report %lld ", (long long)int_at(list, "data.0.id"))) != NULL);
    raw_close(raw);
    if (_i != THE_WORKSPACE) {
        r = http(server, .method = "POST", .path = "/api/v1/reports", .key = key, .body = body,
                 .headers = {"Idempotency-Key: doomed"});
        expect_error(r, 410, "gone");
        ck_assert_str_eq(header(r, "Idempotent-Replayed"), "true");
        expect_int(http(server, .path = "/api/v1/reports", .key = key), "meta.total", 0);
    }
    origin_release(origin, path);
}
END_TEST

START_TEST(a_report_deleted_while_its_put_is_held_ends_the_wait)
{
    origin_page(origin, "/held-again", 200, "", "<title>Again</title>");
    int64_t id = report_new(server, origin_url(origin, "/held-again"));
    origin_hold(origin, "/held-again");
    struct raw *raw = raw_open(server);
    raw_text(raw,
             "PUT /api/v1/reports/%lld HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nPrefer: "
             "wait=20\r\n"
             "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 8\r\n\r\nupdate=1",
             (long long)id, server->key);
    ck_assert(origin_asked(origin, "/held-again"));
    expect_status(http_delete(server, report_path(id)), 200);
    expect_error(raw_response(raw, false, 3000), 410, "gone");
    origin_release(origin, "/held-again");
    raw_close(raw);
}
END_TEST

START_TEST(a_write_is_seen_at_once_on_every_worker)
{
    for (int i = 0; i < 20; i++) {
        char *path = report_path(report_queued(server, origin_url(origin, "/good")));
        for (int k = 0; k < 4; k++)
            expect_status(http_get(server, path), 200);
        expect_status(http_delete(server, path), 200);
        for (int k = 0; k < 4; k++)
            expect_status(http_get(server, path), 404);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reports");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_created_report_is_201_with_location_and_the_whole_record);
    tcase_add_test(tcase, every_result_has_its_six_members_and_the_issues_count_them);
    tcase_add_test(tcase, scores_follow_the_pages_and_results_follow_the_scores);
    tcase_add_test(tcase, respond_async_is_202_at_once);
    tcase_add_test(tcase, a_wait_that_runs_out_answers_201_pending);
    tcase_add_test(tcase, a_held_post_is_answered_when_the_report_is_done);
    tcase_add_loop_test(tcase, preferences_are_parsed_by_rfc_7240, 0, COUNT(preferences));
    tcase_add_loop_test(tcase, the_project_is_the_lower_case_punycode_host_without_www_and_port, 0,
                        COUNT(hosts));
    tcase_add_test(tcase, the_same_url_twice_makes_two_reports_with_growing_ids);
    tcase_add_test(tcase, a_password_without_privacy_2_is_ignored_on_creation);
    tcase_add_test(tcase, a_password_is_stored_with_privacy_2_and_never_shown);
    tcase_add_test(tcase, a_password_may_be_255_bytes_long);
    tcase_add_test(tcase, many_passwords_are_hashed_or_503_and_block_nobody);
    tcase_add_test(tcase, a_form_may_name_its_charset);
    tcase_add_test(tcase, a_report_reads_as_it_was_created);
    tcase_add_loop_test(tcase, a_malformed_id_is_404_for_every_method, 0, COUNT(no_ids));
    tcase_add_test(tcase, another_workspaces_report_is_404);
    tcase_add_test(tcase, a_deleted_report_is_gone_and_a_repeat_is_404);
    tcase_add_loop_test(tcase, a_report_deleted_while_its_post_is_held_ends_the_wait, THE_REPORT,
                        THE_WORKSPACE + 1);
    tcase_add_test(tcase, a_report_deleted_while_its_put_is_held_ends_the_wait);
    tcase_add_test(tcase, a_write_is_seen_at_once_on_every_worker);
    return harness_main(suite);
}
