/*
 * Formats of entries. A node that meets one that it does not know stops. While nodes are upgraded
 * to a version that knows a newer format (t/kit/formats_assayd: 1 and 2), entries keep the earlier
 * one until all nodes that live know the newer one; then the earlier version is refused.
 */
#include "config.h"

#include "t/kit/three_nodes.h"

#define OLD_VERSION_READS ", and Assay " PACKAGE_VERSION " reads format 1: upgrade this node"

enum { NEXT_MS = 15000 };

static unsigned long long number(const char *sql)
{
    char *text = postgres_query(nodes->log, "%s", sql);
    ck_assert_ptr_nonnull(text);
    unsigned long long n = strtoull(text, NULL, 10);
    free(text);
    return n;
}

/* ---- an entry of an unknown format ---- */

static void expect_says_again(unsigned i, const char *words)
{
    const struct server *s = nodes->node[i].server;
    char *log = server_log(s);
    node_stop(nodes, i);
    node_start(nodes, i);
    ck_assert_msg(server_says(s, words, strlen(log), NEXT_MS), "%s", server_log(s));
    free(log);
}

/* The entries before it are applied, those after it are not. */
START_TEST(a_follower_stops_before_an_entry_of_an_unknown_format)
{
    unsigned behind = follower(0);
    nodes_catch_up(nodes);
    node_stop(nodes, behind);
    created("first");
    created("second");
    created("third");
    const unsigned long long unknown = node_position(nodes, behind) + 2;
    const char *says = text("entry %llu of the log has format 2" OLD_VERSION_READS, unknown);
    free(postgres_query(nodes->log, "UPDATE assay_log SET format = 2 WHERE seq = %llu", unknown));
    node_start(nodes, behind);
    expect_says(behind, says);
    created("fourth");
    expect_says_again(behind, says);
    ck_assert_uint_eq(node_position(nodes, behind), unknown - 1);
    expect_error(http_get(nodes->node[behind].server, "/api/v1/reports"), 503, "unavailable");
}
END_TEST

/* ---- an upgrade node by node ---- */

static void start_version(unsigned i, const char *program)
{
    if (program != NULL)
        setenv("ASSAYD", program, 1);
    else
        unsetenv("ASSAYD");
    node_start(nodes, i);
}

static void upgrade(unsigned i)
{
    node_stop(nodes, i);
    start_version(i, "./t/kit/formats_assayd");
    created(text("during%u", i));
    nodes_catch_up(nodes);
}

static unsigned long long last_format(void)
{
    return number("SELECT format FROM assay_log ORDER BY seq DESC LIMIT 1");
}

static const char leader_seen[] =
    "SELECT count(*) FROM assay_node n, assay_cluster c WHERE n.node = c.leader"
    " AND n.seen_at > (SELECT at FROM begun)";

static bool has_looked(void *arg)
{
    (void)arg;
    return number(leader_seen) == 1;
}

/* The leader notes itself, and then looks at all nodes: the second time after a whole look. */
static void await_look(void)
{
    for (int i = 0; i < 2; i++) {
        free(postgres_query(nodes->log, "DROP TABLE IF EXISTS begun"));
        free(postgres_query(nodes->log, "CREATE TABLE begun AS SELECT clock_timestamp() AS at"));
        ck_assert(wait_until(has_looked, NULL, NEXT_MS));
    }
}

/* A node of the earlier version that lives, as the leader sees it. */
static void add_live_node(void)
{
    free(postgres_query(
        nodes->log,
        "INSERT INTO assay_node (node, name, address, version, formats, applied_seq, free_bytes,"
        " hash_seq, hash, seen_at) VALUES ('00000000-0000-0000-0000-000000000001', 'another', '',"
        " '0.9', 1, 0, 1, 0, '', clock_timestamp() + interval '1 h')"));
}

static bool writes_next(void *arg)
{
    created((char *)arg);
    return last_format() == 2;
}

static void expect_status_of(unsigned i, const char *format)
{
    struct json_object *all = assay_list(nodes->node[leader].server, "cluster", "status", NULL);
    struct json_object *row = record_find(all, "node", text("node%u", i));
    ck_assert_str_eq(record_text(row, "version"), PACKAGE_VERSION);
    ck_assert_str_eq(record_text(row, "format"), format);
}

/* It was stopped while the others went on in the newer format. */
static void expect_refused(unsigned old)
{
    const uint64_t before = node_position(nodes, old);
    start_version(old, NULL);
    expect_says(old, "the log is written in format 2" OLD_VERSION_READS);
    created("after");
    expect_error(http_get(nodes->node[old].server, "/api/v1/reports"), 503, "unavailable");
    ck_assert_uint_eq(node_position(nodes, old), before);
    ck_assert_uint_eq(last_format(), 2);
    node_stop(nodes, old);
}

static void expect_join_refused(void)
{
    unsigned new = nodes_add(nodes);
    struct run run =
        assay(nodes->node[new].server, "cluster", "join", text("node%u", leader), NULL);
    ck_assert_int_eq(run.status, 1);
    ck_assert_msg(strstr(run.err, "the log is written in format 2" OLD_VERSION_READS), "%s",
                  run.err);
    ck_assert_uint_eq(number("SELECT count(*) FROM assay_node WHERE name = 'node3'"), 0);
    nodes->count--;
    server_free(nodes->node[new].server);
}

/* The leader knows both formats, and node ${old} of the earlier version follows it. */
static void mix_versions(unsigned old)
{
    const unsigned last = leader;
    upgrade(follower(0));
    expect_status_of(follower(0), "2");
    expect_status_of(last, "1");
    node_stop(nodes, old);
    upgrade(last);
    start_version(old, NULL);
    nodes_catch_up(nodes);
    leader = nodes_await_leader(nodes, (int)old);
}

static void expect_held(const char *name)
{
    await_look();
    created(name);
    ck_assert_uint_eq(last_format(), 1);
    nodes_catch_up(nodes);
}

START_TEST(entries_get_a_newer_format_when_all_live_nodes_know_it)
{
    const unsigned old = follower(1);
    add_live_node();
    mix_versions(old);
    expect_held("mixed");
    upgrade(old);
    expect_held("upgraded");
    free(postgres_query(nodes->log, "DELETE FROM assay_node WHERE name = 'another'"));
    ck_assert_msg(wait_until(writes_next, "next", NEXT_MS), "%s", nodes_logs(nodes));
    ck_assert_uint_eq(number("SELECT format FROM assay_cluster"), 2);
    expect_says(leader, "entries have format 2 from now on");
    nodes_catch_up(nodes);
    node_stop(nodes, old);
    expect_refused(old);
    expect_join_refused();
    start_version(old, "./t/kit/formats_assayd");
    nodes_expect_equal(nodes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_follower_stops_before_an_entry_of_an_unknown_format);
    tcase_add_test(tcase, entries_get_a_newer_format_when_all_live_nodes_know_it);
}

int main(void)
{
    return three_nodes_main("formats", add_tests);
}
