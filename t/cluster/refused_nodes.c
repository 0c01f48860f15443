/* A node whose store does not fit the log applies nothing and says why. */
#include "t/kit/three_nodes.h"

/* A server without a cluster makes records; then it is to follow. */
START_TEST(a_node_with_records_of_its_own_is_refused)
{
    unsigned other = nodes_add(nodes);
    struct server *s = nodes->node[other].server;
    server_configure(s, NULL);
    assay_ok(s, "workspace", "create", "own", NULL);
    node_configure(nodes, other);
    created("first");
    node_start(nodes, other);
    expect_says(other, "data_dir has records that are not of this log");
    ck_assert_uint_eq(node_position(nodes, other), 0);
    expect_error(http_get(s, "/api/v1/reports"), 503, "unavailable");
}
END_TEST

START_TEST(a_node_behind_a_trimmed_log_is_refused)
{
    unsigned behind = follower(0);
    node_stop(nodes, behind);
    created("first");
    created("second");
    free(postgres_query(nodes->log, "DELETE FROM assay_log WHERE seq < %llu",
                        (unsigned long long)nodes_entries(nodes)));
    uint64_t position = node_position(nodes, behind);
    node_start(nodes, behind);
    expect_says(behind, "trimmed");
    created("third");
    ck_assert_uint_eq(node_position(nodes, behind), position);
    unsigned empty = nodes_add(nodes);
    node_start(nodes, empty);
    expect_says(empty, "trimmed");
    ck_assert_uint_eq(node_position(nodes, empty), 0);
}
END_TEST

START_TEST(a_node_of_another_log_is_refused)
{
    created("first");
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        node_stop(nodes, i);
    struct run other = assay(nodes->node[1].server, "cluster", "new-log", "--from", "node0", NULL);
    ck_assert_int_ne(other.status, 0);
    assay_ok(nodes->node[0].server, "cluster", "new-log", "--from", "node0", NULL);
    node_start(nodes, 0);
    nodes->asked[NODES_WRITE] = 0;
    created("second");
    for (unsigned i = 1; i < nodes->count; i++) {
        node_start(nodes, i);
        expect_says(i, "the store is of another log");
        expect_error(http_get(nodes->node[i].server, "/api/v1/reports"), 503, "unavailable");
    }
    ck_assert_int_eq(total_on(0), 2);
}
END_TEST

START_TEST(an_entry_that_was_changed_in_the_database_is_refused)
{
    unsigned behind = follower(0);
    node_stop(nodes, behind);
    created("first");
    created("second");
    free(postgres_query(nodes->log, "UPDATE assay_log SET rows = rows || '\\x00' WHERE seq = %llu",
                        (unsigned long long)nodes_entries(nodes)));
    node_start(nodes, behind);
    expect_says(behind, "does not continue what this store has");
    ck_assert_uint_lt(node_position(nodes, behind), nodes_entries(nodes));
}
END_TEST

START_TEST(commands_change_nothing_while_the_server_is_stopped)
{
    unsigned stopped = follower(0);
    node_stop(nodes, stopped);
    const struct server *s = nodes->node[stopped].server;
    struct run run = assay(s, "workspace", "create", "other", NULL);
    ck_assert_int_ne(run.status, 0);
    ck_assert_msg(strstr(run.err, "in a cluster a running server makes the change"), "%s", run.err);
    assay_ok(s, "workspace", "list", NULL);
    struct run online = assay(nodes->node[leader].server, "cluster", "new-log", "--from",
                              text("node%u", leader), NULL);
    ck_assert_int_ne(online.status, 0);
    ck_assert_msg(strstr(online.err, "stop it first"), "%s", online.err);
    struct run again = assay(s, "cluster", "init", NULL);
    ck_assert_int_ne(again.status, 0);
    ck_assert_msg(strstr(again.err, "has a log of Assay already"), "%s", again.err);
    node_start(nodes, stopped);
    nodes_expect_equal(nodes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_node_with_records_of_its_own_is_refused);
    tcase_add_test(tcase, a_node_behind_a_trimmed_log_is_refused);
    tcase_add_test(tcase, a_node_of_another_log_is_refused);
    tcase_add_test(tcase, an_entry_that_was_changed_in_the_database_is_refused);
    tcase_add_test(tcase, commands_change_nothing_while_the_server_is_stopped);
}

int main(void)
{
    return three_nodes_main("refused_nodes", add_tests);
}
