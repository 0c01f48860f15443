/*
 * Verification: all nodes hash their records at one entry of the log while changes go on. A node
 * with other records stops, says why, and follows again after it has joined anew.
 */
#include "t/kit/changes.h"
#include "t/kit/nodes.h"

#include "store/engine/cursor.h"
#include "store/engine/environment.h"
#include "store/engine/snapshot.h"

enum { PROCESSES = 2, SAYS_MS = 20000 };

static struct nodes *nodes;
static unsigned leader;

static void setup(void)
{
    nodes = nodes_new(&(struct nodes_options){0});
    leader = nodes_await_leader(nodes, NODES_AWAY);
}

static void teardown(void)
{
    nodes_free(nodes);
}

static unsigned follower(unsigned i)
{
    return (leader + 1 + i) % 3;
}

static struct server *server_of(unsigned i)
{
    return nodes->node[i].server;
}

static void settle(void)
{
    nodes_create(nodes, "settle");
    changes_expect_graded(server_of(nodes_await_leader(nodes, NODES_AWAY)));
    nodes_catch_up(nodes);
}

static void expect_says(unsigned i, const char *words)
{
    ck_assert_msg(server_says(server_of(i), words, 0, SAYS_MS), "node %u does not say: %s\n%s", i,
                  words, server_log(server_of(i)));
}

/* Also where all are at the end of the log and nothing changes. */
START_TEST(nodes_with_the_same_records_are_equal)
{
    for (unsigned i = 0; i < nodes->count; i++) {
        struct json_object *rows = assay_list(server_of(i), "cluster", "verify", NULL);
        ck_assert_uint_eq(json_object_array_length(rows), nodes->count);
        for (unsigned j = 0; j < nodes->count; j++)
            ck_assert_str_eq(record_text(record_find(rows, "node", text("node%u", j)), "result"),
                             "equal");
    }
    settle();
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(nodes_are_equal_while_changes_go_on)
{
    struct changes changes = {
        .origin = nodes->origin, .ask = nodes_ask, .arg = nodes, .pause_ms = 5};
    uint64_t random = 88172645463325252u ^ (uint64_t)getpid();
    changes_start(&changes, random);
    for (int i = 0; i < 5; i++) {
        changes_let_work(&changes, &random);
        assay_ok(server_of((unsigned)i % nodes->count), "cluster", "verify", NULL);
    }
    changes_end(&changes, "verifications");
    settle();
    nodes_expect_equal(nodes);
}
END_TEST

/* ---- one that differs ---- */

static void grade_one(void)
{
    char *url = origin_url(nodes->origin, "/good");
    struct response *r =
        nodes_write(nodes, .method = "POST", .path = "/api/v1/reports",
                    .headers = {"Prefer: wait=20"}, .body = form("url", url, NULL));
    expect_status(r, 201);
    nodes_catch_up(nodes);
}

static struct store *open_store(unsigned i)
{
    char why[512];
    struct store *s;
    const struct store_options options = {.dir = server_of(i)->data, .mode = STORE_WRITE};
    ck_assert_msg(store_open(&options, &s, why, sizeof(why)) == STORE_OK, "%s", why);
    return s;
}

/* A bit of a stored result. */
static void alter_record(unsigned i)
{
    MDB_txn *txn;
    struct cursor w = {0};
    struct key key = {.n = 0};
    struct buf value = {0};
    struct store *s = open_store(i);
    ck_assert_int_eq(store_snapshot(s, &txn), STORE_OK);
    ck_assert_int_eq(cursor_begin(s, txn, &w, SPACE_RESULT), STORE_OK);
    key_bytes(&key, w.k.mv_data, w.k.mv_size);
    buf_add(&value, w.v.mv_data, w.v.mv_size);
    cursor_end(&w);
    store_read_end(s);
    value.p[value.n - 1] ^= 1;
    MDB_val k = key_val(&key), v = {value.n, value.p};
    ck_assert_int_eq(mdb_txn_begin(s->env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_put(txn, s->dbi[schema_space_db[SPACE_RESULT]], &k, &v, 0), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    store_close(s);
    buf_free(&value);
}

static void expect_differs(unsigned i)
{
    struct run run = assay(server_of(i), "--json", "cluster", "verify", NULL);
    ck_assert_msg(run.status == 1 && strstr(run.err, "nodes differ"), "%s%s", run.out, run.err);
    ck_assert_msg(strstr(run.out, "\"result\":\"differs\"") ||
                      strstr(run.out, "\"result\": \"differs\""),
                  "%s", run.out);
    expect_says(i, "the records of this node differ");
}

/* Column: the node that is altered: a follower, the leader. */
START_TEST(a_node_with_an_altered_record_stops_and_joins_again)
{
    grade_one();
    unsigned bad = _i == 0 ? follower(0) : leader, good = follower(1);
    for (unsigned i = 0; i < nodes->count; i++)
        node_stop(nodes, i);
    alter_record(bad);
    if (_i == 1) { /* the first one leads */
        node_start(nodes, bad);
        ck_assert_uint_eq(nodes_await_leader(nodes, NODES_AWAY), bad);
    }
    for (unsigned i = 0; i < nodes->count; i++)
        if (i != bad)
            node_start(nodes, i);
    if (_i == 0) {
        ck_assert_uint_ne(nodes_await_leader(nodes, NODES_AWAY), bad);
        node_start(nodes, bad);
    }
    nodes->asked[NODES_WRITE] = good;
    nodes_create(nodes, "before");
    expect_differs(bad);
    if (_i == 1)
        nodes_await_leader(nodes, (int)bad);
    nodes_create(nodes, "after");
    uint64_t position = node_position(nodes, bad);
    ck_assert_uint_lt(position, nodes_entries(nodes));
    node_stop(nodes, bad);
    node_start(nodes, bad); /* it stays stopped */
    nodes_create(nodes, "later");
    ck_assert_uint_eq(node_position(nodes, bad), position);
    node_stop(nodes, bad);
    free(postgres_query(nodes->log,
                        "UPDATE assay_node SET seen_at = seen_at - interval '11 s'"
                        " WHERE name = 'node%u'",
                        bad));
    assay_ok(server_of(bad), "cluster", "join", text("node%u", good), "--replace", NULL);
    node_start(nodes, bad);
    settle();
    assay_ok(server_of(bad), "cluster", "verify", NULL);
    nodes_expect_equal(nodes);
}
END_TEST

/* ---- a node that does not answer ---- */

/* It lives, as others see it, and has no hash. */
static void add_silent_node(void)
{
    free(postgres_query(
        nodes->log,
        "INSERT INTO assay_node (node, name, address, version, formats, applied_seq, free_bytes,"
        " hash_seq, hash, seen_at) VALUES ('00000000-0000-0000-0000-000000000001', 'silent', '',"
        " '1', 1, 0, 1, 0, '', clock_timestamp() + interval '1 h')"));
}

/* It may take longer than assay() waits. Returns what it printed, with the exit status in it. */
static char *verify_patiently(unsigned i)
{
    static char said[8192];
    FILE *out = popen(text("timeout 90 %s -c %s cluster verify 2>&1; echo \"status $?\"",
                           assay_path(), server_of(i)->conf),
                      "r");
    ck_assert_ptr_nonnull(out);
    said[fread(said, 1, sizeof(said) - 1, out)] = '\0';
    ck_assert_int_eq(pclose(out), 0);
    return said;
}

static void expect_said(const char *said, const char *words)
{
    ck_assert_msg(strstr(said, words) != NULL, "no \"%s\" in\n%s", words, said);
}

static void expect_silent(const char *said)
{
    expect_said(said, "Node silent did not answer in time");
    expect_said(said, "no answer");
    expect_said(said, "status 1");
}

START_TEST(equal_nodes_do_not_wait_for_one_that_does_not_answer)
{
    add_silent_node();
    const char *said = verify_patiently(follower(0));
    expect_silent(said);
    expect_said(said, "the nodes that answered have the same records");
}
END_TEST

/* Of three nodes that live one differs, and one does not answer. */
START_TEST(a_node_that_differs_stops_also_while_another_one_does_not_answer)
{
    unsigned bad = follower(0), gone = follower(1);
    grade_one();
    node_stop(nodes, gone);
    node_stop(nodes, bad);
    alter_record(bad);
    free(postgres_query(nodes->log, "DELETE FROM assay_node WHERE name = 'node%u'", gone));
    node_start(nodes, bad);
    nodes_catch_up(nodes);
    add_silent_node();
    const char *said = verify_patiently(leader);
    expect_silent(said);
    expect_said(said, "nodes differ");
    expect_said(said, "differs");
    expect_says(bad, "the records of this node differ");
    expect_says(leader, "node silent did not hash its records");
}
END_TEST

START_TEST(a_verification_that_no_node_begins_ends)
{
    for (unsigned i = 0; i < nodes->count; i++)
        node_stop(nodes, i);
    const char *said = verify_patiently(0);
    expect_said(said, "no node has begun within 30 s");
    expect_said(said, "status 1");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, nodes_with_the_same_records_are_equal);
    tcase_add_test(tcase, nodes_are_equal_while_changes_go_on);
    tcase_add_loop_test(tcase, a_node_with_an_altered_record_stops_and_joins_again, 0, 2);
    tcase_add_test(tcase, equal_nodes_do_not_wait_for_one_that_does_not_answer);
    tcase_add_test(tcase, a_node_that_differs_stops_also_while_another_one_does_not_answer);
    tcase_add_test(tcase, a_verification_that_no_node_begins_ends);
}

int main(void)
{
    return nodes_main("verifying", PROCESSES, setup, teardown, add_tests);
}
