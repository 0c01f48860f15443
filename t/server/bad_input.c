/* Bad input of every kind gets an error of the documented shape, and nothing of it is stored. */
#include "t/kit/harness.h"

#include <strings.h>

static struct server *server;
static int64_t a_report;

static void setup(void)
{
    server = server_shared(&(struct server_options){.strict = true});
    a_report = report_new(server, "http://alpha.test/");
}

static void teardown(void)
{
    server_shared_stop(server);
}

#define REPORTS "/api/v1/reports"
#define PROJECTS "/api/v1/projects"
#define JSON_TYPE "Content-Type: application/json"
#define INVALID "validation_failed"
#define BAD "bad_request"

/* Requests as arguments of curl; {id} is an existing report. */
static const struct {
    const char *method, *path, *header, *body;
    int status;
    const char *code;
    const char *field; /* of the 422 */
} cases[] = {
    /* the url */
    {"POST", REPORTS, NULL, "", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "privacy=0", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=%20", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "URL=http://alpha.test/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=words", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=/pricing", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=ftp://alpha.test/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=file:///etc/passwd", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=javascript:alert(1)", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http:///path", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://user:secret@alpha.test/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://user@alpha.test/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://alpha.test:99999/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://alpha.test:8081/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://alpha.test:0/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://intranet/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://printer.local/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://db.internal/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://localhost/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://x.localhost/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://127.0.0.1/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://127.1/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://10.0.0.1/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://192.168.1.1/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://169.254.169.254/latest/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://0x0a000001/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://167772161/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://[::1]/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://[fe80::1%25eth0]/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://[::ffff:10.0.0.1]/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://alpha.test%5C@beta.test/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://alpha.test/%0d%0aX: y", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://alpha%20test/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url%5B%5D=http://alpha.test/", 422, INVALID, "url"},
    /* privacy and password */
    {"POST", REPORTS, NULL, "url=http://alpha.test/&privacy=3", 422, INVALID, "privacy"},
    {"POST", REPORTS, NULL, "url=http://alpha.test/&privacy=", 422, INVALID, "privacy"},
    {"POST", REPORTS, NULL, "url=http://alpha.test/&privacy=public", 422, INVALID, "privacy"},
    {"POST", REPORTS, NULL, "url=http://alpha.test/&privacy=-0", 422, INVALID, "privacy"},
    {"POST", REPORTS, NULL, "url=http://alpha.test/&privacy=1e0", 422, INVALID, "privacy"},
    {"POST", REPORTS, NULL, "url=http://alpha.test/&privacy=%EF%BC%91", 422, INVALID, "privacy"},
    {"POST", REPORTS, NULL, "url=http://alpha.test/&privacy=2", 422, INVALID, "password"},
    {"POST", REPORTS, NULL, "url=http://alpha.test/&privacy=2&password=", 422, INVALID, "password"},
    /* malformed forms */
    {"POST", REPORTS, NULL, "url=%zz", 400, BAD, NULL},
    {"POST", REPORTS, NULL, "url=%4", 400, BAD, NULL},
    {"POST", REPORTS, NULL, "url=http://alpha.test/%", 400, BAD, NULL},
    {"POST", REPORTS, NULL, "url=http://alpha.test/%00", 400, BAD, NULL},
    {"POST", REPORTS, NULL, "url=http://alpha.test/%ff", 400, BAD, NULL},
    {"POST", REPORTS, NULL, "url=http://alpha.test/%C0%AF", 400, BAD, NULL},
    {"POST", REPORTS, NULL, "url=http://alpha.test/%ED%A0%80", 400, BAD, NULL},
    {"POST", REPORTS, NULL, "url=http://alpha.test/%F4%90%80%80", 400, BAD, NULL},
    {"POST", REPORTS, NULL, "url=http://alpha.test/\xe9", 400, BAD, NULL},
    {"POST", REPORTS, NULL, "url=http://alpha.test/&other=%ff", 400, BAD, NULL},
    {"POST", REPORTS, NULL, "url=http://alpha.test/&%ff=other", 400, BAD, NULL},
    {"POST", REPORTS, NULL, "url=http://alpha.test/&url=http://beta.test/", 422, INVALID, "url"},
    {"POST", REPORTS, NULL, "url=http://alpha.test/&url=http://alpha.test/", 422, INVALID, "url"},
    {"PUT", REPORTS "/{id}", NULL, "privacy=0&privacy=1", 422, INVALID, "privacy"},
    {"PUT", REPORTS "/{id}", NULL, "update=%", 400, BAD, NULL},
    {"GET", REPORTS "?sort=asc&sort=desc", NULL, NULL, 422, INVALID, "sort"},
    /* queries and paths */
    {"GET", REPORTS "?search=%zz", NULL, NULL, 400, BAD, NULL},
    {"GET", REPORTS "?search=%", NULL, NULL, 400, BAD, NULL},
    {"GET", REPORTS "?search=%00", NULL, NULL, 400, BAD, NULL},
    {"GET", REPORTS "?search=%ff%fe", NULL, NULL, 400, BAD, NULL},
    {"GET", REPORTS "?other=%ff", NULL, NULL, 400, BAD, NULL},
    {"GET", REPORTS "?project=%00", NULL, NULL, 400, BAD, NULL},
    {"GET", REPORTS "/%00", NULL, NULL, 400, BAD, NULL},
    {"GET", REPORTS "/%ff", NULL, NULL, 400, BAD, NULL},
    {"GET", REPORTS "/%zz", NULL, NULL, 400, BAD, NULL},
    {"GET", REPORTS "/1%", NULL, NULL, 400, BAD, NULL},
    {"GET", PROJECTS "/alpha%00.test", NULL, NULL, 400, BAD, NULL},
    {"DELETE", PROJECTS "/%C3%28", NULL, NULL, 400, BAD, NULL},
    {"GET", "/%zz", NULL, NULL, 400, BAD, NULL},
    {"GET", "/api/v1/%ff", NULL, NULL, 400, BAD, NULL},
    /* media types */
    {"POST", REPORTS, "Content-Type: application/jsonp", "{\"url\":\"http://alpha.test/\"}", 415,
     "unsupported_media_type", NULL},
    {"POST", REPORTS, "Content-Type: text/plain", "url=http://alpha.test/", 415,
     "unsupported_media_type", NULL},
    {"POST", REPORTS, "Content-Type: multipart/form-data; boundary=x", "--x--", 415,
     "unsupported_media_type", NULL},
    {"POST", REPORTS, "Content-Type: application/x-www-form-urlencodedx", "url=x", 415,
     "unsupported_media_type", NULL},
    {"POST", REPORTS, "Content-Type: nonsense", "url=x", 415, "unsupported_media_type", NULL},
    {"POST", REPORTS, "Content-Type:", "url=http://alpha.test/", 415, "unsupported_media_type",
     NULL},
    {"PUT", REPORTS "/{id}", "Content-Type: text/json", "{\"privacy\":1}", 415,
     "unsupported_media_type", NULL},
    {"POST", REPORTS, "Content-Encoding: gzip", "url=http://alpha.test/", 415,
     "unsupported_media_type", NULL},
    /* Accept */
    {"GET", REPORTS, "Accept: text/html", NULL, 406, "not_acceptable", NULL},
    {"GET", REPORTS, "Accept: application/json;q=0", NULL, 406, "not_acceptable", NULL},
    {"GET", REPORTS, "Accept: application/json;q=0, */*", NULL, 406, "not_acceptable", NULL},
    {"GET", REPORTS, "Accept: application/*;q=0.0, text/*", NULL, 406, "not_acceptable", NULL},
    {"POST", REPORTS, "Accept: image/png", "url=http://alpha.test/", 406, "not_acceptable", NULL},
    /* methods and paths */
    {"PATCH", REPORTS "/{id}", NULL, NULL, 405, "method_not_allowed", NULL},
    {"POST", REPORTS "/{id}", NULL, "privacy=1", 405, "method_not_allowed", NULL},
    {"DELETE", REPORTS, NULL, NULL, 405, "method_not_allowed", NULL},
    {"PUT", REPORTS, NULL, "url=x", 405, "method_not_allowed", NULL},
    {"POST", PROJECTS, NULL, "project=x", 405, "method_not_allowed", NULL},
    {"PUT", PROJECTS "/alpha.test", NULL, "", 405, "method_not_allowed", NULL},
    {"TRACE", REPORTS, NULL, NULL, 405, "method_not_allowed", NULL},
    {"BREW", REPORTS, NULL, NULL, 405, "method_not_allowed", NULL},
    {"get", REPORTS, NULL, NULL, 405, "method_not_allowed", NULL},
    {"POST", "/healthz", NULL, "", 405, "method_not_allowed", NULL},
    {"DELETE", "/api/v1/openapi.json", NULL, NULL, 405, "method_not_allowed", NULL},
    {"GET", "/index.html", NULL, NULL, 404, "not_found", NULL},
    {"GET", "/api", NULL, NULL, 404, "not_found", NULL},
    {"GET", "/api/v1", NULL, NULL, 404, "not_found", NULL},
    {"GET", "/api/v1/", NULL, NULL, 404, "not_found", NULL},
    {"GET", "/api/v2/reports", NULL, NULL, 404, "not_found", NULL},
    {"GET", "/api/v1/Reports", NULL, NULL, 404, "not_found", NULL},
    {"GET", "/api/v1/reports/", NULL, NULL, 404, "not_found", NULL},
    {"GET", "/api/v1//reports", NULL, NULL, 404, "not_found", NULL},
    {"GET", "/api/v1/reports/1/results", NULL, NULL, 404, "not_found", NULL},
    {"GET", "/api/v1/reportsx", NULL, NULL, 404, "not_found", NULL},
    {"GET", "/api/v1/reports/1%2F2", NULL, NULL, 404, "not_found", NULL},
    {"GET", "/healthz/x", NULL, NULL, 404, "not_found", NULL},
};

static char *with_id(const char *path)
{
    const char *hole = strstr(path, "{id}");
    return hole ? text("%.*s%lld%s", (int)(hole - path), path, (long long)a_report, hole + 4)
                : text("%s", path);
}

static int64_t reports(void)
{
    return int_at(http_get(server, REPORTS), "meta.total");
}

START_TEST(bad_input_is_refused_with_its_code_and_stores_nothing)
{
    int64_t before = reports();
    struct response *r =
        http(server, .method = cases[_i].method, .path = with_id(cases[_i].path),
             .body = cases[_i].body, .headers = {"Prefer: respond-async", cases[_i].header});
    int status = cases[_i].status;
    expect_error(r, status, cases[_i].code);
    if (status == 422)
        expect(r, len_at(r, text("error.errors.%s", cases[_i].field)) > 0);
    if (status == 405)
        expect(r, header(r, "Allow") && !strstr(header(r, "Allow"), cases[_i].method));
    if (status == 415)
        expect(r, header(r, "Accept-Post") &&
                      !strcmp(header(r, "Accept-Post"),
                              "application/json, application/x-www-form-urlencoded"));
    ck_assert_int_eq(reports(), before);
    expect_int(http_get(server, report_path(a_report)), "data.privacy", 0);
}
END_TEST

static const char *const accepted[] = {"Accept: application/json",
                                       "Accept: */*",
                                       "Accept: application/*",
                                       "Accept: text/html, */*;q=0.1",
                                       "Accept: text/html;q=1, application/json;q=0.001",
                                       "Accept: APPLICATION/JSON",
                                       "Accept: application/json; charset=utf-8",
                                       "Accept: text/html, application/json;q=0.5, */*;q=0",
                                       "Accept: ",
                                       "Accept;"};

START_TEST(every_accept_header_that_allows_json_is_answered)
{
    expect_status(http(server, .path = REPORTS, .headers = {accepted[_i]}), 200);
}
END_TEST

/* ---- lengths ---- */

static char *long_form(size_t size)
{
    char *body = malloc(size + 1);
    if (!body)
        abort();
    memset(body, 'x', size);
    memcpy(body, "privacy=0&other=", 16);
    body[size] = '\0';
    return body;
}

START_TEST(a_form_has_at_most_16_kib)
{
    struct response *r = http_put(server, report_path(a_report), long_form(16384));
    expect_status(r, 200);
    r = http_put(server, report_path(a_report), long_form(16385));
    expect_error(r, 413, "payload_too_large");
    r = http_post(server, REPORTS, long_form(16385));
    expect_error(r, 413, "payload_too_large");
}
END_TEST

static const size_t body_sizes[] = {16385, 100000, 6 * 1024 * 1024};

START_TEST(a_streamed_or_declared_body_over_the_limit_is_413)
{
    char *body = long_form(body_sizes[_i]);
    int64_t before = reports();
    for (int streamed = 0; streamed < 2; streamed++) {
        struct response *r =
            http(server, .method = "POST", .path = REPORTS, .body = body, .may_fail = true,
                 .headers = {streamed ? "Transfer-Encoding: chunked" : NULL});
        expect_error(r, 413, "payload_too_large");
    }
    ck_assert_int_eq(reports(), before);
}
END_TEST

START_TEST(a_url_has_at_most_2048_characters)
{
    char *start = "http://alpha.test/";
    char *longest = text("%s%0*d", start, 2048 - (int)strlen(start), 1);
    struct response *r =
        http(server, .method = "POST", .path = REPORTS, .body = form("url", longest, NULL),
             .headers = {"Prefer: respond-async"});
    expect_status(r, 202);
    expect_str(r, "data.url", longest);
    expect_status(http_delete(server, report_path(int_at(r, "data.id"))), 200);
    r = http_post(server, REPORTS, form("url", text("%s1", longest), NULL));
    expect_error(r, 422, INVALID);
    expect(r, len_at(r, "error.errors.url") > 0);
}
END_TEST

START_TEST(a_url_over_2048_characters_when_normalized_is_refused)
{
    char *url = text("%s", "http://alpha.test/");
    for (int i = 0; i < 10; i++)
        url = text(
            "%s%s", url,
            "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
    for (int i = 0; i < 3; i++)
        url = text("%s%s", url, url + strlen("http://alpha.test/"));
    ck_assert_uint_lt(strlen(url), 2048);
    struct response *r = http(server, .method = "POST", .path = REPORTS,
                              .body = form("url", url, NULL), .headers = {"Prefer: respond-async"});
    expect_error(r, 422, INVALID);
    expect(r, len_at(r, "error.errors.url") > 0);
}
END_TEST

START_TEST(a_password_of_256_bytes_is_refused)
{
    struct response *r = http_post(
        server, REPORTS,
        form("url", "http://alpha.test/", "privacy", "2", "password", text("%0256d", 1), NULL));
    expect_error(r, 422, INVALID);
    expect(r, len_at(r, "error.errors.password") > 0);
}
END_TEST

START_TEST(ten_thousand_parameters_do_no_harm)
{
    char *many = calloc(1, 10000 * 8 + 1), *end = many;
    ck_assert_ptr_nonnull(many);
    for (int i = 0; i < 10000; i++)
        end += sprintf(end, "&%c=%c", 'a' + i % 26, 'a' + i % 7);
    int64_t before = now_ms();
    struct response *r =
        http(server, .path = text(REPORTS "?per_page=10%.*s", 24000, many), .may_fail = true);
    expect_status(r, 200);
    char *names = calloc(1, 10000 * 2 + 1);
    ck_assert_ptr_nonnull(names);
    for (size_t i = 0; i < 20000; i += 2)
        memcpy(names + i, i % 4 ? "&b" : "&a", 2);
    /* all ten thousand fit into a head */
    expect_status(http(server, .path = text(REPORTS "?per_page=10%s", names)), 200);
    r = http(server, .path = text(REPORTS "?per_page=10%s", many), .may_fail = true);
    expect_error(r, 400, BAD);
    r = http_put(server, report_path(a_report), text("privacy=0%.*s", 16000, many));
    expect_status(r, 200);
    r = http_put(server, report_path(a_report), text("privacy=0%s", many));
    expect_error(r, 413, "payload_too_large");
    ck_assert_int_lt(now_ms() - before, 5000);
}
END_TEST

START_TEST(a_header_of_20_kib_is_accepted_and_one_of_40_is_400)
{
    struct response *r = http(server, .path = REPORTS, .headers = {text("X-Long: %020000d", 1)});
    expect_status(r, 200);
    r = http(server, .path = REPORTS, .headers = {text("X-Long: %040000d", 1)}, .may_fail = true);
    expect_error(r, 400, BAD);
}
END_TEST

START_TEST(a_search_is_at_most_as_long_as_a_url)
{
    expect_int(http_get(server, text(REPORTS "?search=%02048d", 1)), "meta.total", 0);
    struct response *r = http_get(server, text(REPORTS "?search=%02049d", 1));
    expect_error(r, 422, INVALID);
    expect(r, len_at(r, "error.errors.search") > 0);
}
END_TEST

/* ---- request ids ---- */

static const struct {
    const char *sent;
    bool echoed;
} ids[] = {
    {"abc", true},       {"A-Za.z_0-9", true}, {"x", true},
    {"", false},         {"has space", false}, {"semi;colon", false},
    {"\xc3\xa9", false}, {"a/b", false},       {"<script>", false},
};

START_TEST(a_well_formed_request_id_is_echoed)
{
    struct response *r = http(server, .path = _i % 2 ? REPORTS : "/nowhere",
                              .headers = {text("X-Request-Id: %s", ids[_i].sent)});
    const char *id = header(r, "X-Request-Id");
    expect(r, id && *id);
    expect(r, !strcmp(id, ids[_i].sent) == ids[_i].echoed);
    expect(r, header_times(r, "X-Request-Id") == 1);
}
END_TEST

START_TEST(a_request_id_has_at_most_128_characters)
{
    char *id = text("%0128d", 1);
    struct response *r = http(server, .path = REPORTS, .headers = {text("X-Request-Id: %s", id)});
    expect(r, !strcmp(header(r, "X-Request-Id"), id));
    r = http(server, .path = REPORTS, .headers = {text("X-Request-Id: %s1", id)});
    expect(r, strlen(header(r, "X-Request-Id")) <= 128);
}
END_TEST

START_TEST(generated_request_ids_differ)
{
    struct response *a = http_get(server, REPORTS), *b = http_get(server, REPORTS);
    expect(a, strcmp(header(a, "X-Request-Id"), header(b, "X-Request-Id")) != 0);
}
END_TEST

START_TEST(no_answer_reveals_internals)
{
    static const char *const paths[] = {REPORTS, "/nowhere", REPORTS "?search=%zz"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct response *r = http_get(server, paths[i]);
        const char *name = header(r, "Server");
        expect(r, !name || !strcasestr(name, "h2o"));
        expect(r, !strstr(r->body, ".c:") && !strcasestr(r->body, "lmdb") &&
                      !strcasestr(r->body, "mdb_"));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bad_input");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, bad_input_is_refused_with_its_code_and_stores_nothing, 0,
                        COUNT(cases));
    tcase_add_loop_test(tcase, every_accept_header_that_allows_json_is_answered, 0,
                        COUNT(accepted));
    tcase_add_test(tcase, a_form_has_at_most_16_kib);
    tcase_add_loop_test(tcase, a_streamed_or_declared_body_over_the_limit_is_413, 0,
                        COUNT(body_sizes));
    tcase_add_test(tcase, a_url_has_at_most_2048_characters);
    tcase_add_test(tcase, a_url_over_2048_characters_when_normalized_is_refused);
    tcase_add_test(tcase, a_password_of_256_bytes_is_refused);
    tcase_add_test(tcase, ten_thousand_parameters_do_no_harm);
    tcase_add_test(tcase, a_header_of_20_kib_is_accepted_and_one_of_40_is_400);
    tcase_add_test(tcase, a_search_is_at_most_as_long_as_a_url);
    tcase_add_loop_test(tcase, a_well_formed_request_id_is_echoed, 0, COUNT(ids));
    tcase_add_test(tcase, a_request_id_has_at_most_128_characters);
    tcase_add_test(tcase, generated_request_ids_differ);
    tcase_add_test(tcase, no_answer_reveals_internals);
    return harness_main(suite);
}
