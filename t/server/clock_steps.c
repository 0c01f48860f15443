/*
 * The wall clock is stepped while assayd runs. Waits keep their length, work that is due by the
 * clock follows the new time, and nothing is lost. t/kit/stepped_clock.c steps the server's clock;
 * the test's own does not change.
 */
#include "t/kit/harness.h"
#include "t/kit/wall_clock.h"

#include <time.h>

enum {
    SKIPPED = 77,
    HOUR = 3600,
    DAY = 86400,
    WINDOW = 60,
    LIMIT = 5,
    SOON_MS = 5000,
    IDLE_MS = 1500
};

static struct wall_clock *wall_clock;
static struct origin *origin;
static struct server *server;

static const int64_t steps_s[] = {25 * HOUR, -HOUR, 400 * DAY, -30 * DAY, 5, -5};

static void step_to(int64_t seconds)
{
    wall_clock_step(wall_clock, seconds * 1000);
}

static long server_time(void)
{
    return (long)(time(NULL) + *wall_clock->offset_ms / 1000);
}

static void setup(void)
{
    wall_clock = wall_clock_new();
    wall_clock_use(wall_clock);
    origin = origin_start();
    server = server_shared(&(struct server_options){
        .origin = origin,
        .yaml =
            "timeouts: { header: 2s, body: 2s, send: 5s, idle: 1500ms }\nreports: { wait: 20s }\n"
            "limits: { limiters: { api: { windows: [ { limit: 5, seconds: 60, key: api_key } ] } "
            "}, exempt: [] }\n"});
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
    wall_clock_free(wall_clock);
}

/* A clock and a server, whose store is checked after all tests. */
static TCase *case_new(Suite *suite, const char *name)
{
    TCase *tcase = harness_case(suite, name);
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    return tcase;
}

/* ---- waiting requests ---- */

#define GET_REPORTS "GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n"

/* without the stepped clock in the server these tests prove nothing */
static void expect_date(const struct response *r)
{
    struct tm tm = {0};
    const char *date = header(r, "Date");
    expect(r, date != NULL && strptime(date, "%a, %d %b %Y %H:%M:%S GMT", &tm) != NULL);
    expect(r, llabs((long long)timegm(&tm) - server_time()) <= 2);
}

/* A kept-alive connection continues, and is closed exactly at its idle timeout. */
static void expect_served_then_idle(struct raw *raw)
{
    raw_text(raw, GET_REPORTS "\r\n");
    struct response *r = raw_response(raw, false, SOON_MS);
    int64_t since = now_ms();
    expect_status(r, 200);
    expect_date(r);
    ck_assert_msg(!raw_closed(raw, IDLE_MS - 500), "closed after %lld ms",
                  (long long)(now_ms() - since));
    ck_assert_msg(raw_closed(raw, SOON_MS), "open after %lld ms", (long long)(now_ms() - since));
}

START_TEST(a_request_started_before_a_step_finishes_after_it)
{
    step_to(0);
    static const char post[] = "POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nContent-Type: "
                               "application/x-www-form-urlencoded\r\n";
    struct raw *kept = raw_open(server), *half = raw_open(server), *body = raw_open(server);
    raw_text(kept, GET_REPORTS "\r\n");
    expect_status(raw_response(kept, false, SOON_MS), 200);
    raw_text(half, GET_REPORTS "Acc");
    raw_text(body, "%sContent-Length: 4\r\n\r\nur", post);
    ck_assert(!raw_closed(half, 300)); /* the server has read it */

    step_to(steps_s[_i]);
    ck_assert(!raw_closed(half, 600)); /* an iteration of the loop, and the timeout sweep */
    raw_text(half, "ept: */*\r\n\r\n");
    raw_text(body, "l=");
    expect_status(raw_response(half, false, SOON_MS), 200);
    expect_status(raw_response(body, false, SOON_MS), 401); /* it had no credential */
    expect_served_then_idle(kept);
}
END_TEST

START_TEST(an_unfinished_head_times_out_across_a_step)
{
    step_to(0);
    struct raw *half = raw_open(server);
    int64_t since = now_ms();
    raw_text(half, GET_REPORTS "Acc");
    ck_assert(!raw_closed(half, 300));
    step_to(steps_s[_i]);
    raw_response(half, false, SOON_MS);
    ck_assert_msg(raw_closed(half, SOON_MS), "still open");
    int64_t took = now_ms() - since;
    ck_assert_msg(took >= 1900 && took <= 5000, "ended after %lld ms", (long long)took);
}
END_TEST

START_TEST(a_held_post_is_answered_after_a_step)
{
    step_to(0);
    char *path = text("/held-%d", _i);
    server->key = key_new(server, "main", NULL); /* with a budget of its own */
    struct raw *held = held_post(server, origin, path);
    step_to(steps_s[_i]);
    ck_assert(!raw_closed(held, 600));
    origin_release(origin, path);
    struct response *r = raw_response(held, false, SOON_MS);
    expect_status(r, 201);
    expect_str(r, "data.status", "done");
    assay_ok(server, "check", NULL);
}
END_TEST

/* ---- expiry by the clock ---- */

static int status_with(const char *key)
{
    return http(server, .path = "/api/v1/reports", .key = key)->status;
}

static bool is_refused(void *key)
{
    return status_with(key) == 401;
}

START_TEST(a_key_expires_by_the_clock_and_is_valid_again_after_a_step_back)
{
    step_to(0);
    char *key = assay_ok(server, "key", "create", "--workspace", "main", "--scope", "reports:read",
                         "--expires", "2h", NULL);
    ck_assert_int_eq(status_with(key), 200);
    step_to(steps_s[_i]);
    ck_assert_int_eq(status_with(key), steps_s[_i] > 2 * HOUR ? 401 : 200);
    step_to(0);
    ck_assert_int_eq(status_with(key), 200);
}
END_TEST

START_TEST(a_visitor_token_expires_after_an_hour_and_the_leeway)
{
    static const struct {
        int64_t step_s;
        int status;
    } moments[] = {{0, 200},         {-20, 200},       {HOUR + 20, 200},
                   {HOUR + 40, 401}, {25 * HOUR, 401}, {0, 200}};
    step_to(0);
    char *agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Clock",
                           "--origin", "*", NULL);
    struct response *init = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                                 .headers = {"Content-Type: application/json"},
                                 .body = text("{\"agent_id\":\"%s\"}", agent));
    expect_int(init, "data.expires_in", HOUR);
    for (size_t i = 0; i < COUNT(moments); i++) {
        step_to(moments[i].step_s);
        for (int k = 0; k < 4; k++) /* on any worker */
            expect_status(http(server, .path = "/api/v1/widget/conversation/messages",
                               .key = str_at(init, "data.jwt")),
                          moments[i].status);
    }
    step_to(0);
}
END_TEST

START_TEST(a_key_revoked_after_a_step_is_refused_within_a_second)
{
    step_to(0);
    char *made = assay_ok(server, "key", "create", "--workspace", "main", "--scope", "reports:read",
                          "--json", NULL);
    struct json_object *record = json_tokener_parse(made), *id = NULL, *secret = NULL;
    ck_assert(json_object_object_get_ex(record, "id", &id));
    ck_assert(json_object_object_get_ex(record, "key", &secret) ||
              json_object_object_get_ex(record, "secret", &secret));
    const char *key = json_object_get_string(secret);
    ck_assert_int_eq(status_with(key), 200);
    step_to(steps_s[_i]);
    assay_ok(server, "key", "revoke", json_object_get_string(id), NULL);
    ck_assert(wait_until(is_refused, (void *)key, 1000));
}
END_TEST

/* ---- the limiter ---- */

/*
 * How many of the requests are admitted. Every answer reports a window that is current by the
 * server's clock.
 */
static int admitted(const char *key, int requests)
{
    int count = 0;
    for (int i = 0; i < requests; i++) {
        struct response *r = http(server, .path = "/api/v1/reports", .key = key);
        long left = header_number(r, "X-RateLimit-Reset") - server_time();
        expect(r, r->status == 200 || r->status == 429);
        expect(r, left >= -1 && left <= WINDOW + 2);
        if (r->status == 429)
            expect(r, labs(header_number(r, "Retry-After") - left) <= 2);
        count += r->status == 200;
    }
    return count;
}

START_TEST(a_step_gives_at_most_one_window_and_locks_nobody_out)
{
    /* a step of 5 s stays within the window */
    int64_t middle = WINDOW - time(NULL) % WINDOW + WINDOW / 3;
    step_to(middle);
    char *key = key_new(server, "main", NULL);
    ck_assert_int_eq(admitted(key, 2 * LIMIT), LIMIT);
    step_to(middle + steps_s[_i]);
    int more = admitted(key, 2 * LIMIT);
    ck_assert_int_eq(more, llabs(steps_s[_i]) < WINDOW / 3 ? 0 : LIMIT);
    step_to(middle + steps_s[_i] + WINDOW + 2); /* as if that time had passed */
    ck_assert_int_eq(admitted(key, 2 * LIMIT), LIMIT);
}
END_TEST

/* ---- the store ---- */

START_TEST(a_store_written_through_all_steps_is_valid)
{
    for (size_t i = 0; i < COUNT(steps_s); i++) {
        step_to(steps_s[i]);
        server->key = key_new(server, "main", NULL);
        struct response *r =
            http_post(server, "/api/v1/reports",
                      form("url", origin_url(origin, text("/written-%zu", i)), NULL));
        expect_status(r, 201);
        int64_t id = int_at(r, "data.id");
        r = http_get(server, report_path(id));
        expect_int(r, "data.id", id);
        r = http_get(server, "/api/v1/reports"); /* by id, newest first, for any clock */
        expect_int(r, "data.0.id", id);
    }
    assay_ok(server, "check", NULL);
    step_to(0);
    assay_ok(server, "check", NULL);
}
END_TEST

/* ---- a clock that nobody has set ---- */

START_TEST(a_server_that_starts_in_1970_answers)
{
    struct wall_clock *unset = wall_clock_new();
    wall_clock_step(unset, (DAY - (int64_t)time(NULL)) * 1000);
    struct server *s = server_new(&(struct server_options){.clock = unset});
    server_start(s);
    for (int i = 0; i < 3; i++)
        expect_status(http_get(s, "/api/v1/reports"), 200);
    expect_status(http(s, .method = "POST", .path = "/api/v1/reports",
                       .headers = {"Prefer: respond-async"}, .body = "url=http://x.test/"),
                  202);
    server_stop(s);
    server_discard(s);
    wall_clock_free(unset);
}
END_TEST

int main(void)
{
    if (!wall_clock_possible())
        /* the sanitizer's runtime must be the first library, and intercepts the clock itself */
        return SKIPPED;
    Suite *suite = suite_create("clock_steps");
    TCase *requests = case_new(suite, "requests"), *heads = case_new(suite, "heads"),
          *others = case_new(suite, "others");
    tcase_add_loop_test(requests, a_request_started_before_a_step_finishes_after_it, 0,
                        COUNT(steps_s));
    tcase_add_loop_test(heads, an_unfinished_head_times_out_across_a_step, 0, COUNT(steps_s));
    tcase_add_loop_test(others, a_held_post_is_answered_after_a_step, 0, COUNT(steps_s));
    tcase_add_loop_test(others, a_key_expires_by_the_clock_and_is_valid_again_after_a_step_back, 0,
                        COUNT(steps_s));
    tcase_add_test(others, a_visitor_token_expires_after_an_hour_and_the_leeway);
    tcase_add_loop_test(others, a_key_revoked_after_a_step_is_refused_within_a_second, 0,
                        COUNT(steps_s));
    tcase_add_loop_test(others, a_step_gives_at_most_one_window_and_locks_nobody_out, 0,
                        COUNT(steps_s));
    tcase_add_test(requests, a_store_written_through_all_steps_is_valid);
    tcase_add_test(heads, a_store_written_through_all_steps_is_valid);
    tcase_add_test(others, a_store_written_through_all_steps_is_valid);
    TCase *alone = harness_case(suite, "a server of its own");
    tcase_add_test(alone, a_server_that_starts_in_1970_answers);
    return harness_main_at_once(suite);
}
