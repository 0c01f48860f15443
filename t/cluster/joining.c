/*
 * Joining and trimming: a node gets the store of another one while changes go on, and the log keeps
 * what it needs. The log is trimmed behind the slowest node.
 */
#include "t/kit/changes.h"
#include "t/kit/nodes.h"

#include "store/rows.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

enum {
    PROCESSES = 2,
    SAYS_MS = 15000,
    PARTITION = 65536,
    NEAR = 40,
    LOOK_MS = 8000,
    TRIM_MS = 75000
};

static struct nodes *nodes;
static unsigned leader;

static void begin(const struct nodes_options *options)
{
    nodes = nodes_new(options);
    leader = nodes_await_leader(nodes, NODES_AWAY);
}

static void setup(void)
{
    begin(&(struct nodes_options){0});
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

static char *name_of(unsigned i)
{
    return text("node%u", i);
}

/* A node that has just started has confirmed the head when it has an entry of now. */
static void expect_equal(void)
{
    nodes_create(nodes, "after");
    changes_expect_graded(server_of(nodes_await_leader(nodes, NODES_AWAY)));
    nodes_expect_equal(nodes);
}

static void create_many(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        nodes_create(nodes, text("%u", i));
}

static void expect_says(unsigned i, const char *words)
{
    ck_assert_msg(server_says(server_of(i), words, 0, SAYS_MS), "node %u does not say: %s\n%s", i,
                  words, server_log(server_of(i)));
}

static void expect_refused(const struct server *s, const char *words, const char *from,
                           const char *option)
{
    struct run run = assay(s, "cluster", "join", from, option, NULL);
    ck_assert_int_ne(run.status, 0);
    ck_assert_msg(strstr(run.err, words), "%s", run.err);
}

static unsigned registered(const char *name)
{
    char *count =
        postgres_query(nodes->log, "SELECT count(*) FROM assay_node WHERE name = '%s'", name);
    return (unsigned)atoi(count);
}

/* ---- joining ---- */

START_TEST(a_node_joins_while_changes_go_on)
{
    struct changes changes = {
        .origin = nodes->origin, .ask = nodes_ask, .arg = nodes, .pause_ms = 2};
    uint64_t random = 88172645463325252u ^ (uint64_t)getpid();
    changes_start(&changes, random);
    changes_let_work(&changes, &random);
    unsigned new = nodes_add(nodes);
    assay_ok(server_of(new), "cluster", "join", name_of(follower(0)), NULL);
    ck_assert_uint_gt(node_position(nodes, new), 0);
    ck_assert_uint_eq(registered(name_of(new)), 1);
    changes_let_work(&changes, &random);
    node_start(nodes, new);
    changes_let_work(&changes, &random);
    changes_end(&changes, "a join");
    changes_expect_graded(server_of(nodes_await_leader(nodes, NODES_AWAY)));
    nodes_catch_up(nodes);
    ck_assert_uint_eq(registered(name_of(new)), 1);
    changes_expect(&changes, server_of(new));
    nodes_expect_equal(nodes);
}
END_TEST

/* The log has lost what the node lacks: of a node that was away, or of one that is new. */
START_TEST(a_node_that_was_trimmed_away_joins_again)
{
    unsigned behind = _i == 0 ? follower(0) : nodes_add(nodes);
    if (_i == 0)
        node_stop(nodes, behind);
    create_many(3);
    free(postgres_query(nodes->log, "DELETE FROM assay_log WHERE seq < %llu",
                        (unsigned long long)nodes_entries(nodes)));
    node_start(nodes, behind);
    expect_says(behind, "trimmed");
    node_stop(nodes, behind);
    node_forget_seen(nodes, behind);
    if (_i == 0) /* the store of the new one has no records */
        expect_refused(server_of(behind), "give --replace", name_of(leader), NULL);
    assay_ok(server_of(behind), "cluster", "join", name_of(leader), _i == 0 ? "--replace" : NULL,
             NULL);
    ck_assert_uint_eq(registered(name_of(behind)), 1);
    struct run joined = assay(server_of(behind), "--json", "cluster", "status", NULL);
    ck_assert_msg(joined.status == 0 && strstr(joined.out, "free_bytes") &&
                      !strstr(joined.out, "4611686018427387904"),
                  "%s", joined.out);
    node_start(nodes, behind);
    expect_equal();
}
END_TEST

START_TEST(a_join_is_refused_with_a_reason)
{
    unsigned new = nodes_add(nodes), away = follower(0);
    expect_refused(server_of(new), "there is no node nobody", "nobody", NULL);
    expect_refused(server_of(away), "in use by", name_of(leader), "--replace");
    node_stop(nodes, away);
    expect_refused(server_of(away), "try again in 10 s", name_of(leader), "--replace");
    node_forget_seen(nodes, away);
    expect_refused(server_of(new), "is away", name_of(away), NULL);
    expect_refused(server_of(away), "there is no node", "", "--replace");
    node_start(nodes, away);
    node_start(nodes, new);
    expect_equal();
}
END_TEST

static off_t bytes_of(const struct server *s, const char *name)
{
    struct stat st;
    return stat(text("%s/%s", s->data, name), &st) == 0 ? st.st_size : -1;
}

/* The source sleeps, so that the join waits for it. Then either of both ends. */
START_TEST(an_interrupted_join_changes_nothing_and_can_be_repeated)
{
    unsigned new = nodes_add(nodes), source = follower(0);
    struct server *s = server_of(new);
    create_many(3);
    nodes_catch_up(nodes);
    node_pause(nodes, source);
    struct watched *w = watch_start(BY_TERMINAL, NULL, assay_path(), "-c", s->conf, "cluster",
                                    "join", name_of(source), NULL);
    while (bytes_of(s, "restore.part/data.mdb") != 0)
        poll(NULL, 0, 10);
    if (_i == 0)
        kill(w->pid, SIGINT);
    else
        node_kill(nodes, source);
    ck_assert_int_eq(watch_wait(w), 1);
    watch_expect(w, _i == 0 ? "interrupted" : "the connection");
    watch_expect(w, "is unchanged");
    watch_close(w);
    ck_assert_int_eq(bytes_of(s, "data.mdb"), -1);
    ck_assert_int_eq(bytes_of(s, "restore.part"), -1);
    ck_assert_uint_eq(registered(name_of(new)), 0);
    if (_i == 0)
        node_resume(nodes, source);
    else
        node_start(nodes, source);
    nodes_catch_up(nodes);
    assay_ok(s, "cluster", "join", name_of(source), NULL);
    node_start(nodes, new);
    expect_equal();
}
END_TEST

/* ---- trimming ---- */

/* As if the log had as many entries: all nodes are stopped and at its end. */
static void set_position(unsigned i, uint64_t sequence)
{
    char why[512];
    struct store *s;
    struct store_txn *t;
    struct store_position position;
    const struct store_options options = {.dir = server_of(i)->data, .mode = STORE_WRITE};
    ck_assert_msg(store_open(&options, &s, why, sizeof(why)) == STORE_OK, "%s", why);
    ck_assert_int_eq(store_position_get(s, &position), STORE_OK);
    store_read_end(s);
    position.sequence = sequence;
    ck_assert_int_eq(store_begin(s, &t), STORE_OK);
    store_position_set(t, &position);
    ck_assert_int_eq(store_commit(t), STORE_OK);
    store_close(s);
}

static void move_to(uint64_t sequence)
{
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        node_stop(nodes, i);
    uint64_t entries = nodes_entries(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        ck_assert_uint_eq(node_position(nodes, i), entries);
    free(postgres_query(nodes->log, "DELETE FROM assay_log WHERE seq < %llu",
                        (unsigned long long)entries));
    free(postgres_query(nodes->log, "UPDATE assay_log SET seq = %llu",
                        (unsigned long long)sequence));
    free(postgres_query(nodes->log, "UPDATE assay_node SET applied_seq = %llu",
                        (unsigned long long)sequence));
    free(postgres_query(nodes->log, "UPDATE assay_cluster SET head = %llu",
                        (unsigned long long)sequence));
    for (unsigned i = 0; i < nodes->count; i++)
        set_position(i, sequence);
    for (unsigned i = 0; i < nodes->count; i++)
        node_start(nodes, i);
    leader = nodes_await_leader(nodes, NODES_AWAY);
}

static bool is_trimmed(void *arg)
{
    (void)arg;
    return postgres_query(nodes->log, "SELECT to_regclass('assay_log_0')") == NULL;
}

static void begin_near_end(void)
{
    begin(&(struct nodes_options){.cluster = ", keep: 0s"});
    move_to(PARTITION - NEAR);
}

/* A leader trims when it begins, and then once a minute. */
static void trim_now(void)
{
    node_kill_writer(nodes, nodes_await_leader(nodes, NODES_AWAY));
    nodes_create(nodes, "lead");
    leader = nodes_await_leader(nodes, NODES_AWAY);
}

START_TEST(the_log_keeps_what_a_stopped_node_needs)
{
    unsigned behind = follower(0);
    node_stop(nodes, behind);
    create_many(2 * NEAR);
    ck_assert_uint_gt(nodes_entries(nodes), PARTITION);
    trim_now();
    ck_assert(!wait_until(is_trimmed, NULL, LOOK_MS));
    node_start(nodes, behind);
    nodes_catch_up(nodes);
    trim_now();
    ck_assert(wait_until(is_trimmed, NULL, TRIM_MS));
    expect_equal();
}
END_TEST

START_TEST(a_node_that_was_away_too_long_is_deregistered_and_joins_again)
{
    unsigned behind = follower(0);
    node_stop(nodes, behind);
    free(postgres_query(nodes->log,
                        "UPDATE assay_node SET seen_at = seen_at - interval '8 days'"
                        " WHERE name = '%s'",
                        name_of(behind)));
    create_many(2 * NEAR);
    trim_now();
    ck_assert(wait_until(is_trimmed, NULL, TRIM_MS));
    ck_assert_uint_eq(registered(name_of(behind)), 0);
    node_start(nodes, behind);
    expect_says(behind, "trimmed");
    node_stop(nodes, behind);
    ck_assert_uint_eq(registered(name_of(behind)), 0);
    assay_ok(server_of(behind), "cluster", "join", name_of(leader), "--replace", NULL);
    node_start(nodes, behind);
    expect_equal();
}
END_TEST

START_TEST(the_log_is_trimmed_under_load)
{
    struct changes changes = {
        .origin = nodes->origin, .ask = nodes_ask, .arg = nodes, .pause_ms = 100};
    changes_start(&changes, 88172645463325252u ^ (uint64_t)getpid());
    ck_assert(wait_until(is_trimmed, NULL, 2 * TRIM_MS));
    changes_end(&changes, "trimming");
    changes_expect_graded(server_of(nodes_await_leader(nodes, NODES_AWAY)));
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        changes_expect(&changes, server_of(i));
    nodes_expect_equal(nodes);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name, void (*first)(void))
{
    TCase *tcase = harness_case(suite, name);
    tcase_add_checked_fixture(tcase, first, teardown);
    tcase_set_timeout(tcase, 300);
    return tcase;
}

int main(void)
{
    if (postgres_missing()) {
        puts(postgres_missing());
        return SUITE_SKIPPED;
    }
    suite_processes(PROCESSES);
    Suite *suite = suite_create("joining");
    TCase *joining = add_case(suite, "joining", setup);
    tcase_add_test(joining, a_node_joins_while_changes_go_on);
    tcase_add_loop_test(joining, a_node_that_was_trimmed_away_joins_again, 0, 2);
    tcase_add_test(joining, a_join_is_refused_with_a_reason);
    tcase_add_loop_test(joining, an_interrupted_join_changes_nothing_and_can_be_repeated, 0, 2);
    TCase *trimming = add_case(suite, "trimming", begin_near_end);
    tcase_add_test(trimming, the_log_keeps_what_a_stopped_node_needs);
    tcase_add_test(trimming, a_node_that_was_away_too_long_is_deregistered_and_joins_again);
    tcase_add_test(trimming, the_log_is_trimmed_under_load);
    return harness_main(suite);
}
