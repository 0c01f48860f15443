/*
 * The database of a cluster dies, is away, or is replaced by a standby. Nothing acknowledged is
 * lost, and a node that has more than the log stops.
 */
#include "t/kit/changes.h"
#include "t/kit/nodes.h"
#include "t/kit/supervisor.h"

#include <poll.h>

enum { LEASE_MS = 10000, PROCESSES = 2 };

static void expect_in_log(const struct nodes *n, unsigned i, const char *words)
{
    ck_assert_msg(server_says(n->node[i].server, words, 0, LEAD_MS), "node %u does not say: %s\n%s",
                  i, words, server_log(n->node[i].server));
}

struct load {
    struct nodes *nodes;
    struct changes changes;
};

static struct load *load_start(struct nodes *n)
{
    struct load *l = calloc(1, sizeof(*l));
    ck_assert_ptr_nonnull(l);
    l->nodes = n;
    l->changes = (struct changes){.origin = n->origin, .ask = nodes_ask, .arg = n, .late = true};
    changes_start(&l->changes, (uint64_t)getpid() << 20 | 1);
    return l;
}

static bool has_worked(void *arg)
{
    struct changes *c = arg;
    return c->acknowledged > 200;
}

/* Until some more changes are answered. */
static void load_work(struct load *l)
{
    l->changes.acknowledged = 0;
    ck_assert_msg(wait_until(has_worked, &l->changes, 2 * LEAD_MS), "%u changes are answered\n%s",
                  (unsigned)l->changes.acknowledged, server_log(l->nodes->node[0].server));
}

static void load_end(struct load *l, const char *what)
{
    struct nodes *n = l->nodes;
    changes_end(&l->changes, what);
    unsigned leader = nodes_await_leader(n, NODES_AWAY);
    changes_expect_graded(n->node[leader].server);
    nodes_catch_up(n);
    for (unsigned i = 0; i < n->count; i++)
        changes_expect(&l->changes, n->node[i].server);
    nodes_expect_equal(n);
}

START_TEST(a_database_that_is_killed_and_started_loses_nothing)
{
    struct nodes *n = nodes_new(&(struct nodes_options){0});
    struct load *l = load_start(n);
    for (int i = 0; i < 3; i++) {
        load_work(l);
        postgres_kill(n->log);
        postgres_start(n->log);
    }
    load_work(l);
    load_end(l, "PostgreSQL killed 3 times");
    nodes_free(n);
}
END_TEST

/* No node has reached the log for more than four seconds. */
START_TEST(a_change_is_refused_at_once_while_the_database_is_away)
{
    struct nodes *n = nodes_new(&(struct nodes_options){0});
    unsigned leader = nodes_await_leader(n, NODES_AWAY);
    nodes_create(n, "before");
    postgres_kill(n->log);
    struct raw *raw = raw_open(n->node[leader].server); /* its append waits */
    raw_post(raw, n->key, "Prefer: respond-async\r\n",
             form("url", "http://127.0.0.9/flight", NULL));
    expect_in_log(n, leader, "the log cannot be reached");
    poll(NULL, 0, 6000);
    for (unsigned i = 0; i < n->count; i++) {
        int64_t since = now_ms();
        struct response *r = http(n->node[i].server, .method = "POST", .path = "/api/v1/reports",
                                  .headers = {"Prefer: respond-async"},
                                  .body = form("url", text("http://127.0.0.9/%u", i), NULL));
        expect_status(r, 503);
        ck_assert_int_lt(now_ms() - since, 10000); /* not 30 s */
        ck_assert_str_eq(str_at(r, "error.message"),
                         "The log of the cluster does not answer. Nothing was changed.");
        ck_assert_ptr_nonnull(header(r, "Retry-After"));
        expect_status(http_get(n->node[i].server, "/api/v1/reports"), 200);
        since = now_ms();
        struct run run = assay(n->node[i].server, "workspace", "create", "refused", NULL);
        ck_assert_msg(strstr(run.err, "its log does not answer: nothing was changed"), "%s",
                      run.err);
        ck_assert_int_lt(now_ms() - since, 10000); /* not 30 s */
    }
    postgres_start(n->log);
    expect_status(raw_response(raw, false, 40000), 202);
    raw_close(raw);
    nodes_create(n, "after");
    nodes_expect_reports(n, 3);
    nodes_expect_equal(n);
    nodes_free(n);
}
END_TEST

struct internals {
    struct server server[NODES_MAX];
    unsigned count;
};

static bool nobody_says_that_it_leads(void *arg)
{
    const struct internals *all = arg;
    long leads = 0;
    for (unsigned i = 0; i < all->count; i++)
        leads += metric(&all->server[i], "assay_cluster_state{state=\"leads\"}");
    return leads == 0;
}

/* For the alert on a cluster without a leader. */
START_TEST(the_leader_does_not_say_that_it_leads_when_its_lease_has_ended)
{
    struct nodes *n = nodes_new(&(struct nodes_options){.yaml = "internal_listen: 127.0.0.1:0"});
    struct internals all = {.count = n->count};
    for (unsigned i = 0; i < n->count; i++)
        all.server[i] = server_internal(n->node[i].server);
    nodes_create(n, "before");
    ck_assert(!nobody_says_that_it_leads(&all));
    postgres_kill(n->log);
    ck_assert(wait_until(nobody_says_that_it_leads, &all, 2 * LEASE_MS));
    postgres_start(n->log);
    nodes_create(n, "after");
    ck_assert(!nobody_says_that_it_leads(&all));
    nodes_free(n);
}
END_TEST

static void expect_warning(const struct nodes *n, bool warned)
{
    for (unsigned i = 0; i < n->count; i++) {
        struct run run = assay(n->node[i].server, "cluster", "status", NULL);
        ck_assert_int_eq(run.status, 0);
        bool says = strstr(run.err, "warning: synchronous_standby_names is empty: an entry is on "
                                    "one server alone") != NULL;
        ck_assert_msg(says == warned, "%s%s", run.out, run.err);
        free(run.out);
        free(run.err);
    }
}

/* A promoted standby waits for nobody, of which `assay cluster status` warns. */
START_TEST(a_synchronous_standby_that_is_promoted_loses_nothing)
{
    struct nodes *n = nodes_new(&(struct nodes_options){.standby = NODES_SYNCHRONOUS});
    struct load *l = load_start(n);
    load_work(l);
    expect_warning(n, false);
    nodes_promote(n);
    load_work(l);
    expect_warning(n, true);
    load_end(l, "synchronous standby promoted");
    nodes_free(n);
}
END_TEST

static bool is_free_of_leader(void *arg)
{
    return nodes_leader(arg) == NODES_AWAY;
}

static void expect_all_stopped(struct nodes *n)
{
    for (unsigned i = 0; i < n->count; i++)
        expect_in_log(n, i, "and the log ends before it");
    ck_assert(wait_until(is_free_of_leader, n, 2 * LEASE_MS));
    for (unsigned i = 0; i < n->count; i++) {
        struct response *r = http(n->node[i].server, .method = "POST", .path = "/api/v1/reports",
                                  .body = form("url", "http://127.0.0.9/refused", NULL));
        expect_status(r, 503);
        ck_assert_uint_gt(node_position(n, i), nodes_entries(n));
    }
}

/* Stops all. The node that has most: others may lack the last entries before the end. */
static unsigned stop_all(struct nodes *n)
{
    unsigned best = 0;
    for (unsigned i = 0; i < n->count; i++)
        node_stop(n, i);
    for (unsigned i = 1; i < n->count; i++)
        best = node_position(n, i) > node_position(n, best) ? i : best;
    return best;
}

/* A node that has the log of before says so, and joins anew. */
static void join_again(struct nodes *n, unsigned i, unsigned from)
{
    node_start(n, i);
    expect_in_log(n, i, "another log than this store follows");
    node_stop(n, i);
    free(postgres_query(n->log,
                        "UPDATE assay_node SET seen_at = seen_at - interval '11 s'"
                        " WHERE name = 'node%u'",
                        i));
    assay_ok(n->node[i].server, "cluster", "join", text("node%u", from), "--replace", NULL);
    node_start(n, i);
}

/*
 * Under load the standby lacks the last entries, of which clients have answers. Nodes that have
 * them stop. After new-log the node with most of them leads, and nothing is lost; clients that
 * repeat their requests until then get their answers.
 */
START_TEST(nodes_that_have_more_than_a_promoted_standby_stop)
{
    struct nodes *n = nodes_new(&(struct nodes_options){.standby = NODES_ASYNCHRONOUS});
    struct load *l = load_start(n);
    load_work(l);
    postgres_pause_backend(n->log, n->standby->name);
    load_work(l);
    nodes_promote(n);
    expect_all_stopped(n);
    unsigned best = stop_all(n);
    char *name = text("node%u", best);
    nodes_forget_seen(n);
    assay_ok(n->node[best].server, "cluster", "new-log", "--from", name, NULL);
    node_start(n, best);
    for (unsigned i = 0; i < NODES_CALLERS; i++)
        n->asked[i] = best; /* the new log begins with entry 1: no caller would move there */
    load_work(l);
    for (unsigned i = 0; i < n->count; i++)
        if (i != best)
            join_again(n, i, best);
    load_end(l, "asynchronous standby promoted");
    nodes_free(n);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_database_that_is_killed_and_started_loses_nothing);
    tcase_add_test(tcase, a_change_is_refused_at_once_while_the_database_is_away);
    tcase_add_test(tcase, the_leader_does_not_say_that_it_leads_when_its_lease_has_ended);
    tcase_add_test(tcase, a_synchronous_standby_that_is_promoted_loses_nothing);
    tcase_add_test(tcase, nodes_that_have_more_than_a_promoted_standby_stop);
}

int main(void)
{
    return nodes_main("database failures", PROCESSES, NULL, NULL, add_tests);
}
