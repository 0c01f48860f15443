/*
 * Grading of real answers from a server on loopback: which requests are sent, which redirects are
 * followed, and how each failure ends.
 */
#include "config.h"

#include "t/kit/audit_loopback.h"
#include "t/kit/suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

static bool passed(const char *check, const char *outcome)
{
    char member[64];
    snprintf(member, sizeof(member), "\"%s\":{", check);
    const char *at = strstr(got.results.p, member);
    ck_assert_msg(at != NULL, "%s", check);
    at = strstr(at, "\"passed\":");
    return strncmp(at + 9, outcome, strlen(outcome)) == 0;
}

/*
 * ${flush}: Z_SYNC_FLUSH, a stream without end: browsers show what arrived, so it is graded. Then
 * ${behind}, which browsers ignore.
 */
static void answer_odd_gzip(struct origin_answer *a, int flush, const char *behind)
{
    unsigned char out[512];
    z_stream z = {.next_in = (Bytef *)(uintptr_t)GOOD_PAGE,
                  .avail_in = sizeof(GOOD_PAGE) - 1,
                  .next_out = out,
                  .avail_out = sizeof(out)};
    if (deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    deflate(&z, flush);
    origin_puts(a,
                "HTTP/1.1 200 OK\r\n" HTML "Content-Encoding: gzip\r\nConnection: close\r\n\r\n");
    origin_send(a, out, sizeof(out) - z.avail_out);
    for (unsigned i = 0; behind[0] != '\0' && i < 1000; i++)
        origin_puts(a, behind);
    deflateEnd(&z);
}

static void answer_site(struct origin_answer *a, const char *path)
{
    if (strcmp(path, "/robots.txt") == 0)
        origin_page(a, "", "User-agent: *\nDisallow: /private\n");
    else if (strcmp(path, "/private/x") == 0 || strcmp(path, "/") == 0)
        origin_page(a, HTML, GOOD_PAGE);
    else if (strcmp(path, "/untyped") == 0)
        origin_page(a, "", "\n <!doctype html><title>x</title>");
    else if (strcmp(path, "/untyped-text") == 0)
        origin_page(a, "", "plain words");
    else if (strcmp(path, "/picture") == 0)
        origin_page(a, "Content-Type: image/png\r\n", "\x89PNG");
    else if (strcmp(path, "/error") == 0)
        origin_puts(a,
                    "HTTP/1.1 503 Out\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nno");
    else if (strcmp(path, "/hop1") == 0)
        origin_puts(a, "HTTP/1.1 302 Found\r\nLocation: hop2\r\nSet-Cookie: "
                       "seen=1\r\nContent-Length: 0\r\n\r\n");
    else if (strcmp(path, "/hop2") == 0)
        origin_puts(a,
                    "HTTP/1.1 301 Moved\r\nLocation: /?from=hop\r\nContent-Length: 4\r\n\r\ngone");
    else if (strcmp(path, "/?from=hop") == 0)
        origin_page(a, HTML, GOOD_PAGE);
    else if (strcmp(path, "/loop") == 0)
        origin_puts(a, "HTTP/1.1 307 Again\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n");
    else if (strcmp(path, "/to-private") == 0)
        origin_puts(
            a, "HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n");
    else if (strcmp(path, "/to-port") == 0)
        origin_puts(
            a, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:22/\r\nContent-Length: 0\r\n\r\n");
    else if (strcmp(path, "/to-file") == 0)
        origin_puts(
            a, "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n");
    else if (strcmp(path, "/garbage") == 0)
        origin_puts(a, "220 mail.example ESMTP\r\n");
    else if (strcmp(path, "/half") == 0)
        origin_puts(a, "HTTP/1.1 200 OK\r\n" HTML "Content-Length: 5000\r\n\r\n<!DOCTYPE html>");
    else if (strcmp(path, "/cut-chunk") == 0)
        origin_puts(a, "HTTP/1.1 200 OK\r\n" HTML
                       "Transfer-Encoding: chunked\r\n\r\n5000\r\n<!DOCTYPE html>");
    else if (strcmp(path, "/cut-gzip") == 0)
        answer_odd_gzip(a, Z_SYNC_FLUSH, "");
    else if (strcmp(path, "/more-than-gzip") == 0)
        answer_odd_gzip(a, Z_FINISH, "and on");
    else if (strcmp(path, "/odd-coding") == 0)
        origin_page(a, HTML "Content-Encoding: rot13\r\n", GOOD_PAGE);
    else if (strcmp(path, "/false-gzip") == 0)
        origin_page(a, HTML "Content-Encoding: gzip\r\n", GOOD_PAGE);
    else if (strcmp(path, "/hop-without-length") == 0)
        origin_puts(a, "HTTP/1.1 303 See\r\nLocation: /\r\n\r\n");
    else if (strcmp(path, "/short-error") == 0)
        origin_puts(a, "HTTP/1.1 410 Gone\r\nContent-Length: 5000\r\n\r\n");
    else if (strcmp(path, "/empty") == 0)
        origin_page(a, HTML, "");
    else if (strcmp(path, "/no-content") == 0)
        origin_puts(a, "HTTP/1.1 204 No Content\r\n\r\n");
    else if (strcmp(path, "/not-modified") == 0)
        origin_puts(a, "HTTP/1.1 304 Not Modified\r\n" HTML "\r\n");
    else
        origin_puts(a, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}

START_TEST(a_page_is_graded_and_its_origin_probed)
{
    open_all(answer_site, false);
    grade(origin_url(origin, "/"));
    ck_assert_str_eq(got.code, "");
    ck_assert_int_gt(got.score, 0);
    ck_assert_int_lt(got.score, 100);
    ck_assert_str_eq(got.url, origin_url(origin, "/"));
    ck_assert(passed("title", "true"));
    ck_assert(passed("robots", "true"));
    ck_assert(passed("https_encryption", "false"));
    ck_assert(passed("hsts", "null"));
    ck_assert(origin_asked(origin, "/robots.txt"));
    ck_assert(origin_asked(origin, "/favicon.ico"));
    ck_assert(origin_asked(origin, "/assay-"));
    ck_assert_uint_eq(origin_count(origin), 4);
    close_all();
}
END_TEST

START_TEST(the_findings_of_a_page_have_facts_of_its_transfer)
{
    open_all(answer_site, false);
    grade(origin_url(origin, "/hop1"));
    ck_assert_uint_eq(got.facts.http_status, 200);
    ck_assert_uint_eq(got.facts.page_bytes, strlen(GOOD_PAGE));
    ck_assert_uint_le(got.facts.ttfb_ms, got.facts.load_ms);
    ck_assert_uint_lt(got.facts.load_ms, 20000);
    ck_assert_str_eq(got.protocol, "HTTP/1.1");
    ck_assert_str_eq(got.final_url, origin_url(origin, "/?from=hop"));
    ck_assert_str_eq(got.version, PACKAGE_VERSION);
    ck_assert_ptr_nonnull(strstr(got.failed_checks, "https_encryption"));
    ck_assert_ptr_null(strstr(got.failed_checks, "title"));
    close_all();
}
END_TEST

START_TEST(robots_txt_is_read_for_the_requested_page)
{
    open_all(answer_site, false);
    grade(origin_url(origin, "/private/x"));
    ck_assert(passed("robots", "false"));
    close_all();
}
END_TEST

START_TEST(redirects_are_followed_to_the_page)
{
    open_all(answer_site, false);
    grade(origin_url(origin, "/hop1"));
    ck_assert_str_eq(got.code, "");
    ck_assert_str_eq(got.url, origin_url(origin, "/?from=hop"));
    close_all();
}
END_TEST

/* path, code; NULL: graded */
static const char *const ends[][2] = {
    {"/nothing", "http_error"},
    {"/error", "http_error"},
    {"/picture", "not_html"},
    {"/untyped", NULL},
    {"/untyped-text", "not_html"},
    {"/loop", "too_many_redirects"},
    {"/to-private", "address_forbidden"},
    {"/to-port", "address_forbidden"},
    {"/to-file", "http_error"},
    {"/garbage", "connect_failed"},
    {"/half", "interrupted"},
    {"/cut-chunk", "interrupted"},
    {"/cut-gzip", NULL},
    {"/more-than-gzip", NULL},
    {"/odd-coding", "http_error"},
    {"/false-gzip", "http_error"},
    {"/hop-without-length", NULL},
    {"/short-error", "http_error"},
    {"/empty", NULL},
    {"/no-content", "not_html"},
    {"/not-modified", "not_html"},
};

START_TEST(an_answer_ends_as_documented)
{
    open_all(answer_site, false);
    grade(origin_url(origin, ends[_i][0]));
    ck_assert_msg(strcmp(got.code, ends[_i][1] == NULL ? "" : ends[_i][1]) == 0, "%s: %s %s",
                  ends[_i][0], got.code, got.message);
    if (ends[_i][1] != NULL)
        ck_assert_uint_gt(strlen(got.message), 10);
    close_all();
}
END_TEST

START_TEST(a_url_refused_before_dns_fails_in_the_next_wait)
{
    open_all(answer_site, false);
    grade("http://192.168.0.1/");
    ck_assert_str_eq(got.code, "address_forbidden");
    ck_assert_uint_eq(origin_count(origin), 0);
    close_all();
}
END_TEST

START_TEST(a_name_that_resolves_to_a_forbidden_address_is_refused_at_the_socket)
{
    struct cidr ten;
    char url[64];
    open_all(answer_site, false);
    ck_assert(cidr_parse("10.0.0.0/8", &ten));
    /* private names can be resolved, and localhost resolves elsewhere */
    conf.audit_allow_private.items = &ten;
    snprintf(url, sizeof(url), "http://localhost:%u/", origin_port(origin));
    grade(url);
    ck_assert_str_eq(got.code, "address_forbidden");
    ck_assert_uint_eq(origin_count(origin), 0);
    close_all();
}
END_TEST

START_TEST(a_closed_port_is_connect_failed)
{
    open_all(answer_site, false);
    grade("http://127.0.0.1:443/");
    ck_assert_str_eq(got.code, "connect_failed");
    close_all();
}
END_TEST

/* ---- timeouts: all at once, because libcurl's timeouts are seconds long ---- */

static void answer_bit_by_bit(struct origin_answer *a, const char *path)
{
    (void)path;
    origin_puts(a, "HTTP/1.1 200 OK\r\n" HTML "Connection: close\r\n\r\n");
    while (origin_puts(a, "<"))
        poll(NULL, 0, 500);
}

/*
 * A loopback port that accepts ${backlog} + 1 connections and sends nothing. Further connections
 * get no answer.
 */
static int listen_silently(int backlog, uint16_t *port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(sa);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert(fd >= 0 && bind(fd, (struct sockaddr *)&sa, n) == 0 && listen(fd, backlog) == 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
    *port = ntohs(sa.sin_port);
    return fd;
}

static int fill(uint16_t port)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert(fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
    return fd;
}

static void keep_code(void *arg, const struct audit_findings *f)
{
    char(*codes)[32] = arg;
    snprintf(codes[f->id], sizeof(codes[0]), "%s", f->error_code == NULL ? "" : f->error_code);
}

START_TEST(a_timeout_names_its_phase)
{
    char codes[3][32] = {"", "", ""}, url[64];
    uint16_t silent_port, mute_port;
    int silent_listener = listen_silently(0, &silent_port),
        mute_listener = listen_silently(8, &mute_port), filling = fill(silent_port);
    open_all(answer_bit_by_bit, false);
    conf.audit_ports[1] = silent_port;
    conf.audit_ports[2] = mute_port;
    conf.audit_timeout_ms = 50000; /* the slow page times out long before */
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", silent_port);
    audit_add(audit, 0, str_of(url), keep_code, codes);
    snprintf(url, sizeof(url), "https://dumb.localhost:%u/", mute_port);
    audit_add(audit, 1, str_of(url), keep_code, codes);
    snprintf(url, sizeof(url), "http://slow.localhost:%u/", origin_port(origin));
    audit_add(audit, 2, str_of(url), keep_code, codes);
    time_t began = time(NULL);
    run();
    ck_assert_str_eq(codes[0], "connect_failed");
    ck_assert_str_eq(codes[1], "tls_failed");
    ck_assert_str_eq(codes[2], "timeout");
    ck_assert_int_lt(time(NULL) - began, 40);
    close_all();
    close(filling);
    close(silent_listener);
    close(mute_listener);
}
END_TEST

START_TEST(a_plain_server_under_https_is_tls_failed)
{
    char url[64];
    open_all(answer_site, false);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/", origin_port(origin));
    grade(url);
    ck_assert_str_eq(got.code, "tls_failed");
    close_all();
}
END_TEST

START_TEST(a_page_with_a_bad_certificate_is_graded_and_fails_its_check)
{
    open_all(answer_site, true);
    grade(origin_url(origin, "/"));
    ck_assert_str_eq(got.code, "");
    ck_assert(passed("https_encryption", "false"));
    ck_assert_ptr_nonnull(strstr(got.results.p, "self-signed"));
    ck_assert_ptr_nonnull(strstr(got.results.p, "origin.test"));
    ck_assert(passed("mixed_content", "true"));
    close_all();
}
END_TEST

/* ---- held answers ---- */

static void answer_never(struct origin_answer *a, const char *path)
{
    (void)path;
    origin_hold(a);
}

static void answer_page_but_no_probe(struct origin_answer *a, const char *path)
{
    if (strcmp(path, "/") == 0)
        origin_page(a, HTML, GOOD_PAGE);
    else
        origin_hold(a);
}

START_TEST(a_page_without_an_answer_is_a_timeout)
{
    open_all(answer_never, false);
    conf.audit_timeout_ms = 200;
    audit_free(audit);
    audit = audit_new(&conf);
    grade(origin_url(origin, "/"));
    ck_assert_str_eq(got.code, "timeout");
    close_all();
}
END_TEST

START_TEST(a_probe_without_an_answer_fails_only_its_check)
{
    open_all(answer_page_but_no_probe, false);
    conf.audit_timeout_ms = 500;
    audit_free(audit);
    audit = audit_new(&conf);
    grade(origin_url(origin, "/"));
    ck_assert_str_eq(got.code, "");
    ck_assert(passed("robots", "null"));
    ck_assert(passed("title", "true"));
    close_all();
}
END_TEST

static void count_call(void *arg, const struct audit_findings *f)
{
    bool *seen = arg;
    ck_assert(!seen[f->id]);
    seen[f->id] = true;
    ck_assert_ptr_null(f->error_code);
}

static void answer_when_released(struct origin_answer *a, const char *path)
{
    origin_hold(a);
    answer_site(a, path);
}

START_TEST(a_host_sees_at_most_two_requests_at_once)
{
    bool seen[9] = {false};
    open_all(answer_when_released, false);
    for (uint64_t i = 0; i < 9; i++)
        audit_add(audit, i, str_of(origin_url(origin, "/")), count_call, seen);
    while (origin_active(origin) < 2)
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    /* the engine never starts a third request */
    for (unsigned i = 0; i < 200; i++)
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 0), 0);
    ck_assert_uint_eq(origin_count(origin), 2);
    origin_release(origin);
    run();
    ck_assert_uint_eq(origin_most_active(origin), 2);
    for (unsigned i = 0; i < 9; i++)
        ck_assert(seen[i]);
    close_all();
}
END_TEST

START_TEST(abandoned_pages_leave_no_resource)
{
    bool seen[9] = {false};
    open_all(answer_never, false);
    for (uint64_t i = 0; i < 9; i++)
        audit_add(audit, i, str_of(origin_url(origin, "/")), count_call, seen);
    while (origin_active(origin) < 2)
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    ck_assert_uint_eq(audit_pending(audit), 9);
    close_all(); /* sanitizers report a leak or a use after free */
    ck_assert(!seen[0]);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *s = suite_create("audit_fetch");
    TCase *t = tcase_create("fetch");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_page_is_graded_and_its_origin_probed);
    tcase_add_test(t, the_findings_of_a_page_have_facts_of_its_transfer);
    tcase_add_test(t, robots_txt_is_read_for_the_requested_page);
    tcase_add_test(t, redirects_are_followed_to_the_page);
    tcase_add_loop_test(t, an_answer_ends_as_documented, 0, sizeof(ends) / sizeof(*ends));
    tcase_add_test(t, a_url_refused_before_dns_fails_in_the_next_wait);
    tcase_add_test(t, a_name_that_resolves_to_a_forbidden_address_is_refused_at_the_socket);
    tcase_add_test(t, a_closed_port_is_connect_failed);
    tcase_add_test(t, a_timeout_names_its_phase);
    tcase_add_test(t, a_plain_server_under_https_is_tls_failed);
    tcase_add_test(t, a_page_with_a_bad_certificate_is_graded_and_fails_its_check);
    tcase_add_test(t, a_page_without_an_answer_is_a_timeout);
    tcase_add_test(t, a_probe_without_an_answer_fails_only_its_check);
    tcase_add_test(t, a_host_sees_at_most_two_requests_at_once);
    tcase_add_test(t, abandoned_pages_leave_no_resource);
    suite_add_tcase(s, t);
    return suite_run(s);
}
