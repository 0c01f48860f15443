/* Handlers that read records, with test doubles for the pipeline, the store and the writer. */
#include "config.h"
#include "t/kit/api_doubles.h"
#include "t/kit/suite.h"

#include "core/api/api_internal.h"

#include <check.h>
#include <endian.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const id_41[] = {"41", ""};

/* ---- one report ---- */

START_TEST(report_is_served_as_it_is_stored)
{
    played_report(41, REPORT_PENDING, NULL);
    played_send("GET", "/api/v1/reports/{id}", id_41, "", NULL);
    ck_assert_int_eq(played.status, 200);
    played_body_is("{\"data\":" RECORD_PENDING(LINK) ",\"status\":200}");
    ck_assert(str_eq(played.request.etag, STR("\"5-" PACKAGE_VERSION "\"")));
    ck_assert_str_eq(played_header("cache-control"), "private, no-cache");
}
END_TEST

START_TEST(results_are_between_issues_and_error)
{
    played_graded();
    played_send("GET", "/api/v1/reports/{id}", id_41, "", NULL);
    played_body_has("\"passed\":0},\"results\":{\"title\":{}},\"error\":null");
}
END_TEST

START_TEST(a_current_copy_is_304)
{
    static const char *const headers[] = {"if-none-match", "\"4-" PACKAGE_VERSION "\"",
                                          "if-none-match", "\"5-" PACKAGE_VERSION "-gz\"", NULL};
    played_report(41, REPORT_PENDING, NULL);
    played_send("GET", "/api/v1/reports/{id}", id_41, "", headers);
    ck_assert_int_eq(played.status, 304);
    played_body_is("");
    ck_assert(str_eq(played.request.etag, STR("\"5-" PACKAGE_VERSION "-gz\"")));
}
END_TEST

/* ---- the history of a report ---- */

#define HISTORY "/api/v1/reports/{id}/history"

static void play_gradings(uint32_t count, struct str failed, struct str final_url)
{
    played_graded();
    for (uint32_t i = 0; i < count; i++)
        played.gradings[played.gradings_count++] =
            (struct store_grading){.number = count - i,
                                   .score = 50,
                                   .result = RESULT_DECENT,
                                   .generated_at = 1778158800000,
                                   .failed = failed,
                                   .facts = {.http_status = 200,
                                             .protocol = STR("HTTP/2"),
                                             .final_url = final_url,
                                             .version = STR("1.0.0")}};
}

/* Columns: query; lowest number that is not read, maximum of gradings; end of the body. */
static const struct {
    const char *query;
    uint32_t before;
    unsigned limit;
    const char *end;
} pages[] = {
    {"", 0, 11, "],\"meta\":{\"has_more\":true,\"next_after\":21},\"status\":200}"},
    {"per_page=50", 0, 51, "],\"meta\":{\"has_more\":false,\"next_after\":null},\"status\":200}"},
    {"after=21&per_page=25", 21, 26,
     "],\"meta\":{\"has_more\":false,\"next_after\":null},\"status\":200}"},
    {"after=21", 21, 11, "],\"meta\":{\"has_more\":true,\"next_after\":11},\"status\":200}"},
    {"after=1", 1, 11,
     "{\"data\":[],\"meta\":{\"has_more\":false,\"next_after\":null},\"status\":200}"},
    {"page=2", 0, 11, ",\"next_after\":21,\"ignored\":[\"page\"]},\"status\":200}"},
};

START_TEST(a_history_is_read_page_by_page)
{
    play_gradings(30, STR("title h1"), STR(""));
    played_send("GET", HISTORY, id_41, pages[_i].query, NULL);
    ck_assert_int_eq(played.status, 200);
    ck_assert_uint_eq(played.gradings_query.before, pages[_i].before);
    ck_assert_uint_eq(played.gradings_query.limit, pages[_i].limit);
    played_body_has(pages[_i].end);
    ck_assert(str_eq(played.request.etag, STR("\"5-" PACKAGE_VERSION "\"")));
    ck_assert_str_eq(played_header("cache-control"), "private, no-cache");
    struct json_object *json = json_tokener_parse(played.body.p);
    ck_assert_ptr_nonnull(json);
    json_object_put(json);
}
END_TEST

START_TEST(a_history_has_the_etag_of_its_report)
{
    static const char *const headers[] = {"if-none-match", "\"5-" PACKAGE_VERSION "\"", NULL};
    play_gradings(3, STR(""), STR(""));
    played_send("GET", HISTORY, id_41, "", headers);
    ck_assert_int_eq(played.status, 304);
    played_body_is("");
}
END_TEST

/* The longest texts that the store holds. */
START_TEST(a_history_of_long_texts_is_sent_in_pages_of_at_most_1_mib)
{
    static char failed[STORE_FAILED_MAX], url[8192];
    unsigned seen = 0;
    memset(failed, 'f', sizeof(failed));
    memset(url, '"', sizeof(url));
    play_gradings(100, (struct str){failed, sizeof(failed)}, (struct str){url, sizeof(url)});
    for (long long after = 0; after >= 0;) {
        char query[64] = "per_page=100";
        if (after > 0)
            snprintf(query, sizeof(query), "per_page=100&after=%lld", after);
        played_send("GET", HISTORY, id_41, query, NULL);
        ck_assert_int_eq(played.status, 200);
        ck_assert_uint_le(played.body.n, 1 << 20);
        for (const char *at = played.body.p; (at = strstr(at, "\"number\":")) != NULL; at++)
            seen++;
        const char *next = strstr(played.body.p, "\"next_after\":") + strlen("\"next_after\":");
        after = *next == 'n' ? -1 : strtoll(next, NULL, 10);
    }
    ck_assert_uint_eq(seen, 100);
}
END_TEST

/* Columns: a status of the store, the status of the response. */
static const struct {
    enum store_status store;
    int status;
} history_refusals[] = {
    {STORE_NOT_FOUND, 404}, {STORE_CORRUPT, 500}, {STORE_BUSY, 503}, {STORE_IO, 503}};

START_TEST(a_history_that_cannot_be_read_is_an_error)
{
    play_gradings(1, STR(""), STR(""));
    played.gradings_status = history_refusals[_i].store;
    played_send("GET", HISTORY, id_41, "", NULL);
    ck_assert_int_eq(played.status, history_refusals[_i].status);
    ck_assert_ptr_null(played.request.etag.p);
}
END_TEST

static const char *const unknown_reports[][2] = {{"42", ""}, {"0", ""}, {"x", ""}, {"-1", ""}};

START_TEST(the_history_of_an_unknown_report_is_404)
{
    play_gradings(1, STR(""), STR(""));
    played_send("GET", HISTORY, unknown_reports[_i], "", NULL);
    ck_assert_int_eq(played.status, 404);
}
END_TEST

/* ---- lists ---- */

START_TEST(a_list_without_a_query_uses_the_defaults)
{
    played_report(42, REPORT_DONE, NULL);
    played_report(41, REPORT_PENDING, NULL);
    played.total = 12;
    played_send("GET", "/api/v1/reports", NULL, "", NULL);
    ck_assert_int_eq(played.status, 200);
    ck_assert_uint_eq(played.query.workspace, 7);
    ck_assert_uint_eq(played.query.sort, REPORT_BY_ID);
    ck_assert(!played.query.ascending);
    ck_assert_uint_eq(played.query.project, 0);
    ck_assert_int_eq(played.query.result, RESULT_NONE);
    ck_assert_uint_eq(played.query.page, 1);
    ck_assert_uint_eq(played.query.per_page, 10);
    ck_assert_uint_eq(played.query.search.n, 0);
    ck_assert(!played.query.with_results);
    played_body_has("{\"data\":[{\"id\":42,");
    played_body_has("},{\"id\":41,");
    played_body_has("\"link\":\"https://api.example.com/reports/41\"");
    played_body_has("],\"links\":{\"first\":\"https://api.example.com/api/v1/reports?page=1\"");
    played_body_has("\"total\":12},\"status\":200}");
    ck_assert_ptr_null(strstr(played.body.p, "results"));
    ck_assert_ptr_nonnull(strstr(played_header("link"), "?page=2>; rel=\"next\""));
    struct json_object *json = json_tokener_parse(played.body.p);
    ck_assert_ptr_nonnull(json);
    json_object_put(json);
}
END_TEST

START_TEST(a_list_forwards_every_parameter)
{
    played_project(3, "example.com");
    played_send("GET", "/api/v1/reports", NULL,
                "search=a%25b&search_by=url&project=3&result=bad&sort_by=score&sort=asc&per_page="
                "50&page=2147483647&include=results",
                NULL);
    ck_assert_int_eq(played.status, 200);
    ck_assert(str_eq(played.query.search, STR("a%b")));
    ck_assert_uint_eq(played.query.sort, REPORT_BY_SCORE);
    ck_assert(played.query.ascending);
    ck_assert_uint_eq(played.query.project, 3);
    ck_assert_int_eq(played.query.result, RESULT_BAD);
    ck_assert_uint_eq(played.query.page, 2147483647);
    ck_assert_uint_eq(played.query.per_page, 50);
    ck_assert(played.query.with_results);
    played_send("GET", "/api/v1/projects", NULL,
                "search=x&search_by=project&sort_by=project&sort=asc&per_page=100&page=2", NULL);
    ck_assert_int_eq(played.status, 200);
    ck_assert(str_eq(played.query.search, STR("x")));
    ck_assert_uint_eq(played.query.sort, PROJECT_BY_NAME);
    ck_assert(played.query.ascending);
    ck_assert_uint_eq(played.query.page, 2);
    ck_assert_uint_eq(played.query.per_page, 100);
}
END_TEST

START_TEST(a_stopped_list_restarts_and_answers_once)
{
    played_report(41, REPORT_DONE, NULL);
    played.total = 1;
    played.list_turns = 3;
    played_send("GET", "/api/v1/reports", NULL, "search=x", NULL);
    ck_assert_int_eq(played.status, 200);
    played_body_has("\"total\":1}");
    ck_assert_uint_eq(played.lists, 4);
    ck_assert_uint_eq(played.laters, 3);
    ck_assert_ptr_nonnull(played.query.stop);
}
END_TEST

START_TEST(a_list_without_queue_space_or_time_is_503)
{
    static const char *const lists[] = {"/api/v1/reports", "/api/v1/projects"};
    for (unsigned i = 0; i < 4; i++) {
        played.queries_full = i < 2;
        played.query_late = i >= 2;
        played_send("GET", lists[i % 2], NULL, "search=x", NULL);
        ck_assert_int_eq(played.status, 503);
    }
    ck_assert_uint_eq(played.lists, 0);
}
END_TEST

START_TEST(a_list_over_a_damaged_index_is_503_and_requests_one_rebuild)
{
    played.list_status = STORE_DAMAGED;
    played_send("GET", "/api/v1/reports", NULL, "", NULL);
    ck_assert_int_eq(played.status, 503);
    ck_assert_str_eq(played_header("retry-after"), "2");
    ck_assert_uint_eq(played.changes, 1);
    ck_assert_uint_eq(played.change.kind, CHANGE_INDEX_LOST);
    ck_assert_uint_eq(played.change.workspace, 7);
    ck_assert_uint_eq(played.change.id, 4711);
    played.list_status = STORE_REBUILDING;
    played_send("GET", "/api/v1/reports", NULL, "", NULL);
    ck_assert_int_eq(played.status, 503);
    ck_assert_str_eq(played_header("retry-after"), "2");
    ck_assert_uint_eq(played.changes, 1);
}
END_TEST

START_TEST(the_project_filter_accepts_name_or_id_and_unknown_is_empty)
{
    static const char *const known[] = {"project=3", "project=example.com", "project=EXAMPLE.Com",
                                        "project=%65xample.com"};
    static const char *const unknown[] = {"project=4",
                                          "project=0",
                                          "project=99999999999999999999",
                                          "project=www.example.com",
                                          "project=%F0%9F%98%80",
                                          "project=-3"};
    played_report(41, REPORT_DONE, NULL);
    played_project(3, "example.com");
    played.total = 1;
    for (unsigned i = 0; i < 4; ++i) {
        played_send("GET", "/api/v1/reports", NULL, known[i], NULL);
        ck_assert_uint_eq(played.lists, i + 1);
        ck_assert_uint_eq(played.query.project, 3);
    }
    for (int i = 0; i < 6; ++i) {
        played_send("GET", "/api/v1/reports", NULL, unknown[i], NULL);
        ck_assert_int_eq(played.status, 200);
        played_body_has("{\"data\":[],\"links\":");
        played_body_has("\"total\":0}");
    }
    ck_assert_uint_eq(played.lists, 4);
}
END_TEST

START_TEST(a_list_etag_depends_on_the_workspace)
{
    /* 7 << 40 + 21 */
    static const char *const at_hand[] = {"if-none-match", "\"7696581394453-" PACKAGE_VERSION "\"",
                                          NULL};
    static const char *const other[] = {"if-none-match", "\"21-" PACKAGE_VERSION "\"", NULL};
    static const char *const paths[] = {"/api/v1/reports", "/api/v1/projects"};
    for (unsigned i = 0; i < 2; ++i) {
        played_send("GET", paths[i], NULL, "", at_hand);
        ck_assert_int_eq(played.status, 304);
        ck_assert_uint_eq(played.lists, i);
        played_send("GET", paths[i], NULL, "", other);
        ck_assert_int_eq(played.status, 200);
    }
}
END_TEST

START_TEST(list_over_1_mib_asks_for_a_smaller_page)
{
    static char results[32 * 1024 + 1];
    memset(results, ' ', sizeof(results) - 1);
    results[0] = '{';
    results[sizeof(results) - 2] = '}';
    for (unsigned i = 0; i < 50; ++i)
        played_report(i + 1, REPORT_DONE, results);
    played.total = 50;
    played_send("GET", "/api/v1/reports", NULL, "include=results&per_page=50", NULL);
    ck_assert_int_eq(played.status, 422);
    played_body_has("\"per_page\":[");
    played_send("GET", "/api/v1/reports", NULL, "per_page=50", NULL);
    ck_assert_int_eq(played.status, 200);
    played.reports_count = 10;
    played_send("GET", "/api/v1/reports", NULL, "include=results", NULL);
    ck_assert_int_eq(played.status, 200);
    ck_assert_uint_gt(played.body.n, 10 * (sizeof(results) - 1));
}
END_TEST

/* ---- projects ---- */

static uint64_t matched(size_t i)
{
    uint64_t version;
    memcpy(&version, played.change.match.p + i * sizeof(version), sizeof(version));
    return le64toh(version);
}

static const char *const project_names[] = {"3", "example.com", "EXAMPLE.COM", "003"};

START_TEST(project_is_found_by_name_or_id)
{
    const char *const args[] = {project_names[_i], ""};
    /* 3 << 40 + 2 */
    static const char *const at_hand[] = {"if-none-match", "\"3298534883330-" PACKAGE_VERSION "\"",
                                          NULL};
    played_project(3, "example.com");
    played_send("GET", "/api/v1/projects/{project}", args, "", NULL);
    ck_assert_int_eq(played.status, 200);
    played_body_is(
        "{\"data\":{\"id\":3,\"project\":\"example.com\",\"reports_count\":0,\"score\":null,"
        "\"created_at\":\"2026-05-07T13:00:00Z\",\"updated_at\":\"2026-05-07T13:00:00Z\"},"
        "\"status\":200}");
    played_send("GET", "/api/v1/projects/{project}", args, "", at_hand);
    ck_assert_int_eq(played.status, 304);
}
END_TEST

START_TEST(a_deletion_answers_with_project_id_and_name)
{
    const char *const args[] = {project_names[_i], ""};
    static const char *const match[] = {
        "if-match", "\"3298534883330-" PACKAGE_VERSION "\", \"2-" PACKAGE_VERSION "\"", NULL};
    played_project(3, "example.com");
    played_send("DELETE", "/api/v1/projects/{project}", args, "", match);
    ck_assert_int_eq(played.status, 200);
    ck_assert_uint_eq(played.change.kind, CHANGE_PROJECT_DELETE);
    ck_assert_uint_eq(played.change.workspace, 7);
    ck_assert_uint_eq(played.change.id, 3);
    ck_assert_uint_eq(played.change.match.n, 16);
    ck_assert_uint_eq(matched(0), 2);
    /* an ETag of another project: no version of this one */
    ck_assert_uint_gt(matched(1), UINT64_C(1) << 62);
    played_body_is("{\"id\":3,\"object\":\"project\",\"project\":\"example.com\",\"deleted\":true,"
                   "\"status\":200}");
    played.answer.status = STORE_PRECONDITION;
    played_send("DELETE", "/api/v1/projects/{project}", args, "", match);
    ck_assert_int_eq(played.status, 412);
}
END_TEST

static const char *const no_projects[] = {
    "4", "0", "", "example.org", "-3", "99999999999999999999999", "www.example.com"};

START_TEST(an_unknown_project_is_404)
{
    const char *const args[] = {no_projects[_i], ""};
    played_project(3, "example.com");
    played_send("GET", "/api/v1/projects/{project}", args, "", NULL);
    ck_assert_int_eq(played.status, 404);
    played_send("DELETE", "/api/v1/projects/{project}", args, "", NULL);
    ck_assert_int_eq(played.status, 404);
    ck_assert_uint_eq(played.changes, 0);
}
END_TEST

/* ---- platform ---- */

START_TEST(health_and_readiness_differ_while_draining)
{
    played_send("GET", "/healthz", NULL, "", NULL);
    ck_assert_int_eq(played.status, 200);
    played_body_is("{\"status\":\"ok\"}");
    played_send("GET", "/readyz", NULL, "", NULL);
    ck_assert_int_eq(played.status, 200);
    played_body_is("{\"status\":\"ready\"}");
    played.not_ready = true;
    played_send("GET", "/healthz", NULL, "", NULL);
    ck_assert_int_eq(played.status, 200);
    played_send("GET", "/readyz", NULL, "", NULL);
    ck_assert_int_eq(played.status, 503);
}
END_TEST

START_TEST(an_undecodable_query_is_400_on_every_route)
{
    const char *const args[] = {"41", ""};
    played_send(routes[_i].method, routes[_i].path, args, "x=%zz", NULL);
    ck_assert_int_eq(played.status, 400);
    ck_assert_uint_eq(played.changes, 0);
}
END_TEST

#define LOOP(tc, test, cases) tcase_add_loop_test(tc, test, 0, sizeof(cases) / sizeof((cases)[0]))

int main(void)
{
    Suite *suite = suite_create("handlers_read");
    TCase *tc = tcase_create("handlers_read");
    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, played_begin, played_end);
    tcase_add_test(tc, report_is_served_as_it_is_stored);
    tcase_add_test(tc, results_are_between_issues_and_error);
    tcase_add_test(tc, a_current_copy_is_304);
    LOOP(tc, a_history_is_read_page_by_page, pages);
    tcase_add_test(tc, a_history_has_the_etag_of_its_report);
    tcase_add_test(tc, a_history_of_long_texts_is_sent_in_pages_of_at_most_1_mib);
    LOOP(tc, a_history_that_cannot_be_read_is_an_error, history_refusals);
    LOOP(tc, the_history_of_an_unknown_report_is_404, unknown_reports);
    tcase_add_test(tc, a_list_without_a_query_uses_the_defaults);
    tcase_add_test(tc, a_list_forwards_every_parameter);
    tcase_add_test(tc, a_stopped_list_restarts_and_answers_once);
    tcase_add_test(tc, a_list_without_queue_space_or_time_is_503);
    tcase_add_test(tc, a_list_over_a_damaged_index_is_503_and_requests_one_rebuild);
    tcase_add_test(tc, the_project_filter_accepts_name_or_id_and_unknown_is_empty);
    tcase_add_test(tc, a_list_etag_depends_on_the_workspace);
    tcase_add_test(tc, list_over_1_mib_asks_for_a_smaller_page);
    LOOP(tc, project_is_found_by_name_or_id, project_names);
    LOOP(tc, a_deletion_answers_with_project_id_and_name, project_names);
    LOOP(tc, an_unknown_project_is_404, no_projects);
    tcase_add_test(tc, health_and_readiness_differ_while_draining);
    tcase_add_loop_test(tc, an_undecodable_query_is_400_on_every_route, 0, (int)routes_count);
    return suite_run(suite);
}
