/*
 * Limits in Redis on the nodes of a cluster, whose configuration has neither limits.redis.nodes nor
 * limits.redis.key_file: they count together, and the fallback local divides a limit by the live
 * nodes.
 */
#include "t/kit/nodes.h"
#include "t/kit/redis_servers.h"

#include <signal.h>

enum {
    PROCESSES = 2,
    LIMIT = 3000,
    SOON_MS = 30000,
    AWAY_S = 16
}; /* max_lag and the lease: 15 s */

static struct nodes *nodes;
static struct redis *redis;

static char *limits_yaml(const char *more)
{
    return text(
        "limits:\n  engine: redis\n  redis: { address: \"%s\", timeout: 1s%s }\n  limiters:\n"
        "    api: { windows: [ { limit: %d, seconds: 2678400, key: api_key } ] }\n"
        "    home: { windows: [ { limit: %d, seconds: 2678400, key: ip } ],"
        " routes: [ GET / ] }\n",
        redis->address, more, LIMIT, LIMIT);
}

static void setup(void)
{
    redis = redis_primary("");
    nodes = nodes_new(&(struct nodes_options){
        .proxies = true, .cluster = ", max_lag: 5s", .yaml = limits_yaml("")});
}

static void teardown(void)
{
    nodes_free(nodes);
    redis_stop(redis);
}

static struct server *server_of(unsigned i)
{
    return nodes->node[i].server;
}

static long number_of(const struct response *r, const char *name)
{
    expect_status(r, 200);
    return header_number(r, name);
}

/* What the node says of a limit that counts keys. */
static long asked(unsigned i, const char *name)
{
    return number_of(http(server_of(i), .path = "/api/v1/reports"), name);
}

/* Of one that counts addresses, which a node far behind the log answers, too. */
static long asked_without_key(unsigned i, const char *name)
{
    return number_of(http(server_of(i), .path = "/", .key = ""), name);
}

struct share {
    unsigned node;
    long count;
};

static bool divides_by(void *arg)
{
    const struct share *s = arg;
    const char *said = assay_ok(server_of(s->node), "limits", "list", NULL);
    return strstr(said, text("The fallback local divides limits by %ld.", s->count)) != NULL;
}

static void expect_share(unsigned i, long count)
{
    struct share s = {i, count};
    ck_assert_msg(wait_until(divides_by, &s, SOON_MS), "node %u:\n%s", i,
                  assay_ok(server_of(i), "limits", "list", NULL));
}

static bool is_away(void *arg)
{
    return strstr(assay_ok(arg, "limits", "list", NULL), "It answers 0 of") != NULL;
}

/* The nodes know it: the limits of their next answers are those of the fallback. */
static void stop_redis(void)
{
    redis_kill(redis);
    for (unsigned i = 0; i < nodes->count; i++)
        ck_assert(server_of(i)->pid == 0 || wait_until(is_away, server_of(i), SOON_MS));
}

START_TEST(nodes_count_together_and_without_redis_each_admits_its_part)
{
    for (unsigned i = 0; i < nodes->count; i++) {
        ck_assert_int_eq(asked(i, "X-RateLimit-Remaining"), LIMIT - 1 - (long)i);
        expect_share(i, 3);
    }
    struct json_object *shown = assay_list(server_of(2), "limits", "show", "api", "1", NULL);
    ck_assert_str_eq(record_text(record_find(shown, "key", "1"), "used"), "3");
    stop_redis();
    for (unsigned i = 0; i < nodes->count; i++)
        ck_assert_int_eq(asked(i, "X-RateLimit-Limit"), LIMIT / 3);
}
END_TEST

static void age(unsigned i)
{
    free(postgres_query(nodes->log,
                        "UPDATE assay_node SET seen_at = seen_at - interval '%d s'"
                        " WHERE name = 'node%u'",
                        AWAY_S, i));
}

/* Nobody takes its part as long as it may admit requests, and it does not take that of others. */
START_TEST(a_node_without_the_log_keeps_its_part)
{
    const unsigned cut = (nodes_await_leader(nodes, NODES_AWAY) + 1) % nodes->count;
    for (unsigned i = 0; i < nodes->count; i++)
        expect_share(i, 3);
    fault_proxy_drop(nodes->node[cut].proxy);
    stop_redis();
    for (unsigned i = 0; i < nodes->count; i++)
        if (i != cut)
            ck_assert_int_eq(asked(i, "X-RateLimit-Limit"), LIMIT / 3);
    for (unsigned i = 0; i < nodes->count; i++) {
        if (i == cut)
            continue;
        age(cut);
        expect_share(i, 2);
        ck_assert_int_eq(asked(i, "X-RateLimit-Limit"), LIMIT / 2);
    }
    expect_share(cut, 3);
    ck_assert_int_eq(asked_without_key(cut, "X-RateLimit-Limit"), LIMIT / 3);
    node_kill_writer(nodes, cut);
    node_writer(nodes, cut);
    ck_assert_int_eq(asked_without_key(cut, "X-RateLimit-Limit"), LIMIT / 3);
    fault_proxy_pass(nodes->node[cut].proxy);
    for (unsigned i = 0; i < nodes->count; i++)
        expect_share(i, 3);
}
END_TEST

START_TEST(a_node_that_has_not_read_the_log_admits_one_request)
{
    const unsigned cut = (nodes_await_leader(nodes, NODES_AWAY) + 1) % nodes->count;
    node_stop(nodes, cut);
    fault_proxy_drop(nodes->node[cut].proxy);
    stop_redis();
    node_start(nodes, cut);
    ck_assert_int_eq(asked_without_key(cut, "X-RateLimit-Limit"), 1);
    expect_status(http(server_of(cut), .path = "/", .key = ""), 429);
    ck_assert_ptr_nonnull(strstr(assay_ok(server_of(cut), "limits", "list", NULL),
                                 "this node has not read yet how many nodes are live"));
    fault_proxy_pass(nodes->node[cut].proxy);
    expect_share(cut, 3);
    ck_assert_int_eq(asked_without_key(cut, "X-RateLimit-Limit"), LIMIT / 3);
}
END_TEST

START_TEST(options_win)
{
    char *key = redis_key_file(server_of(0)->dir);
    nodes->options.yaml = limits_yaml(text(", nodes: 5, key_file: %s", key));
    ck_assert_int_eq(asked(1, "X-RateLimit-Remaining"), LIMIT - 1);
    node_stop(nodes, 0);
    node_configure(nodes, 0);
    node_start(nodes, 0);
    ck_assert(server_says(server_of(0), "another node used it with another limits.redis.key_file",
                          0, SOON_MS));
    ck_assert_int_eq(asked_without_key(0, "X-RateLimit-Limit"), LIMIT / 5);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, nodes_count_together_and_without_redis_each_admits_its_part);
    tcase_add_test(tcase, a_node_without_the_log_keeps_its_part);
    tcase_add_test(tcase, a_node_that_has_not_read_the_log_admits_one_request);
    tcase_add_test(tcase, options_win);
}

int main(void)
{
    if (!redis_installed()) {
        fputs("redis-server, redis-sentinel or redis-cli is missing\n", stderr);
        return SUITE_SKIPPED;
    }
    return nodes_main("cluster_limits_fallback", PROCESSES, setup, teardown, add_tests);
}
