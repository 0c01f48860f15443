/*
 * The client's address over HTTP: no header gives a new budget; only X-Forwarded-For and the PROXY
 * header of a trusted proxy count.
 */
#include "t/kit/harness.h"
#include "t/kit/tls.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LIMITS(number)                                                                             \
    "limits: { limiters: { bulk-sync: { windows: [ { limit: " number                               \
    ", seconds: 2678400, key: token } ] } } }\n"
#define SURFACE "/v1/wp/none" /* charged to the caller's address */

static struct server *server;

static void setup(void)
{
    server = server_new(&(struct server_options){.workers = 1, .no_key = true});
}

static void teardown(void)
{
    server_discard(server);
}

/* what the limiter has counted for ${address}, as the operator sees it */
static long used_by(const char *address)
{
    struct json_object *list = assay_list(server, "limits", "show", "bulk-sync", address, NULL),
                       *used;
    ck_assert(json_object_object_get_ex(json_object_array_get_idx(list, 0), "used", &used));
    long value = (long)json_object_get_int64(used);
    json_object_put(list);
    return value;
}

/* ---- headers ---- */

/* Headers that have misled other limiters. The number differs in each request. */
static const char *const tricks[] = {
    "X-Forwarded-For: 198.51.100.%d",
    "x-forwarded-for: 198.51.100.%d",
    "X-FORWARDED-FOR: 198.51.100.%d, 127.0.0.1",
    "X-Forwarded-For: 127.0.0.1, 198.51.100.%d",
    "X-Forwarded-For: 198.51.100.7:%d",
    "X-Forwarded-For: 2001:db8:%d::1",
    "X-Forwarded-For: ::ffff:198.51.100.%d",
    "X-Forwarded-For: , 198.51.100.%d",
    "X-Real-IP: 198.51.100.%d",
    "X-Client-IP: 198.51.100.%d",
    "X-Cluster-Client-IP: 198.51.100.%d",
    "X-Remote-IP: 198.51.100.%d",
    "X-Remote-Addr: 198.51.100.%d",
    "X-Originating-IP: 198.51.100.%d",
    "X-Forwarded: for=198.51.100.%d",
    "X-Forwarded-Host: 198.51.100.%d",
    "X-Host: 198.51.100.%d",
    "X-Custom-IP-Authorization: 198.51.100.%d",
    "X-ProxyUser-Ip: 198.51.100.%d",
    "Forwarded: for=198.51.100.%d",
    "Forwarded: for=\"[2001:db8::%d]\";proto=https;by=203.0.113.43",
    "Forwarded-For: 198.51.100.%d",
    "Forwarded-For-Ip: 198.51.100.%d",
    "True-Client-IP: 198.51.100.%d",
    "CF-Connecting-IP: 198.51.100.%d",
    "CF-Connecting-IPv6: 2001:db8::%d",
    "Fastly-Client-IP: 198.51.100.%d",
    "Fly-Client-IP: 198.51.100.%d",
    "X-Azure-ClientIP: 198.51.100.%d",
    "X-Vercel-Forwarded-For: 198.51.100.%d",
    "X-Original-Forwarded-For: 198.51.100.%d",
    "X_Forwarded_For: 198.51.100.%d",
    "X-Forwarded-For-Original: 198.51.100.%d",
    "Client-IP: 198.51.100.%d",
    "Via: 1.1 198.51.100.%d",
    "WL-Proxy-Client-IP: 198.51.100.%d",
    "User-Agent: %d",
    "Host: h%d.test",
    "Cookie: session=%d",
    "Authorization: Bearer asy_wp_%d",
    "X-Request-Id: %d",
};

START_TEST(no_header_gives_a_new_budget)
{
    server_start_with(server, LIMITS("500"));
    for (int i = 0; i < (int)COUNT(tricks) * 3; i++) {
        const char *trick = tricks[i / 3];
        char line[256];
        /* the headers are formats with one number */
        const char *mark = strstr(trick, "%d");
        snprintf(line, sizeof(line), "%.*s%d%s", (int)(mark - trick), trick, i + 1, mark + 2);
        struct response *r = http(server, .path = SURFACE, .key = "", .headers = {line});
        ck_assert_msg(header_number(r, "X-RateLimit-Remaining") == 499 - i, "%s", response_text(r));
        response_free(r);
    }
    ck_assert_int_eq(used_by("127.0.0.1"), (long)COUNT(tricks) * 3);
    server_stop(server);
}
END_TEST

/* Columns: trusted addresses; up to three header lines in order; the charged address. */
static const struct {
    const char *trusted, *lines[3], *client;
} forwards[] = {
    {"", {"X-Forwarded-For: 198.51.100.7"}, "127.0.0.1"},
    {"10.0.0.0/8", {"X-Forwarded-For: 198.51.100.7"}, "127.0.0.1"},
    {"127.0.0.1", {"X-Forwarded-For: 198.51.100.7"}, "198.51.100.7"},
    {"'::ffff:127.0.0.1'", {"X-Forwarded-For: 198.51.100.7"}, "198.51.100.7"},
    {"127.0.0.1", {"x-FORWARDED-for: 198.51.100.7"}, "198.51.100.7"},
    /* the caller sent the left part itself */
    {"127.0.0.1", {"X-Forwarded-For: 1.2.3.4, 198.51.100.7"}, "198.51.100.7"},
    {"127.0.0.1", {"X-Forwarded-For: 127.0.0.1, 198.51.100.7"}, "198.51.100.7"},
    {"127.0.0.0/8, 10.0.0.0/8",
     {"X-Forwarded-For: 10.1.1.1, 198.51.100.7, 10.1.2.3"},
     "198.51.100.7"},
    {"127.0.0.0/8, 10.0.0.0/8", {"X-Forwarded-For: 10.1.1.1, 10.1.2.3"}, "10.1.1.1"},
    /* several lines are one list: the last one is the proxy's */
    {"127.0.0.1", {"X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 198.51.100.7"}, "198.51.100.7"},
    {"127.0.0.1", {"X-Forwarded-For: 198.51.100.7", "X-Real-IP: 1.2.3.4"}, "198.51.100.7"},
    {"127.0.0.0/8, 10.0.0.0/8",
     {"X-Forwarded-For: 198.51.100.7", "X-Forwarded-For: 10.1.1.1", "X-Forwarded-For: 10.2.2.2"},
     "198.51.100.7"},
    {"127.0.0.0/8, 10.0.0.0/8",
     {"X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: nonsense", "X-Forwarded-For: 10.2.2.2"},
     "10.2.2.2"},
    /* another spelling is the same address */
    {"127.0.0.1", {"X-Forwarded-For: ::ffff:c633:6407"}, "198.51.100.7"},
    {"127.0.0.1", {"X-Forwarded-For: 198.51.100.7:1234"}, "198.51.100.7"},
    {"127.0.0.1", {"X-Forwarded-For: [2001:db8:1:2::99]:1234"}, "2001:db8:1:2::/64"},
    {"127.0.0.1", {"X-Forwarded-For: 2001:db8:1:2::1.2.3.4"}, "2001:db8:1:2::/64"},
    /* without an address, the proxy itself is charged */
    {"127.0.0.1", {"X-Forwarded-For: unknown"}, "127.0.0.1"},
    {"127.0.0.1", {"X-Forwarded-For: 0x7f.1"}, "127.0.0.1"},
    {"127.0.0.1", {"X-Forwarded-For: fe80::1%eth0"}, "127.0.0.1"},
};

START_TEST(the_client_is_the_address_seen_by_the_nearest_proxy)
{
    server_start_with(server, text("trusted_proxies: [%s]\n" LIMITS("5"), forwards[_i].trusted));
    const char *const *lines = forwards[_i].lines;
    expect_status(
        http(server, .path = SURFACE, .key = "", .headers = {lines[0], lines[1], lines[2]}), 404);
    ck_assert_msg(used_by(forwards[_i].client) == 1, "%s is not charged", forwards[_i].client);
    server_stop(server);
}
END_TEST

START_TEST(an_ipv6_caller_cannot_rotate_within_its_network)
{
    server_start_with(server, "trusted_proxies: [127.0.0.1]\n" LIMITS("3"));
    for (int i = 0; i < 10; i++) {
        struct response *r =
            http(server, .path = SURFACE, .key = "",
                 .headers = {text("X-Forwarded-For: 2001:db8:1:2:%x::%x", i + 1, i * 77)});
        expect_status(r, i < 3 ? 404 : 429);
    }
    expect_status(
        http(server, .path = SURFACE, .key = "", .headers = {"X-Forwarded-For: 2001:db8:1:3::1"}),
        404);
    server_configure(server, "trusted_proxies: [127.0.0.1]\nlimits: { ipv6_prefix: 48, limiters: { "
                             "bulk-sync: { windows: "
                             "[ { limit: 3, seconds: 2678400, key: token } ] } } }");
    server_signal(server, SIGHUP);
    int64_t deadline = now_ms() + 10000;
    struct response *r;
    int network = 0x10; /* a different one each time: only the new prefix joins them */
    do
        r = http(server, .path = SURFACE, .key = "",
                 .headers = {text("X-Forwarded-For: 2001:db8:1:%x::1", network++)});
    while (r->status != 429 && now_ms() < deadline);
    expect_status(r, 429);
    expect_status(http(server, .path = SURFACE, .key = "",
                       .headers = {"X-Forwarded-For: 2001:db8:1:ffff::1"}),
                  429);
    server_stop(server);
}
END_TEST

START_TEST(a_unix_socket_client_is_a_proxy)
{
    char *path = text("%s/http.sock", server->dir);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    server_configure(server, LIMITS("5"));
    server_spawn(server, "--set", text("listen.1.address=unix:%s", path), NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    strcpy(to.sun_path, path);
    struct raw *raw = raw_open(server);
    close(raw->fd);
    raw->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(raw->fd, (struct sockaddr *)&to, sizeof(to)), 0);
    raw_text(raw, "GET " SURFACE
                  " HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.2.3.4, 198.51.100.7\r\n\r\n");
    expect_status(raw_response(raw, false, 5000), 404);
    raw_close(raw);
    ck_assert_int_eq(used_by("198.51.100.7"), 1);
    server_stop(server);
}
END_TEST

/* ---- the PROXY protocol ---- */

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V4 "\xc6\x33\x64\x07\xc0\x00\x02\x01\x12\x34\x00\x50"
#define V6                                                                                         \
    "\x20\x01\x0d\xb8\0\x01\0\x02\0\0\0\0\0\0\0\x07"                                               \
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"                                                   \
    "\x12\x34\x00\x50"
#define PROXIED "trusted_proxies: [127.0.0.0/8]\n" LIMITS("1000")
#define BYTES(literal) (literal), sizeof(literal) - 1
static const char request[] =
    "GET " SURFACE " HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.99\r\n\r\n";

static void start_proxied(const char *yaml)
{
    server_configure(server, yaml);
    server_spawn(server, "--set", "listen.0.proxy_protocol=true", NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
}

/* Columns: the header; who is charged for a request after it (its X-Forwarded-For is ignored). */
static const struct {
    const char *bytes;
    size_t size;
    const char *client;
} headers[] = {
    {BYTES("PROXY TCP4 198.51.100.7 192.0.2.1 4660 80\r\n"), "198.51.100.7"},
    {BYTES("PROXY TCP6 2001:db8:1:2::7 ::1 4660 80\r\n"), "2001:db8:1:2::/64"},
    {BYTES("PROXY TCP6 ::ffff:198.51.100.7 ::1 4660 80\r\n"), "198.51.100.7"},
    {BYTES("PROXY UNKNOWN\r\n"), "127.0.0.1"},
    {BYTES(SIGNATURE "\x21\x11\0\x0c" V4), "198.51.100.7"},
    {BYTES(SIGNATURE "\x21\x11\0\x13" V4 "\x03\0\x04"
                     "abcd"),
     "198.51.100.7"},
    {BYTES(SIGNATURE "\x21\x21\0\x24" V6), "2001:db8:1:2::/64"},
    {BYTES(SIGNATURE "\x20\x11\0\x0c" V4), "127.0.0.1"},
    {BYTES(SIGNATURE "\x21\0\0\0"), "127.0.0.1"},
};

START_TEST(the_proxy_protocol_names_the_client)
{
    start_proxied(PROXIED);
    for (int i = 0; i < 2; i++) { /* in one segment with the request, then byte by byte */
        struct raw *raw = raw_open(server);
        for (size_t at = 0; i == 1 && at < headers[_i].size; at++) {
            raw_send(raw, headers[_i].bytes + at, 1);
            usleep(1000); /* separate segments; either is accepted */
        }
        char *all = malloc(headers[_i].size + sizeof(request));
        memcpy(all, headers[_i].bytes, headers[_i].size);
        memcpy(all + headers[_i].size, request, sizeof(request));
        if (i == 0)
            raw_send(raw, all, headers[_i].size + sizeof(request) - 1);
        else
            raw_text(raw, "%s", request);
        expect_status(raw_response(raw, false, 5000), 404);
        raw_text(raw, "%s", request); /* it applies to the whole connection */
        expect_status(raw_response(raw, false, 5000), 404);
        raw_close(raw);
        free(all);
    }
    ck_assert_msg(used_by(headers[_i].client) == 4, "%s is charged %ld", headers[_i].client,
                  used_by(headers[_i].client));
    server_stop(server);
}
END_TEST

START_TEST(a_trusted_client_behind_the_proxy_protocol_can_forward)
{
    start_proxied("trusted_proxies: [127.0.0.0/8, 198.51.100.0/24]\n" LIMITS("5"));
    struct raw *raw = raw_open(server);
    raw_text(raw, "PROXY TCP4 198.51.100.7 192.0.2.1 4660 80\r\n%s", request);
    expect_status(raw_response(raw, false, 5000), 404);
    raw_close(raw);
    ck_assert_int_eq(used_by("203.0.113.99"), 1);
    server_stop(server);
}
END_TEST

static const struct {
    const char *bytes;
    size_t size;
} no_headers[] = {
    {request, sizeof(request) - 1},
    {BYTES("PROXY TCP4 1.1.1.1\r\n")},
    {BYTES("PROXY TCP4 1.1.1.1 1.1.1.1 1 1\n")},
    {BYTES("PROXY UNKNOWN "
           "123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
           "8901234567")},
    {BYTES(SIGNATURE "\x21\x11\x7f\xff" V4)},
    {BYTES(SIGNATURE "\x31\x11\0\x0c" V4)},
    {BYTES("\x16\x03\x01\x02\0\x01")},
    {BYTES("P\0")},
};

START_TEST(a_malformed_proxy_header_closes_the_connection)
{
    start_proxied(PROXIED);
    struct raw *raw = raw_open(server);
    raw_send(raw, no_headers[_i].bytes, no_headers[_i].size);
    ck_assert(raw_closed(raw, 4000)); /* at once, not after the header timeout */
    ck_assert_uint_eq(raw->in_size, 0);
    raw_close(raw);
    raw = raw_open(server);
    raw_text(raw, "PROXY UNKNOWN\r\n%s", request);
    expect_status(raw_response(raw, false, 5000), 404);
    raw_close(raw);
    server_stop(server);
}
END_TEST

START_TEST(a_late_proxy_header_closes_the_connection)
{
    start_proxied(PROXIED);
    struct raw *silent = raw_open(server), *slow = raw_open(server);
    raw_text(slow, "PROXY TCP4 198.51.100.7 ");
    int64_t began = now_ms();
    ck_assert(raw_closed(slow, 9000) && raw_closed(silent, 9000));
    ck_assert_int_ge(now_ms() - began, 4000);
    raw_close(slow);
    raw_close(silent);
    server_stop(server);
}
END_TEST

START_TEST(an_untrusted_forwarding_header_is_ignored)
{
    start_proxied("trusted_proxies: [10.0.0.0/8]\n");
    struct raw *raw = raw_open(server);
    raw_text(raw, "PROXY TCP4 198.51.100.7 192.0.2.1 4660 80\r\n%s", request);
    ck_assert(raw_closed(raw, 4000));
    ck_assert_uint_eq(raw->in_size, 0);
    raw_close(raw);
    ck_assert_msg(
        strstr(
            server_log(server),
            "127.0.0.1 to a listener with proxy_protocol: the address is not in trusted_proxies"),
        "%s", server_log(server));
    server_stop(server);
}
END_TEST

START_TEST(a_listener_without_the_proxy_protocol_refuses_a_header)
{
    server_start_with(server, "trusted_proxies: [127.0.0.0/8]\n");
    struct raw *raw = raw_open(server);
    raw_text(raw, "PROXY TCP4 198.51.100.7 192.0.2.1 4660 80\r\n%s", request);
    struct response *r = raw_response(raw, false, 5000);
    ck_assert_int_eq(r->status, 400);
    raw_close(raw);
    server_stop(server);
}
END_TEST

/* ---- and TLS behind it ---- */

START_TEST(the_proxy_header_precedes_the_tls_handshake)
{
    char *certificate = text("%s/cert.pem", server->dir), *key = text("%s/key.pem", server->dir),
         answer[64] = "";
    EVP_PKEY_free(tls_pair(certificate, key, false, 1));
    server_configure(server, PROXIED);
    server_spawn(server, "--set", "listen.0.proxy_protocol=true", "--set",
                 text("listen.0.tls.certificate=%s", certificate), "--set",
                 text("listen.0.tls.key=%s", key), NULL);
    char line[256] = "";
    unsigned port = 0;
    for (size_t n = 0; port == 0 && n < sizeof(line) - 1 && read(server->output, line + n, 1) == 1;
         n++)
        if (line[n] == '\n')
            ck_assert_int_eq(sscanf(line, "ready https://127.0.0.1:%u ", &port), 1);
    ck_assert_msg(port > 0, "%s", server_log(server));
    server->port = (uint16_t)port;
    struct raw *raw = raw_open(server);
    raw_send(raw, BYTES(SIGNATURE "\x21\x11\0\x0c" V4));
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    SSL_set_fd(ssl, raw->fd);
    ck_assert_int_eq(SSL_connect(ssl), 1);
    ck_assert_int_eq(SSL_write(ssl, request, sizeof(request) - 1), sizeof(request) - 1);
    ck_assert_int_gt(SSL_read(ssl, answer, sizeof(answer) - 1), 0);
    ck_assert_msg(strncmp(answer, "HTTP/1.1 404", 12) == 0, "%s", answer);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    raw_close(raw);
    ck_assert_int_eq(used_by("198.51.100.7"), 1);
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *suite = suite_create("client_ip");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, no_header_gives_a_new_budget);
    tcase_add_loop_test(tcase, the_client_is_the_address_seen_by_the_nearest_proxy, 0,
                        COUNT(forwards));
    tcase_add_test(tcase, an_ipv6_caller_cannot_rotate_within_its_network);
    tcase_add_test(tcase, a_unix_socket_client_is_a_proxy);
    tcase_add_loop_test(tcase, the_proxy_protocol_names_the_client, 0, COUNT(headers));
    tcase_add_test(tcase, a_trusted_client_behind_the_proxy_protocol_can_forward);
    tcase_add_loop_test(tcase, a_malformed_proxy_header_closes_the_connection, 0,
                        COUNT(no_headers));
    tcase_add_test(tcase, a_late_proxy_header_closes_the_connection);
    tcase_add_test(tcase, an_untrusted_forwarding_header_is_ignored);
    tcase_add_test(tcase, a_listener_without_the_proxy_protocol_refuses_a_header);
    tcase_add_test(tcase, the_proxy_header_precedes_the_tls_handshake);
    return harness_main(suite);
}
