/*
 * Limits in Redis on the nodes of one cluster, under load from callers on all of them: a window
 * admits no more than its limit, also while nodes die. The stated exception, a failover of Redis
 * that loses counts, is provoked and admits at most one more limit.
 */
#include "t/kit/limit_callers.h"
#include "t/kit/nodes.h"
#include "t/kit/redis_servers.h"

#include <signal.h>
#include <time.h>

enum { LIMIT = 60, KILLS = 3, WITHIN_MS = 60000, SENTINELS = 3, WINDOW_S = 15, PROCESSES = 2 };

static struct nodes *nodes;
static struct redis *redis, *replica, *sentinels[SENTINELS];
static struct server internals[NODES_MAX];

/* Without Redis a request is refused: a node that starts admits none before it is connected. */
static char *limits_yaml(const char *where, unsigned seconds, const char *more)
{
    return text("internal_listen: 127.0.0.1:0\nlimits:\n  engine: redis\n"
                "  redis: { key_file: %s, nodes: 3, timeout: 1s, %s }\n"
                "  limiters: { api: { fallback: refuse%s,"
                " windows: [ { limit: %d, seconds: %u, key: api_key } ] } }\n",
                redis_key_file(redis->dir), where, more, LIMIT, seconds);
}

static bool is_connected(void *internal)
{
    return metric(internal, "assay_limiter_workers_without_redis") == 0;
}

static void await_redis(unsigned i)
{
    internals[i] = server_internal(nodes->node[i].server);
    ck_assert_msg(wait_until(is_connected, &internals[i], WITHIN_MS), "%s",
                  server_log(nodes->node[i].server));
}

static void begin(const char *where, unsigned seconds, const char *more)
{
    struct server *servers[NODES_MAX];
    nodes = nodes_new(&(struct nodes_options){.yaml = limits_yaml(where, seconds, more)});
    for (unsigned i = 0; i < nodes->count; i++) {
        servers[i] = nodes->node[i].server;
        await_redis(i);
    }
    callers_start(servers, nodes->count, true);
    callers_wait(1);
}

/* ---- nodes die ---- */

static const struct {
    const char *name, *more;
    unsigned least; /* that a window under load admits */
} engines[] = {{"exact", "", LIMIT}, {"lease", ", lease: 5", LIMIT - 6 * 4}};

static unsigned most_admitted(const struct tally *all)
{
    unsigned most = 0;
    for (size_t i = 0; i < all->count; i++)
        most = all->windows[i].admitted > most ? all->windows[i].admitted : most;
    return most;
}

/* The leader first, then any. */
START_TEST(no_window_admits_more_than_its_limit_while_nodes_die)
{
    redis = redis_primary("");
    begin(text("address: \"%s\"", redis->address), 1, engines[_i].more);
    for (unsigned kill = 0; kill < KILLS; kill++) {
        int leader = nodes_leader(nodes);
        unsigned i = leader == NODES_AWAY ? kill : (unsigned)leader + kill;
        node_kill(nodes, i % nodes->count);
        callers_wait(callers_windows() + 2);
        node_start(nodes, i % nodes->count);
        await_redis(i % nodes->count);
        callers_wait(callers_windows() + 2);
    }
    struct tally all = callers_end();
    fprintf(stderr, "%s: %zu windows, at most %u of %d admitted\n", engines[_i].name, all.count,
            most_admitted(&all), LIMIT);
    expect_admitted(&all, 0, LIMIT);
    ck_assert_uint_ge(most_admitted(&all), engines[_i].least);
    nodes_free(nodes);
    redis_stop(redis);
}
END_TEST

/* ---- Redis fails over ---- */

static long decisions(const struct redis *r)
{
    const char *at = strstr(redis_says(r, "INFO", "commandstats", NULL), "cmdstat_evalsha:calls=");
    return at == NULL ? 0 : strtol(strchr(at, '=') + 1, NULL, 10);
}

static bool replica_decides(void *arg)
{
    (void)arg;
    return redis_is_primary(replica) && decisions(replica) > 2 * LIMIT;
}

static bool ends_soon(void *reset)
{
    return *(long *)reset - time(NULL) <= 1;
}

/*
 * The replica gets nothing of the window that begins, and is the primary before it ends. Sentinel
 * takes no replica that lacks more than some seconds.
 */
static void fail_over(void)
{
    struct response *r = http(nodes->node[0].server, .path = "/api/v1/reports");
    long reset = header_number(r, "X-RateLimit-Reset"), windows = callers_windows();
    ck_assert(wait_until(ends_soon, &reset, WITHIN_MS));
    redis_signal(replica, SIGSTOP);
    redis_says(redis, "CLIENT", "KILL", "TYPE", "replica", NULL);
    callers_wait(windows + 1);
    callers_wait_refused();
    int64_t since = now_ms();
    redis_kill(redis);
    redis_signal(replica, SIGCONT);
    ck_assert_msg(wait_until(replica_decides, NULL, WITHIN_MS), "the replica is not used: %s",
                  server_log(nodes->node[0].server));
    fprintf(stderr, "the failover took %lld ms, %ld s before the end of the window\n",
            (long long)(now_ms() - since), reset + WINDOW_S - time(NULL));
}

static unsigned windows_above(const struct tally *all, unsigned limit)
{
    unsigned count = 0;
    for (size_t i = 0; i < all->count; i++)
        count += all->windows[i].admitted > limit;
    return count;
}

START_TEST(a_failover_that_loses_counts_admits_one_more_limit_and_no_more)
{
    redis = redis_primary("");
    replica = redis_replica(redis);
    redis_sentinels(redis, sentinels, SENTINELS);
    begin(text("sentinels: [ \"%s\", \"%s\", \"%s\" ]", sentinels[0]->address,
               sentinels[1]->address, sentinels[2]->address),
          WINDOW_S, "");
    fail_over();
    node_kill(nodes, nodes_await_leader(nodes, NODES_AWAY));
    callers_wait(callers_windows() + 1);
    callers_wait_refused();
    struct tally all = callers_end();
    fprintf(stderr, "failover: at most %u of %d admitted in %zu windows\n", most_admitted(&all),
            LIMIT, all.count);
    expect_admitted(&all, 0, 2 * LIMIT);
    ck_assert_uint_eq(windows_above(&all, LIMIT), 1);
    nodes_free(nodes);
    for (size_t i = 0; i < SENTINELS; i++)
        redis_stop(sentinels[i]);
    redis_stop(replica);
    redis_stop(redis);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_failover_that_loses_counts_admits_one_more_limit_and_no_more);
    tcase_add_loop_test(tcase, no_window_admits_more_than_its_limit_while_nodes_die, 0,
                        COUNT(engines));
}

int main(void)
{
    if (!redis_installed()) {
        fputs("redis-server, redis-sentinel or redis-cli is missing\n", stderr);
        return SUITE_SKIPPED;
    }
    return nodes_main("limits of a cluster", PROCESSES, NULL, NULL, add_tests);
}
