/*
 * Leases: three nodes with two workers each take requests ahead from one Redis. They never admit
 * more than the limit, and refuse early by at most what the workers took and did not use.
 */
#include "t/kit/limited_nodes.h"

#define WORKERS (NODES * 2)

START_TEST(with_leases_a_window_never_admits_more_than_the_limit)
{
    nodes_start(nodes_at_redis(PATIENT, API(400, 1, ", lease: 20")));
    callers_start(nodes, NODES, false);
    callers_wait(6);
    struct tally all = callers_end();
    expect_admitted(&all, 400 - WORKERS * 19, 400);
    ck_assert_int_eq(nodes_fallbacks(), 0);
    ck_assert_uint_eq(all.without_headers, 0);
    ck_assert_uint_eq(all.carried, 0);
    nodes_stop();
}
END_TEST

/* The limit is never reached, so each window ends with leases that are not used up. */
START_TEST(no_lease_is_carried_past_its_window)
{
    nodes_start(nodes_at_redis(PATIENT, API(1000000, 1, ", lease: 50")));
    callers_start(nodes, NODES, false);
    callers_wait(6);
    struct tally all = callers_end();
    ck_assert_uint_eq(all.carried, 0);
    nodes_stop();
}
END_TEST

/* The last window of a limiter with several is charged as the first. */
START_TEST(with_leases_each_window_of_a_limiter_is_kept)
{
    nodes_start(nodes_at_redis(PATIENT, "api: { lease: 10, windows: [ "
                                        "{ limit: 100, seconds: 1, key: api_key }, "
                                        "{ limit: 250, seconds: 2678400, key: api_key } ] }"));
    callers_start(nodes, NODES, false);
    for (struct response *r;
         (r = nodes_ask(0))->status != 429 || header_number(r, "X-RateLimit-Limit") != 250;)
        response_free(r);
    struct tally all = callers_end();
    unsigned admitted = 0;
    for (size_t i = 0; i < all.count; i++)
        admitted += all.windows[i].admitted;
    ck_assert_uint_le(admitted, 250);
    nodes_stop();
}
END_TEST

/* Nodes 1 and 2 keep blocks that they do not use; node 0 meets the end of the limit. */
START_TEST(with_leases_refusals_come_early_by_at_most_the_unspent_blocks)
{
    unsigned admitted = 20;
    nodes_start(nodes_at_redis(PATIENT, API(400, 2678400, ", lease: 20")));
    for (size_t i = 0; i < admitted; i++)
        expect_status(nodes_ask(1 + i % 2), 200);
    for (struct response *r; (r = nodes_ask(0))->status == 200; admitted++)
        response_free(r);
    /* each of the two took at least one block for ten requests */
    ck_assert_uint_ge(admitted, 400 - WORKERS * 19);
    ck_assert_uint_le(admitted, 400 - 2 * 10);
    nodes_stop();
}
END_TEST

/* One caller of one worker: blocks, not requests, go to Redis; the headers count every request. */
START_TEST(a_lease_saves_round_trips_and_counts_in_the_headers)
{
    nodes[0]->options.workers = 1;
    server_start_with(nodes[0], nodes_at_redis(PATIENT, API(1000, 2678400, ", lease: 20")));
    for (long i = 1; i <= 60; i++) {
        struct response *r = nodes_ask(0);
        expect(r, header_number(r, "X-RateLimit-Remaining") == 1000 - i);
        response_free(r);
    }
    const char *said = redis_says(redis, "INFO", "commandstats", NULL);
    const char *at = strstr(said, "cmdstat_evalsha:calls=");
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(strtol(strchr(at, '=') + 1, NULL, 10), 3);
    server_stop(nodes[0]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_limits_lease");
    TCase *tcase = harness_case(suite, "leases");
    if (!redis_installed()) {
        fputs("redis-server, redis-sentinel or redis-cli is missing\n", stderr);
        return SUITE_SKIPPED;
    }
    tcase_set_timeout(tcase, 180);
    tcase_add_checked_fixture(tcase, nodes_setup, nodes_teardown);
    tcase_add_test(tcase, with_leases_a_window_never_admits_more_than_the_limit);
    tcase_add_test(tcase, no_lease_is_carried_past_its_window);
    tcase_add_test(tcase, with_leases_each_window_of_a_limiter_is_kept);
    tcase_add_test(tcase, with_leases_refusals_come_early_by_at_most_the_unspent_blocks);
    tcase_add_test(tcase, a_lease_saves_round_trips_and_counts_in_the_headers);
    return harness_main(suite);
}
