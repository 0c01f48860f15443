/* Projects: list, read, delete. */
#include "t/kit/harness.h"

static struct origin *origin;
static struct server *server;

static const char *const hosts[] = {
    "alpha.test", "beta.test", "gamma-100.test", "under_score.test", "delta.test", "epsilon.test",
    "zeta.test",  "eta.test",  "theta.test",     "iota.test",        "kappa.test", "lambda.test"};

static void setup(void)
{
    origin = origin_usual();
    server = server_shared(&(struct server_options){.origin = origin});
    for (size_t i = 0; i < COUNT(hosts); i++)
        report_queued(server, text("http://%s/%zu", hosts[i], i));
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}

/*
 * A server's own project list has only what the setup created. A new workspace separates a test's
 * projects from it.
 */
static const char *own_workspace(const char *name)
{
    assay_ok(server, "workspace", "create", name, NULL);
    return key_new(server, name, NULL);
}

static int64_t queued_with(const char *key, const char *url)
{
    struct response *r = http(server, .method = "POST", .path = "/api/v1/reports", .key = key,
                              .body = form("url", url, NULL), .headers = {"Prefer: respond-async"});
    expect_status(r, 202);
    return int_at(r, "data.id");
}

START_TEST(the_list_has_its_envelope_and_its_items_their_members)
{
    struct response *r = http_get(server, "/api/v1/projects");
    expect_status(r, 200);
    expect(r, has_exactly(r, "", "data links meta status"));
    expect(r, has_exactly(r, "links", "first last prev next"));
    expect(r, has_exactly(r, "meta", "current_page from last_page path per_page to total"));
    expect(r, has_exactly(r, "data.0", "id project reports_count score created_at updated_at"));
    expect_int(r, "meta.total", COUNT(hosts));
    expect_int(r, "meta.last_page", 2);
    expect(r, len_at(r, "data") == 10);
    expect_str(r, "data.0.project", hosts[COUNT(hosts) - 1]);
    expect_int(r, "data.0.reports_count", 1);
    expect_str(r, "meta.path", text("%s/api/v1/projects", server->url));
}
END_TEST

START_TEST(one_project_is_found_by_name_and_by_id)
{
    struct response *a = http_get(server, "/api/v1/projects/beta.test");
    expect_status(a, 200);
    expect(a, has_exactly(a, "", "data status"));
    expect(a, has_exactly(a, "data", "id project reports_count score created_at updated_at"));
    struct response *b =
        http_get(server, text("/api/v1/projects/%lld", (long long)int_at(a, "data.id")));
    expect_status(b, 200);
    ck_assert_msg(json_object_equal(a->json, b->json), "%s%s", response_text(a), response_text(b));
    expect_status(http_get(server, "/api/v1/projects/beta%2Etest"), 200);
}
END_TEST

static const char *const unknown[] = {
    "nowhere.test", "999999",       "0", "-1", "99999999999999999999999", "alpha",
    "%20",          "alpha.test%2F"};

START_TEST(an_unknown_project_is_404)
{
    expect_error(http_get(server, text("/api/v1/projects/%s", unknown[_i])), 404, "not_found");
    expect_error(http_delete(server, text("/api/v1/projects/%s", unknown[_i])), 404, "not_found");
}
END_TEST

static const struct {
    const char *query;
    const char *names[13]; /* in order */
} lists[] = {
    {"?per_page=100&sort_by=project&sort=asc",
     {"alpha.test", "beta.test", "delta.test", "epsilon.test", "eta.test", "gamma-100.test",
      "iota.test", "kappa.test", "lambda.test", "theta.test", "under_score.test", "zeta.test"}},
    {"?sort_by=project&per_page=10&page=2&sort=desc", {"beta.test", "alpha.test"}},
    {"?sort_by=created_at&sort=asc&page=2", {"kappa.test", "lambda.test"}},
    {"?page=2", {"beta.test", "alpha.test"}},
    {"?sort_by=project&page=2", {"beta.test", "alpha.test"}},
    {"?search=eta&sort_by=project&sort=asc", {"beta.test", "eta.test", "theta.test", "zeta.test"}},
    {"?search=ETA&search_by=project&sort_by=created_at&sort=asc",
     {"beta.test", "zeta.test", "eta.test", "theta.test"}},
    {"?search=_", {"under_score.test"}},
    {"?search=%25", {NULL}},
    {"?search=m", {"lambda.test", "gamma-100.test"}},
    {"?search=-1", {"gamma-100.test"}},
    {"?search=a.test&sort=asc&search_by=project&page=1",
     {"alpha.test", "beta.test", "delta.test", "zeta.test", "eta.test", "theta.test", "iota.test",
      "kappa.test", "lambda.test"}},
};

START_TEST(sorts_searches_and_pages_give_the_right_names)
{
    struct response *r = http_get(server, text("/api/v1/projects%s", lists[_i].query));
    expect_status(r, 200);
    size_t count = 0;
    for (; lists[_i].names[count]; count++)
        if (count < len_at(r, "data"))
            expect_str(r, text("data.%zu.project", count), lists[_i].names[count]);
    expect(r, len_at(r, "data") == count);
}
END_TEST

static const struct {
    const char *query, *field;
} unlisted[] = {{"per_page=20", "per_page"},    {"sort=down", "sort"},
                {"sort_by=id", "sort_by"},      {"sort_by=url", "sort_by"},
                {"search_by=url", "search_by"}, {"page=0", "page"}};

START_TEST(an_undocumented_value_is_422_and_names_its_field)
{
    struct response *r = http_get(server, text("/api/v1/projects?%s", unlisted[_i].query));
    expect_error(r, 422, "validation_failed");
    expect(r, len_at(r, text("error.errors.%s", unlisted[_i].field)) > 0);
}
END_TEST

START_TEST(reports_count_and_score_follow_the_reports)
{
    const char *key = own_workspace("counting");
    static const char *const pages[] = {"/good", "/bad"};
    int64_t ids[2], sum = 0;
    for (size_t i = 0; i < COUNT(pages); i++) {
        struct response *r = http(server, .method = "POST", .path = "/api/v1/reports", .key = key,
                                  .body = form("url", origin_url(origin, pages[i]), NULL),
                                  .headers = {"Prefer: wait=20"});
        expect_str(r, "data.status", "done");
        sum += int_at(r, "data.score");
        ids[i] = int_at(r, "data.id");
    }
    struct response *r = http(server, .path = "/api/v1/projects/127.0.0.1", .key = key);
    expect_int(r, "data.reports_count", 2);
    double mean = json_object_get_double(at(r, "data.score")) - (double)sum / 2;
    expect(r, mean > -0.51 && mean < 0.51);
    expect_status(http(server, .method = "DELETE", .path = report_path(ids[0]), .key = key), 200);
    r = http(server, .path = "/api/v1/projects/127.0.0.1", .key = key);
    expect_int(r, "data.reports_count", 1);
    expect_status(http(server, .method = "DELETE", .path = report_path(ids[1]), .key = key), 200);
    r = http(server, .path = "/api/v1/projects/127.0.0.1", .key = key);
    expect_int(r, "data.reports_count", 0);
    expect(r, has(r, "data.score") && !at(r, "data.score"));
}
END_TEST

START_TEST(a_project_without_a_graded_report_has_no_score)
{
    struct response *r = http_get(server, "/api/v1/projects/alpha.test");
    expect(r, has(r, "data.score") && !at(r, "data.score"));
}
END_TEST

START_TEST(deleting_a_project_deletes_its_reports_and_frees_its_name)
{
    const char *key = own_workspace("deleting");
    int64_t report = queued_with(key, "http://doomed.test/a"),
            other = queued_with(key, "http://safe.test/");
    queued_with(key, "http://www.doomed.test/b");
    struct response *r = http(server, .path = "/api/v1/projects/doomed.test", .key = key);
    int64_t id = int_at(r, "data.id");
    expect_int(r, "data.reports_count", 2);

    r = http(server, .method = "DELETE", .path = "/api/v1/projects/doomed.test", .key = key);
    expect_status(r, 200);
    expect(r, has_exactly(r, "", "id object project deleted status"));
    expect_int(r, "id", id);
    expect_str(r, "object", "project");
    expect_str(r, "project", "doomed.test");
    expect(r, bool_at(r, "deleted"));
    expect_int(r, "status", 200);

    expect_error(
        http(server, .method = "DELETE", .path = "/api/v1/projects/doomed.test", .key = key), 404,
        "not_found");
    expect_error(http(server, .path = text("/api/v1/projects/%lld", (long long)id), .key = key),
                 404, "not_found");
    expect_error(http(server, .path = report_path(report), .key = key), 404, "not_found");
    expect_error(http(server, .method = "DELETE", .path = report_path(report), .key = key), 404,
                 "not_found");
    expect_status(http(server, .path = report_path(other), .key = key), 200);
    r = http(server, .path = "/api/v1/reports?search=doomed", .key = key);
    expect_int(r, "meta.total", 0);
    r = http(server, .path = "/api/v1/projects", .key = key);
    expect_int(r, "meta.total", 1);

    queued_with(key, "http://doomed.test/again");
    r = http(server, .path = "/api/v1/projects/doomed.test", .key = key);
    expect(r, int_at(r, "data.id") > id);
    expect_int(r, "data.reports_count", 1);
}
END_TEST

START_TEST(a_project_is_deleted_by_its_id)
{
    const char *key = own_workspace("by-id");
    queued_with(key, "http://numbered.test/");
    struct response *r = http(server, .path = "/api/v1/projects/numbered.test", .key = key);
    r = http(server, .method = "DELETE",
             .path = text("/api/v1/projects/%lld", (long long)int_at(r, "data.id")), .key = key);
    expect_status(r, 200);
    expect_str(r, "project", "numbered.test");
}
END_TEST

START_TEST(if_match_guards_the_deletion_of_a_project)
{
    const char *key = own_workspace("guarded");
    queued_with(key, "http://guarded.test/");
    struct response *r = http(server, .method = "DELETE", .path = "/api/v1/projects/guarded.test",
                              .key = key, .headers = {"If-Match: \"other\""});
    expect_error(r, 412, "precondition_failed");
    int tries = 0;
    do { /* its report can be done between the two requests */
        r = http(server, .path = "/api/v1/projects/guarded.test", .key = key);
        expect_status(r, 200);
        r = http(server, .method = "DELETE", .path = "/api/v1/projects/guarded.test", .key = key,
                 .headers = {text("If-Match: %s", header(r, "ETag"))});
    } while (r->status == 412 && ++tries < 20);
    expect_status(r, 200);
}
END_TEST

START_TEST(a_large_project_is_deleted_at_once_and_blocks_nobody)
{
    const char *key = own_workspace("large");
    struct client *client = client_new(server);
    for (int i = 0; i < 400; i++) {
        struct response *made =
            http_kept(client, .method = "POST", .path = "/api/v1/reports", .key = key,
                      .body = form("url", text("http://large.test/%d", i), NULL),
                      .headers = {"Prefer: respond-async"});
        expect_status(made, 202);
        response_free(made);
    }
    int64_t before = now_ms();
    expect_status(
        http(server, .method = "DELETE", .path = "/api/v1/projects/large.test", .key = key), 200);
    struct response *r = http(server, .path = "/api/v1/reports", .key = key);
    expect_int(r, "meta.total", 0);
    for (int i = 0; i < 20; i++)
        queued_with(key, "http://large.test/new");
    ck_assert_int_lt(now_ms() - before, 5000);
    r = http(server, .path = "/api/v1/projects/large.test", .key = key);
    expect_int(r, "data.reports_count", 20);
    client_free(client);
}
END_TEST

START_TEST(each_workspace_has_its_own_project_per_name)
{
    const char *key = own_workspace("other");
    queued_with(key, "http://alpha.test/");
    struct response *mine = http_get(server, "/api/v1/projects/alpha.test"),
                    *theirs = http(server, .path = "/api/v1/projects/alpha.test", .key = key);
    expect_status(theirs, 200);
    expect(theirs, int_at(mine, "data.id") != int_at(theirs, "data.id"));
    expect_error(http(server,
                      .path = text("/api/v1/projects/%lld", (long long)int_at(mine, "data.id")),
                      .key = key),
                 404, "not_found");
    struct response *r = http(
        server, .path = text("/api/v1/reports?project=%lld", (long long)int_at(mine, "data.id")),
        .key = key);
    expect_status(r, 200);
    expect_int(r, "meta.total", 0);
    expect_status(
        http(server, .method = "DELETE", .path = "/api/v1/projects/alpha.test", .key = key), 200);
    expect_status(http_get(server, "/api/v1/projects/alpha.test"), 200);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("projects");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_list_has_its_envelope_and_its_items_their_members);
    tcase_add_test(tcase, one_project_is_found_by_name_and_by_id);
    tcase_add_loop_test(tcase, an_unknown_project_is_404, 0, COUNT(unknown));
    tcase_add_loop_test(tcase, sorts_searches_and_pages_give_the_right_names, 0, COUNT(lists));
    tcase_add_loop_test(tcase, an_undocumented_value_is_422_and_names_its_field, 0,
                        COUNT(unlisted));
    tcase_add_test(tcase, reports_count_and_score_follow_the_reports);
    tcase_add_test(tcase, a_project_without_a_graded_report_has_no_score);
    tcase_add_test(tcase, deleting_a_project_deletes_its_reports_and_frees_its_name);
    tcase_add_test(tcase, a_project_is_deleted_by_its_id);
    tcase_add_test(tcase, if_match_guards_the_deletion_of_a_project);
    tcase_add_test(tcase, a_large_project_is_deleted_at_once_and_blocks_nobody);
    tcase_add_test(tcase, each_workspace_has_its_own_project_per_name);
    return harness_main(suite);
}
