/*
 * POST /reports/{id}/password: the password of a report, the limits of attempts, and what strangers
 * may not learn. Cookies are in report_cookies.c.
 */
#include "core/auth/signing_keys.h"
#include "core/web/report_cookie.h"
#include "t/kit/report_password.h"
#include "t/kit/tls.h"

#include <strings.h>
#include <time.h>

#define TRUSTED "trusted_proxies: [127.0.0.1]\n"

/* ---- right and wrong ---- */

START_TEST(the_right_password_opens_the_page)
{
    static const char *const accepts[] = {BROWSER, NULL, "Accept: application/json"};
    int64_t id = report_new_with("2", "Sésame & ouvre-toi +1");
    struct response *r = attempt(id, "Sésame & ouvre-toi +1", accepts[_i]);
    expect_status(r, 303);
    ck_assert_str_eq(header(r, "Location"), page_path(id));
    ck_assert_str_eq(header(r, "Cache-Control"), "no-store");
    ck_assert_uint_eq(r->body_size, 0);
    expect(r, is_form(get_page(id, NULL)));
    expect(r, is_open(get_page(id, cookie_of(r))));
    expect(r, is_open(get_page(id, text("%s; other=1", cookie_of(r)))));
}
END_TEST

START_TEST(a_json_body_is_accepted_too)
{
    int64_t id = report_new_with("2", "secret");
    struct response *r =
        http(server, .method = "POST", .path = text("%s/password", page_path(id)), .key = "",
             .body = "{\"password\":\"secret\"}", .headers = {"Content-Type: application/json"});
    expect(r, is_open(get_page(id, cookie_of(r))));
}
END_TEST

START_TEST(the_cookie_has_its_attributes)
{
    int64_t id = report_new_with("2", "secret");
    struct response *r = attempt(id, "secret", BROWSER);
    char name[32] = "", value[256] = "", rest[256] = "";
    ck_assert_uint_eq(header_times(r, "Set-Cookie"), 1);
    ck_assert_int_eq(
        sscanf(header(r, "Set-Cookie"), "%31[^=]=%255[^;]; %255[^\n]", name, value, rest), 3);
    ck_assert_str_eq(name, "assay_report");
    ck_assert_uint_eq(strspn(value, "0123456789abcdef."), strlen(value));
    ck_assert_str_eq(rest, text("Path=%s; Max-Age=43200; HttpOnly; SameSite=Lax", page_path(id)));
    long expires = atol(strchr(value, '.') + 1), now = (long)time(NULL);
    expect(r, expires > now + 43200 - 60 && expires <= now + 43200);
}
END_TEST

static const struct {
    const char *query, *form, *lang;
} languages[] = {
    {"?lang=de", "password=secret", "?lang=de"},
    {"?lang=en&x=1", "password=secret", "?lang=en"},
    {"?x=1&lang=de", "password=secret", "?lang=de"},
    {"?lang=de", "password=secret&lang=en", "?lang=de"},
    {"?lang=xx", "password=secret", ""},
    {"?lang=", "password=secret", ""},
    {"?lang=de%0d%0aX:1", "password=secret", ""},
    {"?LANG=de", "password=secret", ""},
};

START_TEST(the_language_of_the_page_is_kept)
{
    int64_t id = report_new_with("2", "secret");
    struct response *r = post_form(text("%s/password%s", page_path(id), languages[_i].query),
                                   languages[_i].form, BROWSER);
    expect_status(r, 303);
    ck_assert_str_eq(header(r, "Location"), text("%s%s", page_path(id), languages[_i].lang));
}
END_TEST

/* Columns: the form, the message of JSON, whether a browser gets the form again. */
static const struct {
    const char *form, *message;
    bool again;
} wrongs[] = {
    {"password=Secret", "is wrong", true},    {"password=secret+", "is wrong", true},
    {"password=secre", "is wrong", true},     {"password=%3Cscript%3E", "is wrong", true},
    {"password=", "is required", true},       {"", "is required", true},
    {"passwort=secret", "is required", true}, {"password=secret&password=secret", NULL, false},
};

START_TEST(a_wrong_password_is_422)
{
    int64_t id = report_new_with("2", "secret");
    char *path = text("%s/password", page_path(id));
    struct response *r = post_form(path, wrongs[_i].form, NULL);
    expect_error(r, 422, "validation_failed");
    if (wrongs[_i].message != NULL)
        expect_str(r, "error.errors.password.0", wrongs[_i].message);
    expect(r, header(r, "Set-Cookie") == NULL);
    r = post_form(path, wrongs[_i].form, BROWSER);
    expect_status(r, 422);
    ck_assert_str_eq(header(r, "Content-Type"), "text/html; charset=utf-8");
    expect(r, header(r, "Content-Security-Policy") != NULL);
    expect(r, header(r, "Set-Cookie") == NULL);
    expect(r, (strstr(r->body, "type=\"password\"") != NULL) == wrongs[_i].again);
    expect(r, !wrongs[_i].again || strstr(r->body, "role=\"alert\"") != NULL);
    expect(r, strstr(r->body, "<script>") == NULL);
}
END_TEST

START_TEST(a_password_has_at_most_255_bytes)
{
    char *longest = text("%0255d", 7), *longer = text("%0256d", 7);
    int64_t id = report_new_with("2", longest);
    expect_status(attempt(id, longest, BROWSER), 303);
    struct response *r = attempt(id, longer, NULL);
    expect_error(r, 422, "validation_failed");
    expect(r, len_at(r, "error.errors.password") == 1);
    r = attempt(id, longer, BROWSER);
    expect_status(r, 422);
    expect(r, strstr(r->body, "password must ") != NULL);
    expect_status(attempt(id, text("%0100000d", 7), BROWSER), 413);
}
END_TEST

START_TEST(a_malformed_form_is_400)
{
    static const char *const forms[] = {"password=%zz", "password=%ff", "password=a%00b"};
    char *path = text("%s/password", page_path(report_new_with("2", "secret")));
    struct response *r = post_form(path, forms[_i], NULL);
    expect_error(r, 400, "bad_request");
    expect_status(post_form(path, forms[_i], BROWSER), 400);
}
END_TEST

START_TEST(names_of_fields_are_text_on_the_page)
{
    struct response *r =
        http(server, .method = "POST",
             .path = text("%s/password", page_path(report_new_with("2", "secret"))), .key = "",
             .body = "password=secret&%3Cscript%3Ealert(1)%3C/script%3E=1",
             .headers = {BROWSER, "Prefer: handling=strict"});
    expect_status(r, 422);
    expect(r, strstr(r->body, "<script>alert") == NULL);
    expect(r, header(r, "Set-Cookie") == NULL);
}
END_TEST

START_TEST(only_post_is_accepted)
{
    struct response *r =
        http(server, .path = text("%s/password", page_path(1)), .key = "", .headers = {BROWSER});
    expect_status(r, 405);
    ck_assert_str_eq(header(r, "Allow"), "POST, OPTIONS");
}
END_TEST

/* ---- what strangers may not learn ---- */

static bool is_volatile(const char *name)
{
    /* the count is that of each report, the reset that of the clock */
    return strcasecmp(name, "Date") == 0 || strcasecmp(name, "X-RateLimit-Remaining") == 0 ||
           strcasecmp(name, "X-RateLimit-Reset") == 0;
}

static void expect_same(const struct response *a, const struct response *b)
{
    ck_assert_int_eq(a->status, b->status);
    ck_assert_uint_eq(a->body_size, b->body_size);
    ck_assert_mem_eq(a->body, b->body, a->body_size);
    ck_assert_uint_eq(a->header_count, b->header_count);
    for (size_t i = 0; i < a->header_count; i++) {
        ck_assert_str_eq(a->headers[i].name, b->headers[i].name);
        if (!is_volatile(a->headers[i].name))
            ck_assert_str_eq(a->headers[i].value, b->headers[i].value);
    }
}

static int64_t project_deleted(void)
{
    struct response *r =
        http(server, .method = "POST", .path = "/api/v1/reports",
             .body = form("url", "http://gone.test/", "privacy", "2", "password", "secret", NULL),
             .headers = {"Prefer: respond-async"});
    expect_status(r, 202);
    expect_status(http_delete(server, "/api/v1/projects/gone.test"), 200);
    return int_at(r, "data.id");
}

START_TEST(reports_without_a_password_answer_as_unknown_ones)
{
    static const char *const accepts[] = {BROWSER, NULL};
    static const char *const forms[] = {"password=secret", "password=", "password=x&a=1"};
    static const char *const never[] = {"/reports/0", "/reports/9223372036854775808", "/reports/x",
                                        "/reports/1e3", "/reports/-1"};
    int64_t hidden[] = {report_new_with("1", NULL), report_new_with("0", NULL), project_deleted()};
    change(hidden[0], "privacy=2&password=secret");
    change(hidden[0], "privacy=1");
    for (size_t a = 0; a < COUNT(accepts); a++)
        for (size_t f = 0; f < COUNT(forms); f++) {
            struct response *unknown =
                post_form("/reports/987654321/password", forms[f], accepts[a]);
            expect_status(unknown, 404);
            for (size_t i = 0; i < COUNT(hidden); i++)
                expect_same(unknown, post_form(text("%s/password", page_path(hidden[i])), forms[f],
                                               accepts[a]));
            for (size_t i = 0; i < COUNT(never); i++)
                ck_assert_str_eq(
                    unknown->body,
                    post_form(text("%s/password", never[i]), forms[f], accepts[a])->body);
        }
}
END_TEST

START_TEST(a_private_page_is_that_of_an_unknown_report)
{
    struct response *unknown = get_page(987654321, NULL);
    expect_status(unknown, 404);
    expect_same(unknown, get_page(report_new_with("1", NULL), NULL));
    expect_same(unknown, get_page(project_deleted(), NULL));
}
END_TEST

/* ---- limits ---- */

static bool early_in_a_minute(void *arg)
{
    (void)arg;
    return time(NULL) % 60 < 40;
}

static struct response *attempt_from(int64_t id, const char *password, int client,
                                     const char *accept)
{
    return http(server, .method = "POST", .path = text("%s/password", page_path(id)), .key = "",
                .body = form("password", password, NULL),
                .headers = {text("X-Forwarded-For: 192.0.2.%d", client), accept});
}

static void expect_limit(const struct response *r, long limit, long remaining)
{
    long reset = header_number(r, "X-RateLimit-Reset"), now = (long)time(NULL);
    ck_assert_msg(header_number(r, "X-RateLimit-Limit") == limit &&
                      header_number(r, "X-RateLimit-Remaining") == remaining,
                  "not %ld of %ld\n%s", remaining, limit, response_text(r));
    expect(r, reset % 60 == 0 && reset >= now && reset <= now + 60);
    expect(r, (header(r, "Retry-After") != NULL) == (r->status == 429));
}

static void expect_refused(struct response *page, struct response *json, long limit)
{
    expect_error(json, 429, "rate_limited");
    expect_limit(json, limit, 0);
    expect_status(page, 429);
    expect_limit(page, limit, 0);
    ck_assert_str_eq(header(page, "Content-Type"), "text/html; charset=utf-8");
    ck_assert_str_eq(header(page, "Cache-Control"), "no-store");
    expect(page, header(page, "Content-Security-Policy") != NULL);
    expect(page, header(page, "Set-Cookie") == NULL && header(json, "Set-Cookie") == NULL);
    long wait = header_number(page, "Retry-After");
    expect(page, wait >= 1 && wait <= 60);
    expect(page, strstr(page->body, text("%ld", wait)) != NULL);
}

START_TEST(an_address_has_ten_attempts_a_minute)
{
    server_start_with(server, TRUSTED);
    int64_t id = report_new_with("2", "secret");
    ck_assert(wait_until(early_in_a_minute, NULL, 30000));
    for (int i = 0; i < 10; i++) {
        struct response *r = attempt_from(i < 5 ? id : 1000 + i, "wrong", 1, BROWSER);
        expect_status(r, i < 5 ? 422 : 404);
        expect_limit(r, 10, 9 - i);
    }
    /* also the right password, and for every report */
    expect_refused(attempt_from(id, "secret", 1, BROWSER), attempt_from(id, "secret", 1, NULL), 10);
    expect_refused(attempt_from(77, "secret", 1, BROWSER), attempt_from(77, "secret", 1, NULL), 10);
    struct response *r = attempt_from(id, "secret", 2, BROWSER);
    expect_status(r, 303);
    expect_limit(r, 10, 9);
    expect(r, is_form(get_page(id, NULL))); /* reading is not limited */
    server_stop(server);
}
END_TEST

/* The limit says nothing about which reports exist. */
START_TEST(a_report_has_thirty_attempts_a_minute)
{
    server_start_with(server, TRUSTED);
    int64_t protected = report_new_with("2", "secret"), private = report_new_with("1", NULL);
    int64_t ids[] = {protected, private, 987654321};
    int64_t id = ids[_i];
    ck_assert(wait_until(early_in_a_minute, NULL, 30000));
    for (int i = 0; i < 30; i++) {
        struct response *r = attempt_from(id, "", 1 + i / 6, NULL); /* which is not hashed */
        expect_status(r, _i == 0 ? 422 : 404);
        long of_address = 9 - i % 6, of_report = 29 - i;
        /* the window with fewer attempts left */
        expect_limit(r, of_report < of_address ? 30 : 10,
                     of_report < of_address ? of_report : of_address);
    }
    expect_refused(attempt_from(id, "secret", 50, BROWSER), attempt_from(id, "secret", 51, NULL),
                   30);
    expect_status(attempt_from(ids[(_i + 1) % 3], "wrong", 50, NULL), _i == 2 ? 422 : 404);
    server_stop(server);
}
END_TEST

/* ---- cross-site requests ---- */

static const struct {
    const char *first, *second;
    int status;
} sources[] = {
    {"Sec-Fetch-Site: same-origin", NULL, 303},
    {"Sec-Fetch-Site: none", NULL, 303},
    {"Sec-Fetch-Site: cross-site", NULL, 403},
    {"Sec-Fetch-Site: same-site", NULL, 403},
    {"Sec-Fetch-Site: cross-site", "ours", 403},
    {NULL, "ours", 303},
    {NULL, "Origin: https://evil.test", 403},
    {NULL, "Origin: null", 403},
    {NULL, "Origin: http://127.0.0.1", 403}, /* another port */
    {NULL, NULL, 303},
};

START_TEST(a_page_of_another_site_cannot_send_the_form)
{
    int64_t id = report_new_with("2", "secret");
    const char *origin = sources[_i].second;
    if (origin != NULL && strcmp(origin, "ours") == 0)
        origin = text("Origin: %s", server->url);
    for (int page = 0; page < 2; page++) {
        struct response *r =
            http(server, .method = "POST", .path = text("%s/password", page_path(id)), .key = "",
                 .body = "password=secret",
                 .headers = {page ? BROWSER : "Accept: */*",
                             sources[_i].first != NULL ? sources[_i].first : "X-None: 1", origin});
        expect_status(r, sources[_i].status);
        expect(r, (header(r, "Set-Cookie") == NULL) == (r->status == 403));
        expect(r, header(r, "X-RateLimit-Limit") != NULL);
        if (r->status == 403 && !page)
            expect_error(r, 403, "origin_forbidden");
    }
}
END_TEST

/* ---- the password thread ---- */

/* Attempts at once on one worker: more than its queue has. */
enum { AT_ONCE = 48 };

static void send_attempt(struct raw *raw, long report, const char *address)
{
    raw_text(raw,
             "POST /reports/%ld/password HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n"
             "X-Forwarded-For: %s\r\n"
             "Content-Type: application/x-www-form-urlencoded\r\n\r\npassword=x",
             report, address);
}

/* Addresses of as many networks. */
static char *network(int i)
{
    return i % 2 == 0 ? text("198.51.%d.1", i) : text("2001:db8:%x::1", i);
}

/* So a guess costs the same for reports that do not exist. */
START_TEST(a_full_queue_is_503_for_every_report)
{
    struct raw *raws[AT_ONCE];
    int refused = 0, checked = 0;
    server_start_with(server, TRUSTED UNLIMITED);
    int64_t protected = report_new_with("2", "secret"), private = report_new_with("1", NULL);
    long ids[] = {(long)protected, (long)private, 987654321};
    for (int i = 0; i < AT_ONCE; i++)
        raws[i] = raw_open(server);
    for (int i = 0; i < AT_ONCE; i++)
        send_attempt(raws[i], ids[_i], network(i));
    for (int i = 0; i < AT_ONCE; i++) {
        struct response *r = raw_response(raws[i], false, 30000);
        if (r->status == 503) {
            refused++;
            expect_error(r, 503, "unavailable");
            ck_assert_str_eq(header(r, "Retry-After"), "1");
        } else {
            checked++;
            expect_status(r, _i == 0 ? 422 : 404);
        }
        raw_close(raws[i]);
    }
    ck_assert_int_gt(refused, 0);
    ck_assert_int_ge(checked, 16);
    server_stop(server);
}
END_TEST

/* Columns: addresses of one network; one of another. */
static const struct {
    const char *format, *other;
} networks[] = {{"2001:db8:1:%x::1", "2001:db8:2::1"},
                {"203.0.113.%d", "203.0.112.1"},
                {"::%x", "0.0.0.1"},
                {"::ffff:203.0.113.%d", "2001:db8::1"}};

START_TEST(a_network_fills_four_places_of_the_queue)
{
    struct raw *raws[AT_ONCE], *other;
    const char *first = text(networks[_i].format, 1);
    int refused = 0;
    server_start_with(server, TRUSTED UNLIMITED);
    long id = (long)report_new_with("2", "secret");
    for (int i = 0; i < AT_ONCE; i++)
        raws[i] = raw_open(server);
    other = raw_open(server);
    for (int i = 0; i < AT_ONCE; i++)
        send_attempt(raws[i], id, text(networks[_i].format, i + 1));
    for (int i = AT_ONCE - 1; i >= 0 && refused == 0; i--) /* the queue has what it takes */
        refused += raw_response(raws[i], false, 30000)->status == 503;
    ck_assert_int_eq(refused, 1);
    send_attempt(other, id, networks[_i].other);
    expect_status(raw_response(other, false, 30000), 422);
    raw_close(other);
    for (int i = 0; i < AT_ONCE; i++)
        raw_close(raws[i]);
    /* every place is free again */
    for (int i = 0; i < AT_ONCE; i++)
        expect_status(attempt(id, "x", text("X-Forwarded-For: %s", first)), 422);
    server_stop(server);
}
END_TEST

START_TEST(a_password_can_be_set_while_strangers_guess)
{
    struct raw *raws[AT_ONCE];
    int left = AT_ONCE, status = 0;
    server_start_with(server, TRUSTED UNLIMITED);
    int64_t id = report_new_with("2", "secret");
    for (int i = 0; i < AT_ONCE; i++)
        raws[i] = raw_open(server);
    for (int i = 0; i < AT_ONCE; i++)
        send_attempt(raws[i], (long)id, network(i));
    while (left > 0 && status != 503) { /* a full queue is answered at once */
        status = raw_response(raws[--left], false, 30000)->status;
        raw_close(raws[left]);
    }
    change(id, "password=another");
    ck_assert_int_eq(status, 503);
    while (left > 0)
        raw_close(raws[--left]);
    server_stop(server);
}
END_TEST

/* The client leaves while its password is checked. */
START_TEST(a_client_that_leaves_harms_nothing)
{
    server_start_with(server, TRUSTED UNLIMITED);
    int64_t id = report_new_with("2", "secret");
    for (int i = 0; i < 30; i++) {
        struct raw *raw = raw_open(server);
        send_attempt(raw, (long)id, network(i));
        raw_close(raw);
    }
    struct response *r;
    do /* until their passwords are checked, the queue can be full */
        r = attempt(id, "secret", BROWSER);
    while (r->status == 503);
    ck_assert(is_open(get_page(id, cookie_of(r))));
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(2);
    Suite *suite = suite_create("report_password");
    TCase *shared = harness_case(suite, "one server"), *own = harness_case(suite, "a server each");
    tcase_add_unchecked_fixture(shared, setup, teardown);
    tcase_add_loop_test(shared, the_right_password_opens_the_page, 0, 3);
    tcase_add_test(shared, a_json_body_is_accepted_too);
    tcase_add_test(shared, the_cookie_has_its_attributes);
    tcase_add_loop_test(shared, the_language_of_the_page_is_kept, 0, COUNT(languages));
    tcase_add_loop_test(shared, a_wrong_password_is_422, 0, COUNT(wrongs));
    tcase_add_test(shared, a_password_has_at_most_255_bytes);
    tcase_add_loop_test(shared, a_malformed_form_is_400, 0, 3);
    tcase_add_test(shared, names_of_fields_are_text_on_the_page);
    tcase_add_test(shared, only_post_is_accepted);
    tcase_add_test(shared, reports_without_a_password_answer_as_unknown_ones);
    tcase_add_test(shared, a_private_page_is_that_of_an_unknown_report);
    tcase_add_loop_test(shared, a_page_of_another_site_cannot_send_the_form, 0, COUNT(sources));
    tcase_add_checked_fixture(own, setup_own, teardown_own);
    tcase_add_test(own, an_address_has_ten_attempts_a_minute);
    tcase_add_loop_test(own, a_report_has_thirty_attempts_a_minute, 0, 3);
    tcase_add_loop_test(own, a_full_queue_is_503_for_every_report, 0, 3);
    tcase_add_loop_test(own, a_network_fills_four_places_of_the_queue, 0, (int)COUNT(networks));
    tcase_add_test(own, a_password_can_be_set_while_strangers_guess);
    tcase_add_test(own, a_client_that_leaves_harms_nothing);
    return harness_main(suite);
}
