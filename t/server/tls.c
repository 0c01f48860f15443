/*
 * TLS of the listeners: protocols and ciphers, certificates of two kinds, a change of certificates
 * by a reload, and sessions that any worker resumes.
 */
#include "t/kit/harness.h"
#include "t/kit/tls.h"

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
    char *more =
        second == NULL ? text("workers=2") : text("listen.1.tls.second_certificate=%s", second[0]);
    unsigned port;
    server_spawn(server, "--set", "listen.1.address=127.0.0.1:0", "--set",
                 text("listen.1.tls.certificate=%s", first[0]), "--set",
                 text("listen.1.tls.key=%s", first[1]), "--set", more, "--set",
                 second == NULL ? "workers=2" : text("listen.1.tls.second_key=%s", second[1]),
                 "--set", also, NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    char line[256] = "";
    ck_assert_int_gt(read(server->output, line, sizeof(line) - 1), 0);
    ck_assert_msg(sscanf(line, "ready https://127.0.0.1:%u workers=", &port) == 1,
                  "second line: %s", line);
    return (uint16_t)port;
}

struct offer {
    int least, most;                              /* versions; 0: the library's */
    const char *ciphers, *signatures, *protocols; /* NULL: the library's, none */
    const char *name;                             /* SNI; NULL: none */
    const char *key;                              /* asks for projects, not for /healthz alone */
    SSL_SESSION *session;
};
struct handshake {
    bool done, resumed;
    int kind; /* of the server's key */
    long serial;
    int chain; /* certificates that were sent */
    bool hsts; /* a year of it */
    char protocol[16];
    SSL_SESSION *session;
    char answer[4096];
};

static struct handshake shake(uint16_t port, const struct offer *o)
{
    struct handshake h = {.done = false};
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const unsigned char *protocol = NULL;
    unsigned protocol_size = 0;
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(ctx, o->least);
    SSL_CTX_set_max_proto_version(ctx, o->most);
    SSL_CTX_set_security_level(ctx, 0); /* the server must refuse the protocol, not the client */
    ck_assert(o->ciphers == NULL || SSL_CTX_set_cipher_list(ctx, o->ciphers) == 1);
    ck_assert(o->signatures == NULL || SSL_CTX_set1_sigalgs_list(ctx, o->signatures) == 1);
    if (o->protocols != NULL)
        SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)o->protocols,
                                (unsigned)strlen(o->protocols));
    SSL *ssl = SSL_new(ctx);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    SSL_set_fd(ssl, fd);
    if (o->session != NULL)
        SSL_set_session(ssl, o->session);
    if (o->name != NULL)
        SSL_set_tlsext_host_name(ssl, o->name);
    char *request = text("GET %s HTTP/1.1\r\nHost: a\r\n%s%s\r\nConnection: close\r\n\r\n",
                         o->key ? "/api/v1/projects" : "/healthz",
                         o->key ? "Authorization: Bearer " : "X-A: b", o->key ? o->key : "");
    if (SSL_connect(ssl) == 1 && SSL_write(ssl, request, (int)strlen(request)) > 0) {
        size_t size = 0;
        for (int got;
             (got = SSL_read(ssl, h.answer + size, (int)(sizeof(h.answer) - 1 - size))) > 0;)
            size += (size_t)got;
    }
    if (h.answer[0] != '\0') {
        X509 *cert = SSL_get1_peer_certificate(ssl);
        h.done = strncmp(h.answer, "HTTP/1.1 200", 12) == 0;
        h.hsts =
            strcasestr(h.answer, "\r\nstrict-transport-security: max-age=31536000\r\n") != NULL;
        h.resumed = SSL_session_reused(ssl) == 1;
        h.kind = EVP_PKEY_get_base_id(X509_get0_pubkey(cert));
        h.chain = sk_X509_num(SSL_get_peer_cert_chain(ssl));
        h.serial = ASN1_INTEGER_get(X509_get0_serialNumber(cert));
        h.session = SSL_get1_session(ssl);
        SSL_get0_alpn_selected(ssl, &protocol, &protocol_size);
        snprintf(h.protocol, sizeof(h.protocol), "%.*s", (int)protocol_size,
                 protocol == NULL ? "" : (const char *)protocol);
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
    {"forward secret and authenticated",
     {.most = TLS1_2_VERSION, .ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"},
     true,
     ""},
    {"ChaCha20", {.most = TLS1_2_VERSION, .ciphers = "ECDHE-ECDSA-CHACHA20-POLY1305"}, true, ""},
    {"CBC",
     {.most = TLS1_2_VERSION, .ciphers = "ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES256-SHA"},
     false,
     ""},
    {"no forward secrecy",
     {.most = TLS1_2_VERSION, .ciphers = "AES128-GCM-SHA256:AES256-SHA"},
     false,
     ""},
    {"no authentication", {.most = TLS1_2_VERSION, .ciphers = "aNULL:eNULL"}, false, ""},
    {"HTTP/2 or HTTP/1.1", {.protocols = "\x02h2\x08http/1.1"}, true, "http/1.1"},
    {"HTTP/1.1", {.protocols = "\x08http/1.1"}, true, "http/1.1"},
    {"only HTTP/2", {.protocols = "\x02h2"}, false, ""},
};

START_TEST(only_safe_protocols_are_accepted)
{
    uint16_t port = start_tls(ec, NULL);
    for (size_t i = 0; i < COUNT(offers); i++) {
        struct handshake h = shake(port, &offers[i].offer);
        ck_assert_msg(h.done == offers[i].done, "%s", offers[i].what);
        ck_assert_msg(strcmp(h.protocol, offers[i].protocol) == 0, "%s: %s", offers[i].what,
                      h.protocol);
        SSL_SESSION_free(h.session);
    }
    server_stop(server);
}
END_TEST

START_TEST(each_client_gets_a_certificate_it_supports)
{
    static const struct {
        const char *signatures;
        int kind;
    } clients[] = {{"ecdsa_secp256r1_sha256", EVP_PKEY_EC},
                   {"RSA+SHA256:rsa_pss_rsae_sha256", EVP_PKEY_RSA}};
    for (int turned = 0; turned < 2; turned++) {
        uint16_t port = turned ? start_tls(rsa, ec) : start_tls(ec, rsa);
        for (size_t i = 0; i < COUNT(clients); i++)
            for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
                struct handshake h =
                    shake(port, &(struct offer){.least = version,
                                                .most = version,
                                                .signatures = clients[i].signatures});
                ck_assert_msg(h.done && h.kind == clients[i].kind, "%s: %d", clients[i].signatures,
                              h.kind);
                SSL_SESSION_free(h.session);
            }
        server_stop(server);
    }
}
END_TEST

START_TEST(strict_transport_security_is_sent_when_configured)
{
    for (int asked = 0; asked < 2; asked++) {
        also = asked ? "listen.1.tls.hsts=365d" : "workers=2";
        struct handshake h = shake(start_tls(ec, NULL), &(struct offer){.least = TLS1_2_VERSION});
        ck_assert(h.done && h.hsts == asked);
        SSL_SESSION_free(h.session);
        /* no such header over plain HTTP */
        ck_assert(header(http_get(server, "/healthz"), "Strict-Transport-Security") == NULL);
        server_stop(server);
    }
}
END_TEST

static uint16_t requested_port;

static bool serial_is_7(void *arg)
{
    struct handshake h = shake(requested_port, &(struct offer){.least = TLS1_2_VERSION});
    SSL_SESSION_free(h.session);
    ck_assert(h.done);
    (void)arg;
    return h.serial == 7;
}

/* Columns: the request of a plain HTTP client, and how much of the answer it reads. */
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

/* everything up to the end of the connection, in reads of ${piece} bytes */
static char *plain_answer(uint16_t port, const char *head, size_t piece)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char *got = calloc(1, 4096);
    size_t size = 0, left = strlen(head);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), 0);
    for (size_t at = 0; at < left; at += piece)
        if (send(fd, head + at, left - at < piece ? left - at : piece, MSG_NOSIGNAL) < 0)
            break; /* it has been answered */
    for (ssize_t n; size < 4095 && (n = read(fd, got + size, 4095 - size)) > 0;)
        size += (size_t)n;
    close(fd);
    return got;
}

START_TEST(plain_http_is_redirected_to_https)
{
    uint16_t port = start_tls(ec, NULL);
    for (size_t i = 0; i < COUNT(plain); i++)
        for (size_t piece = 1; piece < 4096; piece += 4094) {
            const char *got = plain_answer(port, plain[i].head, piece),
                       *body = strstr(got, "\r\n\r\n");
            if (plain[i].answer == NOTHING) {
                ck_assert_msg(!strstr(got, "HTTP/"), "%s: %s", plain[i].head, got);
                continue;
            }
            ck_assert_msg(!strncmp(got, "HTTP/1.1 400 ", 13) && body && strstr(got, "text/plain") &&
                              strstr(got, "Connection: close"),
                          "%s: %s", plain[i].head, got);
            ck_assert_msg((strstr(body, "This port expects HTTPS") != NULL) ==
                              (plain[i].answer == ALL),
                          "%s: %s", plain[i].head, got);
        }
    struct handshake h = shake(port, &(struct offer){0});
    ck_assert(h.done);
    server_stop(server);
}
END_TEST

START_TEST(a_reload_applies_a_new_certificate)
{
    requested_port = start_tls(ec, rsa);
    struct handshake h = shake(requested_port, &(struct offer){.least = TLS1_3_VERSION});
    ck_assert_int_eq(h.serial, 1);
    SSL_SESSION_free(h.session);
    write_pair(ec, false, 7);
    server_signal(server, SIGHUP);
    ck_assert(wait_until(serial_is_7, NULL, 15000));
    server_stop(server);
}
END_TEST

/* ---- reloads that add, change and remove TLS ---- */

struct sight {
    struct server *of;
    bool plain;
    long serial; /* 0: no TLS */
};

/* Every worker answers so: the kernel spreads connections over workers. */
static bool all_see(void *arg)
{
    struct sight *s = arg;
    for (int i = 0; i < 12; i++) {
        struct handshake h = shake(s->of->port, &(struct offer){.least = TLS1_2_VERSION});
        SSL_SESSION_free(h.session);
        struct response *r = http(s->of, .path = "/healthz", .may_fail = true, .timeout_ms = 5000);
        if (h.serial != s->serial || (r->status == 200) != s->plain)
            return false;
    }
    return true;
}

static void expect_all(struct server *of, long serial)
{
    struct sight s = {.of = of, .plain = serial == 0, .serial = serial};
    ck_assert_msg(wait_until(all_see, &s, 20000), "not certificate %ld\n%s", serial,
                  server_log(server));
}

static void reload_with(const char *tls)
{
    FILE *file = fopen(server->conf, "w");
    ck_assert(
        file &&
        fprintf(file,
                "listen:\n  - address: 127.0.0.1:0\n  - address: 127.0.0.1:0\n%s\nworkers: 2\n"
                "data_dir: %s\nrun_dir: %s\nuser: \"\"\n",
                tls, server->data, server->run) > 0);
    ck_assert_int_eq(fclose(file), 0);
    if (server->pid > 0)
        server_signal(server, SIGHUP);
}

static char *tls_of(const char *certificate, const char *key)
{
    return text("    tls: { certificate: %s, key: %s }", certificate, key);
}

/* the second of two plain listeners */
static struct server start_plain(void)
{
    char lines[512] = "";
    unsigned port;
    reload_with("");
    server_start(server);
    ck_assert_int_gt(read(server->output, lines, sizeof(lines) - 1), 0);
    ck_assert_msg(sscanf(lines, "ready http://127.0.0.1:%u ", &port) == 1, "second line: %s",
                  lines);
    struct server second = *server;
    second.port = (uint16_t)port;
    second.address = text("127.0.0.1:%u", port);
    second.url = text("http://%s", second.address);
    return second;
}

START_TEST(a_reload_adds_changes_and_removes_tls)
{
    struct server second = start_plain();
    expect_all(&second, 0);
    reload_with(tls_of(ec[0], ec[1]));
    expect_all(&second, 1);
    reload_with(tls_of(rsa[0], rsa[1]));
    expect_all(&second, 2);
    write_pair(rsa, true, 9); /* other files under the same names */
    server_signal(server, SIGHUP);
    expect_all(&second, 9);
    reload_with("");
    expect_all(&second, 0);
    expect_all(server, 0); /* the first listener never changed */
    server_stop(server);
}
END_TEST

START_TEST(links_use_the_first_tls_listener)
{
    static const char links[] = "\"path\":\"https://127.0.0.1:";
    server_start(server);
    server_configure(server, "");
    struct run run =
        run_program("/bin/sed", "-i",
                    text("s|^  - address: 127.0.0.1:0|&\\n    tls: { certificate: %s, key: %s }|",
                         ec[0], ec[1]),
                    server->conf, NULL);
    ck_assert_msg(run.status == 0, "%s", run.err);
    server_signal(server, SIGHUP);
    expect_all(server, 1);
    struct handshake h =
        shake(server->port, &(struct offer){.least = TLS1_2_VERSION, .key = server->key});
    SSL_SESSION_free(h.session);
    ck_assert_msg(strstr(h.answer, links), "%s", h.answer);
    server_stop(server);
}
END_TEST

START_TEST(the_whole_chain_is_sent_for_any_name)
{
    char *both = text("%s/both.pem", server->dir);
    struct run run = run_program("/bin/sh", "-c", text("cat %s %s >%s", ec[0], rsa[0], both), NULL);
    ck_assert_int_eq(run.status, 0);
    struct server second = start_plain();
    reload_with(tls_of(both, ec[1]));
    expect_all(&second, 1);
    static const char *const names[] = {NULL, "shop.example", "127.0.0.1"};
    for (size_t i = 0; i < COUNT(names); i++) {
        struct handshake h =
            shake(second.port, &(struct offer){.least = TLS1_2_VERSION, .name = names[i]});
        ck_assert_msg(h.done && h.serial == 1 && h.chain == 2, "%s: %d",
                      names[i] ? names[i] : "no name", h.chain);
        SSL_SESSION_free(h.session);
    }
    server_stop(server);
}
END_TEST

/* ---- unusable files ---- */

/* ${make}: shell commands that damage c, a copy of ec.0, or k, a copy of ec.1. */
static const struct {
    const char *make, *option, *file, *says, *advice;
} files[] = {
    {"echo hello >c", "certificate", "c", "not PEM", "-----BEGIN CERTIFICATE-----"},
    {"echo hello >k", "key", "k", "not PEM", "-----BEGIN PRIVATE KEY-----"},
    {"openssl x509 -in ec.0 -outform DER -out c", "certificate", "c", "DER, not PEM",
     "openssl x509 -inform DER"},
    {"openssl pkey -in rsa.1 -outform DER -out k", "key", "k", "DER, not PEM",
     "openssl pkey -inform DER"},
    {"openssl pkcs12 -export -in ec.0 -inkey ec.1 -passout pass: -out c", "certificate", "c",
     "DER, not PEM", "openssl pkcs12"},
    {"cp ec.1 c", "certificate", "c", "a private key and no certificate", "as the key"},
    {"cp ec.0 k", "key", "k", "a certificate and no private key", "as the certificate"},
    {"openssl req -new -key ec.1 -subj /CN=a -out c", "certificate", "c", "certificate request",
     "that the authority issued"},
    {"openssl pkey -in ec.1 -pubout -out k", "key", "k", "public key", "private key"},
    {"cp rsa.1 k", "key", "k", "does not match the certificate", "give the key"},
    {"cat rsa.0 ec.0 >c", "key", "k", "later certificate", "first"},
    {"openssl pkey -in ec.1 -aes128 -passout pass:secret -out k", "key", "k", "encrypted",
     "openssl pkey -in FILE -out"},
    {"openssl ec -in ec.1 -aes128 -passout pass:secret -out k", "key", "k", "encrypted",
     "openssl pkey -in FILE -out"},
    {": >c", "certificate", "c", "empty", "PEM"},
    {": >k", "key", "k", "empty", "PEM"},
    {"head -n 3 ec.0 >c", "certificate", "c", "damaged or cut off", "copy the whole file again"},
    {"head -n 2 ec.1 >k", "key", "k", "damaged", "copy the whole file again"},
    {"cat ec.0 >c; head -n 3 rsa.0 >>c", "certificate", "c", "chain is damaged",
     "copy the whole file again"},
    {"rm k", "key", "k", "cannot be read: No such file", ""},
    {"rm c; mkdir c", "certificate", "c", "cannot be read: Is a directory", ""},
};

static void make_files(const char *make)
{
    struct run run =
        run_program("/bin/sh", "-c",
                    text("cd %s && cp ec.0 c && cp ec.1 k && { %s; }", server->dir, make), NULL);
    ck_assert_msg(run.status == 0, "%s: %s", make, run.err);
}

START_TEST(a_malformed_certificate_or_key_is_reported_with_advice)
{
    struct server second = start_plain();
    char *certificate = text("%s/c", server->dir), *key = text("%s/k", server->dir);
    char *reported =
        text("listen.1.tls.%s: %s/%s: ", files[_i].option, server->dir, files[_i].file);
    make_files(":");
    reload_with(tls_of(certificate, key));
    expect_all(&second, 1);

    make_files(files[_i].make);
    struct run run = run_program(assayd_path(), "-t", "-c", server->conf, NULL);
    const char *line = strstr(run.err, reported);
    ck_assert_msg(run.status == 1 && line && strstr(line, files[_i].says) &&
                      strstr(line, files[_i].advice),
                  "%d: %s", run.status, run.err);
    ck_assert_msg(!strstr(run.err, "error:") && !strstr(run.err, "secret"), "%s", run.err);

    size_t from = strlen(server_log(server));
    server_signal(server, SIGHUP);
    ck_assert_msg(server_says(server, text("reload refused: %s", reported), from, 10000), "%s",
                  server_log(server));
    ck_assert(server_says(server, "the old configuration stays in force", from, 5000));
    expect_all(&second, 1);
    server_stop(server);
}
END_TEST

START_TEST(an_expired_certificate_is_used_with_a_warning)
{
    struct server second = start_plain();
    char *certificate = text("%s/c", server->dir), *key = text("%s/k", server->dir);
    make_files(
        "openssl req -x509 -key ec.1 -subj /CN=a -set_serial 5 -days -1 -out c 2>/dev/null || "
        "openssl x509 -in ec.0 -signkey ec.1 -set_serial 5 -days -1 -out c");
    reload_with(tls_of(certificate, key));
    expect_all(&second, 5);
    ck_assert_msg(server_says(server,
                              text("listen.1.tls.certificate: %s: the certificate expired on 20",
                                   certificate),
                              0, 5000),
                  "%s", server_log(server));
    struct run run = run_program(assayd_path(), "-t", "-c", server->conf, NULL);
    ck_assert_msg(run.status == 0 && strstr(run.err, "expired on") && strstr(run.err, "renew it"),
                  "%d: %s", run.status, run.err);
    server_stop(server);
}
END_TEST

START_TEST(a_tls_session_resumes_at_any_worker)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    uint16_t port = start_tls(ec, NULL);
    for (size_t i = 0; i < COUNT(versions); i++) {
        struct handshake first =
            shake(port, &(struct offer){.least = versions[i], .most = versions[i]});
        ck_assert(first.done && !first.resumed);
        /* the kernel spreads connections over the workers */
        for (int again = 0; again < 12; again++) {
            struct handshake h = shake(port, &(struct offer){.least = versions[i],
                                                             .most = versions[i],
                                                             .session = first.session});
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
    struct run run = run_program(assayd_path(), "-c", server->conf, "--set",
                                 text("listen.0.tls.certificate=%s", ec[0]), "--set",
                                 text("listen.0.tls.key=%s", ec[1]), "--set",
                                 text("listen.0.tls.second_certificate=%s", other[0]), "--set",
                                 text("listen.0.tls.second_key=%s", other[1]), NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, other[0]) && strstr(run.err, "same type"),
                  "%d: %s", run.status, run.err);
}
END_TEST

static const struct {
    const char *set[3], *says;
} mistakes[] = {
    {{"listen.0.tls.second_certificate=/c"}, "set both second_certificate and second_key"},
    {{"listen.0.tls.certificate=/c", "listen.0.tls.key=/k", "listen.0.tls.second_key=/k"},
     "set both second_certificate and second_key"},
    {{"listen.0.tls.second_certificate=/c", "listen.0.tls.second_key=/k"},
     "second_certificate needs a certificate"},
};

START_TEST(a_second_certificate_without_its_key_is_an_error)
{
    const char *const *set = mistakes[_i].set;
    struct run run =
        set[1] == NULL ? run_program(assayd_path(), "-t", "-c", server->conf, "--set", set[0], NULL)
        : set[2] == NULL ? run_program(assayd_path(), "-t", "-c", server->conf, "--set", set[0],
                                       "--set", set[1], NULL)
                         : run_program(assayd_path(), "-t", "-c", server->conf, "--set", set[0],
                                       "--set", set[1], "--set", set[2], NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, mistakes[_i].says), "%d: %s", run.status,
                  run.err);
}
END_TEST

int main(void)
{
    tls_prepare();
    suite_processes(2);
    Suite *suite = suite_create("tls");
    TCase *tcase = harness_case(suite, "a server each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, only_safe_protocols_are_accepted);
    tcase_add_test(tcase, each_client_gets_a_certificate_it_supports);
    tcase_add_test(tcase, strict_transport_security_is_sent_when_configured);
    tcase_add_test(tcase, plain_http_is_redirected_to_https);
    tcase_add_test(tcase, a_reload_applies_a_new_certificate);
    tcase_add_test(tcase, a_reload_adds_changes_and_removes_tls);
    tcase_add_test(tcase, links_use_the_first_tls_listener);
    tcase_add_test(tcase, the_whole_chain_is_sent_for_any_name);
    tcase_add_loop_test(tcase, a_malformed_certificate_or_key_is_reported_with_advice, 0,
                        COUNT(files));
    tcase_add_test(tcase, an_expired_certificate_is_used_with_a_warning);
    tcase_add_test(tcase, a_tls_session_resumes_at_any_worker);
    tcase_add_test(tcase, two_certificates_of_one_kind_are_refused);
    tcase_add_loop_test(tcase, a_second_certificate_without_its_key_is_an_error, 0,
                        COUNT(mistakes));
    return harness_main(suite);
}
