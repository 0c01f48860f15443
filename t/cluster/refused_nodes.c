/*
 * A node whose store does not fit the log applies nothing and says why. It is not registered, or
 * is shown as stopped, and nothing waits for it.
 */
#include "t/kit/three_nodes.h"

enum { NOTED_MS = 5000 };

static unsigned number(const char *sql, const char *name)
{
    char *value = postgres_query(nodes->log, sql, name);
    ck_assert_ptr_nonnull(value);
    unsigned n = (unsigned)atoi(value);
    free(value);
    return n;
}

static unsigned registered(unsigned i)
{
    return number("SELECT count(*) FROM assay_node WHERE name = '%s'", text("node%u", i));
}

static void expect_says_once(unsigned i, const char *words)
{
    char *log = server_log(nodes->node[i].server);
    const char *first = strstr(log, words);
    ck_assert_ptr_nonnull(first);
    ck_assert_msg(strstr(first + 1, words) == NULL, "%s", log);
    ck_assert_msg(strstr(log, "the cluster: the store fits the log, and the log answers") == NULL,
                  "%s", log);
    free(log);
}

static bool is_behind(void *internal)
{
    return metric(internal, "assay_cluster_lag_seconds") >= 2 &&
           metric(internal, "assay_cluster_confirm_age_seconds") >= 2;
}

/* A server without a cluster makes records; then it is to follow. */
START_TEST(a_node_with_records_of_its_own_is_refused)
{
    nodes->options.yaml = "internal_listen: 127.0.0.1:0";
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
    struct server internal = server_internal(s);
    ck_assert(wait_until(is_behind, &internal, NOTED_MS)); /* for the alert */
    ck_assert_int_eq(metric(&internal, "assay_cluster_state{state=\"connects\"}"), 1);
    ck_assert_uint_eq(registered(other), 0);
    assay_ok(s, "cluster", "verify", NULL);
    created("second"); /* its space does not count */
    expect_says_once(other, "data_dir has records that are not of this log");
}
END_TEST

static bool is_stopped(void *arg)
{
    struct json_object *all = assay_list(nodes->node[leader].server, "cluster", "status", NULL);
    return strcmp(record_text(record_find(all, "node", arg), "role"), "stopped") == 0;
}

/* `assay cluster status` and `verify` show it, and with which reason. */
static void expect_stopped(unsigned i, const char *why)
{
    const struct server *s = nodes->node[leader].server;
    ck_assert(wait_until(is_stopped, text("node%u", i), NOTED_MS));
    struct run status = assay(s, "cluster", "status", NULL);
    ck_assert_int_eq(status.status, 0);
    ck_assert_ptr_nonnull(strstr(status.err, text("Node node%u is stopped: ", i)));
    ck_assert_msg(strstr(status.err, why), "%s", status.err);
    struct run verify = assay(s, "cluster", "verify", NULL);
    ck_assert_int_eq(verify.status, 1);
    ck_assert_msg(strstr(verify.err, "the nodes that answered have the same records"), "%s",
                  verify.err);
    ck_assert_msg(strstr(verify.err, text("Node node%u is stopped: ", i)), "%s", verify.err);
}

/* While its server runs. One that follows is not removed. */
static void expect_removed(unsigned i)
{
    const struct server *s = nodes->node[leader].server;
    struct run lives = assay(s, "cluster", "remove", text("node%u", leader), NULL);
    ck_assert_msg(lives.status == 1 && strstr(lives.err, "stop its server"), "%s", lives.err);
    node_forget_seen(nodes, i);
    assay_ok(s, "cluster", "remove", text("node%u", i), NULL);
    created("removed");
    ck_assert_uint_eq(registered(i), 0);
}

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
    expect_stopped(behind, "trimmed");
    expect_says_once(behind, "trimmed");
    unsigned empty = nodes_add(nodes);
    node_start(nodes, empty);
    expect_says(empty, "trimmed");
    ck_assert_uint_eq(node_position(nodes, empty), 0);
    ck_assert_uint_eq(registered(empty), 0);
    expect_removed(behind);
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
    struct run running =
        assay(nodes->node[0].server, "cluster", "new-log", "--from", "node0", NULL);
    ck_assert_int_eq(running.status, 1);
    ck_assert_msg(strstr(running.err, "stop the servers of all nodes"), "%s", running.err);
    nodes_forget_seen(nodes);
    assay_ok(nodes->node[0].server, "cluster", "new-log", "--from", "node0", NULL);
    node_start(nodes, 0);
    nodes->asked[NODES_WRITE] = 0;
    created("second");
    for (unsigned i = 1; i < nodes->count; i++) {
        node_start(nodes, i);
        expect_says(i, "another log than this store follows");
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

/* ---- a copied data_dir ---- */

static void copy_store(unsigned from, unsigned to)
{
    char *command =
        text("cp %s/data.mdb %s/", nodes->node[from].server->data, nodes->node[to].server->data);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

static unsigned epoch(void)
{
    return number("SELECT epoch FROM assay_cluster", NULL);
}

/* Columns: the node that is copied: a follower, the leader. */
START_TEST(a_node_with_a_copied_store_waits)
{
    unsigned original = _i == 0 ? follower(0) : leader, copy = nodes_add(nodes);
    created("first");
    nodes_catch_up(nodes);
    node_stop(nodes, original);
    copy_store(original, copy);
    node_start(nodes, original);
    leader = nodes_await_leader(nodes, NODES_AWAY);
    server = nodes->node[leader].server;
    nodes->asked[NODES_WRITE] = leader;
    nodes_catch_up(nodes);
    const unsigned before = epoch();
    const uint64_t position = node_position(nodes, copy);
    node_start(nodes, copy);
    expect_says(copy, text("node%u at 127.0.0.1:%u has the same store", original,
                           nodes->node[original].port));
    created("second");
    ck_assert_uint_eq(epoch(), before);
    ck_assert_uint_eq(node_position(nodes, copy), position);
    expect_error(http_get(nodes->node[copy].server, "/api/v1/reports"), 503, "unavailable");
    expect_says_once(copy, "has the same store");

    node_stop(nodes, copy);
    assay_ok(nodes->node[copy].server, "cluster", "join", text("node%u", leader), "--replace",
             NULL);
    node_start(nodes, copy);
    created("third");
    nodes_catch_up(nodes);
    ck_assert_uint_eq(epoch(), before);
    nodes_expect_equal(nodes);
}
END_TEST

/* A server that has moved: nobody else has its store any more. */
START_TEST(a_store_that_has_moved_is_used_when_the_other_server_is_gone)
{
    unsigned original = follower(0), copy = nodes_add(nodes);
    node_stop(nodes, original);
    copy_store(original, copy);
    node_start(nodes, copy);
    created("first");
    expect_says(copy, "has the same store");
    expect_says(copy, "the cluster: the store fits the log, and the log answers");
    created("second");
    nodes_catch_up(nodes);
    ck_assert_int_eq(total_on(copy), 2);
}
END_TEST

/* ---- a name that another node has ---- */

/* Configured with the name of another node. */
static void name_as(unsigned i, unsigned other)
{
    char *command =
        text("sed -i 's/name: node%u,/name: node%u,/' %s", i, other, nodes->node[i].server->conf);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

START_TEST(a_node_with_the_name_of_a_live_node_waits)
{
    unsigned original = follower(0), second = nodes_add(nodes);
    name_as(second, original);
    created("first");
    node_start(nodes, second);
    expect_says(second, text("node%u at 127.0.0.1:%u has the name of this node", original,
                             nodes->node[original].port));
    created("second");
    ck_assert_uint_eq(node_position(nodes, second), 0);
    ck_assert_uint_eq(registered(original), 1);
    ck_assert(strstr(server_log(nodes->node[original].server), "has the name") == NULL);
    node_stop(nodes, original);
    node_forget_seen(nodes, original);
    expect_says(second, "the store fits the log, and the log answers");
    created("third");
    nodes_catch_up(nodes);
    ck_assert_int_eq(total_on(second), 3);
}
END_TEST

/* ---- a store that changes without its log ---- */

enum alone { BY_SERVER, BY_COMMAND };

START_TEST(a_node_that_changed_without_its_log_is_refused)
{
    unsigned alone = follower(0);
    struct server *s = nodes->node[alone].server;
    nodes_catch_up(nodes);
    node_stop(nodes, alone);
    server_configure(s, "");
    if (_i == BY_COMMAND)
        assay_ok(s, "workspace", "create", "solo", NULL);
    else {
        server_start(s);
        expect_says(alone, "the store left the log of its cluster");
        server_stop(s);
    }
    node_configure(nodes, alone);
    node_start(nodes, alone);
    expect_says(alone, "data_dir has records");
    created("meanwhile");
    ck_assert_int_eq(total_on(leader), 1);
}
END_TEST

/* ---- commands ---- */

/* Without a cluster.name a node has the name of its host. */
START_TEST(a_new_log_begins_with_a_node_that_has_no_name_of_its_own)
{
    char host[256];
    ck_assert_int_eq(gethostname(host, sizeof(host)), 0);
    unsigned unnamed = follower(0);
    struct server *s = nodes->node[unnamed].server;
    for (unsigned i = 0; i < nodes->count; i++)
        node_stop(nodes, i);
    char *yaml = text("cluster: { log: \"%s\", address: \"127.0.0.1:%u\","
                      " key_file: %s/cluster.key }\n",
                      postgres_conninfo(nodes->log->port, 0), nodes->node[unnamed].port,
                      nodes->node[0].server->dir);
    server_configure(s, yaml);
    free(yaml);
    struct run other = assay(s, "cluster", "new-log", "--from", "node0", NULL);
    ck_assert_int_eq(other.status, 1);
    ck_assert_msg(strstr(other.err, text("this node is %s, not node0", host)), "%s", other.err);
    nodes_forget_seen(nodes);
    assay_ok(s, "cluster", "new-log", "--from", host, NULL);
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
    tcase_add_loop_test(tcase, a_node_with_a_copied_store_waits, 0, 2);
    tcase_add_test(tcase, a_store_that_has_moved_is_used_when_the_other_server_is_gone);
    tcase_add_test(tcase, a_node_with_the_name_of_a_live_node_waits);
    tcase_add_loop_test(tcase, a_node_that_changed_without_its_log_is_refused, 0, 2);
    tcase_add_test(tcase, a_new_log_begins_with_a_node_that_has_no_name_of_its_own);
    tcase_add_test(tcase, commands_change_nothing_while_the_server_is_stopped);
}

int main(void)
{
    return three_nodes_main("refused_nodes", add_tests);
}
