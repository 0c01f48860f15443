/* Conditional requests and representations: ETag, If-None-Match, If-Match, gzip, HEAD, OPTIONS. */
#include "t/kit/harness.h"

#include <zlib.h>

static struct origin *origin;
static struct server *server;

static void setup(void)
{
    origin = origin_usual();
    server = server_shared(
        &(struct server_options){.origin = origin, .yaml = "limits: { exempt: [127.0.0.0/8] }"});
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}

static char *etag_of(const char *path)
{
    struct response *r = http_get(server, path);
    expect_status(r, 200);
    const char *etag = header(r, "ETag"), *cache = header(r, "Cache-Control");
    expect(r, etag && strlen(etag) > 2 && etag[0] == '"' && etag[strlen(etag) - 1] == '"');
    expect(r, cache && !strcmp(cache, "private, no-cache"));
    return text("%s", etag);
}

static const struct {
    const char *format; /* %s: the ETag with its quotes */
    int status;
} none_match[] = {
    {"If-None-Match: %s", 304},
    {"If-None-Match: W/%s", 304},
    {"If-None-Match: \"other\", %s", 304},
    {"If-None-Match: \"other\",%s,\"more\"", 304},
    {"If-None-Match: \"with, comma\", %s", 304},
    {"If-None-Match: *", 304},
    {"If-None-Match: \"other\"", 200},
    {"If-None-Match: garbage", 200},
    {"If-None-Match: \"unfinished", 200},
    {"If-None-Match: ", 200},
};

static char *filled(const char *format, const char *etag)
{
    const char *hole = strstr(format, "%s");
    return hole ? text("%.*s%s%s", (int)(hole - format), format, etag, hole + 2)
                : text("%s", format);
}

START_TEST(if_none_match_uses_weak_comparison)
{
    char *paths[] = {report_path(report_new(server, origin_url(origin, "/good"))),
                     "/api/v1/reports", "/api/v1/projects", "/api/v1/projects/127.0.0.1"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        char *etag;
        struct response *r;
        int tries = 0;
        do { /* a list can change between the requests: another test's report is graded */
            etag = etag_of(paths[i]);
            r = http(server, .path = paths[i], .headers = {filled(none_match[_i].format, etag)});
        } while (header(r, "ETag") && strcmp(header(r, "ETag"), etag) != 0 && ++tries < 20);
        expect_status(r, none_match[_i].status);
        expect(r, header(r, "ETag") && !strcmp(header(r, "ETag"), etag));
        expect(r, header(r, "Cache-Control") != NULL && header(r, "X-Request-Id") != NULL);
        expect(r, (r->body_size == 0) == (r->status == 304));
    }
}
END_TEST

static const struct {
    const char *format;
    int status;
} match[] = {
    {"If-Match: %s", 200},        {"If-Match: \"other\", %s", 200}, {"If-Match: *", 200},
    {"If-Match: \"other\"", 412}, {"If-Match: W/%s", 412},          {"If-Match: garbage", 412},
};

START_TEST(if_match_guards_put_and_delete)
{
    static const struct {
        const char *method, *body;
    } calls[] = {{"PUT", "privacy=1"}, {"DELETE", NULL}};
    for (size_t i = 0; i < COUNT(calls); i++) {
        char *path = report_path(report_new(server, origin_url(origin, "/good")));
        char *condition = filled(match[_i].format, etag_of(path));
        struct response *r = http(server, .method = calls[i].method, .path = path,
                                  .body = calls[i].body, .headers = {condition});
        if (match[_i].status == 412)
            expect_error(r, 412, "precondition_failed");
        else
            expect_status(r, 200);
        struct response *after = http_get(server, path);
        if (match[_i].status == 412)
            expect_int(after, "data.privacy", 0);
    }
}
END_TEST

START_TEST(a_change_makes_a_new_etag)
{
    char *path = report_path(report_new(server, origin_url(origin, "/good")));
    char *old = etag_of(path);
    struct response *r = http_put(server, path, "privacy=1");
    expect_status(r, 200);
    char *new = etag_of(path);
    expect(r, strcmp(old, new) != 0);
    expect_error(http(server, .method = "PUT", .path = path, .body = "privacy=0",
                      .headers = {text("If-Match: %s", old)}),
                 412, "precondition_failed");
    expect_status(http(server, .method = "PUT", .path = path, .body = "privacy=0",
                       .headers = {text("If-Match: %s", new)}),
                  200);
}
END_TEST

static char *gunzip(const struct response *r)
{
    static char out[256 * 1024];
    z_stream z = {.next_in = (Bytef *)r->body,
                  .avail_in = (uInt)r->body_size,
                  .next_out = (Bytef *)out,
                  .avail_out = sizeof(out) - 1};
    ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
    ck_assert_msg(inflate(&z, Z_FINISH) == Z_STREAM_END, "not gzip\n%s", response_text(r));
    out[z.total_out] = '\0';
    inflateEnd(&z);
    return out;
}

START_TEST(json_is_gzipped_on_request_with_its_own_etag)
{
    char *path = report_path(report_new(server, origin_url(origin, "/decent")));
    struct response *plain = http_get(server, path);
    expect(plain, plain->body_size > 1024 && !header(plain, "Content-Encoding"));
    struct response *r =
        http(server, .path = path, .headers = {"Accept-Encoding: deflate, gzip;q=0.5"});
    expect_status(r, 200);
    expect(r, header(r, "Content-Encoding") && !strcmp(header(r, "Content-Encoding"), "gzip"));
    expect(r, header(r, "Vary") && strcasestr(header(r, "Vary"), "accept-encoding"));
    expect(plain, header(plain, "Vary") && strcasestr(header(plain, "Vary"), "accept-encoding"));
    ck_assert_str_eq(gunzip(r), plain->body);
    const char *etag = header(r, "ETag"), *plain_etag = header(plain, "ETag");
    expect(r, etag && plain_etag &&
                  !strcmp(etag, text("%.*s-gz\"", (int)strlen(plain_etag) - 1, plain_etag)));
    r = http(server, .path = path,
             .headers = {"Accept-Encoding: gzip", text("If-None-Match: %s", etag)});
    expect_status(r, 304);
    expect_status(http(server, .method = "PUT", .path = path, .body = "privacy=1",
                       .headers = {text("If-Match: %s", etag)}),
                  200);
}
END_TEST

static const char *const no_gzip[] = {"Accept-Encoding: identity", "Accept-Encoding: gzip;q=0",
                                      "Accept-Encoding: br", "Accept-Encoding: gzip; q=0.000",
                                      "Accept-Encoding: xgzip"};

START_TEST(json_is_not_gzipped_when_excluded)
{
    char *path = report_path(report_new(server, origin_url(origin, "/decent")));
    struct response *r = http(server, .path = path, .headers = {no_gzip[_i]});
    expect_status(r, 200);
    expect(r, !header(r, "Content-Encoding") && r->json != NULL);
}
END_TEST

START_TEST(small_json_is_never_gzipped)
{
    struct response *r = http(server, .path = "/api/v1/projects?search=nothing-like-this",
                              .headers = {"Accept-Encoding: gzip"});
    expect_status(r, 200);
    expect(r, r->body_size < 1024 && !header(r, "Content-Encoding"));
}
END_TEST

START_TEST(head_mirrors_get_without_a_body)
{
    char *paths[] = {report_path(report_new(server, origin_url(origin, "/decent"))),
                     "/api/v1/reports",
                     "/api/v1/projects",
                     "/api/v1/reports/999999",
                     "/api/v1/nowhere",
                     "/healthz",
                     "/api/v1/openapi.json"};
    static const char *const same[] = {"Content-Type", "Content-Length", "Content-Encoding",
                                       "ETag",         "Cache-Control",  "Link",
                                       "Vary"};
    static const char *const codings[] = {"identity", "gzip"};
    for (size_t i = 0; i < COUNT(paths) * 2; i++) {
        const char *path = paths[i / 2], *coding = text("Accept-Encoding: %s", codings[i % 2]);
        struct response *get = http(server, .path = path, .headers = {coding});
        struct response *r = http(server, .method = "HEAD", .path = path, .headers = {coding});
        expect_status(r, get->status);
        expect(r, r->body_size == 0);
        for (size_t k = 0; k < COUNT(same); k++) {
            const char *a = header(get, same[k]), *b = header(r, same[k]);
            ck_assert_msg((!a && !b) || (a && b && !strcmp(a, b)), "%s differs\n%s%s", same[k],
                          response_text(get), response_text(r));
        }
    }
}
END_TEST

/* ---- methods ---- */

static const char *const methods[] = {"GET",     "HEAD",  "POST",  "PUT",     "DELETE",
                                      "OPTIONS", "PATCH", "TRACE", "PROPFIND"};

/* Whether the document describes this method of the path, or one that implies it. */
static bool is_described(struct json_object *path, const char *method)
{
    char *name = text("%s", !strcmp(method, "HEAD") ? "GET" : method);
    for (char *c = name; *c; c++)
        *c = (char)(*c | 0x20);
    bool described = !strcmp(method, "OPTIONS") || json_object_object_get_ex(path, name, NULL);
    free(name);
    return described;
}

/* "GET, HEAD, OPTIONS" */
static bool is_allowed(const struct response *r, const char *method)
{
    bool allowed = false;
    expect(r, header(r, "Allow") != NULL);
    char *list = text("%s", header(r, "Allow")), *rest = list;
    for (char *one; (one = strsep(&rest, ", ")) != NULL;)
        allowed |= !strcmp(one, method);
    free(list);
    return allowed;
}

static char *with_arguments(const char *path)
{
    char *filled_in = text("%s", path), *to = filled_in;
    for (const char *c = path; *c; c++) {
        *to++ = *c == '{' ? '1' : *c;
        c += *c == '{' ? strcspn(c, "}") : 0;
    }
    *to = '\0';
    return filled_in;
}

START_TEST(every_path_allows_just_the_documented_methods)
{
    size_t refusals = 0;
    struct client *client = client_new(server);
    struct response *document = http_get(server, "/api/v1/openapi.json");
    json_object_object_foreach(at(document, "paths"), path, operations)
    {
        char *asked = with_arguments(path);
        if (!strcmp(path, "/metrics")) /* of the internal listener */
            continue;
        struct response *options = http_kept(client, .method = "OPTIONS", .path = asked, .key = "");
        expect_status(options, 204);
        expect(options, options->body_size == 0 && !header(options, "Access-Control-Allow-Origin"));
        for (size_t i = 0; i < COUNT(methods); i++) {
            bool described = is_described(operations, methods[i]);
            ck_assert_msg(is_allowed(options, methods[i]) == described, "%s\n%s", methods[i],
                          response_text(options));
            if (described)
                continue;
            struct response *r = http_kept(client, .method = methods[i], .path = asked);
            if (strcmp(methods[i], "HEAD") != 0)
                expect_error(r, 405, "method_not_allowed");
            expect_status(r, 405);
            expect(r, !strcmp(header(r, "Allow"), header(options, "Allow")));
            refusals++;
        }
    }
    client_free(client);
    ck_assert_uint_gt(refusals, 150);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conditions");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, if_none_match_uses_weak_comparison, 0, COUNT(none_match));
    tcase_add_loop_test(tcase, if_match_guards_put_and_delete, 0, COUNT(match));
    tcase_add_test(tcase, a_change_makes_a_new_etag);
    tcase_add_test(tcase, json_is_gzipped_on_request_with_its_own_etag);
    tcase_add_loop_test(tcase, json_is_not_gzipped_when_excluded, 0, COUNT(no_gzip));
    tcase_add_test(tcase, small_json_is_never_gzipped);
    tcase_add_test(tcase, head_mirrors_get_without_a_body);
    tcase_add_test(tcase, every_path_allows_just_the_documented_methods);
    return harness_main(suite);
}
