/* GET /api/v1/reports/{id}/history: the gradings of a report, as requests make them. */
#include "config.h"

#include "t/kit/harness.h"

enum { GRADINGS = 120, KEPT = 100 };

#define SIMPLE "<!doctype html><html lang=en><title>A page</title><h1>A page</h1>"

static struct origin *origin;
static struct server *server;
static char *foreign; /* a key of another workspace */

static void setup(void)
{
    origin = origin_usual();
    server = server_shared(&(struct server_options){.origin = origin});
    assay_ok(server, "workspace", "create", "neighbour", NULL);
    foreign = key_new(server, "neighbour", NULL);
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}

static char *history_path(int64_t id, const char *query)
{
    return text("%s/history%s", report_path(id), query);
}

static struct response *history(int64_t id, const char *query)
{
    struct response *r = http_get(server, history_path(id, query));
    expect_status(r, 200);
    expect(r, has_exactly(r, "", "data meta status"));
    expect_int(r, "status", 200);
    return r;
}

static void regrade(int64_t id, const char *status)
{
    struct response *r = http(server, .method = "PUT", .path = report_path(id), .body = "update=1",
                              .headers = {"Prefer: wait=15"});
    expect_status(r, 200);
    expect_str(r, "data.status", status);
    response_free(r);
}

/* ---- gradings ---- */

static void expect_same(const struct response *a, const char *at_a, const struct response *b,
                        const char *at_b)
{
    ck_assert_msg(json_object_equal(at(a, at_a), at(b, at_b)), "%s%s", response_text(a),
                  response_text(b));
}

/* The ids of the failed checks of ${report} in the order of its results. */
static void expect_failed_ids(const struct response *r, const struct response *report)
{
    size_t n = 0;
    json_object_object_foreach(at(report, "data.results"), id, check)
    {
        struct json_object *passed = json_object_object_get(check, "passed");
        if (passed == NULL || json_object_get_boolean(passed))
            continue;
        expect_str(r, text("data.0.failed.%zu", n), id);
        n++;
    }
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_eq(len_at(r, "data.0.failed"), n);
}

START_TEST(a_graded_report_has_one_grading)
{
    origin_page(origin, "/moved", 301, "Location: /plain\r\n", "");
    origin_page(origin, "/plain", 200, "", SIMPLE);
    int64_t id = report_new(server, origin_url(origin, "/moved"));
    struct response *report = http_get(server, report_path(id));
    struct response *r = history(id, "");
    ck_assert_uint_eq(len_at(r, "data"), 1);
    expect(r, has_exactly(r, "data.0",
                          "number score result issues failed final_url http_status protocol "
                          "ttfb_ms load_ms page_bytes version generated_at"));
    expect_int(r, "data.0.number", 1);
    expect_same(r, "data.0.score", report, "data.score");
    expect_same(r, "data.0.result", report, "data.result");
    expect_same(r, "data.0.issues", report, "data.issues");
    expect_same(r, "data.0.generated_at", report, "data.generated_at");
    expect_failed_ids(r, report);
    expect_str(r, "data.0.final_url", origin_url(origin, "/plain"));
    expect_int(r, "data.0.http_status", 200);
    expect_str(r, "data.0.protocol", "HTTP/1.1");
    expect(r, int_at(r, "data.0.ttfb_ms") <= int_at(r, "data.0.load_ms"));
    expect_int(r, "data.0.page_bytes", (int64_t)strlen(SIMPLE));
    expect_str(r, "data.0.version", PACKAGE_VERSION);
    expect(r, !bool_at(r, "meta.has_more"));
    expect(r, has(r, "meta.next_after") && at(r, "meta.next_after") == NULL);
}
END_TEST

START_TEST(the_final_url_without_redirects_is_that_of_the_report)
{
    int64_t id = report_new(server, origin_url(origin, "/good"));
    expect_str(history(id, ""), "data.0.final_url", origin_url(origin, "/good"));
}
END_TEST

START_TEST(a_report_that_was_never_graded_has_no_gradings)
{
    origin_held(origin, "/held");
    origin_page(origin, "/broken", 500, "", "down");
    const int64_t ids[] = {report_queued(server, origin_url(origin, "/held")),
                           report_new(server, origin_url(origin, "/broken"))};
    for (size_t i = 0; i < COUNT(ids); i++) {
        struct response *r = history(ids[i], "");
        ck_assert_uint_eq(len_at(r, "data"), 0);
        expect(r, !bool_at(r, "meta.has_more"));
    }
    origin_release(origin, "/held");
}
END_TEST

START_TEST(each_new_grading_is_the_first_and_a_failed_one_is_not_listed)
{
    origin_page(origin, "/changing", 200, "", "<title>one</title>");
    int64_t id = report_new(server, origin_url(origin, "/changing"));
    struct response *first = history(id, "");
    origin_page(origin, "/changing", 500, "", "down");
    regrade(id, "failed");
    expect_same(history(id, ""), "data", first, "data");
    origin_page(origin, "/changing", 200, "", SIMPLE);
    regrade(id, "done");
    struct response *r = history(id, "");
    ck_assert_uint_eq(len_at(r, "data"), 2);
    expect_int(r, "data.0.number", 3);
    expect(r, int_at(r, "data.0.score") > int_at(first, "data.0.score"));
    expect_same(r, "data.1", first, "data.0");
}
END_TEST

/* ---- pages ---- */

/* Read all pages; numbers decrease by one from ${newest} over ${KEPT} gradings. */
static void expect_walk(int64_t id, const char *per_page, size_t size)
{
    int64_t number = GRADINGS;
    char *query = text("?per_page=%s", per_page);
    for (size_t left = KEPT; left > 0;) {
        struct response *r = history(id, query);
        size_t n = left < size ? left : size;
        ck_assert_uint_eq(len_at(r, "data"), n);
        for (size_t i = 0; i < n; i++)
            expect_int(r, text("data.%zu.number", i), number--);
        left -= n;
        expect(r, bool_at(r, "meta.has_more") == (left > 0));
        expect(r, (at(r, "meta.next_after") != NULL) == (left > 0));
        if (left > 0)
            query =
                text("?per_page=%s&after=%lld", per_page, (long long)int_at(r, "meta.next_after"));
        response_free(r);
    }
}

START_TEST(a_hundred_of_120_gradings_are_kept_and_listed_page_by_page)
{
    static const struct {
        const char *per_page;
        size_t size;
    } sizes[] = {{"10", 10}, {"25", 25}, {"50", 50}, {"100", 100}};
    origin_page(origin, "/often", 200, "", SIMPLE);
    int64_t id = report_new(server, origin_url(origin, "/often"));
    for (int n = 2; n <= GRADINGS; n++)
        regrade(id, "done");
    for (size_t i = 0; i < COUNT(sizes); i++)
        expect_walk(id, sizes[i].per_page, sizes[i].size);
    struct response *r = history(id, "?after=21");
    ck_assert_uint_eq(len_at(r, "data"), 0);
    expect(r, !bool_at(r, "meta.has_more"));
    r = history(id, "?after=22&per_page=100");
    ck_assert_uint_eq(len_at(r, "data"), 1);
    expect_int(r, "data.0.number", 21);
    ck_assert_uint_eq(len_at(history(id, "?after=4294967295"), "data"), 10);
    assay_ok(server, "check", NULL);
}
END_TEST

/* Columns: query; the field that is named; NULL: 400. */
static const struct {
    const char *query, *field;
} wrong[] = {
    {"?after=0", "after"},          {"?after=-1", "after"},
    {"?after=x", "after"},          {"?after=", "after"},
    {"?after=4294967296", "after"}, {"?after=18446744073709551617", "after"},
    {"?after=1.0", "after"},        {"?after=1&after=2", "after"},
    {"?per_page=7", "per_page"},    {"?per_page=1000", "per_page"},
    {"?per_page=", "per_page"},     {"?per_page=10&per_page=10", "per_page"},
    {"?after=%zz", NULL},
};

START_TEST(a_wrong_value_is_refused_and_named)
{
    int64_t id = report_new(server, origin_url(origin, "/good"));
    struct response *r = http_get(server, history_path(id, wrong[_i].query));
    if (wrong[_i].field == NULL) {
        expect_error(r, 400, "bad_request");
        return;
    }
    expect_error(r, 422, "validation_failed");
    expect(r, len_at(r, text("error.errors.%s", wrong[_i].field)) > 0);
}
END_TEST

START_TEST(unknown_parameters_are_ignored_and_named)
{
    int64_t id = report_new(server, origin_url(origin, "/good"));
    struct response *r = history(id, "?page=2&before=3");
    expect_str(r, "meta.ignored.0", "page");
    expect_str(r, "meta.ignored.1", "before");
    r = http(server, .path = history_path(id, "?page=2"), .headers = {"Prefer: handling=strict"});
    expect_error(r, 422, "validation_failed");
    expect(r, !has(history(id, ""), "meta.ignored"));
}
END_TEST

/* ---- who may read it, and how ---- */

static const char *const unknown[] = {
    "999999", "0", "-1", "x", "9223372036854775808", "99999999999999999999999"};

START_TEST(an_unknown_report_is_404)
{
    char *path = text("/api/v1/reports/%s/history", unknown[_i]);
    expect_error(http_get(server, path), 404, "not_found");
    expect_error(http(server, .path = path, .key = foreign), 404, "not_found");
}
END_TEST

START_TEST(the_history_of_another_workspace_is_404_as_that_of_no_report)
{
    int64_t id = report_new(server, origin_url(origin, "/good"));
    struct response *r = http(server, .path = history_path(id, ""), .key = foreign);
    struct response *none = http(server, .path = history_path(999999, ""), .key = foreign);
    expect_error(r, 404, "not_found");
    ck_assert_str_eq(r->body, none->body);
    ck_assert_uint_eq(r->header_count, none->header_count);
    ck_assert_uint_eq(len_at(history(id, ""), "data"), 1);
}
END_TEST

START_TEST(the_history_is_deleted_with_its_report)
{
    int64_t id = report_new(server, origin_url(origin, "/good"));
    expect_status(http_delete(server, report_path(id)), 200);
    expect_error(http_get(server, history_path(id, "")), 404, "not_found");
    assay_ok(server, "check", NULL);
}
END_TEST

START_TEST(a_private_report_has_its_history)
{
    int64_t id = report_new(server, origin_url(origin, "/good"));
    expect_status(http_put(server, report_path(id), "privacy=2&password=secret"), 200);
    ck_assert_uint_eq(len_at(history(id, ""), "data"), 1);
}
END_TEST

START_TEST(the_etag_is_that_of_the_report)
{
    int64_t id = report_new(server, origin_url(origin, "/good"));
    struct response *r = history(id, "");
    char *tagged = text("If-None-Match: %s", header(r, "ETag"));
    ck_assert_str_eq(header(r, "ETag"), header(http_get(server, report_path(id)), "ETag"));
    ck_assert_str_eq(header(r, "Cache-Control"), "private, no-cache");
    r = http(server, .path = history_path(id, ""), .headers = {tagged});
    expect_status(r, 304);
    ck_assert_uint_eq(r->body_size, 0);
    regrade(id, "done");
    r = http(server, .path = history_path(id, ""), .headers = {tagged});
    expect_status(r, 200);
    ck_assert_uint_eq(len_at(r, "data"), 2);
}
END_TEST

START_TEST(other_methods_and_types_are_refused)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "PATCH"};
    int64_t id = report_new(server, origin_url(origin, "/good"));
    for (size_t i = 0; i < COUNT(methods); i++) {
        struct response *r = http(server, .method = methods[i], .path = history_path(id, ""));
        expect_error(r, 405, "method_not_allowed");
        ck_assert_str_eq(header(r, "Allow"), "GET, HEAD, OPTIONS");
    }
    expect_error(http(server, .path = history_path(id, ""), .headers = {"Accept: text/html"}), 406,
                 "not_acceptable");
    struct response *r = http(server, .method = "HEAD", .path = history_path(id, ""));
    expect_status(r, 200);
    ck_assert_uint_eq(r->body_size, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("history");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_graded_report_has_one_grading);
    tcase_add_test(tcase, the_final_url_without_redirects_is_that_of_the_report);
    tcase_add_test(tcase, a_report_that_was_never_graded_has_no_gradings);
    tcase_add_test(tcase, each_new_grading_is_the_first_and_a_failed_one_is_not_listed);
    tcase_add_test(tcase, a_hundred_of_120_gradings_are_kept_and_listed_page_by_page);
    tcase_add_loop_test(tcase, a_wrong_value_is_refused_and_named, 0, COUNT(wrong));
    tcase_add_test(tcase, unknown_parameters_are_ignored_and_named);
    tcase_add_loop_test(tcase, an_unknown_report_is_404, 0, COUNT(unknown));
    tcase_add_test(tcase, the_history_of_another_workspace_is_404_as_that_of_no_report);
    tcase_add_test(tcase, the_history_is_deleted_with_its_report);
    tcase_add_test(tcase, a_private_report_has_its_history);
    tcase_add_test(tcase, the_etag_is_that_of_the_report);
    tcase_add_test(tcase, other_methods_and_types_are_refused);
    return harness_main(suite);
}
