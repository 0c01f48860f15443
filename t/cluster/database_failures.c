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

/* No node has heard of the log for longer than four seconds. */
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
        ck_assert_int_lt(now_ms() - since, 2000);
        ck_assert_str_eq(str_at(r, "error.message"),
                         "The log of the cluster does not answer. Nothing was changed.");
        ck_assert_ptr_nonnull(header(r, "Retry-After"));
        expect_status(http_get(n->node[i].server, "/api/v1/reports"), 200);
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

START_TEST(a_synchronous_standby_that_is_promoted_loses_nothing)
{
    struct nodes *n = nodes_new(&(struct nodes_options){.standby = NODES_SYNCHRONOUS});
    struct load *l = load_start(n);
    load_work(l);
    nodes_promote(n);
    load_work(l);
    load_end(l, "synchronous standby promoted");
    nodes_free(n);
}
END_TEST

static bool is_free_of_leader(void *arg)
{
    return nodes_leader(arg) == NODES_AWAY;
}

/*
 * The standby lacks the last entries. Nodes that have them stop; after new-log the node with most
 * of them leads the others, which have fewer.
 */
START_TEST(nodes_that_have_more_than_a_promoted_standby_stop)
{
    struct nodes *n = nodes_new(&(struct nodes_options){.standby = NODES_ASYNCHRONOUS});
    nodes_create(n, "before");
    nodes_catch_up(n);
    postgres_pause_backend(n->log, n->standby->name);
    nodes_create(n, "lost");
    nodes_catch_up(n);
    uint64_t entries = nodes_entries(n);
    nodes_promote(n);
    ck_assert_uint_lt(nodes_entries(n), entries);
    for (unsigned i = 0; i < n->count; i++)
        expect_in_log(n, i,
                      text("this store has entry %llu, and the log ends before it",
                           (unsigned long long)entries));
    ck_assert(wait_until(is_free_of_leader, n, 2 * LEASE_MS));
    for (unsigned i = 0; i < n->count; i++) {
        struct response *r = http(n->node[i].server, .method = "POST", .path = "/api/v1/reports",
                                  .body = form("url", "http://127.0.0.9/refused", NULL));
        expect_status(r, 503);
        ck_assert_uint_eq(node_position(n, i), entries);
        node_stop(n, i);
    }
    assay_ok(n->node[1].server, "cluster", "new-log", "--from", "node1", NULL);
    node_start(n, 1);
    n->asked[NODES_WRITE] = 1;
    nodes_create(n, "again");
    expect_int(http_get(n->node[1].server, "/api/v1/reports"), "meta.total", 3);
    node_start(n, 0);
    expect_in_log(n, 0, "the store is of another log");
    nodes_free(n);
}
END_TEST

int main(void)
{
    if (postgres_missing()) {
        puts(postgres_missing());
        return SUITE_SKIPPED;
    }
    suite_processes(PROCESSES);
    Suite *suite = suite_create("database failures");
    TCase *tcase = harness_case(suite, "database failures");
    tcase_set_timeout(tcase, 240);
    tcase_add_test(tcase, a_database_that_is_killed_and_started_loses_nothing);
    tcase_add_test(tcase, a_change_is_refused_at_once_while_the_database_is_away);
    tcase_add_test(tcase, the_leader_does_not_say_that_it_leads_when_its_lease_has_ended);
    tcase_add_test(tcase, a_synchronous_standby_that_is_promoted_loses_nothing);
    tcase_add_test(tcase, nodes_that_have_more_than_a_promoted_standby_stop);
    return harness_main(suite);
}
