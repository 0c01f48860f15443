/*
 * Every option of the table takes effect on HUP, or the reload is refused with the option's name.
 * Each option has a probe that observes the server from outside (options_seen.h).
 */
#include "core/conf/conf.h"
#include "t/kit/tls.h"
#include "t/server/options_seen.h"

#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SETS 4
#define WITHIN_MS 20000

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
