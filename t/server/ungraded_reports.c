/* Reports of pages that cannot be graded, or that may not. */
#include "t/kit/harness.h"

static struct origin *origin;
static struct server *server;

static void setup(void)
{
    origin = origin_usual();
    server = server_shared(&(struct server_options){.origin = origin,
                                                    .audit = "timeout: 2s, max_bytes: 256KiB",
                                                    .yaml = "reports: { wait: 8s }"});
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}

static const struct {
    const char *name;
    int status;
    const char *headers, *body;
    const char *url; /* instead of the page's */
    const char *code;
} failures[] = {
    {"/gone", 404, "", "<title>gone</title>", NULL, "http_error"},
    {"/broken", 503, "", "<title>x</title>", NULL, "http_error"},
    {"/text", 200, "Content-Type: text/plain\r\n", "words", NULL, "not_html"},
    {"/loop", 302, "Location: /loop\r\n", "", NULL, "too_many_redirects"},
    {"/inside", 302, "Location: http://169.254.169.254/latest/\r\n", "", NULL, "address_forbidden"},
    {"/file", 302, "Location: file:///etc/passwd\r\n", "", NULL, "http_error"},
    {NULL, 0, NULL, NULL, "http://no-such-host.invalid/", "dns_failed"},
    {NULL, 0, NULL, NULL, "http://127.0.0.1:80/", "connect_failed"},
    {"/slower", 200, "", "<title>x</title>", NULL, "timeout"},
    {"/huge", 200, "", "<title>x</title>", NULL, "too_large"},
};

START_TEST(a_page_that_cannot_be_graded_is_201_failed_with_its_code)
{
    const char *name = failures[_i].name;
    if (name)
        origin_page(origin, name, failures[_i].status, failures[_i].headers, failures[_i].body);
    if (name && !strcmp(name, "/slower"))
        origin_hold(origin, name);
    if (name && !strcmp(name, "/huge"))
        origin_pad(origin, name, 512 * 1024);
    const char *url = name ? origin_url(origin, name) : failures[_i].url;
    struct response *r = http_post(server, "/api/v1/reports", form("url", url, NULL));
    expect_status(r, 201);
    expect_str(r, "data.status", "failed");
    expect(r, has_exactly(r, "data.error", "code message"));
    const char *code = str_at(r, "data.error.code");
    ck_assert_msg(!strcmp(failures[_i].code, code), "%s, not %s\n%s", code, failures[_i].code,
                  response_text(r));
    expect(r, strlen(str_at(r, "data.error.message")) > 0);
    expect(r, !at(r, "data.score") && !at(r, "data.result") && !at(r, "data.generated_at"));
}
END_TEST

/* A guard refusal names the operator's option that allows the address. */
static const struct {
    const char *url;   /* refused unchanged */
    const char *leads; /* or a page that redirects there */
    const char *option;
} closed[] = {
    {"http://10.1.2.3/", "/to-ten", "audit.allow_private"},
    {"http://[fd00::1]/", "/to-fd", "audit.allow_private"},
    {"http://printer.local/", "/to-local", "audit.allow_private"},
    {"http://127.0.0.1:22/", "/to-ssh", "audit.ports"},
    {"https://example.com:8443/", "/to-8443", "audit.ports"},
};

START_TEST(a_guard_refusal_names_the_option_that_allows_it)
{
    const char *url = closed[_i].url, *option = closed[_i].option;
    struct response *r = http_post(server, "/api/v1/reports", form("url", url, NULL));
    expect_status(r, 422);
    expect(r, strstr(str_at(r, "error.errors.url.0"), option) &&
                  strstr(str_at(r, "error.errors.url.0"), "operator"));
    origin_page(origin, closed[_i].leads, 302, text("Location: %s\r\n", url), "");
    r = http_post(server, "/api/v1/reports",
                  form("url", origin_url(origin, closed[_i].leads), NULL));
    expect_str(r, "data.error.code", "address_forbidden");
    expect(r, strstr(str_at(r, "data.error.message"), option) &&
                  strstr(str_at(r, "data.error.message"), "operator"));
    expect(r, str_at(r, "data.error.message")[strlen(str_at(r, "data.error.message")) - 1] ==
                  '.'); /* not cut */
    struct run run = assay(server, "audit", url, NULL);
    ck_assert_msg(run.status == 2 && strstr(run.out, option), "%d: %s%s", run.status, run.out,
                  run.err);
}
END_TEST

/* ${count} times ${piece}; allocated until the test ends. */
static char *repeated(const char *piece, size_t count)
{
    size_t n = strlen(piece);
    char *all = malloc(n * count + 1);
    ck_assert_ptr_nonnull(all);
    for (size_t i = 0; i <= count; i++)
        memcpy(all + i * n, i < count ? piece : "", i < count ? n : 1);
    return all;
}

static const struct {
    const char *piece;
    size_t count;
} hostile[] = {{"<b>", 5000},
               {"<table><tr><td>", 1000},
               {"<!--", 4000},
               {"&amp;", 3000},
               {"<select><svg><math>", 800}};

START_TEST(a_hostile_page_fails_only_its_report)
{
    int64_t ids[COUNT(hostile) + 1];
    pid_t auditor = server_process(server, "assayd: auditor 0");
    origin_held(origin, "/never");
    ids[COUNT(hostile)] =
        report_queued(server, text("http://never.localhost:%u/never", origin_port(origin)));
    for (size_t i = 0; i < COUNT(hostile); i++) {
        origin_page(origin, text("/hostile-%zu", i), 200, "Content-Type: text/html\r\n",
                    repeated(hostile[i].piece, hostile[i].count));
        ids[i] = report_queued(
            server, text("http://hostile-%zu.localhost:%u/hostile-%zu", i, origin_port(origin), i));
    }
    expect_str(http_post(server, "/api/v1/reports", form("url", origin_url(origin, "/good"), NULL)),
               "data.status", "done");
    for (size_t i = 0; i < COUNT(hostile); i++) {
        struct response *r = report_wait(server, ids[i]);
        bool failed = strcmp(str_at(r, "data.status"), "failed") == 0;
        expect(r, !failed || strcmp(str_at(r, "data.error.code"), "too_complex") == 0);
    }
    expect_str(report_wait(server, ids[COUNT(hostile)]), "data.error.code", "timeout");
    ck_assert_int_eq(server_process(server, "assayd: auditor 0"), auditor);
}
END_TEST

START_TEST(a_page_with_broken_tls_is_tls_failed)
{
    const char *url = text("https://127.0.0.1:%u/good", origin_port(origin));
    struct response *r = http_post(server, "/api/v1/reports", form("url", url, NULL));
    expect_status(r, 201);
    expect_str(r, "data.error.code", "tls_failed");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ungraded_reports");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_guard_refusal_names_the_option_that_allows_it, 0, COUNT(closed));
    tcase_add_loop_test(tcase, a_page_that_cannot_be_graded_is_201_failed_with_its_code, 0,
                        COUNT(failures));
    tcase_add_test(tcase, a_hostile_page_fails_only_its_report);
    tcase_add_test(tcase, a_page_with_broken_tls_is_tls_failed);
    return harness_main(suite);
}
