/*
 * Idempotency-Key on POST /api/v1/reports: one record, however often and on whichever worker the
 * request is repeated.
 */
#include "t/kit/origin_server.h"

#include <signal.h>

static struct response *post_as(const char *credential, const char *idempotency_key,
                                const char *body, const char *prefer)
{
    return http(server, .method = "POST", .path = "/api/v1/reports", .key = credential,
                .body = body, .headers = {text("Idempotency-Key: %s", idempotency_key), prefer});
}

static struct response *post(const char *idempotency_key, const char *body)
{
    return post_as(NULL, idempotency_key, body, NULL);
}

static bool replayed(const struct response *r)
{
    const char *value = header(r, "Idempotent-Replayed");
    if (value)
        expect(r, !strcmp(value, "true"));
    return value != NULL;
}

static int64_t total(const char *search)
{
    return int_at(http_get(server, text("/api/v1/reports?search=%s", search)), "meta.total");
}

START_TEST(a_repeat_answers_the_same_status_and_record)
{
    char *body = form("url", origin_url(origin, "/good?repeat"), NULL);
    struct response *a = post("repeat", body);
    expect_status(a, 201);
    expect(a, !replayed(a));
    for (int i = 0; i < 6; i++) {
        struct response *b = post("repeat", body);
        expect_status(b, 201);
        expect(b, replayed(b));
        expect_int(b, "data.id", int_at(a, "data.id"));
        expect(b, header(b, "Location") && !strcmp(header(b, "Location"), header(a, "Location")));
        ck_assert_msg(json_object_equal(a->json, b->json), "%s%s", response_text(a),
                      response_text(b));
    }
    ck_assert_int_eq(total("repeat"), 1);
}
END_TEST

START_TEST(a_repeat_of_a_202_is_202)
{
    char *body = form("url", origin_url(origin, "/good?async"), NULL);
    struct response *a = post_as(NULL, "async", body, "Prefer: respond-async");
    expect_status(a, 202);
    struct response *b = post_as(NULL, "async", body, "Prefer: respond-async");
    expect_status(b, 202);
    expect_int(b, "status", 202);
    expect(b, replayed(b));
    expect_int(b, "data.id", int_at(a, "data.id"));
}
END_TEST

START_TEST(a_repeat_with_another_preference_gets_the_first_answer)
{
    static const char *const prefers[] = {NULL, "Prefer: respond-async", "Prefer: wait=3"};
    for (size_t i = 0; i < COUNT(prefers); i++) {
        char *key = text("prefers-%zu", i),
             *body = form("url", origin_url(origin, text("/good?%s", key)), NULL);
        struct response *a = post_as(NULL, key, body, prefers[i]);
        expect(a, a->status == (i == 1 ? 202 : 201));
        for (size_t k = 0; k < COUNT(prefers); k++) {
            struct response *b = post_as(NULL, key, body, prefers[k]);
            expect_status(b, a->status);
            expect_int(b, "status", a->status);
            expect(b, replayed(b));
            const char *applied = header(b, "Preference-Applied");
            expect(b, !(applied && b->status == 201 && strstr(applied, "respond-async")));
        }
    }
}
END_TEST

START_TEST(a_repeat_with_a_password_is_the_same_request)
{
    char *body = form("url", origin_url(origin, "/good?password"), "privacy", "2", "password",
                      "hunter2", NULL);
    struct response *a = post("password", body), *b = post("password", body);
    expect_status(a, 201);
    expect_status(b, 201);
    expect(b, replayed(b) && int_at(a, "data.id") == int_at(b, "data.id"));
    struct response *r = post("password", form("url", origin_url(origin, "/good?password"),
                                               "privacy", "2", "password", "hunter3", NULL));
    expect_error(r, 422, "idempotency_key_reused");
}
END_TEST

START_TEST(another_body_under_the_same_key_is_422)
{
    char *body = form("url", origin_url(origin, "/good?body"), NULL);
    expect_status(post("body", body), 201);
    struct response *r = post("body", form("url", origin_url(origin, "/good?other-body"), NULL));
    expect_error(r, 422, "idempotency_key_reused");
    r = post("body", text("%s&privacy=1", body));
    expect_error(r, 422, "idempotency_key_reused");
    ck_assert_int_eq(total("other-body"), 0);
    expect(r, replayed(post("body", body)));
}
END_TEST

START_TEST(keys_of_two_credentials_are_separate)
{
    char *other = key_new(server, "main", NULL);
    char *body = form("url", origin_url(origin, "/good?two"), NULL);
    struct response *a = post("two", body), *b = post_as(other, "two", body, NULL);
    expect_status(b, 201);
    expect(b, !replayed(b) && int_at(a, "data.id") != int_at(b, "data.id"));
}
END_TEST

START_TEST(two_keys_make_two_records)
{
    char *body = form("url", origin_url(origin, "/good?keys"), NULL);
    struct response *a = post("first-key", body), *b = post("second-key", body),
                    *c = post("First-Key", body);
    expect(b, int_at(a, "data.id") != int_at(b, "data.id"));
    expect(c, int_at(a, "data.id") != int_at(c, "data.id") && !replayed(c));
}
END_TEST

START_TEST(a_refused_request_stores_nothing_under_its_key)
{
    expect_error(post("refused", "privacy=1"), 422, "validation_failed");
    expect_error(post("refused", form("url", "ftp://alpha.test/", NULL)), 422, "validation_failed");
    struct response *r = post("refused", form("url", origin_url(origin, "/good?refused"), NULL));
    expect_status(r, 201);
    expect(r, !replayed(r));
}
END_TEST

START_TEST(a_key_of_255_characters_is_taken_and_of_256_refused)
{
    char *body = form("url", origin_url(origin, "/good?long"), NULL);
    struct response *r = post(text("%0255d", 5), body);
    expect_status(r, 201);
    r = post(text("%0256d", 5), body);
    expect_error(r, 400, "bad_request");
    ck_assert_int_eq(total("long"), 1);
}
END_TEST

enum { AT_ONCE = 24 };

START_TEST(concurrent_repeats_make_one_record)
{
    struct raw *raws[AT_ONCE];
    char *body = form("url", origin_url(origin, text("/good?at-once-%d", _i)), NULL);
    int64_t id = 0;
    size_t first = 0;
    for (size_t i = 0; i < AT_ONCE; i++)
        raws[i] = raw_open(server);
    for (size_t i = 0; i < AT_ONCE; i++)
        raw_post(raws[i], server->key,
                 text("Idempotency-Key: at-once-%d\r\n%s", _i,
                      _i % 2 ? "Prefer: respond-async\r\n" : ""),
                 body);
    for (size_t i = 0; i < AT_ONCE; i++) {
        struct response *r = raw_response(raws[i], false, 20000);
        expect_status(r, _i % 2 ? 202 : 201);
        if (!id)
            id = int_at(r, "data.id");
        expect_int(r, "data.id", id);
        first += !replayed(r);
        raw_close(raws[i]);
    }
    ck_assert_uint_eq(first, 1);
    ck_assert_int_eq(total(text("at-once-%d", _i)), 1);
}
END_TEST

START_TEST(a_repeat_waits_while_the_first_is_running)
{
    origin_held(origin, "/held");
    struct raw *raws[2];
    char *body = form("url", origin_url(origin, "/held"), NULL);
    for (size_t i = 0; i < 2; i++) {
        raws[i] = raw_open(server);
        raw_post(raws[i], server->key, "Idempotency-Key: held\r\nPrefer: wait=20\r\n", body);
    }
    struct response *early = raw_response(raws[1], false, 300);
    expect(early, early->status == 0 && !raws[1]->closed);
    origin_release(origin, "/held");
    struct response *a = raw_response(raws[0], false, 10000),
                    *b = raw_response(raws[1], false, 10000);
    expect_status(a, 201);
    expect_status(b, 201);
    expect_str(b, "data.status", "done");
    expect_int(b, "data.id", int_at(a, "data.id"));
    expect(b, replayed(a) != replayed(b));
}
END_TEST

START_TEST(a_key_survives_a_restart_and_another_writer)
{
    struct server *shared = server;
    server = server_new(&(struct server_options){.origin = origin});
    server_start(server);
    char *body = form("url", origin_url(origin, "/good?restart"), NULL);
    struct response *a = post("restart", body);
    expect_status(a, 201);
    server_stop(server);
    server_start(server);
    struct response *b = post("restart", body);
    expect_status(b, 201);
    expect(b, replayed(b));
    expect_int(b, "data.id", int_at(a, "data.id"));
    pid_t writer = server_process(server, "assayd: writer");
    ck_assert_int_gt(writer, 0);
    kill(writer, SIGKILL);
    b = post("restart", body);
    expect_status(b, 201);
    expect(b, replayed(b));
    expect_int(b, "data.id", int_at(a, "data.id"));
    server_free(server);
    server = shared;
}
END_TEST

START_TEST(a_repeat_after_the_record_was_deleted_makes_no_second_one)
{
    char *body = form("url", origin_url(origin, "/good?deleted"), NULL);
    struct response *a = post("deleted", body);
    expect_status(http_delete(server, report_path(int_at(a, "data.id"))), 200);
    struct response *r = post("deleted", body);
    expect_error(r, 410, "gone");
    ck_assert_str_eq(header(r, "Idempotent-Replayed"), "true");
    ck_assert_int_eq(total("deleted"), 0);
}
END_TEST

START_TEST(a_key_is_ignored_on_routes_that_create_nothing)
{
    struct response *r =
        http(server, .path = "/api/v1/reports", .headers = {"Idempotency-Key: reading"});
    expect_status(r, 200);
    int64_t id = report_new(server, origin_url(origin, "/good?put"));
    for (int i = 0; i < 2; i++) {
        r = http(server, .method = "PUT", .path = report_path(id),
                 .body = i ? "privacy=1" : "privacy=0", .headers = {"Idempotency-Key: put"});
        expect_status(r, 200);
        expect_int(r, "data.privacy", i);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("idempotency");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, shared_setup, shared_teardown);
    tcase_add_test(tcase, a_repeat_answers_the_same_status_and_record);
    tcase_add_test(tcase, a_repeat_of_a_202_is_202);
    tcase_add_test(tcase, a_repeat_with_another_preference_gets_the_first_answer);
    tcase_add_test(tcase, a_repeat_with_a_password_is_the_same_request);
    tcase_add_test(tcase, another_body_under_the_same_key_is_422);
    tcase_add_test(tcase, keys_of_two_credentials_are_separate);
    tcase_add_test(tcase, two_keys_make_two_records);
    tcase_add_test(tcase, a_refused_request_stores_nothing_under_its_key);
    tcase_add_test(tcase, a_key_of_255_characters_is_taken_and_of_256_refused);
    tcase_add_loop_test(tcase, concurrent_repeats_make_one_record, 0, 6);
    tcase_add_test(tcase, a_repeat_waits_while_the_first_is_running);
    tcase_add_test(tcase, a_key_survives_a_restart_and_another_writer);
    tcase_add_test(tcase, a_repeat_after_the_record_was_deleted_makes_no_second_one);
    tcase_add_test(tcase, a_key_is_ignored_on_routes_that_create_nothing);
    return harness_main(suite);
}
