/*
 * Limits with limits.engine: redis: three nodes share one Redis. Each test starts its own servers.
 * Callers send requests in a loop; a response tells its window by X-RateLimit-Reset. The nodes have
 * stores of their own, in which the first API key has the same id, so its callers share a limit.
 */
#include "t/kit/redis_servers.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define NODES 3
#define CALLERS 6 /* two for each node */
#define WINDOWS_MAX 64
#define PATIENT "timeout: 1s" /* so that a busy machine needs no fallback */
#define API(limit, seconds, more)                                                                  \
    "api: { windows: [ { limit: " #limit ", seconds: " #seconds ", key: api_key } ]" more " }"

static struct redis *redis;
static struct server *nodes[NODES], internals[NODES];

/* ---- the nodes ---- */

static char *key_file;

/* ${options}: of limits.redis, beside nodes and the key file. */
static char *yaml(const char *options, const char *limiters)
{
    return text("internal_listen: 127.0.0.1:0\nlimits:\n  engine: redis\n"
                "  redis: { key_file: %s, nodes: %d, %s }\n  limiters: { %s }\n",
                key_file, NODES, options, limiters);
}

static char *at_redis(const char *more, const char *limiters)
{
    return yaml(text("address: \"%s\"%s%s", redis->address, *more ? ", " : "", more), limiters);
}

static void nodes_start(const char *lines)
{
    for (size_t i = 0; i < NODES; i++) {
        server_start_with(nodes[i], lines);
        internals[i] = server_internal(nodes[i]);
    }
}

static void nodes_stop(void)
{
    for (size_t i = 0; i < NODES; i++)
        server_stop(nodes[i]);
}

static void setup(void)
{
    redis = redis_primary("enable-debug-command local\n");
    for (size_t i = 0; i < NODES; i++)
        nodes[i] = server_new(&(struct server_options){.workers = 2});
    key_file = redis_key_file(nodes[0]->dir);
}

static void teardown(void)
{
    for (size_t i = 0; i < NODES; i++)
        server_discard(nodes[i]);
    redis_stop(redis);
}

static long fallbacks(void)
{
    long sum = 0;
    for (size_t i = 0; i < NODES; i++)
        sum += metric(&internals[i], "assay_limiter_fallback_total{limiter=\"api\"}");
    return sum;
}

/* No worker of any node is without Redis. */
static bool all_connected(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < NODES; i++)
        if (metric(&internals[i], "assay_limiter_workers_without_redis") != 0)
            return false;
    return true;
}

static struct response *ask(size_t node)
{
    return http(nodes[node], .path = "/api/v1/reports");
}

/* ---- callers ---- */

struct window {
    long reset;
    unsigned admitted, refused;
};

struct caller {
    pthread_t thread;
    const struct server *server;
    struct window windows[WINDOWS_MAX];
    size_t count;
    unsigned without_headers, unavailable;
    const char *failure;
};

static struct caller callers[CALLERS];
static atomic_bool ends;
static atomic_long last_reset, windows_begun;

static struct window *window_of(struct window *windows, size_t *count, long reset)
{
    size_t i = 0;
    while (i < *count && windows[i].reset != reset)
        i++;
    ck_assert_uint_lt(i, WINDOWS_MAX);
    if (i == *count)
        windows[(*count)++] = (struct window){.reset = reset};
    return &windows[i];
}

static void note_window(long reset)
{
    long seen = last_reset;
    while (reset > seen && !atomic_compare_exchange_weak(&last_reset, &seen, reset))
        ;
    windows_begun += reset > seen;
}

static void note(struct caller *c, const struct response *r)
{
    const char *reset = header(r, "X-RateLimit-Reset");
    c->unavailable += r->status == 503;
    if (reset == NULL) {
        c->without_headers++;
        return;
    }
    struct window *w = window_of(c->windows, &c->count, strtol(reset, NULL, 10));
    w->admitted += r->status == 200;
    w->refused += r->status == 429;
    note_window(w->reset);
}

static void *call(void *arg)
{
    struct caller *c = arg;
    struct raw *raw = raw_open(c->server);
    while (!ends && c->failure == NULL) {
        raw_get(raw, c->server->key, "/api/v1/reports");
        struct response *r = raw_response(raw, false, 20000);
        if (r->status != 200 && r->status != 429 && r->status != 503)
            c->failure = response_text(r);
        note(c, r);
        response_free(r);
    }
    raw_close(raw);
    return NULL;
}

static void callers_start(void)
{
    ends = false;
    last_reset = windows_begun = 0;
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.server = nodes[i % NODES]};
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
}

/* The sum of all callers. */
static struct caller callers_end(void)
{
    struct caller all = {0};
    ends = true;
    for (size_t i = 0; i < CALLERS; i++) {
        const struct caller *c = &callers[i];
        pthread_join(c->thread, NULL);
        ck_assert_msg(c->failure == NULL, "%s", c->failure);
        all.without_headers += c->without_headers;
        all.unavailable += c->unavailable;
        for (size_t k = 0; k < c->count; k++) {
            struct window *w = window_of(all.windows, &all.count, c->windows[k].reset);
            w->admitted += c->windows[k].admitted;
            w->refused += c->windows[k].refused;
        }
    }
    return all;
}

static bool windows_are(void *arg)
{
    return windows_begun >= *(const long *)arg;
}

static void wait_for_windows(long count)
{
    ck_assert_msg(wait_until(windows_are, &count, 60000), "only %ld windows begin", windows_begun);
}

static bool is_first_or_last(const struct caller *all, const struct window *w)
{
    bool first = true, last = true;
    for (size_t i = 0; i < all->count; i++) {
        first = first && all->windows[i].reset >= w->reset;
        last = last && all->windows[i].reset <= w->reset;
    }
    return first || last;
}

/* Each window admitted at most ${most}, those that began and ended under load at least ${least}. */
static void expect_admitted(const struct caller *all, unsigned least, unsigned most)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct window *w = &all->windows[i];
        ck_assert_msg(w->admitted <= most, "%u of %u are admitted until %ld", w->admitted, most,
                      w->reset);
        ck_assert_msg(is_first_or_last(all, w) || w->admitted >= least,
                      "only %u of %u are admitted until %ld, and %u refused", w->admitted, least,
                      w->reset, w->refused);
    }
}

/* ---- while Redis answers ---- */

START_TEST(three_nodes_admit_exactly_the_limit_in_each_window)
{
    nodes_start(at_redis(PATIENT, API(40, 1, "")));
    callers_start();
    wait_for_windows(6);
    struct caller all = callers_end();
    expect_admitted(&all, 40, 40);
    ck_assert_int_eq(fallbacks(), 0);
    ck_assert_uint_eq(all.without_headers, 0);
    nodes_stop();
}
END_TEST

START_TEST(a_refused_request_is_charged_to_no_window)
{
    nodes_start(at_redis(PATIENT, "api: { windows: [ { limit: 7, seconds: 1, key: api_key }, "
                                  "{ limit: 100000, seconds: 2678400, key: api_key } ] }"));
    callers_start();
    wait_for_windows(4);
    struct caller all = callers_end();
    unsigned admitted = 0, refused = 0;
    for (size_t i = 0; i < all.count; i++) {
        admitted += all.windows[i].admitted;
        refused += all.windows[i].refused;
    }
    expect_admitted(&all, 7, 7);
    ck_assert_uint_gt(refused, admitted);
    struct json_object *shown = assay_list(nodes[1], "limits", "show", "api", "1", NULL);
    struct json_object *month = record_find(shown, "seconds", "2678400");
    ck_assert_ptr_nonnull(month);
    ck_assert_str_eq(record_text(month, "used"), text("%u", admitted));
    nodes_stop();
}
END_TEST

/* Redis sleeps for half a second; returns when a decision was given up. */
static void let_a_decision_time_out(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        redis_says(redis, "DEBUG", "SLEEP", "0.5", NULL);
        _exit(0);
    }
    for (long before = fallbacks(); fallbacks() == before;)
        ask(0);
    ck_assert(wait_until(all_connected, NULL, 20000));
}

/* With the late answer of an earlier decision, a request would see an earlier count. */
START_TEST(a_late_answer_is_dropped)
{
    nodes_start(at_redis("timeout: 100ms", API(1000, 2678400, "")));
    let_a_decision_time_out();
    for (int tries = 0;; tries++) {
        long before = fallbacks(), first = header_number(ask(0), "X-RateLimit-Remaining");
        bool in_order = true;
        for (long i = 1; i < 12; i++)
            in_order =
                header_number(ask(i % NODES), "X-RateLimit-Remaining") == first - i && in_order;
        if (fallbacks() == before) {
            ck_assert(in_order);
            break;
        }
        ck_assert_int_lt(tries, 20);
    }
    ck_assert(!strstr(server_log(nodes[0]), "it does not answer;"));
    nodes_stop();
}
END_TEST

/* ---- while Redis is away ---- */

static bool some_fell_back(void *arg)
{
    return fallbacks() >= *(const long *)arg;
}

/* Stop Redis for some windows under load. */
static struct caller storm_of_a_stop(void)
{
    callers_start();
    wait_for_windows(2);
    redis_signal(redis, SIGSTOP);
    ck_assert(wait_until(some_fell_back, &(long){100}, 30000));
    wait_for_windows(5);
    redis_signal(redis, SIGCONT);
    ck_assert(wait_until(all_connected, NULL, 30000));
    wait_for_windows(8);
    return callers_end();
}

static bool a_node_logs(const char *words)
{
    for (size_t i = 0; i < NODES; i++)
        if (strstr(server_log(nodes[i]), words) != NULL)
            return true;
    return false;
}

START_TEST(with_the_fallback_local_at_most_one_more_limit_is_admitted)
{
    nodes_start(at_redis("", API(30, 1, "")));
    struct caller all = storm_of_a_stop();
    expect_admitted(&all, 30 - NODES * 2, 60);
    ck_assert_uint_eq(all.unavailable, 0);
    ck_assert(a_node_logs("Redis is not used"));
    ck_assert(a_node_logs("is used again"));
    nodes_stop();
}
END_TEST

START_TEST(with_the_fallback_refuse_nothing_is_admitted)
{
    nodes_start(at_redis("", API(30, 1, ", fallback: refuse")));
    redis_signal(redis, SIGSTOP);
    for (size_t i = 0; i < 4 * NODES; i++) {
        struct response *r = ask(i % NODES);
        expect_error(r, 503, "service_unavailable|unavailable");
        expect(r, header_number(r, "Retry-After") == 1);
        expect(r, header(r, "X-RateLimit-Limit") == NULL);
    }
    struct response *r = http(nodes[0], .path = "/api/v1/reports", .key = "");
    expect(r, r->status == 503); /* instead of 401: keys cannot be guessed meanwhile */
    redis_signal(redis, SIGCONT);
    ck_assert(wait_until(all_connected, NULL, 30000));
    nodes_stop();
}
END_TEST

START_TEST(with_the_fallback_admit_all_is_admitted)
{
    nodes_start(at_redis("", API(1, 2678400, ", fallback: admit")));
    redis_signal(redis, SIGSTOP);
    for (size_t i = 0; i < 4 * NODES; i++) {
        struct response *r = ask(i % NODES);
        expect_status(r, 200);
        expect(r, header(r, "X-RateLimit-Limit") == NULL && header(r, "Retry-After") == NULL);
    }
    redis_signal(redis, SIGCONT);
    ck_assert(wait_until(all_connected, NULL, 30000));
    nodes_stop();
}
END_TEST

/* Redis without a data file is empty after its restart. */
START_TEST(after_a_restart_of_redis_at_most_one_more_limit_is_admitted)
{
    nodes_start(at_redis(PATIENT, API(30, 1, "")));
    callers_start();
    wait_for_windows(2);
    redis_kill(redis);
    ck_assert(wait_until(some_fell_back, &(long){100}, 30000));
    redis_start(redis);
    ck_assert(wait_until(all_connected, NULL, 30000));
    wait_for_windows(windows_begun + 3);
    struct caller all = callers_end();
    expect_admitted(&all, 30, 90); /* before, by the fallback, after */
    long calm = fallbacks();
    callers_start();
    wait_for_windows(4);
    all = callers_end();
    ck_assert_int_eq(fallbacks(), calm);
    expect_admitted(&all, 30, 30);
    nodes_stop();
}
END_TEST

/* ---- a Redis that cannot be used ---- */

static bool log_has(void *words)
{
    return strstr(server_log(nodes[1]), words) != NULL;
}

/* Start a node, which refuses this Redis: its log has these words, and its fallback decides. */
static void expect_refused(const char *lines, const char *words)
{
    server_start_with(nodes[1], lines);
    ck_assert_msg(wait_until(log_has, (void *)(uintptr_t)words, 20000), "%s", server_log(nodes[1]));
    struct response *r = ask(1);
    expect_status(r, 200);
    expect(r, header_number(r, "X-RateLimit-Limit") == 30 / NODES);
    server_stop(nodes[1]);
}

START_TEST(a_wrong_password_is_an_error_in_the_log)
{
    redis_stop(redis);
    redis = redis_primary("requirepass a-long-password\n");
    char *path = text("%s/password", nodes[1]->dir);
    FILE *file = fopen(path, "w");
    ck_assert(file != NULL && fputs("a-wrong-password\n", file) > 0 && fclose(file) == 0);
    ck_assert_int_eq(chmod(path, 0600), 0);
    char *lines = at_redis(text("password_file: %s", path), API(30, 2678400, ""));
    expect_refused(lines, "AUTH: WRONGPASS");
    expect_refused(at_redis("", API(30, 2678400, "")), "ROLE: NOAUTH");
    file = fopen(path, "w");
    ck_assert(file != NULL && fputs("a-long-password\n", file) > 0 && fclose(file) == 0);
    server_start_with(nodes[1], lines);
    expect(ask(1), header_number(ask(1), "X-RateLimit-Limit") == 30);
    server_stop(nodes[1]);
}
END_TEST

START_TEST(another_key_file_is_an_error_in_the_log)
{
    char *lines = at_redis(PATIENT, API(30, 2678400, ""));
    server_start_with(nodes[0], lines);
    expect(ask(0), header_number(ask(0), "X-RateLimit-Limit") == 30);
    key_file = redis_key_file(nodes[1]->dir);
    lines = at_redis(PATIENT, API(30, 2678400, ""));
    expect_refused(lines, "another limits.redis.key_file");
    redis_says(redis, "DEL", "assay:key-file", NULL);
    server_start_with(nodes[1], lines);
    expect(ask(1), header_number(ask(1), "X-RateLimit-Limit") == 30);
    server_stop(nodes[1]);
    server_stop(nodes[0]);
}
END_TEST

START_TEST(a_redis_that_evicts_is_an_error_in_the_log)
{
    char *lines = at_redis("", API(30, 2678400, ""));
    redis_says(redis, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru", NULL);
    expect_refused(lines, "maxmemory-policy is allkeys-lru, which loses counts; set it to "
                          "noeviction");
    redis_says(redis, "CONFIG", "SET", "maxmemory-policy", "noeviction", NULL);
    server_start_with(nodes[1], lines);
    expect(ask(1), header_number(ask(1), "X-RateLimit-Limit") == 30);
    server_stop(nodes[1]);
}
END_TEST

START_TEST(a_full_redis_is_an_error_in_the_log)
{
    redis_says(redis, "CONFIG", "SET", "maxmemory", "1", NULL);
    expect_refused(at_redis("", API(30, 2678400, "")), "OOM");
}
END_TEST

START_TEST(a_replica_is_an_error_in_the_log)
{
    struct redis *primary = redis;
    redis = redis_replica(primary);
    expect_refused(at_redis("", API(30, 2678400, "")), "it is a replica");
    redis_stop(primary);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_limits");
    TCase *answers = harness_case(suite, "while Redis answers");
    TCase *away = harness_case(suite, "while Redis is away");
    TCase *unusable = harness_case(suite, "a Redis that cannot be used");
    if (!redis_installed()) {
        fputs("redis-server, redis-sentinel or redis-cli is missing\n", stderr);
        return SUITE_SKIPPED;
    }
    tcase_add_checked_fixture(answers, setup, teardown);
    tcase_add_test(answers, three_nodes_admit_exactly_the_limit_in_each_window);
    tcase_add_test(answers, a_refused_request_is_charged_to_no_window);
    tcase_add_test(answers, a_late_answer_is_dropped);
    tcase_add_checked_fixture(away, setup, teardown);
    tcase_add_test(away, with_the_fallback_local_at_most_one_more_limit_is_admitted);
    tcase_add_test(away, with_the_fallback_refuse_nothing_is_admitted);
    tcase_add_test(away, with_the_fallback_admit_all_is_admitted);
    tcase_add_test(away, after_a_restart_of_redis_at_most_one_more_limit_is_admitted);
    tcase_add_checked_fixture(unusable, setup, teardown);
    tcase_add_test(unusable, a_wrong_password_is_an_error_in_the_log);
    tcase_add_test(unusable, another_key_file_is_an_error_in_the_log);
    tcase_add_test(unusable, a_redis_that_evicts_is_an_error_in_the_log);
    tcase_add_test(unusable, a_full_redis_is_an_error_in_the_log);
    tcase_add_test(unusable, a_replica_is_an_error_in_the_log);
    return harness_main(suite);
}
