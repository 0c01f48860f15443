/* How much of the log the leader may delete, from what nodes say of themselves. */
#include "t/kit/suite.h"

#include "core/cluster/trim.h"

#include <stdlib.h>

enum { HEAD = 1000, AWAY_MS = 60000, NODES = 4 };

struct seen {
    uint64_t sequence;
    int64_t seen_ms;
};

/* Columns: the first entry of the log, the nodes (none: sequence and time 0), what may go. */
static const struct {
    uint64_t first;
    struct seen nodes[NODES];
    uint64_t before;
} cases[] = {
    {1, {{HEAD, 5}, {900, 10}, {950, 10}}, 900}, /* the slowest one holds it */
    {1, {{HEAD, 5}}, HEAD},                      /* the entry of the head stays */
    {1, {{HEAD, 5}, {300, AWAY_MS}}, 300},       /* away, but not for too long */
    {1, {{HEAD, 5}, {300, AWAY_MS + 1}}, HEAD},  /* away for too long */
    {1, {{HEAD, 5}, {0, 10}}, 0},                /* an empty store needs all */
    {500, {{HEAD, 5}, {0, 10}, {800, 3}}, 800},  /* no entry helps it any more */
    {500, {{HEAD, 5}, {498, 10}}, HEAD},         /* it lacks entry 499 */
    {500, {{HEAD, 5}, {499, 10}}, 499},          /* its next one is the first */
    {500, {{HEAD, 5}, {499, AWAY_MS + 1}, {700, 1}}, 700},
    {1, {{HEAD + 1, 5}}, HEAD}, /* a node ahead of a head that was read before */
};

START_TEST(the_slowest_node_that_can_follow_holds_the_log)
{
    struct trim t = {.first = cases[_i].first, .away_ms = AWAY_MS, .before = HEAD};
    for (size_t i = 0; i < NODES; i++) {
        const struct seen *s = &cases[_i].nodes[i];
        const struct cluster_log_node n = {.sequence = s->sequence, .seen_ms = s->seen_ms};
        if (s->sequence != 0 || s->seen_ms != 0)
            trim_add(&t, &n);
    }
    ck_assert_uint_eq(t.before, cases[_i].before);
}
END_TEST

START_TEST(a_node_that_was_stopped_holds_nothing_and_is_not_forgotten)
{
    struct trim t = {.first = 1, .away_ms = AWAY_MS, .before = HEAD};
    trim_add(&t, &(struct cluster_log_node){.sequence = 5, .differs_at = 4});
    ck_assert_uint_eq(t.before, HEAD);
    ck_assert(
        !trim_forgets(&t, &(struct cluster_log_node){.differs_at = 4, .seen_ms = AWAY_MS + 1}));
}
END_TEST

START_TEST(a_node_is_forgotten_after_the_time_it_may_be_away)
{
    const struct trim t = {.away_ms = AWAY_MS};
    ck_assert(!trim_forgets(&t, &(struct cluster_log_node){.seen_ms = AWAY_MS}));
    ck_assert(trim_forgets(&t, &(struct cluster_log_node){.seen_ms = AWAY_MS + 1}));
    ck_assert(!trim_forgets(&t, &(struct cluster_log_node){.seen_ms = -5})); /* clock set back */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_trim");
    TCase *tcase = tcase_create("trim");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, the_slowest_node_that_can_follow_holds_the_log, 0,
                        sizeof(cases) / sizeof(*cases));
    tcase_add_test(tcase, a_node_that_was_stopped_holds_nothing_and_is_not_forgotten);
    tcase_add_test(tcase, a_node_is_forgotten_after_the_time_it_may_be_away);
    return suite_run(suite);
}
