/*
 * Every option of the table takes effect on HUP, or the reload is refused with the option's name.
 * Each option has a probe that observes the server from outside.
 */
#include "core/conf/conf.h"
#include "t/kit/harness.h"
#include "t/kit/tls.h"

#include <dirent.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define JSON "Content-Type: application/json"
#define SETS 4
#define WITHIN_MS 20000

static struct origin *origin;
static struct server *server; /* its first listener */
static struct server second;  /* the second listener, for probes of listener options */
/* The program that an upgrade starts: a link, its target, and a program that never serves. */
static char *program, *real, *script;
static char *agent, *operators, *token;
static int64_t graded; /* a report */

/* ---- the configuration: a base and the values of a probe ---- */

/* A probe's value, with the actual DIR and PORT. */
static char *setting(const char *set)
{
    char *out = text("%s", "");
    for (const char *at = set; *at != '\0'; at++)
        if (!strncmp(at, "DIR", 3) || !strncmp(at, "PORT", 4)) {
            bool dir = *at == 'D';
            out = dir ? text("%s%s", out, server->dir) : text("%s%u", out, origin_port(origin));
            at += dir ? 2 : 3;
        } else
            out = text("%s%c", out, *at);
    return out;
}

static const char *const base[] = {
    "listen.0.address=127.0.0.1:0",
    "listen.1.address=127.0.0.1:0",
    "internal_listen=127.0.0.1:0",
    "data_dir=DIR/data",
    "run_dir=DIR/run",
    "user=",
    "workers=1",
    "audit.allow_private=127.0.0.0/8",
    "audit.ports=80,PORT",
    "log.access=DIR/a.log",
    "timeouts.drain=2s",
    "limits.limiters.bulk-sync={windows: [{limit: 1000000, seconds: 2678400, key: token}]}",
};

/*
 * Write the configuration file in the format of `assay config dump`. ${instead}: a text of the file
 * and its replacement, or NULL.
 */
static void configure(const char *const sets[SETS], const char *const instead[2])
{
    const char *all[COUNT(base) + SETS];
    size_t count = 0, size = 0;
    struct conf *conf;
    char *dumped = NULL, *next = text("%s.new", server->conf);
    for (size_t i = 0; i < COUNT(base); i++)
        all[count++] = setting(base[i]);
    for (size_t i = 0; i < SETS && sets[i]; i++)
        all[count++] = setting(sets[i]);
    ck_assert_int_eq(conf_load(NULL, false, all, count, stderr, &conf), 0);
    FILE *file = open_memstream(&dumped, &size);
    conf_dump(conf, file);
    ck_assert_int_eq(fclose(file), 0);
    conf_free(conf);
    file = fopen(next, "w");
    ck_assert_ptr_nonnull(file);
    char *at = instead ? strstr(dumped, instead[0]) : NULL;
    ck_assert(!instead || at);
    if (at)
        fprintf(file, "%.*s%s%s", (int)(at - dumped), dumped, instead[1], at + strlen(instead[0]));
    else
        fputs(dumped, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(rename(next, server->conf), 0);
    free(dumped);
}

static void reload(const char *const sets[SETS])
{
    configure(sets, NULL);
    server_signal(server, SIGHUP);
}

/* ---- the shared server ---- */

static void point_at(const char *target)
{
    char *next = text("%s.next", program);
    ck_assert_int_eq(symlink(target, next), 0);
    ck_assert_int_eq(rename(next, program), 0);
}

static struct server listener_of(const char *line)
{
    struct server s = *server;
    unsigned port;
    ck_assert_msg(sscanf(line, "ready http://127.0.0.1:%u ", &port) == 1, "%s", line);
    s.port = (uint16_t)port;
    s.address = text("127.0.0.1:%u", port);
    s.url = text("http://%s", s.address);
    return s;
}

static void make_pages(void)
{
    origin = origin_usual();
    origin_page(origin, "/slow", 200, "", "<title>Slow</title>");
    origin_delay(origin, "/slow", 1500);
    origin_page(origin, "/large", 200, "", "<title>Large</title>");
    origin_pad(origin, "/large", 20000);
    origin_page(origin, "/away", 302, "Location: /good\r\n", "");
}

static void setup(void)
{
    char lines[512] = "";
    make_pages();
    server = server_new(&(struct server_options){.origin = origin});
    real = realpath(assayd_path(), NULL);
    program = text("%s/assayd", server->dir);
    script = text("%s/sleeps", server->dir);
    FILE *file = fopen(script, "w");
    ck_assert(file && fprintf(file, "#!/bin/sh\nexec sleep 100\n") > 0 &&
              fchmod(fileno(file), 0755) == 0 && fclose(file) == 0);
    file = fopen(text("%s/redis.key", server->dir), "w");
    ck_assert(file && fprintf(file, "%064d", 7) == 64 && fchmod(fileno(file), 0600) == 0 &&
              fclose(file) == 0);
    point_at(real);
    setenv("ASSAYD", program, 1);
    EVP_PKEY_free(tls_pair(text("%s/1.pem", server->dir), text("%s/1.key", server->dir), false, 1));
    EVP_PKEY_free(tls_pair(text("%s/2.pem", server->dir), text("%s/2.key", server->dir), false, 2));
    EVP_PKEY_free(tls_pair(text("%s/3.pem", server->dir), text("%s/3.key", server->dir), true, 3));
    configure((const char *[SETS]){NULL}, NULL);
    server_start(server);
    ck_assert_int_gt(read(server->output, lines, sizeof(lines) - 1), 0);
    second = listener_of(lines);
    operators = key_new(server, "main", "conversations:read", NULL);
    token = assay_ok(server, "token", "create", "--workspace", "main", NULL);
    agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "R", "--origin",
                     "*", NULL);
    graded = report_new(server, origin_url(origin, "/good"));
}

static void teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
    setenv("ASSAYD", real, 1); /* the program's directory is deleted */
}

/* ---- observations: each is a text to compare ---- */

static const char *see_proxy_protocol(void)
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

static const char *see_tls(void)
{
    return see_tls_with(NULL);
}

static const char *see_rsa(void)
{
    return see_tls_with("ECDHE-RSA-AES128-GCM-SHA256");
}

static const char *see_base_url(void)
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

static const char *see_workers(void)
{
    return see_children("assayd: worker ");
}

/* the worker's threads, by name */
static const char *see_query_threads(void)
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

static const char *see_auditors(void)
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

static const char *see_client(void)
{
    char *line = logged("a.log");
    return !line                                     ? "nothing"
           : strstr(line, "\"ip\":\"198.51.100.7\"") ? "the header's"
                                                     : "the peer's";
}

static const char *see_log(void)
{
    return logged("b.log") ? "there" : "not there";
}

static const char *see_format(void)
{
    char *line = logged("a.log");
    return !line ? "nothing" : *line == '{' ? "JSON" : "text";
}

static const char *see_wait(void)
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

static const char *see_result(void)
{
    return str_at(http_get(server, report_path(graded)), "data.result");
}

static const char *see_indexable(void)
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

static const char *see_score(void)
{
    return see_page("/decent");
}

static const char *see_slow_page(void)
{
    return !strncmp(see_page("/slow"), "score", 5) ? "done" : see_page("/slow");
}

static const char *see_large_page(void)
{
    return !strncmp(see_page("/large"), "score", 5) ? "done" : see_page("/large");
}

static const char *see_redirect(void)
{
    return !strncmp(see_page("/away"), "score", 5) ? "done" : see_page("/away");
}

static const char *see_guard(void)
{
    struct response *r = http(server, .method = "POST", .path = "/api/v1/reports",
                              .headers = {"Prefer: respond-async"},
                              .body = form("url", origin_url(origin, "/good"), NULL));
    return text("%d", r->status);
}

static const char *see_concurrency(void)
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

static const char *see_token_life(void)
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

static const char *see_events(void)
{
    return see_kept("/api/v1/events");
}

static const char *see_conversations(void)
{
    return see_kept("/api/v1/conversations");
}

static const char *see_sync(void)
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

static const char *see_prefix(void)
{
    unsigned n = another();
    char *net = text("2001:db8:%x:%x", n >> 16 & 0xffff, n & 0xffff);
    long a = header_number(counted(text("%s::1", net)), "X-RateLimit-Remaining");
    long b = header_number(counted(text("%s::2", net)), "X-RateLimit-Remaining");
    return a == b ? "two callers" : "one caller";
}

static const char *see_exempt(void)
{
    char *address = text("198.51.%u.%u", another() & 0xff, another() & 0xff);
    counted(address);
    return counted(address)->status == 429 ? "refused" : "let through";
}

static const char *see_limit(void)
{
    return header(counted("192.0.2.1"), "X-RateLimit-Limit");
}

/* A worker warns once a minute about a peer that may not use the PROXY protocol. */
static const char *see_warning(void)
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

static const char *see_half_head(void)
{
    return see_silence("GET /healthz HTTP/1.1\r\nHo");
}

static const char *see_half_body(void)
{
    return see_silence(text("POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                            "%s\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                            "Content-Length: 200\r\n\r\nurl=",
                            server->key));
}

static const char *see_rest(void)
{
    return see_silence("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
}

static const char *see_reader(void)
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
static const char *see_drain(void)
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
static const char *see_upgrade(void)
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

static const char *see_connections(void)
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

static const char *see_third(void)
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

/* ---- the probes ---- */

#define ANY "any"         /* before */
#define ANOTHER "another" /* after */
#define LISTENS "listen.1."
#define PAIR(n) LISTENS "tls.certificate=DIR/" #n ".pem", LISTENS "tls.key=DIR/" #n ".key"
#define BULK(n)                                                                                    \
    "limits.limiters.bulk-sync={windows: [{limit: " #n ", seconds: 2678400, key: token}]}"

/*
 * Without ${see}, a reload with the value ${after} is refused. If no valid value differs, the file
 * has the text ${sees} instead of ${seen}.
 */
static const struct probe {
    const char *key;
    const char *(*see)(void);
    const char *before[SETS], *seen, *after[SETS], *sees;
} probes[] = {
    {"listen.N.address", .after = {LISTENS "address=127.0.0.1:1"}},
    {"listen.N.proxy_protocol",
     see_proxy_protocol,
     {"trusted_proxies=127.0.0.1"},
     "400",
     {"trusted_proxies=127.0.0.1", LISTENS "proxy_protocol=true"},
     "200"},
    {"listen.N.tls.certificate", see_tls, {NULL}, "http", {PAIR(1)}, "certificate 1"},
    {"listen.N.tls.key", see_tls, {PAIR(1)}, "certificate 1", {PAIR(2)}, "certificate 2"},
    {"listen.N.tls.second_certificate",
     see_rsa,
     {PAIR(1)},
     "no certificate for it",
     {PAIR(1), LISTENS "tls.second_certificate=DIR/3.pem", LISTENS "tls.second_key=DIR/3.key"},
     "certificate 3"},
    {"listen.N.tls.second_key",
     see_rsa,
     {PAIR(1), LISTENS "tls.second_certificate=DIR/3.pem", LISTENS "tls.second_key=DIR/3.key"},
     "certificate 3",
     {PAIR(1)},
     "no certificate for it"},
    {"listen.N.tls.hsts",
     see_tls,
     {PAIR(1)},
     "certificate 1",
     {PAIR(1), LISTENS "tls.hsts=1d"},
     "certificate 1, and TLS alone"},
    {"internal_listen", .after = {"internal_listen=127.0.0.1:1"}},
    {"base_url",
     see_base_url,
     {"base_url=http://a.test"},
     "http://a.test",
     {"base_url=http://b.test"},
     "http://b.test"},
    {"workers", see_workers, {NULL}, "1", {"workers=3"}, "3"},
    {"query_threads", see_query_threads, {NULL}, "2", {"query_threads=1"}, "1"},
    {"auditors", see_auditors, {NULL}, "1", {"auditors=2"}, "2"},
    {"data_dir", .after = {"data_dir=DIR/other"}},
    {"run_dir", .after = {"run_dir=DIR/other"}},
    {"user", .after = {"user=nobody"}},
    {"trusted_proxies",
     see_client,
     {NULL},
     "the peer's",
     {"trusted_proxies=127.0.0.1"},
     "the header's"},
    {"store.map_size", .after = {"store.map_size=1GiB"}},
    {"store.index_map_size", .after = {"store.index_map_size=1GiB"}},
    {"store.sync", .seen = "sync: full", .sees = "sync: none"},
    {"reports.wait", see_wait, {NULL}, "waits", {"reports.wait=0s"}, "answers"},
    {"reports.good",
     see_result,
     {"reports.good=0", "reports.decent=0"},
     "good",
     {"reports.good=100", "reports.decent=0"},
     "decent"},
    {"reports.decent",
     see_result,
     {"reports.good=100", "reports.decent=0"},
     "decent",
     {"reports.good=100", "reports.decent=100"},
     "bad"},
    {"reports.indexable", see_indexable, {NULL}, "noindex", {"reports.indexable=true"}, "index"},
    {"reports.weight_high", see_score, {NULL}, ANY, {"reports.weight_high=1000"}, ANOTHER},
    {"reports.weight_medium", see_score, {NULL}, ANY, {"reports.weight_medium=1000"}, ANOTHER},
    {"reports.weight_low", see_score, {NULL}, ANY, {"reports.weight_low=1000"}, ANOTHER},
    {"jwt.ttl", see_token_life, {NULL}, "3600 s", {"jwt.ttl=5m"}, "300 s"},
    {"jwt.secrets_file", .after = {"jwt.secrets_file=DIR/secrets"}},
    {"retention.events", see_events, {NULL}, "kept", {"retention.events=1ms"}, "gone"},
    {"retention.conversations",
     see_conversations,
     {NULL},
     "kept",
     {"retention.conversations=1ms"},
     "gone"},
    {"sync.max_bytes", see_sync, {NULL}, "read", {"sync.max_bytes=64KiB"}, "too large"},
    {"audit.allow_private", see_guard, {NULL}, "202", {"audit.allow_private="}, "422"},
    {"audit.ports", see_guard, {NULL}, "202", {"audit.ports=80,443"}, "422"},
    {"audit.concurrency",
     see_concurrency,
     {"audit.concurrency=1"},
     "one at once",
     {"audit.concurrency=4"}, /* a workspace takes at most three quarters */
     "two at once"},
    {"audit.timeout", see_slow_page, {NULL}, "done", {"audit.timeout=300ms"}, "timeout"},
    {"audit.max_bytes", see_large_page, {NULL}, "done", {"audit.max_bytes=2KiB"}, "too_large"},
    {"audit.max_redirects",
     see_redirect,
     {NULL},
     "done",
     {"audit.max_redirects=0"},
     "too_many_redirects"},
    {"limits.slots", .after = {"limits.slots=65536"}},
    {"limits.ipv6_prefix",
     see_prefix,
     {"trusted_proxies=127.0.0.1"},
     "one caller",
     {"trusted_proxies=127.0.0.1", "limits.ipv6_prefix=128"},
     "two callers"},
    {"limits.exempt",
     see_exempt,
     {"trusted_proxies=127.0.0.1", BULK(1)},
     "refused",
     {"trusted_proxies=127.0.0.1", BULK(1), "limits.exempt=198.51.0.0/16"},
     "let through"},
    {"limits.engine", .after = {"limits.redis.key_file=DIR/redis.key"}, .seen = "engine: local",
     .sees = "engine: redis"},
    {"limits.redis.address", .after = {"limits.redis.address=127.0.0.1:1"}},
    {"limits.redis.sentinels", .after = {"limits.redis.sentinels=127.0.0.1:1,127.0.0.1:2"}},
    {"limits.redis.sentinel_name", .after = {"limits.redis.sentinel_name=other"}},
    {"limits.redis.user", .after = {"limits.redis.user=other"}},
    {"limits.redis.password_file", .after = {"limits.redis.password_file=DIR/password"}},
    {"limits.redis.sentinel_password_file",
     .after = {"limits.redis.sentinel_password_file=DIR/password"}},
    {"limits.redis.key_file", .after = {"limits.redis.key_file=DIR/redis.key"}},
    {"limits.redis.prefix", .after = {"limits.redis.prefix=other"}},
    {"limits.redis.timeout", .after = {"limits.redis.timeout=1s"}},
    {"limits.redis.nodes", .after = {"limits.redis.nodes=2"}},
    {"limits.limiters", see_limit, {BULK(1000)}, "1000", {BULK(2000)}, "2000"},
    {"cluster.log", .after = {"cluster.log=host=127.0.0.1 port=1", "cluster.address=127.0.0.1:1",
                              "cluster.key_file=DIR/redis.key"}},
    {"cluster.address", .after = {"cluster.address=127.0.0.1:1"}},
    {"cluster.key_file", .after = {"cluster.key_file=DIR/redis.key"}},
    {"cluster.name", .after = {"cluster.name=b"}},
    {"cluster.keep", .after = {"cluster.keep=3d"}},
    {"cluster.away", .after = {"cluster.away=8d"}},
    /* a reload accepts them; t/cluster/reads sees what they do */
    {"cluster.wait", see_base_url, {NULL}, ANY, {"cluster.wait=1s"}, ANY},
    {"cluster.max_lag", see_base_url, {NULL}, ANY, {"cluster.max_lag=10s"}, ANY},
    {"cluster.stale_reads", see_base_url, {NULL}, ANY, {"cluster.stale_reads=true"}, ANY},
    {"log.level",
     see_warning,
     {LISTENS "proxy_protocol=true"},
     "said",
     {LISTENS "proxy_protocol=true", "log.level=error"},
     "not said"},
    {"log.access", see_log, {NULL}, "not there", {"log.access=DIR/b.log"}, "there"},
    {"log.format", see_format, {NULL}, "JSON", {"log.format=combined"}, "text"},
    {"timeouts.header", see_half_head, {NULL}, "open", {"timeouts.header=100ms"}, "closed"},
    {"timeouts.body", see_half_body, {NULL}, "open", {"timeouts.body=100ms"}, "closed"},
    {"timeouts.send", see_reader, {NULL}, "served", {"timeouts.send=100ms"}, "cut off"},
    {"timeouts.idle", see_rest, {NULL}, "open", {"timeouts.idle=100ms"}, "closed"},
    {"timeouts.drain",
     see_drain,
     {"timeouts.drain=1h"},
     "waited for",
     {"timeouts.drain=0s"},
     "cut off"},
    {"timeouts.upgrade", see_upgrade, {NULL}, "waited for", {"timeouts.upgrade=1s"}, "cancelled"},
    {"max_connections",
     see_connections,
     {NULL},
     "all stay",
     {"max_connections=4"},
     "some are evicted"},
    {"max_connections_per_ip", see_third, {NULL}, "200", {"max_connections_per_ip=2"}, "503"},
};

START_TEST(every_option_has_a_probe)
{
    struct conf_option_view option;
    for (size_t i = 0; conf_option_at(i, &option); i++) {
        const struct probe *probe = NULL;
        for (size_t k = 0; k < COUNT(probes); k++)
            if (!strcmp(probes[k].key, option.key))
                probe = &probes[k];
        ck_assert_msg(
            probe,
            "%s has no probe: write one that observes the change by a reload, or its refusal",
            option.key);
        ck_assert_msg(option.reload == (probe->see != NULL), "%s is marked %s", option.key,
                      option.reload ? "reload" : "restart");
    }
}
END_TEST

struct sight {
    const struct probe *probe;
    const char *wanted, *before, *now;
};

static bool is_seen(void *arg)
{
    struct sight *s = arg;
    s->now = s->probe->see();
    if (!strcmp(s->wanted, ANOTHER))
        return strcmp(s->now, s->before) != 0;
    return !strcmp(s->wanted, ANY) || !strcmp(s->now, s->wanted);
}

/* Check truncates long messages: the end of the log names the cause. */
static const char *log_end(void)
{
    const char *log = server_log(server);
    size_t n = strlen(log);
    return n > 2000 ? log + n - 2000 : log;
}

static void expect_seen(struct sight *s, const char *wanted, const char *when)
{
    s->wanted = wanted;
    ck_assert_msg(wait_until(is_seen, s, WITHIN_MS), "%s, %s: seen is \"%s\", not \"%s\"\n%s",
                  s->probe->key, when, s->now, wanted, log_end());
    s->before = s->now;
}

/* No worker of an older generation is left; ${arg}: the old workers. */
static bool is_settled(void *arg)
{
    for (const pid_t *old = arg; *old != 0; old++)
        if (process_alive(*old))
            return false;
    return server_children(server, NULL, 0) == 3;
}

static void apply_base(void)
{
    const char *mark = text("http://base-%d.test", (int)getpid());
    pid_t old[64] = {0};
    server_children(server, old, COUNT(old) - 1);
    reload((const char *[SETS]){setting(text("base_url=%s", mark))});
    for (int64_t deadline = now_ms() + WITHIN_MS; strcmp(see_base_url(), mark) != 0;)
        ck_assert_msg(now_ms() < deadline, "the base is not applied\n%s", server_log(server));
    ck_assert_msg(wait_until(is_settled, old, WITHIN_MS), "%s", server_log(server));
}

static void expect_refusal(const struct probe *probe)
{
    const char *key =
        !strncmp(probe->key, "listen.N.", 9) ? text(LISTENS "%s", probe->key + 9) : probe->key;
    const char *sets[SETS] = {"base_url=http://refused.test", probe->after[0], probe->after[1],
                              probe->after[2]};
    const char *before = see_base_url();
    pid_t worker = server_process(server, "assayd: worker 0");
    size_t from = strlen(server_log(server));
    configure(sets, probe->seen ? (const char *[2]){probe->seen, probe->sees} : NULL);
    server_signal(server, SIGHUP);
    ck_assert_msg(server_says(server, "the old configuration stays in force", from, WITHIN_MS),
                  "%s", server_log(server));
    const char *said = strstr(server_log(server) + from, "reload refused: ");
    ck_assert_msg(said && strstr(said, key), "%s is not named\n%s", key, server_log(server));
    ck_assert_msg(!strcmp(see_base_url(), before), "%s is refused, and another option applied",
                  key);
    ck_assert_int_eq(server_process(server, "assayd: worker 0"), worker);
}

START_TEST(a_reload_applies_an_option_or_refuses_it_by_name)
{
    const struct probe *probe = &probes[_i];
    apply_base();
    if (!probe->see) {
        expect_refusal(probe);
        return;
    }
    struct sight s = {.probe = probe};
    if (probe->before[0])
        reload(probe->before);
    expect_seen(&s, probe->seen, "before");
    reload(probe->after);
    expect_seen(&s, probe->sees, "after a reload");
}
END_TEST

START_TEST(a_reload_applies_many_options_together)
{
    apply_base();
    reload((const char *[SETS]){PAIR(1), "jwt.ttl=5m", "base_url=http://all.test"});
    static const struct {
        const char *(*see)(void);
        const char *sees;
    } all[] = {
        {see_tls, "certificate 1"}, {see_token_life, "300 s"}, {see_base_url, "http://all.test"}};
    for (size_t i = 0; i < COUNT(all); i++) {
        struct sight s = {.probe = &(struct probe){.key = "together", .see = all[i].see}};
        expect_seen(&s, all[i].sees, "after a reload");
    }
}
END_TEST

START_TEST(a_reload_shortens_a_running_drain)
{
    apply_base();
    reload((const char *[SETS]){"timeouts.drain=1h", "base_url=http://hour.test"});
    struct sight s = {.probe = &(struct probe){.key = "base_url", .see = see_base_url}};
    expect_seen(&s, "http://hour.test", "after a reload");
    struct raw *raw = raw_open(server);
    raw_text(raw,
             "POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
             "%s\r\nContent-Length: 200\r\n\r\nurl=",
             server->key);
    ck_assert(!raw_closed(raw, 300));
    reload((const char *[SETS]){"timeouts.drain=0s"});
    ck_assert_msg(raw_closed(raw, WITHIN_MS), "%s", server_log(server));
    raw_close(raw);
}
END_TEST

int main(void)
{
    suite_processes(3);
    Suite *suite = suite_create("options");
    TCase *tcase = harness_case(suite, "one server");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, every_option_has_a_probe);
    tcase_add_loop_test(tcase, a_reload_applies_an_option_or_refuses_it_by_name, 0, COUNT(probes));
    tcase = harness_case(suite, "several changes");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_reload_shortens_a_running_drain);
    tcase_add_test(tcase, a_reload_applies_many_options_together);
    return harness_main(suite);
}
