/*
 * The leader's queue gives grading jobs to the auditors of all nodes. Fairness and the connections
 * to a host hold over the cluster; a node that goes gives its jobs back.
 */
#include "t/kit/nodes.h"
#include "t/kit/supervisor.h"

#include <poll.h>
#include <signal.h>

enum { PROCESSES = 2, PAGES = 36, HELD = 24, SOON_MS = 5000, GRADED_MS = 40000, DEATHS_MAX = 3 };

static struct nodes *nodes;

static void setup(void)
{
    nodes = nodes_new(&(struct nodes_options){0});
}

static void teardown(void)
{
    nodes_free(nodes);
}

/* ---- pages on hosts of their own, which all are the origin ---- */

static char *url_of(unsigned host, const char *path)
{
    return text("http://h%u.localhost:%u%s", host, origin_port(nodes->origin), path);
}

static int64_t posted(unsigned node, const char *url)
{
    struct response *r = http(nodes->node[node].server, .method = "POST", .path = "/api/v1/reports",
                              .headers = {"Prefer: respond-async"}, .body = form("url", url, NULL));
    expect_status(r, 202);
    int64_t id = int_at(r, "data.id");
    response_free(r);
    return id;
}

/* ---- what nodes do ---- */

static uint64_t over_auditors(unsigned node, const char *member)
{
    uint64_t sum = 0;
    if (nodes->node[node].server->pid <= 0)
        return 0;
    struct json_object *all = assay_list(nodes->node[node].server, "stats", NULL);
    for (size_t i = 0; i < json_object_array_length(all); i++) {
        struct json_object *row = json_object_array_get_idx(all, i);
        if (strcmp(record_text(row, "process"), "auditor") == 0)
            sum += json_object_get_uint64(json_object_object_get(row, member));
    }
    json_object_put(all);
    return sum;
}

static uint64_t running(unsigned node)
{
    return over_auditors(node, "pending");
}

static bool all_work(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < nodes->count; i++)
        if (running(i) == 0)
            return false;
    return true;
}

static void expect_all_work(void)
{
    if (wait_until(all_work, NULL, SOON_MS))
        return;
    for (unsigned i = 0; i < nodes->count; i++)
        fprintf(stderr, "node %u grades %llu pages\n", i, (unsigned long long)running(i));
    ck_abort_msg("a node grades no page\n%s", server_log(nodes->node[0].server));
}

struct graded {
    unsigned node;
    const int64_t *ids;
    unsigned count;
};

static bool are_graded(void *arg)
{
    const struct graded *g = arg;
    for (unsigned i = 0; i < g->count; i++) {
        struct response *r = http_get(nodes->node[g->node].server, report_path(g->ids[i]));
        bool pending = r->status != 200 || strcmp(str_at(r, "data.status"), "pending") == 0;
        response_free(r);
        if (pending)
            return false;
    }
    return true;
}

/* All have a score, and their histories one grading. */
static void expect_graded(unsigned node, const int64_t *ids, unsigned count, int within_ms)
{
    struct server *s = nodes->node[node].server;
    struct graded g = {node, ids, count};
    ck_assert_msg(wait_until(are_graded, &g, within_ms), "pages are pending\n%s", server_log(s));
    for (unsigned i = 0; i < count; i++) {
        expect_str(http_get(s, report_path(ids[i])), "data.status", "done");
        struct response *r = http_get(s, text("%s/history", report_path(ids[i])));
        ck_assert_msg(len_at(r, "data") == 1, "%s", response_text(r));
    }
}

static unsigned other_than(unsigned node)
{
    return (node + 1) % nodes->count;
}

static unsigned hosts; /* used so far */

/* The auditors of all nodes get jobs: each grades some of the pages. */
static void expect_all_joined(unsigned leader)
{
    uint64_t before[NODES_MAX];
    int64_t id, deadline = now_ms() + GRADED_MS;
    for (unsigned i = 0; i < nodes->count; i++)
        before[i] = over_auditors(i, "done");
    for (unsigned i = 0; i < nodes->count; i++)
        while (over_auditors(i, "done") <= before[i]) {
            ck_assert_msg(now_ms() < deadline, "node %u grades no page", i);
            id = posted(leader, url_of(hosts++, "/good"));
            expect_graded(leader, &id, 1, GRADED_MS);
        }
}

/* HELD pages, on hosts of their own, which the auditors of all nodes fetch. */
static void hold_pages(int64_t ids[HELD], unsigned node)
{
    expect_all_joined(node);
    origin_held(nodes->origin, "/held");
    for (unsigned i = 0; i < HELD; i++)
        ids[i] = posted(node, url_of(hosts++, "/held"));
    expect_all_work();
}

static void start_again(unsigned node)
{
    node_start(nodes, node);
    nodes_expect_equal(nodes);
}

/* ---- the tests ---- */

START_TEST(pages_posted_on_any_node_are_graded_by_auditors_of_all_nodes)
{
    int64_t ids[PAGES];
    uint64_t sum = 0;
    for (unsigned i = 0; i < PAGES; i++)
        ids[i] = posted(i % nodes->count, url_of(i, "/good"));
    for (unsigned i = 0; i < nodes->count; i++) {
        nodes_catch_up(nodes);
        expect_graded(i, ids, PAGES, GRADED_MS);
    }
    for (unsigned i = 0; i < nodes->count; i++) {
        uint64_t pages = over_auditors(i, "done");
        fprintf(stderr, "node %u graded %llu pages\n", i, (unsigned long long)pages);
        ck_assert_uint_gt(pages, 0);
        sum += pages;
    }
    ck_assert_uint_eq(sum, PAGES);
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(pages_of_a_killed_node_are_graded_by_others_at_once)
{
    int64_t ids[HELD];
    unsigned leader = nodes_await_leader(nodes, NODES_AWAY), killed = other_than(leader);
    hold_pages(ids, leader);
    node_kill(nodes, killed);
    origin_release(nodes->origin, "/held");
    expect_graded(leader, ids, HELD, SOON_MS);
    start_again(killed);
}
END_TEST

START_TEST(pages_of_a_killed_leader_are_graded_under_the_next_one)
{
    int64_t ids[HELD];
    unsigned leader = nodes_await_leader(nodes, NODES_AWAY);
    hold_pages(ids, other_than(leader));
    node_kill(nodes, leader);
    unsigned next = nodes_await_leader(nodes, (int)leader);
    origin_release(nodes->origin, "/held");
    expect_graded(next, ids, HELD, GRADED_MS);
    start_again(leader);
}
END_TEST

/* Its connections stay open, and it sends nothing. What it finds after waking up is ignored. */
START_TEST(pages_of_a_node_that_sleeps_are_graded_by_others)
{
    int64_t ids[HELD];
    unsigned leader = nodes_await_leader(nodes, NODES_AWAY), asleep = other_than(leader);
    hold_pages(ids, leader);
    node_pause(nodes, asleep);
    origin_release(nodes->origin, "/held");
    expect_graded(leader, ids, HELD, GRADED_MS);
    node_resume(nodes, asleep);
    expect_graded(asleep, ids, HELD, GRADED_MS);
    int64_t after[PAGES];
    for (unsigned i = 0; i < PAGES; i++)
        after[i] = posted(asleep, url_of(1000 + i, "/good"));
    expect_graded(asleep, after, PAGES, GRADED_MS);
    nodes_expect_equal(nodes);
}
END_TEST

static bool all_are_held(void *arg)
{
    uint64_t sum = 0;
    (void)arg;
    for (unsigned i = 0; i < nodes->count; i++)
        sum += running(i);
    return sum == HELD;
}

/* They return their pages, which are not blamed: they run together again. */
START_TEST(pages_of_auditors_that_are_stopped_run_again)
{
    int64_t ids[HELD];
    unsigned leader = nodes_await_leader(nodes, NODES_AWAY);
    for (unsigned round = 0; round < 2; round++) {
        hold_pages(ids, leader);
        for (unsigned i = 0; i < nodes->count; i++) {
            pid_t auditor = server_process(nodes->node[i].server, "assayd: auditor 0");
            kill(auditor, SIGTERM);
            ck_assert(
                server_replaces(nodes->node[i].server, "assayd: auditor 0", auditor, SOON_MS));
        }
        ck_assert(wait_until(all_are_held, NULL, SOON_MS));
        origin_release(nodes->origin, "/held");
        expect_graded(leader, ids, HELD, SOON_MS);
    }
    nodes_expect_equal(nodes);
}
END_TEST

/* A node whose writer ends loses the jobs of its auditors, and no page is blamed. */
START_TEST(pages_survive_that_writers_of_nodes_are_killed)
{
    int64_t ids[HELD];
    unsigned leader = nodes_await_leader(nodes, NODES_AWAY);
    for (unsigned round = 0; round < 3; round++) {
        hold_pages(ids, leader);
        for (unsigned i = 0; i < nodes->count; i++)
            if (i != leader)
                node_kill_writer(nodes, i);
        ck_assert(wait_until(all_are_held, NULL, SOON_MS));
        origin_release(nodes->origin, "/held");
        expect_graded(leader, ids, HELD, SOON_MS);
    }
    nodes_expect_equal(nodes);
}
END_TEST

/* The node that grades it; the other pages are done. NODES_AWAY: none does. */
static int grading_node(void)
{
    for (unsigned i = 0; i < nodes->count; i++)
        if (running(i) > 0)
            return (int)i;
    return NODES_AWAY;
}

static bool is_graded_somewhere(void *arg)
{
    (void)arg;
    return grading_node() != NODES_AWAY;
}

/* A held page of a host whose auditor is on a node that follows; the reports before it are done. */
static int64_t held_by_follower(unsigned leader)
{
    for (unsigned i = 0; i < 64; i++) {
        origin_held(nodes->origin, "/deadly");
        int64_t id = posted(leader, url_of(hosts++, "/deadly"));
        ck_assert(origin_asked(nodes->origin, "/deadly"));
        ck_assert(wait_until(is_graded_somewhere, NULL, SOON_MS));
        if (grading_node() != (int)leader)
            return id;
        origin_release(nodes->origin, "/deadly");
        expect_graded(leader, &id, 1, SOON_MS);
    }
    ck_abort_msg("no page is graded by a node that follows");
}

/* Its auditors die wherever it runs. */
START_TEST(a_page_that_kills_auditors_of_other_nodes_fails)
{
    unsigned leader = nodes_await_leader(nodes, NODES_AWAY), deaths = 0;
    int64_t id = held_by_follower(leader);
    struct response *r = NULL;
    for (int64_t deadline = now_ms() + GRADED_MS; now_ms() < deadline; poll(NULL, 0, 5)) {
        r = http_get(nodes->node[leader].server, report_path(id));
        if (strcmp(str_at(r, "data.status"), "pending") != 0)
            break;
        int node = origin_hits(nodes->origin, "/deadly") > deaths ? grading_node() : NODES_AWAY;
        if (node == NODES_AWAY)
            continue;
        deaths = origin_hits(nodes->origin, "/deadly");
        kill(server_process(nodes->node[node].server, "assayd: auditor 0"), SIGKILL);
    }
    expect_str(r, "data.status", "failed");
    expect_str(r, "data.error.code", "too_complex");
    ck_assert_msg(deaths >= 2 && deaths <= DEATHS_MAX, "after %u deaths", deaths);
    expect_all_joined(leader);
    nodes_expect_equal(nodes);
}
END_TEST

/* Pages of many hosts lead to one host, whose own pages are graded meanwhile. */
START_TEST(a_host_has_at_most_two_connections_from_all_nodes)
{
    int64_t ids[PAGES + 8];
    unsigned count = 0;
    char *target = origin_url(nodes->origin, "/target");
    origin_page(nodes->origin, "/target", 200, "", "<title>x</title>");
    origin_delay(nodes->origin, "/target", 50);
    origin_page(nodes->origin, "/hop", 302, text("Location: %s\r\n", target), "");
    origin_watch(nodes->origin, "127.0.0.1");
    for (unsigned i = 0; i < PAGES; i++)
        ids[count++] = posted(i % nodes->count, url_of(i, "/hop"));
    for (unsigned i = 0; i < 8; i++)
        ids[count++] = posted(i % nodes->count, text("%s?%u", target, i));
    expect_graded(0, ids, count, 2 * GRADED_MS);
    unsigned most = origin_watched(nodes->origin);
    fprintf(stderr, "%u connections at once\n", most);
    ck_assert_uint_ge(most, 1);
    ck_assert_uint_le(most, 2);
}
END_TEST

/* The pages of one workspace wait on every node; one of another workspace is graded beside them. */
START_TEST(a_workspace_does_not_fill_the_auditors_of_all_nodes)
{
    enum { MANY = 110 };
    unsigned leader = nodes_await_leader(nodes, NODES_AWAY);
    struct server *s = nodes->node[leader].server;
    assay_ok(s, "workspace", "create", "other", NULL);
    char *busy = nodes->key, *other = key_new(s, "other", NULL);
    nodes_catch_up(nodes);
    origin_held(nodes->origin, "/held");
    for (unsigned i = 0; i < MANY; i++)
        posted(i % nodes->count, url_of(i, "/held"));
    expect_all_work();
    for (unsigned i = 0; i < 2 * nodes->count; i++) {
        unsigned node = i % nodes->count;
        nodes->node[node].server->key = other;
        int64_t id = posted(node, url_of(1000 + i, "/good"));
        expect_graded(node, &id, 1, SOON_MS);
        nodes->node[node].server->key = busy;
    }
    ck_assert_uint_gt(origin_hits(nodes->origin, "/held"), 0);
    origin_release(nodes->origin, "/held");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, pages_posted_on_any_node_are_graded_by_auditors_of_all_nodes);
    tcase_add_test(tcase, pages_of_a_killed_node_are_graded_by_others_at_once);
    tcase_add_test(tcase, pages_of_a_killed_leader_are_graded_under_the_next_one);
    tcase_add_test(tcase, pages_of_a_node_that_sleeps_are_graded_by_others);
    tcase_add_test(tcase, pages_of_auditors_that_are_stopped_run_again);
    tcase_add_test(tcase, pages_survive_that_writers_of_nodes_are_killed);
    tcase_add_test(tcase, a_page_that_kills_auditors_of_other_nodes_fails);
    tcase_add_test(tcase, a_host_has_at_most_two_connections_from_all_nodes);
    tcase_add_test(tcase, a_workspace_does_not_fill_the_auditors_of_all_nodes);
}

int main(void)
{
    return nodes_main("grading", PROCESSES, NULL, NULL, add_tests);
}
