/* TLS of the listeners: what is spoken, certificates of two kinds, their change by a reload, and sessions that go on at any worker. operating.md. */
#include "harness.h"
#include "tls_kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static struct server *server;
static char *ec[2], *rsa[2]; /* certificate, key */

static void write_pair(char *const paths[2], bool is_rsa, long serial)
{
    EVP_PKEY_free(tls_pair(paths[0], paths[1], is_rsa, serial));
}

static void setup(void)
{
    server = server_new(&(struct server_options){.workers = 2});
    for (int i = 0; i < 2; i++) {
        ec[i] = text("%s/ec.%d", server->dir, i);
        rsa[i] = text("%s/rsa.%d", server->dir, i);
    }
    write_pair(ec, false, 1);
    write_pair(rsa, true, 2);
}

static void teardown(void)
{
    server_discard(server);
}

static const char *also = "workers=2"; /* one more setting */

/* the server's second listener, with one certificate or two */
static uint16_t start_tls(char *const first[2], char *const second[2])
{
    char *more = second == NULL ? text("workers=2") : text("listen.1.tls.second_certificate=%s", second[0]);
    unsigned port;
    server_spawn(server, "--set", "listen.1.address=127.0.0.1:0", "--set", text("listen.1.tls.certificate=%s", first[0]), "--set",
                 text("listen.1.tls.key=%s", first[1]), "--set", more, "--set",
                 second == NULL ? "workers=2" : text("listen.1.tls.second_key=%s", second[1]), "--set", also, NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    char line[256] = "";
    ck_assert_int_gt(read(server->output, line, sizeof(line) - 1), 0);
    ck_assert_msg(sscanf(line, "ready https://127.0.0.1:%u workers=", &port) == 1, "second line: %s", line);
    return (uint16_t)port;
}

struct offer {
    int least, most; /* versions; 0: the library's */
    const char *ciphers, *signatures, *protocols; /* NULL: the library's, none */
    SSL_SESSION *session;
};
struct handshake {
    bool done, resumed;
    int kind; /* of the server's key */
    long serial;
    bool hsts; /* a year of it */
    char protocol[16];
    SSL_SESSION *session;
};

static struct handshake shake(uint16_t port, const struct offer *o)
{
    struct handshake h = {.done = false};
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const unsigned char *protocol = NULL;
    unsigned size = 0;
    char answer[1024] = "";
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(ctx, o->least);
    SSL_CTX_set_max_proto_version(ctx, o->most);
    SSL_CTX_set_security_level(ctx, 0); /* what is refused is to be refused by the server */
    ck_assert(o->ciphers == NULL || SSL_CTX_set_cipher_list(ctx, o->ciphers) == 1);
    ck_assert(o->signatures == NULL || SSL_CTX_set1_sigalgs_list(ctx, o->signatures) == 1);
    if (o->protocols != NULL)
        SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)o->protocols, (unsigned)strlen(o->protocols));
    SSL *ssl = SSL_new(ctx);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    SSL_set_fd(ssl, fd);
    if (o->session != NULL)
        SSL_set_session(ssl, o->session);
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    if (SSL_connect(ssl) == 1 && SSL_write(ssl, request, sizeof(request) - 1) > 0 && SSL_read(ssl, answer, sizeof(answer) - 1) > 0) {
        X509 *cert = SSL_get1_peer_certificate(ssl);
        h.done = strncmp(answer, "HTTP/1.1 200", 12) == 0;
        h.hsts = strcasestr(answer, "\r\nstrict-transport-security: max-age=31536000\r\n") != NULL;
        h.resumed = SSL_session_reused(ssl) == 1;
        h.kind = EVP_PKEY_get_base_id(X509_get0_pubkey(cert));
        h.serial = ASN1_INTEGER_get(X509_get0_serialNumber(cert));
        h.session = SSL_get1_session(ssl);
        SSL_get0_alpn_selected(ssl, &protocol, &size);
        snprintf(h.protocol, sizeof(h.protocol), "%.*s", (int)size, protocol == NULL ? "" : (const char *)protocol);
        X509_free(cert);
    }
    SSL_shutdown(ssl);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close(fd);
    return h;
}

static const struct {
    const char *what;
    struct offer offer;
    bool done;
    const char *protocol;
} offers[] = {
    {"TLS 1.3", {.least = TLS1_3_VERSION}, true, ""},
    {"TLS 1.2", {.most = TLS1_2_VERSION}, true, ""},
    {"TLS 1.1", {.most = TLS1_1_VERSION}, false, ""},
    {"TLS 1.0", {.most = TLS1_VERSION}, false, ""},
    {"forward secret and authenticated", {.most = TLS1_2_VERSION, .ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"}, true, ""},
    {"ChaCha20", {.most = TLS1_2_VERSION, .ciphers = "ECDHE-ECDSA-CHACHA20-POLY1305"}, true, ""},
    {"CBC", {.most = TLS1_2_VERSION, .ciphers = "ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES256-SHA"}, false, ""},
    {"no forward secrecy", {.most = TLS1_2_VERSION, .ciphers = "AES128-GCM-SHA256:AES256-SHA"}, false, ""},
    {"no authentication", {.most = TLS1_2_VERSION, .ciphers = "aNULL:eNULL"}, false, ""},
    {"HTTP/2 or HTTP/1.1", {.protocols = "\x02h2\x08http/1.1"}, true, "http/1.1"},
    {"HTTP/1.1", {.protocols = "\x08http/1.1"}, true, "http/1.1"},
    {"only HTTP/2", {.protocols = "\x02h2"}, false, ""},
};

START_TEST(only_what_is_safe_is_spoken)
{
    uint16_t port = start_tls(ec, NULL);
    for (size_t i = 0; i < COUNT(offers); i++) {
        struct handshake h = shake(port, &offers[i].offer);
        ck_assert_msg(h.done == offers[i].done, "%s", offers[i].what);
        ck_assert_msg(strcmp(h.protocol, offers[i].protocol) == 0, "%s: %s", offers[i].what, h.protocol);
        SSL_SESSION_free(h.session);
    }
    server_stop(server);
}
END_TEST

START_TEST(each_client_gets_the_certificate_it_knows)
{
    static const struct {
        const char *signatures;
        int kind;
    } clients[] = {{"ecdsa_secp256r1_sha256", EVP_PKEY_EC}, {"RSA+SHA256:rsa_pss_rsae_sha256", EVP_PKEY_RSA}};
    for (int turned = 0; turned < 2; turned++) {
        uint16_t port = turned ? start_tls(rsa, ec) : start_tls(ec, rsa);
        for (size_t i = 0; i < COUNT(clients); i++)
            for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
                struct handshake h = shake(port, &(struct offer){.least = version, .most = version, .signatures = clients[i].signatures});
                ck_assert_msg(h.done && h.kind == clients[i].kind, "%s: %d", clients[i].signatures, h.kind);
                SSL_SESSION_free(h.session);
            }
        server_stop(server);
    }
}
END_TEST

START_TEST(browsers_are_told_to_come_by_tls_alone_where_that_is_asked_for)
{
    for (int asked = 0; asked < 2; asked++) {
        also = asked ? "listen.1.tls.hsts=365d" : "workers=2";
        struct handshake h = shake(start_tls(ec, NULL), &(struct offer){.least = TLS1_2_VERSION});
        ck_assert(h.done && h.hsts == asked);
        SSL_SESSION_free(h.session);
        ck_assert(header(http_get(server, "/healthz"), "Strict-Transport-Security") == NULL); /* over plain HTTP it says nothing */
        server_stop(server);
    }
}
END_TEST

static uint16_t port_asked;

static bool serial_is_7(void *arg)
{
    struct handshake h = shake(port_asked, &(struct offer){.least = TLS1_2_VERSION});
    SSL_SESSION_free(h.session);
    ck_assert(h.done);
    (void)arg;
    return h.serial == 7;
}

/* Columns: what a client of plain HTTP sends, and how much of the answer it gets. */
static const struct {
    const char *head;
    enum { ALL, HEAD_ALONE, NOTHING } answer;
} plain[] = {
    {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", ALL},
    {"POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nurl=x", ALL},
    {"PUT / HTTP/1.0\r\n\r\n", ALL},
    {"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", ALL},
    {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", ALL},
    {"PATCH / HTTP/1.1\r\nHost: x\r\n\r\n", ALL},
    {"CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", ALL},
    {"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", HEAD_ALONE},
    {"GETAWAY\r\n\r\n", NOTHING},
    {"SSH-2.0-OpenSSH_9.2\r\n", NOTHING},
    {"get / http/1.1\r\n\r\n", NOTHING},
};

/* what comes until the end of the connection, by pieces of ${piece} bytes */
static char *plain_answer(uint16_t port, const char *head, size_t piece)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char *got = calloc(1, 4096);
    size_t size = 0, left = strlen(head);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), 0);
    for (size_t at = 0; at < left; at += piece)
        if (send(fd, head + at, left - at < piece ? left - at : piece, MSG_NOSIGNAL) < 0)
            break; /* it was answered already */
    for (ssize_t n; size < 4095 && (n = read(fd, got + size, 4095 - size)) > 0;)
        size += (size_t)n;
    close(fd);
    return got;
}

START_TEST(plain_http_is_told_to_come_by_https)
{
    uint16_t port = start_tls(ec, NULL);
    for (size_t i = 0; i < COUNT(plain); i++)
        for (size_t piece = 1; piece < 4096; piece += 4094) {
            const char *got = plain_answer(port, plain[i].head, piece), *body = strstr(got, "\r\n\r\n");
            if (plain[i].answer == NOTHING) {
                ck_assert_msg(!strstr(got, "HTTP/"), "%s: %s", plain[i].head, got);
                continue;
            }
            ck_assert_msg(!strncmp(got, "HTTP/1.1 400 ", 13) && body && strstr(got, "text/plain") && strstr(got, "Connection: close"), "%s: %s",
                          plain[i].head, got);
            ck_assert_msg((strstr(body, "This port expects HTTPS") != NULL) == (plain[i].answer == ALL), "%s: %s", plain[i].head, got);
        }
    struct handshake h = shake(port, &(struct offer){0});
    ck_assert(h.done);
    server_stop(server);
}
END_TEST

START_TEST(a_reload_takes_the_new_certificate)
{
    port_asked = start_tls(ec, rsa);
    struct handshake h = shake(port_asked, &(struct offer){.least = TLS1_3_VERSION});
    ck_assert_int_eq(h.serial, 1);
    SSL_SESSION_free(h.session);
    write_pair(ec, false, 7);
    server_signal(server, SIGHUP);
    ck_assert(wait_until(serial_is_7, NULL, 15000));
    server_stop(server);
}
END_TEST

START_TEST(a_session_goes_on_at_any_worker)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    uint16_t port = start_tls(ec, NULL);
    for (size_t i = 0; i < COUNT(versions); i++) {
        struct handshake first = shake(port, &(struct offer){.least = versions[i], .most = versions[i]});
        ck_assert(first.done && !first.resumed);
        for (int again = 0; again < 12; again++) { /* the kernel spreads connections over the workers */
            struct handshake h = shake(port, &(struct offer){.least = versions[i], .most = versions[i], .session = first.session});
            ck_assert_msg(h.done && h.resumed, "%d. time", again);
            SSL_SESSION_free(h.session);
        }
        SSL_SESSION_free(first.session);
    }
    server_stop(server);
}
END_TEST

START_TEST(two_certificates_of_one_kind_are_refused)
{
    char *other[2] = {text("%s/other.0", server->dir), text("%s/other.1", server->dir)};
    write_pair(other, false, 3);
    struct run run = run_program(assayd_path(), "-c", server->conf, "--set", text("listen.0.tls.certificate=%s", ec[0]), "--set",
                                 text("listen.0.tls.key=%s", ec[1]), "--set", text("listen.0.tls.second_certificate=%s", other[0]), "--set",
                                 text("listen.0.tls.second_key=%s", other[1]), NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, other[0]) && strstr(run.err, "same kind"), "%d: %s", run.status, run.err);
}
END_TEST

static const struct {
    const char *set[3], *says;
} mistakes[] = {
    {{"listen.0.tls.second_certificate=/c"}, "belong together"},
    {{"listen.0.tls.certificate=/c", "listen.0.tls.key=/k", "listen.0.tls.second_key=/k"}, "belong together"},
    {{"listen.0.tls.second_certificate=/c", "listen.0.tls.second_key=/k"}, "beside a certificate"},
};

START_TEST(half_a_second_certificate_is_a_mistake)
{
    const char *const *set = mistakes[_i].set;
    struct run run = set[1] == NULL ? run_program(assayd_path(), "-t", "-c", server->conf, "--set", set[0], NULL)
                     : set[2] == NULL
                         ? run_program(assayd_path(), "-t", "-c", server->conf, "--set", set[0], "--set", set[1], NULL)
                         : run_program(assayd_path(), "-t", "-c", server->conf, "--set", set[0], "--set", set[1], "--set", set[2], NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, mistakes[_i].says), "%d: %s", run.status, run.err);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tls");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, only_what_is_safe_is_spoken);
    tcase_add_test(tcase, each_client_gets_the_certificate_it_knows);
    tcase_add_test(tcase, browsers_are_told_to_come_by_tls_alone_where_that_is_asked_for);
    tcase_add_test(tcase, plain_http_is_told_to_come_by_https);
    tcase_add_test(tcase, a_reload_takes_the_new_certificate);
    tcase_add_test(tcase, a_session_goes_on_at_any_worker);
    tcase_add_test(tcase, two_certificates_of_one_kind_are_refused);
    tcase_add_loop_test(tcase, half_a_second_certificate_is_a_mistake, 0, COUNT(mistakes));
    return harness_main(suite);
}
