/* Which format of entries the leader writes, from what nodes say of themselves. */
#include "t/kit/suite.h"

#include "core/cluster/formats.h"

#include <stdlib.h>

enum { NODES = 3, LIVE = 5, AWAY = CLUSTER_LOG_LEASE_MS };

struct seen {
    uint32_t format;
    int64_t seen_ms;
};

/* Columns: formats of the leader, that of the last entry, the nodes (none: 0), what it writes. */
static const struct {
    struct rows_formats own;
    uint32_t last;
    struct seen nodes[NODES];
    uint32_t written;
} cases[] = {
    {{1, 1}, 0, {{1, LIVE}}, 1},
    {{1, 1}, 1, {{1, LIVE}, {2, LIVE}}, 1},                /* the leader is the earlier version */
    {{1, 2}, 1, {{2, LIVE}, {1, LIVE}, {2, LIVE}}, 1},     /* a node knows only 1 */
    {{1, 2}, 1, {{2, LIVE}, {2, LIVE}, {2, LIVE}}, 2},     /* it was upgraded */
    {{1, 2}, 1, {{2, LIVE}, {1, AWAY - 1}, {2, LIVE}}, 1}, /* it may still live */
    {{1, 2}, 1, {{2, LIVE}, {1, AWAY}, {2, LIVE}}, 2},     /* it is away */
    {{1, 2}, 1, {{2, LIVE}, {1, -3600000}, {2, LIVE}}, 1}, /* the clock of the log was set back */
    {{1, 2}, 0, {{2, LIVE}, {1, LIVE}}, 1},                /* a log without entries */
    {{1, 2}, 2, {{2, LIVE}, {1, LIVE}}, 2},                /* the log never goes back */
    {{1, 2}, 2, {{2, LIVE}, {0, 0}}, 2},                   /* also without other nodes */
    {{1, 2}, 1, {{2, LIVE}, {3, LIVE}}, 2},                /* a node knows more */
    {{2, 3}, 2, {{3, LIVE}, {2, LIVE}}, 2},
    {{2, 3}, 2, {{3, LIVE}, {3, LIVE}}, 3},
    {{2, 3}, 0, {{3, LIVE}, {1, LIVE}}, 2}, /* it cannot write what that node reads */
};

START_TEST(the_leader_writes_the_newest_format_that_all_live_nodes_know)
{
    uint32_t limit = FORMATS_UNLIMITED;
    for (size_t i = 0; i < NODES; i++) {
        const struct seen *s = &cases[_i].nodes[i];
        const struct cluster_log_node n = {.format = s->format, .seen_ms = s->seen_ms};
        if (s->format != 0)
            formats_limit(&limit, &n);
    }
    ck_assert_uint_eq(formats_to_write(&cases[_i].own, cases[_i].last, limit), cases[_i].written);
}
END_TEST

/* The nodes were not looked at. */
START_TEST(a_new_leader_continues_in_the_format_of_the_last_entry)
{
    const struct rows_formats own = {1, 2};
    ck_assert_uint_eq(formats_to_write(&own, 0, 0), 1);
    ck_assert_uint_eq(formats_to_write(&own, 1, 0), 1);
    ck_assert_uint_eq(formats_to_write(&own, 2, 0), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_formats");
    TCase *tcase = tcase_create("formats");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, the_leader_writes_the_newest_format_that_all_live_nodes_know, 0,
                        sizeof(cases) / sizeof(*cases));
    tcase_add_test(tcase, a_new_leader_continues_in_the_format_of_the_last_entry);
    return suite_run(suite);
}
