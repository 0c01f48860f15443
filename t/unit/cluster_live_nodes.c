/* How many nodes share a limit, from what the log notes of them. */
#include "t/kit/suite.h"

#include "core/cluster/live_nodes.h"

#include <stdlib.h>

enum { AWAY_MS = 70000, NODES = 4 };

/* Columns: when nodes were seen (0: no node), for how long the list is read, the number. */
static const struct {
    int64_t seen_ms[NODES];
    int64_t watched_ms;
    unsigned count;
} cases[] = {
    {{1}, 1000000, 1},
    {{1, 2000, 30000}, 1000000, 3},
    {{1, 2000, AWAY_MS}, 1000000, 3},         /* it may still admit */
    {{1, 2000, AWAY_MS + 1}, 1000000, 2},     /* it answers 503, or is dead */
    {{1, AWAY_MS + 1, AWAY_MS + 1}, 0, 3},    /* the log was away: no node was seen */
    {{1, AWAY_MS + 1, 100}, AWAY_MS, 3},      /* it had no time to come back */
    {{1, AWAY_MS + 1, 100}, AWAY_MS + 1, 2},  /* it had */
    {{1, -5, 100}, 1000000, 3},               /* the clock of the engine was set back */
    {{1, AWAY_MS + 1, INT64_MAX / 2}, 10, 3}, /* a node that has just started */
};

static unsigned count(const int64_t seen_ms[NODES], int64_t away_ms, int64_t watched_ms)
{
    struct live_nodes l = {.away_ms = away_ms, .watched_ms = watched_ms};
    for (size_t i = 0; i < NODES; i++)
        if (seen_ms[i] != 0)
            live_nodes_add(&l, &(struct cluster_log_node){.seen_ms = seen_ms[i]});
    return l.count;
}

START_TEST(a_node_counts_until_it_admits_nothing)
{
    ck_assert_uint_eq(count(cases[_i].seen_ms, AWAY_MS, cases[_i].watched_ms), cases[_i].count);
}
END_TEST

START_TEST(with_stale_reads_every_registered_node_counts)
{
    ck_assert_uint_eq(count((const int64_t[NODES]){1, 2, INT64_MAX / 2}, INT64_MAX, 1000000), 3);
}
END_TEST

/* In order. Columns: the time of a look, for how long the list is watched. */
static const struct {
    uint64_t now_ms;
    int64_t watched_ms;
} looks[] = {
    {500, 0},   {2500, 2000},  {2600, 2100}, {2600 + CLUSTER_LOG_LEASE_MS, 12100},
    {22601, 0}, {24600, 1999}, {90000, 0},   {92000, 2000},
};

START_TEST(after_a_gap_the_list_is_watched_anew)
{
    struct live_watch w = {0};
    for (size_t i = 0; i < sizeof(looks) / sizeof(*looks); i++)
        ck_assert_int_eq(live_watch_look(&w, looks[i].now_ms), looks[i].watched_ms);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_live_nodes");
    TCase *tcase = tcase_create("live nodes");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_node_counts_until_it_admits_nothing, 0,
                        sizeof(cases) / sizeof(*cases));
    tcase_add_test(tcase, after_a_gap_the_list_is_watched_anew);
    tcase_add_test(tcase, with_stale_reads_every_registered_node_counts);
    return suite_run(suite);
}
