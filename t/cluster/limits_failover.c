/*
 * Limits with limits.engine: redis when another primary is promoted: three nodes, a primary, a
 * replica and three sentinels.
 */
#include "t/kit/limited_nodes.h"

#include <signal.h>

#define SENTINELS 3
#define WITHIN_MS 60000

static struct redis *replica, *sentinels[SENTINELS];

static void setup(void)
{
    nodes_setup();
    replica = redis_replica(redis);
    redis_sentinels(redis, sentinels, SENTINELS);
    nodes_start(nodes_yaml(text("sentinels: [ \"%s\", \"%s\", \"%s\" ]", sentinels[0]->address,
                                sentinels[1]->address, sentinels[2]->address),
                           API(30, 1, "")));
    ck_assert(wait_until(nodes_connected, NULL, WITHIN_MS));
}

static void teardown(void)
{
    for (size_t i = 0; i < SENTINELS; i++)
        redis_stop(sentinels[i]);
    redis_stop(replica);
    nodes_teardown();
}

/* How many decisions this server made. */
static long decisions(const struct redis *r)
{
    const char *at = strstr(redis_says(r, "INFO", "commandstats", NULL), "cmdstat_evalsha:calls=");
    return at == NULL ? 0 : strtol(strchr(at, '=') + 1, NULL, 10);
}

static bool replica_decides(void *arg)
{
    return redis_is_primary(replica) && decisions(replica) > *(const long *)arg;
}

/* Wait until the replica decides, for all workers. */
static void expect_failover(void)
{
    ck_assert_msg(wait_until(replica_decides, &(long){100}, WITHIN_MS),
                  "the replica is not used: %s", server_log(nodes[0]));
    ck_assert(wait_until(nodes_connected, NULL, WITHIN_MS));
    callers_wait(callers_windows() + 3);
}

/* What one primary, the fallbacks and another primary may admit together. */
static void expect_at_most_two_more(void)
{
    struct tally all = callers_end();
    expect_admitted(&all, 0, 90);
    ck_assert_uint_eq(all.unavailable, 0);
}

/* Nothing but the new primary decides. A decision that a busy machine delays counts as one more. */
static void expect_exact(void)
{
    long old = redis->pid == 0 ? 0 : decisions(redis), before = nodes_fallbacks();
    callers_start(nodes, NODES, false);
    callers_wait(5);
    struct tally all = callers_end();
    long more = nodes_fallbacks() - before;
    expect_admitted(&all, 30 - (unsigned)(more < 30 ? more : 30), 30 + (unsigned)more);
    ck_assert(redis->pid == 0 || decisions(redis) == old);
}

START_TEST(a_promoted_replica_counts_after_the_primary_died)
{
    callers_start(nodes, NODES, false);
    callers_wait(2);
    redis_kill(redis);
    expect_failover();
    expect_at_most_two_more();
    expect_exact();
    nodes_stop();
}
END_TEST

START_TEST(a_primary_that_was_cut_off_is_not_used_when_it_is_back)
{
    callers_start(nodes, NODES, false);
    callers_wait(2);
    redis_signal(redis, SIGSTOP);
    expect_failover();
    redis_signal(redis, SIGCONT);
    callers_wait(callers_windows() + 3);
    expect_at_most_two_more();
    expect_exact();
    nodes_stop();
}
END_TEST

START_TEST(a_planned_failover_is_followed)
{
    callers_start(nodes, NODES, false);
    callers_wait(2);
    ck_assert_str_eq(redis_says(sentinels[0], "SENTINEL", "FAILOVER", "mymaster", NULL), "OK");
    expect_failover();
    expect_at_most_two_more();
    expect_exact();
    nodes_stop();
}
END_TEST

START_TEST(a_dead_sentinel_does_not_matter)
{
    redis_kill(sentinels[0]);
    callers_start(nodes, NODES, false);
    callers_wait(2);
    redis_kill(redis);
    expect_failover();
    expect_at_most_two_more();
    server_stop(nodes[0]);
    server_start(nodes[0]); /* asks the dead one first */
    struct response *r = nodes_ask(0);
    expect(r, header_number(r, "X-RateLimit-Limit") == 30);
    nodes_stop();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_limits_failover");
    TCase *tcase = harness_case(suite, "failover");
    if (!redis_installed()) {
        fputs("redis-server, redis-sentinel or redis-cli is missing\n", stderr);
        return SUITE_SKIPPED;
    }
    tcase_set_timeout(tcase, 180);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_promoted_replica_counts_after_the_primary_died);
    tcase_add_test(tcase, a_primary_that_was_cut_off_is_not_used_when_it_is_back);
    tcase_add_test(tcase, a_planned_failover_is_followed);
    tcase_add_test(tcase, a_dead_sentinel_does_not_matter);
    return harness_main(suite);
}
