/* GET /reports/{id} and its badge: who sees them, their headers, copies and errors. */
#include "t/kit/report_pages.h"

#include <strings.h>
#include <zlib.h>

#define SAME_ID "X-Request-Id: the-same"

/* ---- who sees it ---- */

static bool may_differ(const char *name)
{
    return strcasecmp(name, "Date") == 0;
}

/* The same status, headers and bytes. */
static void expect_same(const struct response *a, const struct response *b)
{
    ck_assert_int_eq(a->status, b->status);
    ck_assert_uint_eq(a->header_count, b->header_count);
    for (size_t i = 0; i < a->header_count; i++) {
        ck_assert_str_eq(a->headers[i].name, b->headers[i].name);
        if (!may_differ(a->headers[i].name))
            ck_assert_str_eq(a->headers[i].value, b->headers[i].value);
    }
    ck_assert_msg(a->body_size == b->body_size && memcmp(a->body, b->body, a->body_size) == 0,
                  "%s\n%s", response_text(a), response_text(b));
}

static const char *const unknown_ids[] = {"0",
                                          "99999999999999999999",
                                          "1x",
                                          "01",
                                          "-1",
                                          "+1",
                                          "1.0",
                                          "%31x",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "x",
                                          "1%20"};

START_TEST(a_private_page_is_as_one_that_never_was)
{
    int64_t id = report_of("/private", TITLED ">");
    change(id, "privacy=1");
    static const char *const rests[] = {"", "?lang=de", "?against=1", "/badge.svg"};
    static const char *const accepts[] = {BROWSER, PROGRAM};
    for (size_t i = 0; i < COUNT(rests) * COUNT(accepts); i++) {
        const char *rest = rests[i / 2], *accept = accepts[i % 2];
        struct response *mine = ask(page_path(id, rest), accept, SAME_ID);
        expect_status(mine, 404);
        for (size_t j = 0; j < COUNT(unknown_ids); j++)
            expect_same(mine, ask(text("/reports/%s%s", unknown_ids[j], rest), accept, SAME_ID));
        struct response *key =
            http(server, .path = page_path(id, rest), .headers = {accept, SAME_ID});
        expect_same(mine, key);
    }
}
END_TEST

START_TEST(a_private_page_answers_conditions_as_one_that_never_was)
{
    int64_t id = report_of("/condition", TITLED ">");
    char *etag = text("If-None-Match: %s", header(page(id, ""), "ETag"));
    change(id, "privacy=1");
    expect_same(ask(page_path(id, ""), etag, SAME_ID), ask("/reports/0", etag, SAME_ID));
    expect_same(ask(page_path(id, ""), "If-None-Match: *", SAME_ID),
                ask("/reports/0", "If-None-Match: *", SAME_ID));
}
END_TEST

START_TEST(a_page_ends_with_its_project_and_its_workspace)
{
    struct server *s = server;
    assay_ok(s, "workspace", "create", "ends", NULL);
    char *key = key_new(s, "ends", NULL);
    char *form_of = form("url", origin_url(origin, "/good"), NULL);
    int64_t ids[2];
    for (size_t i = 0; i < COUNT(ids); i++) {
        struct response *r = http(s, .method = "POST", .path = "/api/v1/reports", .key = key,
                                  .body = form_of, .headers = {"Prefer: wait=15"});
        ids[i] = int_at(r, "data.id");
        page(ids[i], "");
        if (i == 0)
            expect_status(
                http(s, .method = "DELETE", .path = "/api/v1/projects/127.0.0.1", .key = key), 200);
        else
            assay_ok(s, "workspace", "delete", "ends", NULL);
        expect_same(ask(page_path(ids[i], ""), NULL, SAME_ID), ask("/reports/0", NULL, SAME_ID));
        expect_same(ask(page_path(ids[i], "/badge.svg"), NULL, SAME_ID),
                    ask("/reports/0/badge.svg", NULL, SAME_ID));
    }
}
END_TEST

/* ---- headers ---- */

#define POLICY                                                                                     \
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "              \
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

START_TEST(a_page_has_the_headers_of_pages)
{
    static const char *const never[] = {"Set-Cookie", "X-RateLimit-Limit", "RateLimit",
                                        "Access-Control-Allow-Origin", "Retry-After"};
    struct response *r = page(good, "");
    expect_header(r, "Content-Type", "text/html; charset=utf-8");
    expect_header(r, "Content-Language", "en");
    expect_header(r, "Content-Security-Policy", POLICY);
    expect_header(r, "Referrer-Policy", "same-origin");
    expect_header(r, "Cross-Origin-Opener-Policy", "same-origin");
    expect_header(r, "X-Content-Type-Options", "nosniff");
    expect_header(r, "Cache-Control", "no-cache");
    expect(r, varies(r, "accept-language, cookie") && varies(r, "accept-encoding"));
    expect_header(r, "X-Robots-Tag", "noindex");
    for (size_t i = 0; i < COUNT(never); i++)
        expect(r, header(r, never[i]) == NULL);
    struct response *head = http(server, .method = "HEAD", .path = page_path(good, ""), .key = "");
    expect_status(head, 200);
    ck_assert_uint_eq(head->body_size, 0);
    expect_header(head, "Content-Length", text("%zu", r->body_size));
    expect_header(head, "ETag", header(r, "ETag"));
    expect_header(head, "Content-Security-Policy", POLICY);
}
END_TEST

START_TEST(a_compressed_page_is_equal)
{
    struct response *plain = page(good, ""),
                    *r = ask(page_path(good, ""), BROWSER, "Accept-Encoding: gzip");
    unsigned char *out = malloc(plain->body_size + 1);
    z_stream z = {.next_in = (unsigned char *)r->body,
                  .avail_in = (unsigned)r->body_size,
                  .next_out = out,
                  .avail_out = (unsigned)plain->body_size + 1};
    expect_header(r, "Content-Encoding", "gzip");
    expect(r, varies(r, "accept-language, cookie") && varies(r, "accept-encoding"));
    ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
    ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
    ck_assert_uint_eq(z.total_out, plain->body_size);
    ck_assert_mem_eq(out, plain->body, plain->body_size);
    ck_assert_str_ne(header(r, "ETag"), header(plain, "ETag"));
    expect_status(
        http(server, .path = page_path(good, ""), .key = "",
             .headers = {"Accept-Encoding: gzip", text("If-None-Match: %s", header(r, "ETag"))}),
        304);
    inflateEnd(&z);
    free(out);
}
END_TEST

/* A copy of ${of} is current for ${path}, or not. */
static void expect_current(const char *path, const struct response *of, bool current)
{
    struct response *r = ask(path, BROWSER, text("If-None-Match: %s", header(of, "ETag")));
    expect_status(r, current ? 304 : 200);
    if (current) {
        expect(r, r->body_size == 0);
        expect_header(r, "ETag", header(of, "ETag"));
        expect_header(r, "Cache-Control", "no-cache");
        expect_header(r, "Content-Security-Policy", POLICY);
    }
}

START_TEST(a_copy_is_current_until_something_on_the_page_changes)
{
    int64_t id = report_of("/etag", TITLED ">");
    char *path = page_path(id, ""), *german = page_path(id, "?lang=de");
    struct response *first = page(id, "");
    expect_current(path, first, true);
    expect_current(german, first, false);
    expect_current(german, page(id, "?lang=de"), true);
    struct response *r =
        http(server, .path = path, .key = "",
             .headers = {"Accept-Language: de", text("If-None-Match: %s", header(first, "ETag"))});
    expect_status(r, 200);
    regrade(id);
    expect_current(path, first, false);
    struct response *second = page(id, "");
    regrade(id);
    second = page(id, "");
    expect_current(page_path(id, "?against=1"), second, false);
    expect_current(page_path(id, "?against=1"), page(id, "?against=1"), true);
    expect_current(page_path(id, "?against=2"), page(id, "?against=1"), false);
    change(id, "privacy=1");
    change(id, "privacy=0");
    expect_current(path, second, false);
}
END_TEST

static const struct {
    const char *query;
    int status;
    const char *code;
} wrong_queries[] = {
    {"?against=2", 404, "not_found"},          {"?against=1", 404, "not_found"},
    {"?against=4294967295", 404, "not_found"}, {"?against=0", 422, "validation_failed"},
    {"?against=x", 422, "validation_failed"},  {"?against=4294967296", 422, "validation_failed"},
    {"?lang=fr", 422, "validation_failed"},    {"?lang=", 422, "validation_failed"},
};

START_TEST(a_wrong_query_is_an_error_for_people_and_for_programs)
{
    const char *path = page_path(good, wrong_queries[_i].query);
    struct response *r = ask(path, NULL, NULL);
    expect_status(r, wrong_queries[_i].status);
    expect_header(r, "Content-Type", "text/html; charset=utf-8");
    expect(r, header_times(r, "Content-Security-Policy") == 1);
    expect(r, header_times(r, "Cache-Control") == 1 && header_times(r, "Referrer-Policy") == 1);
    expect_header(r, "Cache-Control", "no-store");
    expect(r, varies(r, "accept") && header(r, "ETag") == NULL);
    r = ask(path, PROGRAM, NULL);
    expect_error(r, wrong_queries[_i].status, wrong_queries[_i].code);
    expect(r, header(r, "Cache-Control") == NULL && header(r, "ETag") == NULL);
}
END_TEST

/* ---- errors ---- */

START_TEST(a_page_cannot_be_changed)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "PATCH"};
    for (size_t i = 0; i < COUNT(methods); i++) {
        struct response *r = http(server, .method = methods[i], .path = page_path(good, ""),
                                  .key = "", .headers = {BROWSER});
        expect_status(r, 405);
        expect_header(r, "Content-Type", "text/html; charset=utf-8");
        expect_header(r, "Allow", "GET, HEAD, OPTIONS");
        expect_error(http(server, .method = methods[i], .path = page_path(good, ""), .key = "",
                          .headers = {PROGRAM}),
                     405, "method_not_allowed");
    }
}
END_TEST

START_TEST(a_page_needs_no_writer)
{
    pid_t writer = server_process(server, "assayd: writer");
    ck_assert_int_eq(kill(writer, SIGSTOP), 0);
    struct response *r = ask(page_path(good, ""), NULL, NULL);
    ck_assert_int_eq(kill(writer, SIGCONT), 0);
    expect_status(r, 200);
}
END_TEST

/* ---- the badge ---- */

START_TEST(a_badge_is_an_image_of_the_score)
{
    struct response *r = ask(page_path(good, "/badge.svg"), "Accept: image/*", NULL),
                    *german = ask(page_path(good, "/badge.svg?lang=de"), "Accept: image/*", NULL);
    int score = (int)int_at(http_get(server, report_path(good)), "data.score");
    expect_status(r, 200);
    expect_header(r, "Content-Type", "image/svg+xml");
    expect_header(r, "Cache-Control", "public, max-age=300");
    expect_header(r, "Content-Security-Policy", "default-src 'none'");
    expect_header(r, "X-Content-Type-Options", "nosniff");
    expect(r, header(r, "ETag") != NULL && header(r, "Set-Cookie") == NULL);
    xmlDoc *doc = xmlReadMemory(r->body, (int)r->body_size, NULL, NULL, XML_PARSE_NONET);
    ck_assert_ptr_nonnull(doc);
    xmlNode *svg = xmlDocGetRootElement(doc);
    ck_assert_str_eq((const char *)svg->ns->href, "http://www.w3.org/2000/svg");
    ck_assert_str_eq(tree_attribute(svg, "aria-label"), text("Assay: %d of 100", score));
    expect(r, tree_has_text(svg, "text", text("%d", score)));
    expect_status(german, 200);
    expect(german, strstr(german->body, text("Assay: %d von 100", score)) != NULL);
    ck_assert_str_ne(header(r, "ETag"), header(german, "ETag"));
    expect_status(http(server, .path = page_path(good, "/badge.svg"), .key = "",
                       .headers = {text("If-None-Match: %s", header(r, "ETag"))}),
                  304);
}
END_TEST

START_TEST(only_a_public_graded_report_has_a_badge)
{
    int64_t id = report_of("/badge", TITLED ">");
    char *path = page_path(id, "/badge.svg");
    expect_status(ask(path, NULL, NULL), 200);
    static const char *const forms[] = {"privacy=1", "privacy=2&password=long-enough"};
    for (size_t i = 0; i < COUNT(forms); i++) {
        change(id, forms[i]);
        expect_same(ask(path, NULL, SAME_ID), ask("/reports/0/badge.svg", NULL, SAME_ID));
    }
    origin_held(origin, "/badge-waits");
    id = report_queued(server, origin_url(origin, "/badge-waits"));
    expect_status(ask(page_path(id, "/badge.svg"), NULL, NULL), 404);
    origin_release(origin, "/badge-waits");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("report_page_access");
    TCase *tcase = harness_case(suite, "report_page_access");
    tcase_add_unchecked_fixture(tcase, report_pages_setup, report_pages_teardown);
    tcase_add_test(tcase, a_private_page_is_as_one_that_never_was);
    tcase_add_test(tcase, a_private_page_answers_conditions_as_one_that_never_was);
    tcase_add_test(tcase, a_page_ends_with_its_project_and_its_workspace);
    tcase_add_test(tcase, a_page_has_the_headers_of_pages);
    tcase_add_test(tcase, a_compressed_page_is_equal);
    tcase_add_test(tcase, a_copy_is_current_until_something_on_the_page_changes);
    tcase_add_loop_test(tcase, a_wrong_query_is_an_error_for_people_and_for_programs, 0,
                        COUNT(wrong_queries));
    tcase_add_test(tcase, a_page_cannot_be_changed);
    tcase_add_test(tcase, a_page_needs_no_writer);
    tcase_add_test(tcase, a_badge_is_an_image_of_the_score);
    tcase_add_test(tcase, only_a_public_graded_report_has_a_badge);
    return harness_main(suite);
}
