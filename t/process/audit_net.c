/*
 * Grading over a private network with the default guard: public addresses are reached; forbidden
 * addresses never are, by any redirect, probe or name; certificates need a trusted authority; nginx
 * is graded over HTTP/2. Every address leads to this test (audit_net.h), so it sees any connection
 * to a forbidden address.
 */
#include "core/audit/audit.h"
#include "t/kit/audit_net.h"
#include "t/kit/audit_origin.h"
#include "t/kit/suite.h"
#include "core/shm/scoreboard.h"

#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OWN "93.184.99.99"
#define PUBLIC "93.184.215.14"
#define PUBLIC_V6 "2606:2800:21f::1"
#define NGINX_PORT 8443

static struct conf conf = {
    .audit_ports = {80, 443, 81, NGINX_PORT},
    .audit_ports_count = 4,
    .audit_concurrency = 8,
    .audit_timeout_ms = 15000,
    .audit_max_bytes = 5 * 1024 * 1024,
    .audit_max_redirects = 5,
};

static const struct net_name names[] = {
    {"site.example", PUBLIC " " PUBLIC_V6, NULL},
    {"v6.example", PUBLIC_V6, NULL},
    {"www.site.example", PUBLIC, NULL},
    {"expired.site.example", PUBLIC, NULL},
    {"other.site.example", PUBLIC, NULL},
    {"self-signed.site.example", PUBLIC, NULL},
    {"stranger.site.example", PUBLIC, NULL},
    {"rebound.example", PUBLIC, "127.0.0.1"},
    {"rebound-v6.example", PUBLIC, "::1"},
    {"rebound-probe.example", PUBLIC, "10.0.0.1"},
    {"mixed.example", "10.0.0.1 " PUBLIC " 127.0.0.1", NULL},
    {"mixed-v6.example", "::1 " PUBLIC " fd00::1", NULL},
    {"empty.example", "", NULL},
    {"own.example", OWN, NULL},
    {"inside-0.example", "0.0.0.1", NULL},
    {"inside-1.example", "10.20.30.40", NULL},
    {"inside-2.example", "100.64.0.1", NULL},
    {"inside-3.example", "127.0.0.1", NULL},
    {"inside-4.example", "169.254.169.254", NULL},
    {"inside-5.example", "172.31.255.254", NULL},
    {"inside-6.example", "192.0.0.8", NULL},
    {"inside-7.example", "192.0.2.1", NULL},
    {"inside-8.example", "192.88.99.1", NULL},
    {"inside-9.example", "192.168.1.1", NULL},
    {"inside-10.example", "198.18.0.1", NULL},
    {"inside-11.example", "198.51.100.1", NULL},
    {"inside-12.example", "203.0.113.1", NULL},
    {"inside-13.example", "224.0.0.1", NULL},
    {"inside-14.example", "240.0.0.1", NULL},
    {"inside-15.example", "255.255.255.255", NULL},
    {"inside-16.example", "::1", NULL},
    {"inside-17.example", "::ffff:127.0.0.1", NULL},
    {"inside-18.example", "64:ff9b::7f00:1", NULL},
    {"inside-19.example", "2001::1", NULL},
    {"inside-20.example", "2001:db8::1", NULL},
    {"inside-21.example", "2002:7f00:1::1", NULL},
    {"inside-22.example", "3fff::1", NULL},
    {"inside-23.example", "fd00::1", NULL},
    {"inside-24.example", "fe80::1", NULL},
    {"inside-25.example", "ff0e::1", NULL},
    {"inside-26.example", "::ffff:10.0.0.1 ::7f00:1 64:ff9b:1::1 100::1 4000::1", NULL},
    {"inside-27.example", OWN " 127.0.0.1 10.0.0.1", NULL},
};
#define INSIDE 28

static struct origin *plain, *tls;
static struct audit *audit;

static struct {
    unsigned calls, withdrawn;
    char code[32], message[256];
    struct buf results;
} got;

static void keep(void *arg, const struct audit_findings *f)
{
    (void)arg;
    got.calls++;
    got.withdrawn += f->withdrawn;
    snprintf(got.code, sizeof(got.code), "%s", f->error_code == NULL ? "" : f->error_code);
    snprintf(got.message, sizeof(got.message), "%s",
             f->error_message == NULL ? "" : f->error_message);
    buf_reset(&got.results);
    buf_str(&got.results, f->results);
    buf_add(&got.results, "", 1);
}

/* Targets of redirects that must not be followed, and the error code of the report. */
static const char *const hops[][2] = {
    {"http://127.0.0.1/", "address_forbidden"},
    {"http://0/", "address_forbidden"},
    {"http://0x7f.1/", "address_forbidden"},
    {"http://2130706433/", "address_forbidden"},
    {"http://0177.0.0.1/", "address_forbidden"},
    {"http://10.0.0.1/", "address_forbidden"},
    {"http://100.127.0.1/", "address_forbidden"},
    {"http://169.254.169.254/latest/meta-data/", "address_forbidden"},
    {"http://172.16.0.1/", "address_forbidden"},
    {"http://192.0.0.1/", "address_forbidden"},
    {"http://192.0.2.1/", "address_forbidden"},
    {"http://192.88.99.1/", "address_forbidden"},
    {"http://192.168.0.1/", "address_forbidden"},
    {"http://198.19.0.1/", "address_forbidden"},
    {"http://198.51.100.1/", "address_forbidden"},
    {"http://203.0.113.1/", "address_forbidden"},
    {"http://224.0.0.1/", "address_forbidden"},
    {"http://255.255.255.255/", "address_forbidden"},
    {"http://" OWN "/", "address_forbidden"},
    {"http://own.example/", "address_forbidden"},
    {"http://[::1]/", "address_forbidden"},
    {"http://[::ffff:127.0.0.1]/", "address_forbidden"},
    {"http://[::127.0.0.1]/", "address_forbidden"},
    {"http://[64:ff9b::7f00:1]/", "address_forbidden"},
    {"http://[2001::1]/", "address_forbidden"},
    {"http://[2001:db8::1]/", "address_forbidden"},
    {"http://[2002:7f00:1::]/", "address_forbidden"},
    {"http://[3fff::1]/", "address_forbidden"},
    {"http://[fd00::1]/", "address_forbidden"},
    {"http://[fe80::1]/", "address_forbidden"},
    {"http://[ff02::1]/", "address_forbidden"},
    {"http://[fe80::1%25lo]/", "http_error"},
    {"http://localhost/", "address_forbidden"},
    {"//LOCALHOST./", "address_forbidden"},
    {"http://a.localhost/", "address_forbidden"},
    {"http://db.internal/", "address_forbidden"},
    {"http://printer.local/", "address_forbidden"},
    {"http://intranet/", "address_forbidden"},
    {"http://%6cocalhost/", "address_forbidden"},
    {"http://\xEF\xBC\x91\xEF\xBC\x92\xEF\xBC\x97.0.0.1/", "address_forbidden"},
    {"http://" PUBLIC ":22/", "address_forbidden"},
    {"https://" PUBLIC ":8080/", "address_forbidden"},
    {"http://user@" PUBLIC "/", "http_error"},
    {"http://" PUBLIC "\\@127.0.0.1/", "http_error"},
    {"ftp://" PUBLIC "/", "http_error"},
    {"file:///etc/passwd", "http_error"},
    {"gopher://127.0.0.1:80/", "http_error"},
    {"dict://127.0.0.1:80/", "http_error"},
    {"http://inside-3.example/", "address_forbidden"},
    {"https://inside-16.example/", "address_forbidden"},
    {"http://inside-26.example/", "address_forbidden"},
};

/* Process exit cancels an abandoned lookup within libc. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:__res_context_send\n";
}

static void hop_to(struct origin_answer *a, const char *where)
{
    char answer[512];
    snprintf(answer, sizeof(answer), "HTTP/1.1 302 On\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
             where);
    origin_puts(a, answer);
}

static void answer(struct origin_answer *a, const char *path)
{
    unsigned hop;
    bool probes_lead_inside = strstr(origin_request(a), "Host: www.site.example") != NULL;
    if (sscanf(path, "/hop-%u", &hop) == 1 && hop < COUNT(hops))
        hop_to(a, hops[hop][0]);
    else if (strcmp(path, "/rebound") == 0)
        hop_to(a, "https://rebound.example/");
    else if (strcmp(path, "/") == 0)
        origin_page(a, "Content-Type: text/html\r\n",
                    "<!DOCTYPE html><html lang=en><title>Good</title><h1>A page</h1><p>Text.");
    else if (strcmp(path, "/http-1.0") == 0)
        origin_puts(
            a,
            "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<!DOCTYPE html><title>Old</title>");
    else if (probes_lead_inside)
        hop_to(a, strcmp(path, "/robots.txt") == 0 ? "http://127.0.0.1/robots.txt"
                                                   : "http://inside-3.example/");
    else
        origin_puts(a, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}

static void open_all(void)
{
    signal(SIGPIPE, SIG_IGN);
    plain = origin_open_everywhere(answer, 80, NULL);
    tls = origin_open_everywhere(answer, 443, net_tls());
    origin_start(plain);
    origin_start(tls);
    net_dns_start(names, COUNT(names));
    audit = audit_new(&conf);
    ck_assert_ptr_nonnull(audit);
}

/* Every connection went to a public address. */
static void close_all(void)
{
    struct origin *const both[] = {plain, tls};
    audit_free(audit);
    for (size_t i = 0; i < COUNT(both); i++) {
        unsigned strayed = origin_reached(both[i], "") - origin_reached(both[i], "93.184.215.") -
                           origin_reached(both[i], "2606:2800:");
        ck_assert_msg(strayed == 0, "%u connections to forbidden addresses", strayed);
        origin_close(both[i]);
    }
    buf_free(&got.results);
}

static void grade(const char *url)
{
    unsigned before = got.calls;
    audit_add(audit, 1, str_of(url), keep, NULL);
    while (audit_pending(audit) > 0)
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 1000), 0);
    ck_assert_uint_eq(got.calls, before + 1);
}

static void expect_code(const char *url, const char *code)
{
    grade(url);
    ck_assert_msg(strcmp(got.code, code) == 0, "%s: %s %s", url, got.code, got.message);
}

static bool passed(const char *check, const char *outcome)
{
    char member[64];
    snprintf(member, sizeof(member), "\"%s\":{", check);
    const char *at = strstr(got.results.p, member);
    ck_assert_msg(at != NULL, "%s", check);
    return strncmp(strstr(at, "\"passed\":") + 9, outcome, strlen(outcome)) == 0;
}

/* ---- detection of forbidden connections ---- */

static const char *const inside[] = {"10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.0.1",
                                     OWN,        "::1",       "fd00::1",         "64:ff9b::7f00:1"};

START_TEST(the_test_detects_a_connection_to_a_forbidden_address)
{
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
    char mapped[64];
    open_all();
    snprintf(mapped, sizeof(mapped), "%s%s",
             strchr(inside[_i], ':') != NULL ? "" : "::ffff:", inside[_i]);
    ck_assert_int_eq(inet_pton(AF_INET6, mapped, &sa.sin6_addr), 1);
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_msg(connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0, "%s", inside[_i]);
    ck_assert_int_eq(send(fd, "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
    char byte;
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 1);
    ck_assert_uint_eq(origin_reached(plain, inside[_i]), 1);
    close(fd);
}
END_TEST

/* ---- the guard ---- */

START_TEST(a_public_page_is_graded_over_both_families)
{
    open_all();
    expect_code("http://site.example/", "");
    expect_code("http://v6.example/", "");
    ck_assert_uint_gt(origin_reached(plain, "2606:2800:"), 3);
    expect_code("http://" PUBLIC "/", "");
    ck_assert_uint_gt(origin_reached(plain, "93.184.215."), 3);
    close_all();
}
END_TEST

START_TEST(a_redirect_to_a_forbidden_address_is_not_followed)
{
    char url[64];
    open_all();
    for (size_t i = 0; i < COUNT(hops); i++) {
        snprintf(url, sizeof(url), "http://site.example/hop-%zu", i);
        grade(url);
        ck_assert_msg(strcmp(got.code, hops[i][1]) == 0, "%s: %s %s", hops[i][0], got.code,
                      got.message);
    }
    ck_assert_uint_eq(origin_reached(plain, ""), COUNT(hops));
    close_all();
}
END_TEST

START_TEST(a_name_of_a_forbidden_address_is_not_reached)
{
    char url[64];
    open_all();
    for (unsigned i = 0; i < INSIDE; i++) {
        snprintf(url, sizeof(url), "%s://inside-%u.example/", i % 2 == 0 ? "http" : "https", i);
        expect_code(url, "address_forbidden");
    }
    expect_code("http://own.example/", "address_forbidden");
    expect_code("http://" OWN "/", "address_forbidden");
    ck_assert_uint_eq(origin_reached(plain, "") + origin_reached(tls, ""), 0);
    close_all();
}
END_TEST

START_TEST(a_name_rebound_to_loopback_is_refused_at_the_next_lookup)
{
    static const char *const turning[] = {"http://rebound.example/", "http://rebound-v6.example/"};
    open_all();
    for (size_t i = 0; i < COUNT(turning); i++) {
        expect_code(turning[i], "");
        audit_free(audit); /* with its cached names */
        audit = audit_new(&conf);
        ck_assert_ptr_nonnull(audit);
        expect_code(turning[i], "address_forbidden");
    }
    close_all();
}
END_TEST

START_TEST(a_name_rebound_during_a_redirect_is_refused)
{
    open_all();
    /* https resolves the name again */
    expect_code("http://rebound.example/rebound", "address_forbidden");
    ck_assert_uint_eq(origin_reached(plain, "93.184.215."), 1);
    close_all();
}
END_TEST

START_TEST(the_guard_checks_probes)
{
    open_all();
    /* redirects of probes lead to a forbidden address */
    expect_code("http://www.site.example/", "");
    ck_assert(origin_asked(plain, "/robots.txt"));
    /* the http probe resolves the name again, to another address */
    expect_code("https://rebound-probe.example/", "");
    ck_assert_uint_gt(origin_reached(tls, "93.184.215."), 0);
    close_all();
}
END_TEST

START_TEST(only_the_public_one_of_mixed_addresses_is_reached)
{
    open_all();
    expect_code("http://mixed.example/", "");
    expect_code("https://mixed-v6.example/", "");
    close_all();
}
END_TEST

/* ---- names and connections that fail ---- */

START_TEST(a_failure_has_its_code)
{
    open_all();
    expect_code("http://no-such-name.example/", "dns_failed");
    expect_code("http://empty.example/", "dns_failed");
    expect_code("http://site.example:81/", "connect_failed");
    expect_code("https://site.example:80/", "tls_failed");
    close_all();
}
END_TEST

START_TEST(an_unanswered_name_is_dns_failed_within_seconds)
{
    open_all();
    expect_code("http://silent.example/", "dns_failed");
    close_all();
}
END_TEST

static unsigned threads_of_ours(void)
{
    unsigned n = 0;
    DIR *tasks = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(tasks);
    while (readdir(tasks) != NULL)
        n++;
    closedir(tasks);
    return n;
}

/* libcurl's resolver thread outlives its removed transfer by seconds */
START_TEST(a_page_withdrawn_during_dns_ends_with_the_lookup)
{
    open_all();
    unsigned before = threads_of_ours();
    uint64_t began = clock_mono_ms();
    while (clock_mono_ms() - began < 3000) { /* like the writer: at most two jobs per host */
        while (audit_pending(audit) < 2) {
            static char marks[100000];
            static size_t next;
            void *mark = &marks[next++];
            audit_add(audit, 1, STR("http://silent.example/"), keep, mark);
            ck_assert_int_eq(audit_wait(audit, NULL, 0, 1), 0);
            audit_withdraw(audit, mark);
        }
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    }
    ck_assert_uint_le(threads_of_ours(), before + 2);
    while (audit_pending(audit) > 0)
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 100), 0);
    ck_assert_uint_eq(got.withdrawn, got.calls);
    ck_assert_uint_lt(clock_mono_ms() - began, 15000);
    close_all();
}
END_TEST

/* ---- certificates ---- */

static const struct {
    const char *url, *reason; /* "": valid */
} certificates[] = {
    {"https://site.example/", ""},
    {"https://expired.site.example/", "expired"},
    {"https://other.site.example/", "another host name"},
    {"https://self-signed.site.example/", "self-signed"},
    {"https://stranger.site.example/", "local issuer"},
};

START_TEST(a_page_with_any_certificate_is_graded_and_the_certificate_checked)
{
    bool good = certificates[_i].reason[0] == '\0';
    open_all();
    expect_code(certificates[_i].url, "");
    const char *judged = strstr(got.results.p, "\"https_encryption\"");
    ck_assert_ptr_nonnull(judged);
    ck_assert_msg(passed("https_encryption", good ? "true" : "false"), "%s: %.400s",
                  certificates[_i].url, judged);
    ck_assert_msg(good || strstr(judged, certificates[_i].reason) != NULL, "%s: %.400s",
                  certificates[_i].reason, judged);
    ck_assert(passed("title", "true"));
    close_all();
}
END_TEST

START_TEST(a_server_of_http_1_0_is_graded)
{
    open_all();
    expect_code("https://site.example/http-1.0", "");
    ck_assert(passed("http2", "false"));
    close_all();
}
END_TEST

/* ---- nginx: HTTP/2, compression, large pages ---- */

static char nginx_dir[] = "/tmp/assay-nginx-XXXXXX";
static pid_t nginx_pid;

static void write_page(const char *name, size_t size)
{
    static const char begin[] =
        "<!DOCTYPE html><html lang=en><title>Large</title><h1>A page</h1><p>";
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", nginx_dir, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(begin, f);
    for (size_t n = sizeof(begin) - 1; n < size; n++)
        fputc(n % 8 == 0 ? ' ' : "abcdefgh"[n * 7 / 8 % 8], f);
    ck_assert_int_eq(fclose(f), 0);
}

static void start_nginx(void)
{
    char path[128], log[128];
    ck_assert_ptr_nonnull(mkdtemp(nginx_dir));
    ck_assert_int_eq(chmod(nginx_dir, 0755), 0);
    ck_assert(net_write_good(nginx_dir));
    write_page("index.html", 20000);
    write_page("most.html", conf.audit_max_bytes);
    write_page("more.html", conf.audit_max_bytes + 1);
    snprintf(path, sizeof(path), "%s/conf", nginx_dir);
    snprintf(log, sizeof(log), "%s/log", nginx_dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f,
            "daemon off; master_process off; error_log %1$s/log; pid %1$s/pid;\nevents {}\nhttp {\n"
            "types { text/html html; } default_type text/plain; access_log off; gzip on; "
            "gzip_min_length 1;\n"
            "client_body_temp_path %1$s/b; proxy_temp_path %1$s/p; fastcgi_temp_path %1$s/f; "
            "uwsgi_temp_path %1$s/u; scgi_temp_path %1$s/s;\n"
            "server { listen %2$d ssl http2; ssl_certificate %1$s/cert.pem; ssl_certificate_key "
            "%1$s/key.pem; root %1$s; }\n}\n",
            nginx_dir, NGINX_PORT);
    ck_assert_int_eq(fclose(f), 0);
    nginx_pid = fork();
    ck_assert_int_ge(nginx_pid, 0);
    if (nginx_pid == 0) {
        execlp("nginx", "nginx", "-c", path, "-e", log, (char *)NULL);
        _exit(127);
    }
}

static void stop_nginx(void)
{
    char command[128];
    kill(nginx_pid, SIGTERM);
    waitpid(nginx_pid, NULL, 0);
    snprintf(command, sizeof(command), "rm -rf %s", nginx_dir);
    ck_assert_int_eq(system(command), 0);
}

static bool nginx_listens(void)
{
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons(NGINX_PORT),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool listens = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;
    close(fd);
    return listens;
}

START_TEST(nginx_is_graded_over_http_2_up_to_the_largest_page)
{
    open_all();
    start_nginx();
    for (int tries = 0; !nginx_listens() && tries < 500; tries++)
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    expect_code("https://site.example:8443/", "");
    ck_assert(passed("http2", "true"));
    ck_assert(passed("https_encryption", "true"));
    ck_assert(passed("text_compression", "true"));
    ck_assert(passed("not_found_page", "true"));
    expect_code("https://site.example:8443/most.html", "");
    ck_assert(passed("title", "true"));
    expect_code("https://site.example:8443/more.html", "too_large");
    expect_code("https://site.example:8443/none.html", "http_error");
    stop_nginx();
    close_all();
}
END_TEST

int main(void)
{
    suite_processes(3);
    const char *why, *path = getenv("PATH");
    char wider[4096];
    /* where Debian installs it; often not in a user's PATH */
    snprintf(wider, sizeof(wider), "%s:/usr/sbin", path == NULL ? "/bin" : path);
    setenv("PATH", wider, 1);
    bool has_nginx = system("command -v nginx >/dev/null 2>&1") == 0;
    if (!net_enter(OWN, &why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    Suite *s = suite_create("audit_net");
    TCase *t = tcase_create("net");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, the_test_detects_a_connection_to_a_forbidden_address, 0,
                        (int)COUNT(inside));
    tcase_add_test(t, a_public_page_is_graded_over_both_families);
    tcase_add_test(t, a_redirect_to_a_forbidden_address_is_not_followed);
    tcase_add_test(t, a_name_of_a_forbidden_address_is_not_reached);
    tcase_add_test(t, a_name_rebound_to_loopback_is_refused_at_the_next_lookup);
    tcase_add_test(t, a_name_rebound_during_a_redirect_is_refused);
    tcase_add_test(t, the_guard_checks_probes);
    tcase_add_test(t, only_the_public_one_of_mixed_addresses_is_reached);
    tcase_add_test(t, a_failure_has_its_code);
    tcase_add_test(t, an_unanswered_name_is_dns_failed_within_seconds);
    tcase_add_test(t, a_page_withdrawn_during_dns_ends_with_the_lookup);
    tcase_add_loop_test(t, a_page_with_any_certificate_is_graded_and_the_certificate_checked, 0,
                        (int)COUNT(certificates));
    tcase_add_test(t, a_server_of_http_1_0_is_graded);
    if (has_nginx)
        tcase_add_test(t, nginx_is_graded_over_http_2_up_to_the_largest_page);
    suite_add_tcase(s, t);
    int failed = suite_run(s);
    if (failed == 0 && !has_nginx)
        printf("skipped: HTTP/2, since nginx is not installed; the rest passed\n");
    return failed != 0 ? EXIT_FAILURE : has_nginx ? EXIT_SUCCESS : 77;
}
