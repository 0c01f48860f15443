#include "t/server/options_seen.h"
#include "t/kit/tls.h"

#include <dirent.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>

#define JSON "Content-Type: application/json"

struct origin *origin;
struct server *server; /* its first listener */
struct server second;  /* the second listener, for probes of listener options */
/* The program that an upgrade starts: a link, its target, and a program that never serves. */
char *program, *real, *script;
char *agent, *operators, *token;
int64_t graded; /* a report */

void point_at(const char *target)
{
    char *next = text("%s.next", program);
    ck_assert_int_eq(symlink(target, next), 0);
    ck_assert_int_eq(rename(next, program), 0);
}

const char *see_proxy_protocol(void)
{
    struct raw *raw = raw_open(&second);
    raw_text(raw, "PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    int status = raw_response(raw, false, 5000)->status;
    raw_close(raw);
    return text("%d", status);
}

/*
 * The serial number of the certificate for a client with these ${ciphers} (NULL: all), and whether
 * Strict-Transport-Security is sent; "http" for a plain listener.
 */
static const char *see_tls_with(const char *ciphers)
{
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons(second.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    const char *seen = "no certificate for it";
    char answer[1024] = "";
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    ck_assert(!ciphers || (SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION) &&
                           SSL_CTX_set_cipher_list(ctx, ciphers)));
    SSL *ssl = SSL_new(ctx);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    SSL_set_fd(ssl, fd);
    if (SSL_connect(ssl) == 1 && SSL_write(ssl, request, sizeof(request) - 1) > 0 &&
        SSL_read(ssl, answer, sizeof(answer) - 1) > 0) {
        X509 *cert = SSL_get1_peer_certificate(ssl);
        bool hsts = strcasestr(answer, "\r\nstrict-transport-security: max-age=86400\r\n") != NULL;
        seen = text("certificate %ld%s", ASN1_INTEGER_get(X509_get0_serialNumber(cert)),
                    hsts ? ", and TLS alone" : "");
        X509_free(cert);
    } else if (http(&second, .path = "/healthz", .may_fail = true, .timeout_ms = 2000)->status ==
               200)
        seen = "http";
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close(fd);
    return seen;
}

const char *see_tls(void)
{
    return see_tls_with(NULL);
}

const char *see_rsa(void)
{
    return see_tls_with("ECDHE-RSA-AES128-GCM-SHA256");
}

const char *see_base_url(void)
{
    struct response *r = http_get(server, "/api/v1/projects");
    return text("%.*s", (int)strcspn(str_at(r, "meta.path") + 7, "/") + 7, str_at(r, "meta.path"));
}

static const char *see_children(const char *kind)
{
    pid_t pids[64];
    size_t count = server_children(server, pids, COUNT(pids)), of_kind = 0;
    for (size_t i = 0; i < count && i < COUNT(pids); i++)
        of_kind += !strncmp(process_title(pids[i]), kind, strlen(kind));
    return text("%zu", of_kind);
}

const char *see_workers(void)
{
    return see_children("assayd: worker ");
}

/* the worker's threads, by name */
const char *see_query_threads(void)
{
    pid_t pids[64];
    size_t count = server_children(server, pids, COUNT(pids)), found = 0;
    for (size_t i = 0; i < count && i < COUNT(pids); i++) {
        char *dir = text("/proc/%d/task", (int)pids[i]), name[32];
        DIR *tasks =
            strncmp(process_title(pids[i]), "assayd: worker ", 15) == 0 ? opendir(dir) : NULL;
        for (const struct dirent *e; tasks != NULL && (e = readdir(tasks)) != NULL;) {
            FILE *comm =
                e->d_name[0] == '.' ? NULL : fopen(text("%s/%s/comm", dir, e->d_name), "re");
            found +=
                comm != NULL && fgets(name, sizeof(name), comm) != NULL && !strcmp(name, "query\n");
            if (comm != NULL)
                fclose(comm);
        }
        if (tasks != NULL)
            closedir(tasks);
    }
    return text("%zu", found);
}

const char *see_auditors(void)
{
    return see_children("assayd: auditor ");
}

/* An access log line of a new request; NULL: there is none. */
static char *logged(const char *log)
{
    static int number;
    char *id = text("probe-%d-%d", (int)getpid(), ++number),
         *path = text("%s/%s", server->dir, log);
    expect_status(
        http(server, .path = text("/healthz?%s", id), .headers = {"X-Forwarded-For: 198.51.100.7"}),
        200);
    for (int64_t deadline = now_ms() + 2000; now_ms() < deadline;) {
        struct run run = run_program("/bin/grep", "-m1", id, path, NULL);
        if (run.status == 0)
            return run.out;
        usleep(20000);
    }
    return NULL;
}

const char *see_client(void)
{
    char *line = logged("a.log");
    return !line                                     ? "nothing"
           : strstr(line, "\"ip\":\"198.51.100.7\"") ? "the header's"
                                                     : "the peer's";
}

const char *see_log(void)
{
    return logged("b.log") ? "there" : "not there";
}

const char *see_format(void)
{
    char *line = logged("a.log");
    return !line ? "nothing" : *line == '{' ? "JSON" : "text";
}

const char *see_wait(void)
{
    struct raw *raw = raw_open(server);
    origin_held(origin, "/held");
    raw_post(raw, server->key, "", form("url", origin_url(origin, "/held"), NULL));
    struct response *r = raw_response(raw, false, 1000);
    origin_release(origin, "/held");
    if (r->status == 0)
        expect_status(raw_response(raw, false, 20000), 201);
    raw_close(raw);
    return r->status == 0 ? "waits" : "answers";
}

const char *see_result(void)
{
    return str_at(http_get(server, report_path(graded)), "data.result");
}

const char *see_indexable(void)
{
    const char *path = text("/reports/%llu", (unsigned long long)graded);
    const char *robots = header(http_get(server, path), "X-Robots-Tag");
    return robots == NULL ? "index" : robots;
}

/* The result of a page: its score, or its error. */
static const char *see_page(const char *path)
{
    struct response *r = report_wait(server, report_new(server, origin_url(origin, path)));
    return at(r, "data.error.code") ? str_at(r, "data.error.code")
                                    : text("score %d", (int)int_at(r, "data.score"));
}

const char *see_score(void)
{
    return see_page("/decent");
}

const char *see_slow_page(void)
{
    return !strncmp(see_page("/slow"), "score", 5) ? "done" : see_page("/slow");
}

const char *see_large_page(void)
{
    return !strncmp(see_page("/large"), "score", 5) ? "done" : see_page("/large");
}

const char *see_redirect(void)
{
    return !strncmp(see_page("/away"), "score", 5) ? "done" : see_page("/away");
}

const char *see_guard(void)
{
    struct response *r = http(server, .method = "POST", .path = "/api/v1/reports",
                              .headers = {"Prefer: respond-async"},
                              .body = form("url", origin_url(origin, "/good"), NULL));
    return text("%d", r->status);
}

const char *see_concurrency(void)
{
    int64_t id[2];
    bool both;
    origin_held(origin, "/held");
    origin_held(origin, "/held2");
    unsigned before = origin_hits(origin, "/held2");
    id[0] = report_queued(server, origin_url(origin, "/held"));
    ck_assert(origin_asked(origin, "/held"));
    id[1] = report_queued(server, origin_url(origin, "/held2"));
    for (int64_t deadline = now_ms() + 1000;
         !(both = origin_hits(origin, "/held2") > before) && now_ms() < deadline;)
        usleep(10000);
    origin_release(origin, "/held");
    origin_release(origin, "/held2");
    report_wait(server, id[0]);
    report_wait(server, id[1]);
    return both ? "two at once" : "one at once";
}

static struct response *visit(void)
{
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {JSON}, .body = text("{\"agent_id\":\"%s\"}", agent));
    expect_status(r, 200);
    return r;
}

const char *see_token_life(void)
{
    return text("%d s", (int)int_at(visit(), "data.expires_in"));
}

/* What a visitor left, in an operators' list. */
static const char *see_kept(const char *list)
{
    static bool left;
    if (!left) {
        const char *jwt = str_at(visit(), "data.jwt");
        struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/events",
                                  .key = jwt, .headers = {JSON}, .body = "{\"event\":\"old\"}");
        expect(r, r->status < 300);
        left = true;
    }
    return len_at(http(server, .path = list, .key = operators), "data") > 0 ? "kept" : "gone";
}

const char *see_events(void)
{
    return see_kept("/api/v1/events");
}

const char *see_conversations(void)
{
    return see_kept("/api/v1/conversations");
}

const char *see_sync(void)
{
    char *body = calloc(1, 100001);
    ck_assert_ptr_nonnull(body);
    memset(body, ' ', 100000);
    struct response *r = http(server, .method = "POST", .path = "/v1/wp/products", .key = token,
                              .headers = {JSON}, .body = body);
    return r->status == 413 ? "too large" : "read";
}

/* A request charged to the address that a trusted proxy names. */
static struct response *counted(const char *address)
{
    return http(server, .path = "/v1/wp/none", .key = "",
                .headers = {text("X-Forwarded-For: %s", address)});
}

static unsigned another(void)
{
    static unsigned number;
    return (unsigned)getpid() * 64 + ++number;
}

const char *see_prefix(void)
{
    unsigned n = another();
    char *net = text("2001:db8:%x:%x", n >> 16 & 0xffff, n & 0xffff);
    long a = header_number(counted(text("%s::1", net)), "X-RateLimit-Remaining");
    long b = header_number(counted(text("%s::2", net)), "X-RateLimit-Remaining");
    return a == b ? "two callers" : "one caller";
}

const char *see_exempt(void)
{
    char *address = text("198.51.%u.%u", another() & 0xff, another() & 0xff);
    counted(address);
    return counted(address)->status == 429 ? "refused" : "let through";
}

const char *see_limit(void)
{
    return header(counted("192.0.2.1"), "X-RateLimit-Limit");
}

/* A worker warns once a minute about a peer that may not use the PROXY protocol. */
const char *see_warning(void)
{
    size_t from = strlen(server_log(server));
    struct raw *raw = raw_open(&second);
    raw_text(raw, "PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n");
    bool closed = raw_closed(raw, 2000),
         said = server_says(server, "the address is not in trusted_proxies", from, 1000);
    raw_close(raw);
    return !closed ? "let in" : said ? "said" : "not said";
}

/* What happens to a connection that has sent this and sends nothing more. */
static const char *see_silence(const char *request)
{
    struct raw *raw = raw_open(server);
    raw_text(raw, "%s", request);
    /*
     * the timeout sweep runs once a second: it sees a body start, and a second later that its time
     * is over
     */
    bool closed = raw_closed(raw, 3500);
    raw_close(raw);
    return closed ? "closed" : "open";
}

const char *see_half_head(void)
{
    return see_silence("GET /healthz HTTP/1.1\r\nHo");
}

const char *see_half_body(void)
{
    return see_silence(text("POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                            "%s\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                            "Content-Length: 200\r\n\r\nurl=",
                            server->key));
}

const char *see_rest(void)
{
    return see_silence("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
}

const char *see_reader(void)
{
    static const char request[] = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
    struct raw *raw = raw_open(server);
    unsigned answers = 0;
    setsockopt(raw->fd, SOL_SOCKET, SO_RCVBUF, &(int){65536}, sizeof(int));
    for (int i = 0; i < 40; i++) /* far more than the two socket buffers hold */
        ck_assert_int_gt(send(raw->fd, request, sizeof(request) - 1, MSG_NOSIGNAL), 0);
    usleep(3000000);
    while (answers < 40 && raw_response(raw, false, 5000)->status == 200)
        answers++;
    raw_close(raw);
    return answers == 40 ? "served" : "cut off";
}

/* An endless upload, across a reload. */
const char *see_drain(void)
{
    struct raw *raw = raw_open(server);
    raw_text(raw,
             "POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
             "%s\r\nContent-Length: 200\r\n\r\nurl=",
             server->key);
    ck_assert(!raw_closed(raw, 300)); /* a worker has received it */
    server_signal(server, SIGHUP);
    bool closed = raw_closed(raw, 4000);
    raw_close(raw);
    return closed ? "cut off" : "waited for";
}

/* A new binary that does not serve; the test kills it at this time at the latest. */
const char *see_upgrade(void)
{
    pid_t pids[64];
    size_t from = strlen(server_log(server));
    point_at(script);
    server_signal(server, SIGUSR2);
    bool gave_up = server_says(server, "does not serve in time", from, 3500);
    size_t count = gave_up ? 0 : server_children(server, pids, COUNT(pids));
    for (size_t i = 0; i < count && i < COUNT(pids); i++)
        if (!strncmp(process_title(pids[i]), "sleep", 5))
            kill(pids[i], SIGKILL);
    ck_assert(server_says(server, "upgrade failed", from, 10000));
    point_at(real);
    return gave_up ? "cancelled" : "waited for";
}

const char *see_connections(void)
{
    struct raw *raws[12];
    bool closed = false;
    for (size_t i = 0; i < COUNT(raws); i++)
        raws[i] = raw_open(server);
    for (size_t i = 0; i < COUNT(raws); i++) {
        closed = closed || raw_closed(raws[i], i == 0 ? 1500 : 0);
        raw_close(raws[i]);
    }
    return closed ? "some are evicted" : "all stay";
}

const char *see_third(void)
{
    struct raw *raws[3];
    int status = 0;
    for (size_t i = 0; i < COUNT(raws); i++) {
        raws[i] = raw_open(server);
        raw_text(raws[i], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        status = raw_response(raws[i], false, 5000)->status;
    }
    for (size_t i = 0; i < COUNT(raws); i++)
        raw_close(raws[i]);
    return text("%d", status);
}
