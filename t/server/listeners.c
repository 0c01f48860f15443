/* Listeners of every kind, and the client's address on each. */
#include "t/kit/harness.h"
#include "t/kit/tls.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static struct server *server;

static void setup(void)
{
    server = server_new(&(struct server_options){0});
}

static void teardown(void)
{
    server_free(server);
}

static struct raw *raw_of(int fd)
{
    struct raw *raw = calloc(1, sizeof(*raw));
    ck_assert_ptr_nonnull(raw);
    raw->fd = fd;
    return raw;
}

static struct response *ask_unix(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    ck_assert_uint_lt(strlen(path), sizeof(to.sun_path));
    strcpy(to.sun_path, path);
    struct raw *raw = raw_of(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ck_assert_msg(!connect(raw->fd, (struct sockaddr *)&to, sizeof(to)), "%s: %s", path,
                  strerror(errno));
    raw_get(raw, server->key, "/api/v1/reports");
    struct response *r = raw_response(raw, false, 5000);
    raw_close(raw);
    return r;
}

START_TEST(a_unix_socket_is_served_beside_a_port)
{
    char *path = text("%s/http.sock", server->dir), *set = text("listen.1.address=unix:%s", path);
    server_spawn(server, "--set", set, NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    assay_ok(server, "workspace", "create", "main", NULL);
    server->key = key_new(server, "main", NULL);
    for (int i = 0; i < 10; i++)
        expect_status(ask_unix(path), 200);
    expect_status(http_get(server, "/api/v1/reports"), 200);
    server_stop(server);
    struct stat st;
    ck_assert_msg(stat(path, &st) != 0, "the socket is left behind");
    server_spawn(server, "--set", set, NULL);
    ck_assert(server_ready(server, 15000));
    server_signal(server, SIGKILL); /* leaves the file there: the next socket replaces it */
    ck_assert_int_eq(server_wait(server, 5000), 128 + SIGKILL);
    server_spawn(server, "--set", set, NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    expect_status(ask_unix(path), 200);
    server_stop(server);
}
END_TEST

START_TEST(two_ports_are_served_by_every_worker)
{
    server_spawn(server, "--set", "listen.1.address=127.0.0.1:0", "--set",
                 "listen.2.address=[::1]:0", NULL);
    if (!server_ready(server, 15000)) { /* no IPv6 here */
        server_wait(server, 5000);
        ck_assert_msg(strstr(server_log(server), "::1") != NULL, "%s", server_log(server));
        return;
    }
    char lines[1024] = "";
    ssize_t got = read(server->output, lines, sizeof(lines) - 1);
    ck_assert_int_gt(got, 0);
    unsigned port;
    ck_assert_msg(sscanf(lines, "ready http://127.0.0.1:%u ", &port) == 1, "second line: %s",
                  lines);
    ck_assert_msg(strstr(lines, "ready http://[::1]:") != NULL, "third line: %s", lines);
    struct server second = *server;
    second.url = text("http://127.0.0.1:%u", port);
    for (int i = 0; i < 10; i++)
        expect_status(http(&second, .path = "/healthz"), 200);
    server_stop(server);
}
END_TEST

/* ---- TLS ---- */

static long status_over_tls(const char *url, long version)
{
    CURL *curl = curl_easy_init();
    long status = 0;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, version);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 10000L);
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    CURLcode code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    long http_version = 0;
    curl_easy_getinfo(curl, CURLINFO_HTTP_VERSION, &http_version);
    ck_assert_msg(code != CURLE_OK || http_version == CURL_HTTP_VERSION_1_1,
                  "HTTP/2 was negotiated");
    curl_easy_cleanup(curl);
    return status;
}

START_TEST(tls_is_served_with_the_given_certificate)
{
    char *certificate = text("%s/cert.pem", server->dir), *key = text("%s/key.pem", server->dir);
    EVP_PKEY_free(tls_pair(certificate, key, false, 1));
    server_spawn(server, "--set", "listen.1.address=127.0.0.1:0", "--set",
                 text("listen.1.tls.certificate=%s", certificate), "--set",
                 text("listen.1.tls.key=%s", key), NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    char line[256] = "", url[128];
    ck_assert_int_gt(read(server->output, line, sizeof(line) - 1), 0);
    ck_assert_msg(sscanf(line, "ready %100s workers=", url) == 1 && !strncmp(url, "https://", 8),
                  "second line: %s", line);
    char *healthz = text("%s/healthz", url);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(status_over_tls(healthz, CURL_SSLVERSION_DEFAULT), 200);
    ck_assert_int_eq(
        status_over_tls(healthz, CURL_SSLVERSION_TLSv1_1 | CURL_SSLVERSION_MAX_TLSv1_1), 0);
    server_stop(server);
}
END_TEST

START_TEST(a_malformed_certificate_is_refused_by_name)
{
    char *missing = text("%s/none.pem", server->dir);
    struct run run = run_program(assayd_path(), "-c", server->conf, "--set",
                                 text("listen.0.tls.certificate=%s", missing), "--set",
                                 text("listen.0.tls.key=%s", missing), NULL);
    ck_assert_msg(run.status == 1, "%d: %s", run.status, run.err);
    ck_assert_msg(strstr(run.err, missing) != NULL, "%s", run.err);
}
END_TEST

/* ---- clients ---- */

/* The client of a request in the access log. */
static bool logged_as(const char *log, const char *id, const char *ip)
{
    struct run run = run_program("/bin/grep", "-m1", id, log, NULL);
    struct json_object *line = run.status == 0 ? json_tokener_parse(run.out) : NULL, *value;
    ck_assert_msg(!line || (json_object_object_get_ex(line, "ip", &value) &&
                            !strcmp(json_object_get_string(value), ip)),
                  "not %s: %s", ip, run.out);
    json_object_put(line);
    return line != NULL;
}

static const struct {
    const char *trusted, *forwarded, *ip;
} forwards[] = {
    {"", "198.51.100.7", "127.0.0.1"},
    {"127.0.0.1", "198.51.100.7", "198.51.100.7"},
    {"127.0.0.0/8", "203.0.113.9, 198.51.100.7", "198.51.100.7"},
    {"127.0.0.0/8, 10.0.0.0/8", "203.0.113.9, 198.51.100.7, 10.1.2.3", "198.51.100.7"},
    {"127.0.0.0/8", "198.51.100.7, nonsense", "127.0.0.1"},
    {"127.0.0.0/8", "::ffff:198.51.100.7", "198.51.100.7"},
    {"127.0.0.0/8", "2001:db8::7", "2001:db8::7"},
    {"127.0.0.0/8", "", "127.0.0.1"},
};

START_TEST(the_client_is_the_rightmost_untrusted_address)
{
    char *log = text("%s/access.log", server->dir), *id = text("forward-%d", _i);
    server_configure(server,
                     text("trusted_proxies: [%s]\nlog: { access: %s }", forwards[_i].trusted, log));
    server_start(server);
    expect_status(http(server, .path = "/healthz",
                       .headers = {text("X-Request-Id: %s", id),
                                   text("X-Forwarded-For: %s", forwards[_i].forwarded)}),
                  200);
    server_stop(server);
    ck_assert_msg(logged_as(log, id, forwards[_i].ip), "not in the access log");
}
END_TEST

START_TEST(connections_over_the_limit_do_not_harm_others)
{
    server_configure(server, "max_connections: 16");
    server_start(server);
    struct raw *first = raw_open(server), *raws[60];
    raw_text(first, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_status(raw_response(first, false, 5000), 200);
    raw_close(first);
    for (size_t i = 0; i < COUNT(raws); i++)
        raws[i] = raw_open(server);
    /* an idle connection can be evicted; one with a request is admitted */
    first = raw_open(server);
    raw_get(first, server->key, "/api/v1/reports");
    expect_status(raw_response(first, false, 5000), 200);
    for (size_t i = 0; i < COUNT(raws); i++)
        raw_close(raws[i]);
    int64_t deadline = now_ms() + 5000;
    struct response *r;
    do
        r = http(server, .path = "/healthz", .may_fail = true, .timeout_ms = 2000);
    while (r->status != 200 && now_ms() < deadline);
    expect_status(r, 200);
    server_stop(server);
}
END_TEST

static bool answers(void *arg)
{
    (void)arg;
    struct response *r = http(server, .path = "/healthz", .may_fail = true, .timeout_ms = 500);
    return r->status == 200;
}

START_TEST(a_worker_without_descriptors_waits_without_polling)
{
    struct raw *raws[100];
    server->options.workers = 1;
    server_configure(server, "");
    server_start(server);
    pid_t worker = server_process(server, "assayd: worker 0");
    struct rlimit had;
    /* fewer than it holds: an eviction frees no descriptor */
    ck_assert_int_eq(prlimit(worker, RLIMIT_NOFILE, NULL, &had), 0);
    ck_assert_int_eq(prlimit(worker, RLIMIT_NOFILE, &(struct rlimit){4, had.rlim_max}, NULL), 0);
    for (size_t i = 0; i < COUNT(raws); i++)
        raws[i] = raw_open(server);
    struct response *r = http(server, .path = "/healthz", .may_fail = true, .timeout_ms = 1000);
    ck_assert_msg(r->status == 0, "descriptors are left");
    double before = process_seconds(worker);
    int64_t until = now_ms() + 2000;
    while (now_ms() < until)
        poll(NULL, 0, 100);
    double used = process_seconds(worker) - before;
    ck_assert_msg(used < 0.5, "%.2f s of 2 s", used);
    for (size_t i = 0; i < COUNT(raws); i++)
        raw_close(raws[i]);
    ck_assert_int_eq(prlimit(worker, RLIMIT_NOFILE, &had, NULL), 0);
    ck_assert_msg(wait_until(answers, NULL, 10000), "it accepts no connection");
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(2);
    Suite *suite = suite_create("listeners");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_unix_socket_is_served_beside_a_port);
    tcase_add_test(tcase, two_ports_are_served_by_every_worker);
    tcase_add_test(tcase, tls_is_served_with_the_given_certificate);
    tcase_add_test(tcase, a_malformed_certificate_is_refused_by_name);
    tcase_add_loop_test(tcase, the_client_is_the_rightmost_untrusted_address, 0, COUNT(forwards));
    tcase_add_test(tcase, connections_over_the_limit_do_not_harm_others);
    tcase_add_test(tcase, a_worker_without_descriptors_waits_without_polling);
    return harness_main(suite);
}
