/*
 * The web pages that are the same for everyone: the start page, the API reference and their
 * stylesheet.
 */
#include "t/kit/harness.h"

#include <ctype.h>
#include <zlib.h>

static struct server *server;

static void setup(void)
{
    server = server_shared(&(struct server_options){.no_key = true});
}

static void teardown(void)
{
    server_shared_stop(server);
}

static struct response *ask(const char *path, const char *more)
{
    return http(server, .path = path, .key = "", .headers = {more});
}

static void expect_header(const struct response *r, const char *name, const char *want)
{
    ck_assert_msg(header(r, name) != NULL && !strcmp(header(r, name), want), "%s is not %s\n%s",
                  name, want, r->head);
}

static char *stylesheet(void)
{
    const char *at = strstr(ask("/", NULL)->body, "href=\"assets/");
    ck_assert_ptr_nonnull(at);
    at += strlen("href=\"");
    return text("/%.*s", (int)strcspn(at, "\""), at);
}

static const char *path_of(int i)
{
    return i == 0 ? "/" : i == 1 ? "/docs" : stylesheet();
}

enum { PAGES = 2, FILES = 3 };

START_TEST(a_file_has_its_type_and_is_cacheable)
{
    struct response *r = ask(path_of(_i), NULL),
                    *head = http(server, .method = "HEAD", .path = path_of(_i), .key = "");
    expect_status(r, 200);
    expect_header(r, "Content-Type",
                  _i < PAGES ? "text/html; charset=utf-8" : "text/css; charset=utf-8");
    expect_header(r, "Cache-Control",
                  _i < PAGES ? "public, max-age=300" : "public, max-age=31536000, immutable");
    expect_header(r, "X-Content-Type-Options", "nosniff");
    expect_header(r, "Vary", "accept-encoding");
    ck_assert_ptr_null(header(r, "Access-Control-Allow-Origin"));
    ck_assert_ptr_null(header(r, "X-RateLimit-Limit"));
    ck_assert_ptr_null(header(r, "Set-Cookie"));
    expect_status(head, 200);
    expect_header(head, "Content-Length", text("%zu", r->body_size));
    expect_header(head, "ETag", header(r, "ETag"));
    ck_assert_uint_eq(head->body_size, 0);
    expect_status(ask(path_of(_i), "Accept: text/html"), 200);
}
END_TEST

START_TEST(a_current_copy_is_304)
{
    static const char *const codings[] = {"Accept-Encoding: gzip", "Accept-Encoding: identity"};
    for (size_t i = 0; i < COUNT(codings); i++) {
        struct response *first = ask(path_of(_i), codings[i]);
        struct response *r =
            http(server, .path = path_of(_i), .key = "",
                 .headers = {codings[i], text("If-None-Match: %s", header(first, "ETag"))});
        expect_status(r, 304);
        ck_assert_uint_eq(r->body_size, 0);
        expect_header(r, "ETag", header(first, "ETag"));
        expect_header(r, "Cache-Control", header(first, "Cache-Control"));
    }
    expect_status(ask(path_of(_i), "If-None-Match: \"1-1\""), 200);
}
END_TEST

START_TEST(the_compressed_file_is_equal)
{
    struct response *plain = ask(path_of(_i), NULL), *r = ask(path_of(_i), "Accept-Encoding: gzip");
    unsigned char *out = malloc(plain->body_size + 1);
    z_stream z = {.next_in = (unsigned char *)r->body,
                  .avail_in = (unsigned)r->body_size,
                  .next_out = out,
                  .avail_out = (unsigned)plain->body_size + 1};
    expect_header(r, "Content-Encoding", "gzip");
    ck_assert_uint_lt(r->body_size, 64 << 10);
    ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
    ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
    ck_assert_uint_eq(z.total_out, plain->body_size);
    ck_assert_mem_eq(out, plain->body, plain->body_size);
    inflateEnd(&z);
    free(out);
}
END_TEST

START_TEST(a_page_may_load_its_stylesheet_and_nothing_else)
{
    struct response *r = ask(path_of(_i), NULL);
    expect_header(r, "Content-Security-Policy",
                  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
                  "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
                  "base-uri 'none'");
    expect_header(r, "Referrer-Policy", "same-origin");
    expect_header(r, "Cross-Origin-Opener-Policy", "same-origin");
    static const char *const never[] = {"<script", "javascript:", " style=\"", "<style",  "<iframe",
                                        "<form",   " onclick",    " src=",     "@import", "url("};
    for (size_t i = 0; i < COUNT(never); i++)
        ck_assert_msg(strcasestr(r->body, never[i]) == NULL, "%s is on %s", never[i], path_of(_i));
    for (size_t i = 0; i < COUNT(never); i++)
        ck_assert_msg(strcasestr(ask(stylesheet(), NULL)->body, never[i]) == NULL,
                      "%s is in the stylesheet", never[i]);
}
END_TEST

START_TEST(a_page_has_landmarks_a_title_and_nothing_left_to_fill_in)
{
    static const char *const parts[] = {"<!DOCTYPE html>\n<html lang=\"en\">",
                                        "<title>",
                                        "name=\"viewport\"",
                                        "<a class=\"skip\" href=\"#main\">",
                                        "<header ",
                                        "<nav aria-label=",
                                        "<main id=\"main\">",
                                        "<h1",
                                        "<footer>"};
    struct response *r = ask(path_of(_i), NULL);
    for (size_t i = 0; i < COUNT(parts); i++)
        ck_assert_msg(strstr(r->body, parts[i]) != NULL, "%s is not on %s", parts[i], path_of(_i));
    ck_assert_ptr_null(strstr(strstr(r->body, "<h1") + 1, "<h1"));
    ck_assert_ptr_null(strstr(r->body, "@stylesheet@"));
    ck_assert_ptr_null(strstr(r->body, "\n@"));
    ck_assert_ptr_null(strstr(r->body, "(null)"));
}
END_TEST

/* Samples are groups: only landmarks need names of their own, and a page has few. */
START_TEST(a_landmark_has_a_name_of_its_own)
{
    static const char *const kinds[] = {" role=\"region\" aria-label=\"", "<nav aria-label=\"",
                                        "<section aria-label=\""};
    const char *body = ask(path_of(_i), NULL)->body;
    ck_assert(strstr(body, " role=\"group\" aria-label=\"") != NULL);
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (const char *at = body; (at = strstr(at, kinds[k])) != NULL; at++) {
            char *name = text("%s%.*s\"", kinds[k], (int)strcspn(at + strlen(kinds[k]), "\""),
                              at + strlen(kinds[k]));
            ck_assert_msg(strstr(at + 1, name) == NULL, "%s is twice on %s", name, path_of(_i));
        }
}
END_TEST

static bool has_id(const char *page, const char *id)
{
    return strstr(page, text(" id=\"%s\"", id)) != NULL;
}

static void expect_link(const char *page, const char *target)
{
    if (strncmp(target, "data:", 5) == 0)
        return;
    if (*target == '#')
        ck_assert_msg(has_id(page, target + 1), "%s does not resolve", target);
    else
        expect_status(ask(strcmp(target, "./") == 0 ? "/" : text("/%s", target), NULL), 200);
}

/* Links are relative, so that they work under a path that a proxy adds. */
START_TEST(every_link_resolves)
{
    const char *page = ask(path_of(_i), NULL)->body;
    size_t count = 0;
    for (const char *at = page; (at = strstr(at, " href=\"")) != NULL; count++) {
        at += strlen(" href=\"");
        ck_assert_msg(*at != '/', "%.40s is not relative", at);
        expect_link(page, text("%.*s", (int)strcspn(at, "\""), at));
    }
    ck_assert_uint_ge(count, 5);
}
END_TEST

static void expect_once(const char *page, const char *what)
{
    const char *at = strstr(page, what);
    ck_assert_msg(at != NULL, "%s is not on the page", what);
    ck_assert_msg(strstr(at + 1, what) == NULL, "%s occurs twice", what);
}

START_TEST(the_reference_has_every_documented_operation)
{
    const char *page = ask("/docs", NULL)->body;
    struct json_object *paths = at(ask("/api/v1/openapi.json", NULL), "paths");
    json_object_object_foreach(paths, path, item)
    {
        json_object_object_foreach(item, method, operation)
        {
            struct json_object *id;
            char name[16] = "";
            if (!json_object_object_get_ex(operation, "operationId", &id))
                continue;
            for (size_t i = 0; method[i] != '\0' && i < sizeof(name) - 1; i++)
                name[i] = (char)toupper((unsigned char)method[i]);
            expect_once(page, text(" id=\"%s\"", json_object_get_string(id)));
            ck_assert_msg(
                strstr(page, text("<span class=\"method %s\">%s</span><code>%s</code></p>", method,
                                  name, path)) != NULL,
                "%s %s", name, path);
        }
    }
}
END_TEST

START_TEST(the_reference_has_what_a_caller_needs)
{
    static const char *const parts[] = {
        "curl \"$ASSAY/api/v1/reports\"",
        "curl -X PUT \"$ASSAY/api/v1/reports/1042\"",
        "-H \"Authorization: Bearer $KEY\"",
        "<code>reports:write</code>",
        "<code>widget-session</code>",
        "<a href=\"#error-RateLimited\" class=\"status\">429</a> <code>rate_limited</code>",
        "<caption>Parameters</caption>",
        "<caption>Body</caption>",
        "id=\"credential-visitor\"",
        "/v1/wp/status?agent_id=01J9Z3NDEKTSV4RRFFQ69G5FAV\""};
    const char *page = ask("/docs", NULL)->body;
    for (size_t i = 0; i < COUNT(parts); i++)
        ck_assert_msg(strstr(page, parts[i]) != NULL, "%s is not on the page", parts[i]);
}
END_TEST

START_TEST(another_method_or_path_gets_a_json_error)
{
    struct response *r = http(server, .method = "POST", .path = "/docs", .key = "", .body = "");
    expect_error(r, 405, "method_not_allowed");
    expect_header(r, "Allow", "GET, HEAD, OPTIONS");
    expect_status(http(server, .method = "OPTIONS", .path = "/", .key = ""), 204);
    expect_error(ask("/docs/", NULL), 404, "not_found");
    r = ask("/assets/0000000000000000/assay.css", NULL);
    expect_error(r, 404, "not_found");
    expect_header(r, "Cache-Control", "no-store");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pages");
    TCase *tcase = harness_case(suite, "pages");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_file_has_its_type_and_is_cacheable, 0, FILES);
    tcase_add_loop_test(tcase, a_current_copy_is_304, 0, FILES);
    tcase_add_loop_test(tcase, the_compressed_file_is_equal, 0, FILES);
    tcase_add_loop_test(tcase, a_page_may_load_its_stylesheet_and_nothing_else, 0, PAGES);
    tcase_add_loop_test(tcase, a_page_has_landmarks_a_title_and_nothing_left_to_fill_in, 0, PAGES);
    tcase_add_loop_test(tcase, a_landmark_has_a_name_of_its_own, 0, PAGES);
    tcase_add_loop_test(tcase, every_link_resolves, 0, PAGES);
    tcase_add_test(tcase, the_reference_has_every_documented_operation);
    tcase_add_test(tcase, the_reference_has_what_a_caller_needs);
    tcase_add_test(tcase, another_method_or_path_gets_a_json_error);
    return harness_main(suite);
}
