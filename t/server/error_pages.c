/* Errors as pages for browsers and as JSON for programs, with the same status and headers. */
#include "t/kit/harness.h"

#include <strings.h>

#define BROWSER "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"

static struct server *server;
static struct server internal;

static void setup(void)
{
    server = server_shared(&(struct server_options){
        .yaml =
            "internal_listen: 127.0.0.1:0\n"
            "limits: { limiters: { own: { windows: [ { limit: 1, seconds: 2678400, key: ip } ], "
            "routes: [ '* /limited*' ] } } }\n"});
    internal = server_internal(server);
}

static void teardown(void)
{
    server_shared_stop(server);
}

static struct response *ask(const char *method, const char *path, const char *accept)
{
    return http(server, .method = method, .path = path, .key = "", .headers = {accept});
}

static void expect_header(const struct response *r, const char *name, const char *want)
{
    ck_assert_msg(header_times(r, name) == 1 && !strcmp(header(r, name), want), "%s is not %s\n%s",
                  name, want, r->head);
}

/* One of its Vary headers is ${name}. */
static bool varies(const struct response *r, const char *name)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (strcasecmp(r->headers[i].name, "Vary") == 0 && strcmp(r->headers[i].value, name) == 0)
            return true;
    return false;
}

static void expect_page(const struct response *r, int status, const char *title)
{
    static const char *const parts[] = {"<!DOCTYPE html>",   "<html lang=\"en\">", "<title>",
                                        "name=\"viewport\"", "<main id=\"main\">", "</html>\n"};
    expect_status(r, status);
    expect_header(r, "Content-Type", "text/html; charset=utf-8");
    expect_header(r, "Content-Security-Policy",
                  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
                  "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
                  "base-uri 'none'");
    expect_header(r, "Referrer-Policy", "same-origin");
    expect_header(r, "Cross-Origin-Opener-Policy", "same-origin");
    expect_header(r, "X-Content-Type-Options", "nosniff");
    expect_header(r, "Cache-Control", "no-store");
    expect(r, varies(r, "accept") && varies(r, "accept-language"));
    for (size_t i = 0; i < COUNT(parts); i++)
        ck_assert_msg(strstr(r->body, parts[i]) != NULL, "%s is missing\n%s", parts[i], r->body);
    ck_assert_msg(strstr(r->body, text("<h1>%s</h1>", title)) != NULL, "%s", r->body);
}

/* ---- who gets a page ---- */

static const struct {
    const char *method, *path;
    int status;
    const char *title, *code;
} people[] = {
    {"GET", "/nowhere", 404, "Page not found", "not_found"},
    {"GET", "/nowhere?a=%zz", 404, "Page not found", "not_found"},
    {"GET", "/docs/", 404, "Page not found", "not_found"},
    {"GET", "/reports", 404, "Page not found", "not_found"},
    {"GET", "/apis", 404, "Page not found", "not_found"},
    {"GET", "/%zz", 400, "Something went wrong", "bad_request"},
    {"POST", "/docs", 405, "Something went wrong", "method_not_allowed"},
    {"DELETE", "/", 405, "Something went wrong", "method_not_allowed"},
    {"GET", "/assets/0000000000000000/assay.css", 404, "Page not found", "not_found"},
};

START_TEST(a_browser_gets_a_page_and_a_program_json)
{
    static const char *const programs[] = {NULL, "Accept: */*", "Accept: application/json",
                                           "Accept: text/html, application/json"};
    expect_page(ask(people[_i].method, people[_i].path, BROWSER), people[_i].status,
                people[_i].title);
    for (size_t i = 0; i < COUNT(programs); i++) {
        struct response *r = ask(people[_i].method, people[_i].path, programs[i]);
        expect_error(r, people[_i].status, people[_i].code);
        expect_header(r, "Content-Type", "application/json");
        expect_header(r, "Vary", "accept");
        expect(r, header(r, "Content-Security-Policy") == NULL);
    }
}
END_TEST

/* German pages say so of a message that has no translation. */
START_TEST(an_english_message_is_marked_on_pages_of_other_languages)
{
    struct response *r =
        http(server, .path = "/%zz", .key = "", .headers = {BROWSER, "Accept-Language: de"});
    expect(r, strstr(r->body, "<html lang=\"de\">") != NULL);
    expect(r, strstr(r->body, "<p lang=\"en\">The path is malformed.") != NULL);
    r = http(server, .path = "/nowhere", .key = "", .headers = {BROWSER, "Accept-Language: de"});
    expect(r, strstr(r->body, "<p lang=\"de\">Prüfen Sie") != NULL);
    expect(r, strstr(ask("GET", "/%zz", BROWSER)->body, "<p lang=\"en\">The path is malformed.") !=
                  NULL);
}
END_TEST

static const struct {
    const char *method, *path;
    int status;
    const char *code;
} programs[] = {
    {"GET", "/api/v1/nowhere", 404, "not_found"},
    {"GET", "/api/", 404, "not_found"},
    {"GET", "/api/v1/reports", 401, "unauthorized"},
    {"GET", "/api/v1/reports/7", 401, "unauthorized"},
    {"PATCH", "/api/v1/reports", 405, "method_not_allowed"},
    {"GET", "/api/v1/%zz", 400, "bad_request"},
    {"GET", "/v1/wp/nowhere", 404, "not_found"},
    {"GET", "/v1/wp/status", 401, "unauthorized"},
    {"POST", "/healthz", 405, "method_not_allowed"},
};

START_TEST(the_api_and_routes_of_operators_answer_json_to_all)
{
    struct response *r = ask(programs[_i].method, programs[_i].path, BROWSER);
    expect_error(r, programs[_i].status, programs[_i].code);
    expect_header(r, "Content-Type", "application/json");
    expect(r, header(r, "Vary") == NULL && header(r, "Content-Security-Policy") == NULL);
}
END_TEST

START_TEST(the_internal_listener_answers_json_to_all)
{
    struct response *r = http(&internal, .path = "/nowhere", .key = "", .headers = {BROWSER});
    expect_error(r, 404, "not_found");
    expect(r, header(r, "Vary") == NULL);
}
END_TEST

/* ---- the page ---- */

static bool is_of_page(const char *name)
{
    static const char *const names[] = {"Content-Type",
                                        "Content-Length",
                                        "Date",
                                        "Content-Security-Policy",
                                        "Referrer-Policy",
                                        "Cross-Origin-Opener-Policy",
                                        "Cache-Control",
                                        "X-Request-Id",
                                        "Vary",
                                        "Content-Language"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcasecmp(names[i], name) == 0)
            return true;
    return false;
}

static void expect_headers_of(const struct response *a, const struct response *b)
{
    for (size_t i = 0; i < a->header_count; i++)
        if (!is_of_page(a->headers[i].name))
            expect_header(b, a->headers[i].name, a->headers[i].value);
}

START_TEST(a_page_has_the_headers_of_the_json)
{
    struct response *json = ask("POST", "/docs", NULL), *page = ask("POST", "/docs", BROWSER);
    expect_headers_of(json, page);
    expect_headers_of(page, json);
    expect(page, header(page, "X-Request-Id") != NULL);
    expect_header(page, "Allow", "GET, HEAD, OPTIONS");
    page = http(server, .path = "/nowhere", .key = "",
                .headers = {BROWSER, "X-Request-Id: from-a-test"});
    expect_header(page, "X-Request-Id", "from-a-test");
}
END_TEST

START_TEST(head_has_the_headers_of_the_page)
{
    struct response *get = ask("GET", "/nowhere", BROWSER),
                    *head = ask("HEAD", "/nowhere", BROWSER);
    expect_status(head, 404);
    expect_header(head, "Content-Type", "text/html; charset=utf-8");
    expect_header(head, "Content-Length", text("%zu", get->body_size));
    ck_assert_uint_eq(head->body_size, 0);
}
END_TEST

START_TEST(a_page_loads_its_stylesheet_wherever_it_is)
{
    static const char *const paths[] = {"/nowhere", "/a/b/c/d"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct response *r = ask("GET", paths[i], BROWSER);
        const char *at = strstr(r->body, "<link rel=\"stylesheet\" href=\"");
        expect(r, at != NULL);
        at += strlen("<link rel=\"stylesheet\" href=\"");
        expect_status(ask("GET", text("%.*s", (int)strcspn(at, "\""), at), NULL), 200);
    }
}
END_TEST

/* A request for an unknown path is charged when its 404 is sent. */
START_TEST(a_refused_request_for_an_unknown_path_is_429_as_a_page_too)
{
    struct response *r = ask("GET", "/limited/a", BROWSER);
    expect_page(r, 404, "Page not found");
    ck_assert_int_eq(header_number(r, "X-RateLimit-Remaining"), 0);
    r = ask("GET", "/limited/b", BROWSER);
    expect_page(r, 429, "Too many requests");
    ck_assert_int_eq(header_number(r, "X-RateLimit-Limit"), 1);
    long wait = header_number(r, "Retry-After");
    expect(r, wait > 0 && strstr(r->body, text("%ld", wait)) != NULL);
    r = ask("GET", "/limited/c", NULL);
    expect_error(r, 429, "rate_limited");
    expect_header(r, "Content-Type", "application/json");
    expect(r, header_number(r, "Retry-After") > 0);
}
END_TEST

/* Two requests for what is not there differ in nothing that a page could leak. */
/* One of the two addresses has the end of the message within a character. */
START_TEST(a_long_message_is_cut_between_characters)
{
    char path[2048] = "/reports/1?a";
    size_t n = strlen(path) - (size_t)_i;
    for (int i = 0; i < 250; i++)
        n += (size_t)sprintf(path + n, "%%D7%%A9");
    struct response *r =
        http(server, .path = path, .key = "", .headers = {BROWSER, "Prefer: handling=strict"});
    expect_page(r, 422, "Something went wrong");
    ck_assert_msg(strstr(r->body, "\xD7\xA9<") != NULL, "%s", r->body);
}
END_TEST

START_TEST(a_page_says_nothing_of_the_address)
{
    struct response *r = http(server, .path = "/nowhere%3Cscript%3Ealert(1)%3C/script%3E",
                              .key = "", .headers = {BROWSER, "X-Request-Id: a-request"});
    struct response *other = http(server, .path = "/elsewhere", .key = "",
                                  .headers = {BROWSER, "X-Request-Id: a-request"});
    expect_status(r, 404);
    ck_assert_str_eq(r->body, other->body);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("error_pages");
    TCase *tcase = harness_case(suite, "error_pages");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_browser_gets_a_page_and_a_program_json, 0, COUNT(people));
    tcase_add_loop_test(tcase, the_api_and_routes_of_operators_answer_json_to_all, 0,
                        COUNT(programs));
    tcase_add_test(tcase, the_internal_listener_answers_json_to_all);
    tcase_add_test(tcase, a_page_has_the_headers_of_the_json);
    tcase_add_test(tcase, head_has_the_headers_of_the_page);
    tcase_add_test(tcase, a_page_loads_its_stylesheet_wherever_it_is);
    tcase_add_test(tcase, a_refused_request_for_an_unknown_path_is_429_as_a_page_too);
    tcase_add_test(tcase, an_english_message_is_marked_on_pages_of_other_languages);
    tcase_add_loop_test(tcase, a_long_message_is_cut_between_characters, 0, 2);
    tcase_add_test(tcase, a_page_says_nothing_of_the_address);
    return harness_main(suite);
}
