/* PUT /api/v1/reports/{id}: privacy, password, and grading again. */
#include "t/kit/origin_server.h"

/* A report's privacy before, a form, and the result. */
static const struct {
    int before;
    const char *form;
    int status;
    int after;         /* privacy */
    const char *field; /* of the 422 */
} rules[] = {
    {0, "", 200, 0, NULL},
    {0, "privacy=0", 200, 0, NULL},
    {0, "privacy=1", 200, 1, NULL},
    {0, "privacy=2", 422, 0, "password"},
    {0, "privacy=2&password=", 422, 0, "password"},
    {0, "privacy=2&password=new", 200, 2, NULL},
    {0, "password=new&privacy=2", 200, 2, NULL},
    {0, "password=new", 422, 0, "password"},
    {0, "privacy=3", 422, 0, "privacy"},
    {0, "privacy=-1", 422, 0, "privacy"},
    {0, "privacy=00", 422, 0, "privacy"},
    {0, "privacy=1.0", 422, 0, "privacy"},
    {0, "privacy=+1", 422, 0, "privacy"},
    {0, "privacy=one", 422, 0, "privacy"},
    {0, "privacy=99999999999999999999", 422, 0, "privacy"},
    {0, "update=2", 422, 0, "update"},
    {0, "update=yes", 422, 0, "update"},
    {0, "update=0", 200, 0, NULL},
    {0, "privacy=1&update=5", 422, 0, "update"},
    {0, "colour=blue", 200, 0, NULL},
    {0, "url=http%3A%2F%2Felsewhere.test%2F&id=7&privacy=1", 200, 1, NULL},
    {1, "", 200, 1, NULL},
    {1, "privacy=0", 200, 0, NULL},
    {1, "privacy=2", 422, 1, "password"},
    {1, "privacy=2&password=new", 200, 2, NULL},
    {1, "password=new", 422, 1, "password"},
    {2, "", 200, 2, NULL},
    {2, "privacy=2", 200, 2, NULL},
    {2, "password=new", 200, 2, NULL},
    {2, "privacy=2&password=new", 200, 2, NULL},
    {2, "password=", 422, 2, "password"},
    {2, "privacy=0", 200, 0, NULL},
    {2, "privacy=1", 200, 1, NULL},
};

static int64_t report_of(int privacy)
{
    const char *value[] = {"0", "1", "2"};
    struct response *r = http_post(server, "/api/v1/reports",
                                   form("url", origin_url(origin, "/good"), "privacy",
                                        value[privacy], "password", "old", NULL));
    expect_status(r, 201);
    expect_str(r, "data.status", "done");
    return int_at(r, "data.id");
}

START_TEST(privacy_and_password_change_by_their_rules)
{
    int64_t id = report_of(rules[_i].before);
    struct response *r = http_put(server, report_path(id), rules[_i].form);
    if (rules[_i].status == 422) {
        expect_error(r, 422, "validation_failed");
        expect(r, len_at(r, text("error.errors.%s", rules[_i].field)) > 0);
    } else {
        expect_status(r, 200);
        expect(r, has_exactly(r, "", "data status"));
        expect_int(r, "data.id", id);
        expect_int(r, "status", 200);
        expect_int(r, "data.privacy", rules[_i].after);
        expect(r, bool_at(r, "data.password") == (rules[_i].after == 2));
    }
    r = http_get(server, report_path(id));
    expect_int(r, "data.privacy", rules[_i].after);
    expect(r, bool_at(r, "data.password") == (rules[_i].after == 2));
    expect_str(r, "data.url", origin_url(origin, "/good"));
    expect_str(r, "data.status", "done");
}
END_TEST

START_TEST(leaving_privacy_2_drops_the_password)
{
    int64_t id = report_of(2);
    expect_status(http_put(server, report_path(id), "privacy=1"), 200);
    struct response *r = http_put(server, report_path(id), "privacy=2");
    expect_error(r, 422, "validation_failed");
    expect(r, len_at(r, "error.errors.password") > 0);
}
END_TEST

START_TEST(a_password_over_255_bytes_is_refused)
{
    int64_t id = report_of(2);
    struct response *r =
        http_put(server, report_path(id), form("password", text("%0256d", 1), NULL));
    expect_error(r, 422, "validation_failed");
    expect(r, len_at(r, "error.errors.password") > 0);
    expect_status(http_put(server, report_path(id), form("password", text("%0255d", 1), NULL)),
                  200);
}
END_TEST

START_TEST(an_empty_put_without_a_media_type_changes_nothing)
{
    int64_t id = report_of(1);
    struct response *before = http_get(server, report_path(id));
    struct response *r = http(server, .method = "PUT", .path = report_path(id));
    expect_status(r, 200);
    ck_assert_msg(json_object_equal(at(before, "data"), at(r, "data")), "%s%s",
                  response_text(before), response_text(r));
}
END_TEST

/* ---- update=1 ---- */

START_TEST(the_old_score_and_results_stay_until_replaced)
{
    origin_page(origin, "/changing", 200, "", "<title>one</title>");
    struct response *first =
        http_post(server, "/api/v1/reports", form("url", origin_url(origin, "/changing"), NULL));
    expect_status(first, 201);
    expect_str(first, "data.status", "done");
    char *path = report_path(int_at(first, "data.id"));
    origin_page(origin, "/changing", 200, "",
                "<!doctype html><html lang=en><head><meta charset=utf-8><title>Two</title><meta "
                "name=description "
                "content=x></head><body><h1>Other</h1></body></html>");
    origin_hold(origin, "/changing");

    struct response *r = http_put(server, path, "update=1");
    expect_status(r, 200);
    expect_str(r, "data.status", "pending");
    for (int i = 0; i < 2; i++, r = http_get(server, path)) {
        expect_int(r, "data.score", int_at(first, "data.score"));
        expect_str(r, "data.result", str_at(first, "data.result"));
        expect_str(r, "data.generated_at", str_at(first, "data.generated_at"));
        ck_assert_msg(json_object_equal(at(first, "data.results"), at(r, "data.results")), "%s",
                      response_text(r));
    }
    origin_release(origin, "/changing");
    r = report_wait(server, int_at(first, "data.id"));
    expect_str(r, "data.status", "done");
    expect(r, int_at(r, "data.score") > int_at(first, "data.score"));
    expect(r, !json_object_equal(at(first, "data.results"), at(r, "data.results")));
    expect_str(r, "data.created_at", str_at(first, "data.created_at"));
    expect_str(r, "data.url", str_at(first, "data.url"));
}
END_TEST

START_TEST(a_failed_update_keeps_the_old_score_and_the_next_replaces_it)
{
    origin_page(origin, "/failing", 200, "", "<title>one</title>");
    struct response *first =
        http_post(server, "/api/v1/reports", form("url", origin_url(origin, "/failing"), NULL));
    int64_t id = int_at(first, "data.id");
    origin_page(origin, "/failing", 503, "", "down");
    struct response *r = http(server, .method = "PUT", .path = report_path(id), .body = "update=1",
                              .headers = {"Prefer: wait=15"});
    expect_status(r, 200);
    const char *applied = header(r, "Preference-Applied");
    expect(r, applied && !strcmp(applied, "wait=15"));
    expect_str(r, "data.status", "failed");
    expect_str(r, "data.error.code", "http_error");
    expect_int(r, "data.score", int_at(first, "data.score"));
    ck_assert_msg(json_object_equal(at(first, "data.results"), at(r, "data.results")), "%s",
                  response_text(r));
    origin_page(origin, "/failing", 200, "", "<title>one</title>");
    r = http(server, .method = "PUT", .path = report_path(id), .body = "update=1",
             .headers = {"Prefer: wait=15"});
    expect_str(r, "data.status", "done");
    expect(r, !at(r, "data.error"));
}
END_TEST

START_TEST(a_failed_report_can_be_updated)
{
    origin_page(origin, "/late", 500, "", "not yet");
    struct response *r =
        http_post(server, "/api/v1/reports", form("url", origin_url(origin, "/late"), NULL));
    expect_status(r, 201);
    expect_str(r, "data.status", "failed");
    origin_page(origin, "/late", 200, "", "<title>now</title>");
    r = http(server, .method = "PUT", .path = report_path(int_at(r, "data.id")), .body = "update=1",
             .headers = {"Prefer: wait=15"});
    expect_str(r, "data.status", "done");
    int_at(r, "data.score");
}
END_TEST

START_TEST(privacy_changes_while_a_report_is_pending)
{
    origin_held(origin, "/held-privacy");
    int64_t id = report_queued(server, origin_url(origin, "/held-privacy"));
    struct response *r = http_put(server, report_path(id), "privacy=2&password=x");
    expect_status(r, 200);
    expect_str(r, "data.status", "pending");
    origin_release(origin, "/held-privacy");
    r = report_wait(server, id);
    expect_int(r, "data.privacy", 2);
    expect(r, bool_at(r, "data.password"));
    expect_str(r, "data.status", "done");
}
END_TEST

/* It joins the running grading: the page is fetched once. */
START_TEST(an_update_during_grading_starts_no_second_one)
{
    origin_held(origin, "/twice");
    int64_t id = report_queued(server, origin_url(origin, "/twice"));
    ck_assert(origin_asked(origin, "/twice"));
    struct response *r = http_put(server, report_path(id), "update=1");
    expect_status(r, 200);
    expect_str(r, "data.status", "pending");
    origin_release(origin, "/twice");
    expect_str(report_wait(server, id), "data.status", "done");
    ck_assert_uint_eq(origin_hits(origin, "/twice"), 1);
}
END_TEST

START_TEST(one_request_can_change_the_password_and_start_grading)
{
    int64_t id = report_of(0);
    struct response *r =
        http(server, .method = "PUT", .path = report_path(id),
             .body = "privacy=2&password=x&update=1", .headers = {"Prefer: wait=15"});
    expect_status(r, 200);
    expect_str(r, "data.status", "done");
    expect_int(r, "data.privacy", 2);
    expect(r, bool_at(r, "data.password"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report_updates");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, shared_setup, shared_teardown);
    tcase_add_loop_test(tcase, privacy_and_password_change_by_their_rules, 0, COUNT(rules));
    tcase_add_test(tcase, leaving_privacy_2_drops_the_password);
    tcase_add_test(tcase, a_password_over_255_bytes_is_refused);
    tcase_add_test(tcase, an_empty_put_without_a_media_type_changes_nothing);
    tcase_add_test(tcase, the_old_score_and_results_stay_until_replaced);
    tcase_add_test(tcase, a_failed_update_keeps_the_old_score_and_the_next_replaces_it);
    tcase_add_test(tcase, a_failed_report_can_be_updated);
    tcase_add_test(tcase, privacy_changes_while_a_report_is_pending);
    tcase_add_test(tcase, an_update_during_grading_starts_no_second_one);
    tcase_add_test(tcase, one_request_can_change_the_password_and_start_grading);
    return harness_main(suite);
}
