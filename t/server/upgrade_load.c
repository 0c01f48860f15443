/*
 * Requests during reloads, upgrades and the death of a worker: none is lost but those of a killed
 * worker.
 */
#include "t/kit/upgrades.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <strings.h>

#define JSON "Content-Type: application/json"

enum kind { READS, WRITES, SLOW_READS };
struct load {
    enum kind kind;
    bool fresh; /* a new connection for each request */
    pthread_t thread;
    atomic_uint done, created, deleted;
    long long id; /* the next one to delete */
    unsigned longest_ms;
    char *failure;
};
static atomic_bool load_ends;

static void slowly(struct raw *raw, const char *bytes)
{
    for (size_t n = strlen(bytes), at = 0; at < n; at += 16) {
        raw_send(raw, bytes + at, n - at < 16 ? n - at : 16);
        poll(NULL, 0, 15);
    }
}

static int load_request(struct raw *raw, struct load *load)
{
    const char *body = "url=http%3A%2F%2F127.0.0.1%3A80%2F";
    if (load->kind == READS)
        raw_get(raw, server->key, "/api/v1/reports");
    else if (load->kind == SLOW_READS)
        slowly(raw,
               text("GET /api/v1/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
                    server->key));
    else if (load->id != 0)
        raw_text(
            raw,
            "DELETE /api/v1/reports/%lld HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
            load->id, server->key);
    else
        raw_post(raw, server->key, "Prefer: respond-async\r\n", body);
    return load->kind != WRITES ? 200 : load->id != 0 ? 200 : 202;
}

static void load_answered(struct load *load, const struct response *r)
{
    if (r->status == 202) {
        load->created++;
        load->id = int_at(r, "data.id");
    } else if (load->kind == WRITES && r->status == 200) {
        load->deleted++;
        load->id = 0;
    }
    load->done++;
}

static void *load_run(void *arg)
{
    struct load *load = arg;
    struct raw *raw = NULL;
    while (!load_ends && !load->failure) {
        raw = raw ? raw : raw_open(server);
        int64_t began = now_ms();
        int want = load_request(raw, load);
        struct response *r = raw_response(raw, false, 20000);
        const char *connection = header(r, "Connection");
        unsigned took = (unsigned)(now_ms() - began);
        load->longest_ms = took > load->longest_ms ? took : load->longest_ms;
        if (r->status != want)
            load->failure = text("after %u requests: status %d, not %d, %u ms\n%s", load->done,
                                 r->status, want, took, response_text(r));
        load_answered(load, r);
        if (load->fresh || (connection && !strcasecmp(connection, "close"))) {
            raw_close(raw);
            raw = NULL;
        }
        response_free(r);
    }
    raw_close(raw);
    return NULL;
}

static struct load loads[] = {
    {.kind = READS, .fresh = true},
    {.kind = READS},
    {.kind = READS},
    {.kind = WRITES, .fresh = true},
    {.kind = WRITES},
    {.kind = SLOW_READS},
    {.kind = SLOW_READS},
    {.kind = SLOW_READS, .fresh = true},
};

/* Every kind of load has got more answers (or has failed). */
static bool has_worked(void *arg)
{
    const unsigned *from = arg;
    bool all = true;
    for (size_t i = 0; i < COUNT(loads); i++)
        all = all && (loads[i].failure || loads[i].done >= from[i] + 2);
    return all;
}

/* ---- a conversation that continues throughout, read as a stream ---- */

static char *agent, *operators;
static const char *jwt, *conversation;
static atomic_uint sent;
static char *chat_failure;
static unsigned drains;

static void chat_open(void)
{
    agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", "--origin",
                     "*", NULL);
    operators = key_new(server, "main", "conversations:read", "conversations:write", NULL);
    struct response *r = http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                              .headers = {JSON}, .body = text("{\"agent_id\":\"%s\"}", agent));
    expect_status(r, 200);
    jwt = str_at(r, "data.jwt");
    conversation = str_at(r, "data.conversation_id");
}

static void *chat_send(void *arg)
{
    (void)arg;
    while (!load_ends && !chat_failure) {
        char *body = text("{\"message\":\"answer %u.\"}", sent);
        struct raw *raw = raw_open(server);
        raw_text(raw,
                 "POST /api/v1/conversations/%s/messages HTTP/1.1\r\nHost: x\r\nAuthorization: "
                 "Bearer %s\r\n" JSON "\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                 conversation, operators, strlen(body), body);
        struct response *r = raw_response(raw, false, 20000);
        if (r->status == 201)
            sent++;
        else
            chat_failure = text("message %u: status %d", sent, r->status);
        raw_close(raw);
        poll(NULL, 0, 40);
    }
    return NULL;
}

/*
 * One stream to its end: all messages in order, once each. When it ends, the client reconnects with
 * the last id.
 */
static bool chat_read_stream(char last[64], unsigned *next)
{
    static char seen[1 << 20];
    size_t n = 0, at = 0;
    struct raw *raw = raw_open(server);
    raw_text(raw,
             "GET /api/v1/widget/conversation/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
             "%s\r\nAccept: text/event-stream\r\n%s%s%s\r\n",
             jwt, last[0] ? "Last-Event-ID: " : "", last, last[0] ? "\r\n" : "");
    for (bool open = true; open && !(load_ends && *next == sent);) {
        struct pollfd p = {raw->fd, POLLIN, 0};
        if (poll(&p, 1, 1000) > 0) {
            ssize_t got = read(raw->fd, seen + n, sizeof(seen) - 1 - n);
            open = got > 0;
            n += got > 0 ? (size_t)got : 0;
            seen[n] = '\0';
        }
        for (char *id, *end;
             (id = strstr(seen + at, "\nid: ")) != NULL && (end = strstr(id, "\n\n")) != NULL;
             at = (size_t)(end - seen)) {
            unsigned number;
            const char *content = strstr(id, "\"content\":\"answer ");
            if (content == NULL || content > end)
                continue;
            bool whole = sscanf(content, "\"content\":\"answer %u", &number) == 1;
            if (whole && last[0] == '\0') /* a stream starts with new messages, not with old ones */
                *next = number;
            if (!whole || number != *next) {
                chat_failure = text("message %u came where %u was awaited", number, *next);
                raw_close(raw);
                return false;
            }
            snprintf(last, 64, "%.*s", (int)strcspn(id + 5, "\r\n"), id + 5);
            ++*next;
        }
        if (strstr(seen, "\r\n0\r\n\r\n") != NULL)
            break;
    }
    if (n == 0 || (!load_ends && strstr(seen, "event: reconnect\n") == NULL))
        chat_failure = text("a stream broke off after %u messages:\n%.*s", *next, 400,
                            n > 400 ? seen + n - 400 : seen);
    seen[0] = '\0';
    raw_close(raw);
    return chat_failure == NULL;
}

static void *chat_read(void *arg)
{
    char last[64] = "";
    while (chat_read_stream(last, arg) && !(load_ends && *(unsigned *)arg == sent))
        drains++;
    return NULL;
}

/* ---- a killed worker ---- */

struct caller {
    struct raw *raw;
    char worker[17]; /* the random half of its request ids */
    bool inside;     /* half of a request was sent */
};

static void caller_start(struct caller *caller, bool inside)
{
    caller->raw = raw_open(server);
    raw_text(caller->raw, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    struct response *r = raw_response(caller->raw, false, 5000);
    expect_status(r, 200);
    snprintf(caller->worker, sizeof(caller->worker), "%.16s", header(r, "X-Request-Id"));
    caller->inside = inside;
    if (inside)
        raw_text(caller->raw, "GET /healthz HTTP/1.1\r\nHo");
}

static void caller_stop(struct caller *caller, const char *dead)
{
    if (strcmp(caller->worker, dead) == 0)
        ck_assert_msg(raw_closed(caller->raw, 5000), "a killed worker's connection stays open");
    else {
        raw_text(caller->raw, "%s",
                 caller->inside ? "st: x\r\n\r\n" : "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        expect_status(raw_response(caller->raw, false, 5000), 200);
    }
    raw_close(caller->raw);
}

struct callers {
    struct caller *all;
    int count;
    char *dead; /* the worker of the first connection that ends */
};

static bool a_connection_has_ended(void *arg)
{
    struct callers *callers = arg;
    for (int i = 0; i < callers->count && callers->dead[0] == '\0'; i++)
        if (raw_closed(callers->all[i].raw, 0))
            strcpy(callers->dead, callers->all[i].worker);
    return callers->dead[0] != '\0';
}

/* consecutive requests, each on a new connection; how many got no answer */
static void *count_failures(void *arg)
{
    unsigned *failed = arg;
    while (!load_ends) {
        struct raw *raw = raw_open(server);
        raw_get(raw, server->key, "/api/v1/reports");
        struct response *r = raw_response(raw, false, 10000);
        *failed += r->status != 200;
        raw_close(raw);
        response_free(r);
    }
    return NULL;
}

START_TEST(a_killed_worker_loses_only_its_requests)
{
    enum { CONNECTIONS = 32, THREADS = 4, KILLS = 5 };
    static struct caller callers[CONNECTIONS];
    static unsigned failed[THREADS];
    pthread_t threads[THREADS];
    unsigned total = 0;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_failures, &failed[i]), 0);
    for (int kills = 0; kills < KILLS; kills++) {
        char dead[17] = "";
        unsigned its = 0;
        for (int i = 0; i < CONNECTIONS; i++)
            caller_start(&callers[i], i % 2 == 0);
        pid_t victim = server_process(server, text("assayd: worker %d", kills % 2));
        ck_assert_int_eq(kill(victim, SIGKILL), 0);
        ck_assert_msg(wait_until(a_connection_has_ended,
                                 &(struct callers){callers, CONNECTIONS, dead}, 10000),
                      "the killed worker had no connection, or its connections stay open");
        for (int i = 0; i < CONNECTIONS; i++) {
            its += strcmp(callers[i].worker, dead) == 0;
            caller_stop(&callers[i], dead);
        }
        ck_assert_msg(its < CONNECTIONS, "the killed worker had all connections");
        expect_service(2);
    }
    load_ends = true;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        total += failed[i];
    }
    ck_assert_msg(total <= THREADS * KILLS, "%u requests failed: more than were running", total);
    fprintf(stderr, "%d workers killed: %u requests of %d callers were running, one each\n", KILLS,
            total, THREADS);
}
END_TEST

static void go_on(const char *what, unsigned number)
{
    unsigned from[COUNT(loads)];
    for (size_t i = 0; i < COUNT(loads); i++)
        from[i] = loads[i].done;
    ck_assert_msg(wait_until(has_worked, from, 30000), "%s %u: the load has stopped\n%s", what,
                  number, server_log(server));
}

static void reload(unsigned number)
{
    char *base = text("http://reload-%u.test", number);
    upgrades_configure(text("base_url: %s", base));
    server_signal(server, SIGHUP);
    ck_assert_msg(wait_until(links_begin_with, base, 30000), "reload %u: old configuration\n%s",
                  number, server_log(server));
}

START_TEST(reloads_and_upgrades_under_load_lose_no_request)
{
    unsigned upgrades = upgrades_setting("ASSAY_T_UPGRADES", 2),
             reloads = upgrades_setting("ASSAY_T_RELOADS", 3), read = 0, kept = 0, total = 0;
    unsigned each = upgrades ? reloads / upgrades : 0, longest[2] = {0};
    pthread_t sender, reader;
    chat_open();
    char *counted = key_new(server, "main", NULL);
    ck_assert_int_eq(pthread_create(&sender, NULL, chat_send, NULL), 0);
    ck_assert_int_eq(pthread_create(&reader, NULL, chat_read, &read), 0);
    for (size_t i = 0; i < COUNT(loads); i++)
        ck_assert_int_eq(pthread_create(&loads[i].thread, NULL, load_run, &loads[i]), 0);
    pid_t old = 0;
    for (unsigned i = 0, k = 0; i < upgrades || k < reloads;) {
        for (unsigned to = i + 1 >= upgrades ? reloads : k + each; k < to; k++) {
            reload(k);
            go_on("reload", k);
        }
        if (i < upgrades) {
            if (old != 0)
                expect_end(old);
            server->options.workers = i % 2 ? 2 : 3;
            upgrades_configure("");
            old = upgrade();
            go_on("upgrade", i++);
        }
        struct response *r = http(server, .path = "/api/v1/reports", .key = counted);
        ck_assert_int_eq(atol(header(r, "X-RateLimit-Remaining")), UPGRADES_LIMIT - (long)++kept);
    }
    load_ends = true;
    for (size_t i = 0; i < COUNT(loads); i++) {
        pthread_join(loads[i].thread, NULL);
        ck_assert_msg(!loads[i].failure, "load %zu: %s\n%s", i, loads[i].failure,
                      server_log(server));
        unsigned *most = &longest[loads[i].kind == WRITES];
        *most = loads[i].longest_ms > *most ? loads[i].longest_ms : *most;
        total += loads[i].done;
    }
    pthread_join(sender, NULL);
    pthread_join(reader, NULL);
    ck_assert_msg(!chat_failure, "%s\n%s", chat_failure, server_log(server));
    ck_assert_uint_eq(read, sent);
    if (old != 0)
        expect_end(old);
    unsigned left = 0;
    for (size_t i = 0; i < COUNT(loads); i++)
        left += loads[i].created - loads[i].deleted;
    expect_int(http_get(server, "/api/v1/reports"), "meta.total", left);
    fprintf(stderr,
            "%u upgrades, %u reloads: %u requests, none failed; the longest read %u ms, write %u "
            "ms; %u messages over %u streams\n",
            upgrades, reloads, total, longest[0], longest[1], read, drains + 1);
    server_stop(server);
}
END_TEST

int main(void)
{
    suite_processes(2);
    Suite *suite = suite_create("upgrade_load");
    TCase *tcase = harness_case(suite, "under load");
    tcase_add_checked_fixture(tcase, upgrades_setup, upgrades_teardown);
    tcase_set_timeout(tcase, upgrades_setting("ASSAY_T_SECONDS", 120));
    tcase_add_test(tcase, a_killed_worker_loses_only_its_requests);
    tcase_add_test(tcase, reloads_and_upgrades_under_load_lose_no_request);
    return harness_main(suite);
}
