/*
 * Nodes that follow: what the leader changes is on each of them some milliseconds later, with its
 * events. A node that was away, or could not apply an entry, gets every entry.
 */
#include "t/kit/three_nodes.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

enum { SOON_MS = 2000, DAY_MS = 86400000, MANY = 400 };

/* ---- reads and events ---- */

struct sight {
    const struct server *server;
    char *path;
};

static bool is_seen(void *arg)
{
    const struct sight *sight = arg;
    struct response *r = http_get(sight->server, sight->path);
    bool seen = r->status == 200;
    response_free(r);
    return seen;
}

START_TEST(a_change_is_on_every_node_at_once)
{
    int64_t most = 0;
    for (int i = 0; i < 50; i++) {
        char *path = report_path(created(text("%d", i)));
        int64_t since = now_ms();
        for (unsigned j = 0; j + 1 < nodes->count; j++)
            ck_assert(wait_until(is_seen, &(struct sight){follower_server(j), path}, SOON_MS));
        int64_t took = now_ms() - since;
        most = took > most ? took : most;
    }
    fprintf(stderr, "a change is on all nodes within %lld ms\n", (long long)most);
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(a_report_is_graded_and_its_results_are_on_every_node)
{
    char *url = origin_url(nodes->origin, "/good");
    struct response *r =
        nodes_write(nodes, .method = "POST", .path = "/api/v1/reports",
                    .headers = {"Prefer: wait=20"}, .body = form("url", url, NULL));
    expect_status(r, 201);
    expect_str(r, "data.status", "done");
    char *path = report_path(int_at(r, "data.id"));
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++) {
        struct response *read = http_get(nodes->node[i].server, path);
        expect_int(read, "data.score", int_at(r, "data.score"));
        expect_str(read, "data.status", "done");
        expect_int(http_get(nodes->node[i].server, text("%s/history", path)), "data.0.score",
                   int_at(r, "data.score"));
    }
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(a_message_to_the_leader_is_in_streams_of_every_node)
{
    widget_make("*");
    struct visitor v = visitor_new();
    struct raw *raws[NODES_MAX];
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        raws[i] = stream_open(nodes->node[i].server, &v);
    for (int k = 0; k < 10; k++) {
        char *body = text("{\"message\":\"answer %d\"}", k);
        expect_status(operate("POST", text("conversations/%s/messages", v.conversation), body),
                      201);
        for (unsigned i = 0; i < nodes->count; i++)
            stream_expect(raws[i], text("\"content\":\"answer %d\"", k));
    }
    nodes_expect_equal(nodes);
}
END_TEST

/* ---- a node that was away ---- */

START_TEST(a_node_that_was_away_catches_up)
{
    unsigned away = follower(0);
    if (_i == 0)
        node_stop(nodes, away);
    else
        node_kill(nodes, away);
    for (int i = 0; i < MANY; i++)
        created(text("%d", i));
    node_start(nodes, away);
    nodes_catch_up(nodes);
    ck_assert_int_eq(total_on(away), MANY);
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(a_new_node_gets_every_entry)
{
    for (int i = 0; i < MANY; i++)
        created(text("%d", i));
    unsigned new = nodes_add(nodes);
    node_start(nodes, new);
    nodes_catch_up(nodes);
    ck_assert_int_eq(total_on(new), MANY);
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(a_follower_that_is_killed_at_random_skips_nothing)
{
    uint64_t random = 88172645463325252u ^ (uint64_t)getpid();
    unsigned kills = 0;
    for (int i = 0; i < MANY; i++) {
        created(text("%d", i));
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if (random % 8 == 0) {
            node_kill_writer(nodes, follower(random >> 8 & 1));
            kills++;
        }
    }
    fprintf(stderr, "writers of followers killed %u times\n", kills);
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        ck_assert_int_eq(total_on(i), MANY);
    nodes_expect_equal(nodes);
}
END_TEST

/* ---- a node that cannot apply an entry ---- */

static void *create_some(void *arg)
{
    char filler[1901];
    memset(filler, 'f', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    for (int i = 0; i < MANY; i++) {
        char *url = text("http://127.0.0.9/%s%d/%s", (const char *)arg, i, filler);
        struct response *r =
            http(server, .method = "POST", .path = "/api/v1/reports",
                 .headers = {"Prefer: respond-async"}, .body = form("url", url, NULL));
        expect_status(r, 202);
        response_free(r);
        free(url);
    }
    return NULL;
}

/* More than the free pages of a small file. */
static void create_much(void)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    pthread_t threads[COUNT(names)];
    for (size_t i = 0; i < COUNT(names); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, create_some, (void *)names[i]), 0);
    for (size_t i = 0; i < COUNT(names); i++)
        pthread_join(threads[i], NULL);
}

static bool refuses_growth(void *arg)
{
    struct response *r =
        http(arg, .method = "POST", .path = "/api/v1/reports", .headers = {"Prefer: respond-async"},
             .body = form("url", "http://127.0.0.9/refused", NULL));
    bool refuses = r->status == 507;
    response_free(r);
    return refuses;
}

static bool admits_growth(void *arg)
{
    return !refuses_growth(arg);
}

/* The position in an answer is one that it has. */
static bool serves_its_position(void *node)
{
    struct response *r = http_get(node, "/api/v1/reports");
    struct response *again =
        http(node, .path = "/api/v1/reports",
             .headers = {text("X-Assay-Position: %s", header(r, "X-Assay-Position"))});
    bool serves = again->status == 200;
    response_free(again);
    response_free(r);
    return serves;
}

/*
 * It sleeps while the leader appends more than it has space for: later the leader would refuse
 * that.
 */
START_TEST(a_follower_with_a_full_disk_stops_and_goes_on)
{
    unsigned full = follower(0);
    int64_t last = created("first");
    nodes_catch_up(nodes);
    pid_t writer = node_writer(nodes, full);
    node_pause(nodes, full);
    node_fill_disk(nodes, full);
    create_much();
    node_resume(nodes, full);
    expect_says(full, "of the log cannot be applied");
    ck_assert_uint_lt(node_position(nodes, full), nodes_entries(nodes));
    uint64_t position = node_position(nodes, full);
    ck_assert(wait_until(serves_its_position, nodes->node[full].server, SAYS_MS));

    ck_assert(wait_until(refuses_growth, server, SAYS_MS));
    int64_t total = total_on(leader);
    expect_status(http_delete(server, report_path(last)), 200);
    poll(NULL, 0, 1500); /* it tries again each second */
    ck_assert_uint_eq(node_position(nodes, full), position);

    node_free_disk(nodes, full);
    nodes_catch_up(nodes);
    ck_assert_int_eq(total_on(full), total - 1);
    expect_says(full, "the cluster: the store fits the log, and the log answers");
    ck_assert(wait_until(admits_growth, server, SAYS_MS));
    ck_assert_int_eq(node_writer(nodes, full), writer);
    nodes_expect_equal(nodes);
}
END_TEST

/* ---- clocks ---- */

/* By id: the order in which they were made. */
static void expect_times_in_order(unsigned i)
{
    char *last = text("%s", "");
    struct response *r =
        http_get(nodes->node[i].server, "/api/v1/reports?sort_by=id&sort=asc&per_page=100");
    expect_status(r, 200);
    int64_t id = 0;
    for (size_t j = 0; j < len_at(r, "data"); j++) {
        const char *at = str_at(r, text("data.%zu.created_at", j));
        ck_assert_msg(strcmp(last, at) <= 0, "%s after %s", at, last);
        ck_assert_int_lt(id, int_at(r, text("data.%zu.id", j)));
        id = int_at(r, text("data.%zu.id", j));
        last = text("%s", at);
    }
    ck_assert_uint_gt(len_at(r, "data"), 0);
}

/* Columns: a step of the clock, what a node with it says. */
static const struct {
    int64_t ms;
    const char *says;
} steps[] = {{DAY_MS, "ms ahead of that of PostgreSQL: set both by NTP"},
             {-(int64_t)DAY_MS, "ms behind that of PostgreSQL: set both by NTP"}};

struct stepped {
    struct server internal; /* the internal listener of a node with a stepped clock */
    int64_t ms;
};

static bool measures_step(void *arg)
{
    const struct stepped *s = arg;
    long seconds = metric(&s->internal, "assay_cluster_clock_offset_seconds");
    return labs(seconds - (long)(s->ms / 1000)) <= 1;
}

/* The node, in its log and metrics, and a command on its host. */
static void expect_step_is_said(unsigned i, int64_t ms, const char *words)
{
    struct stepped s = {server_internal(nodes->node[i].server), ms};
    expect_says(i, words);
    ck_assert(wait_until(measures_step, &s, SAYS_MS));
    wall_clock_use(nodes->node[i].clock);
    struct run run = assay(nodes->node[i].server, "cluster", "status", NULL);
    wall_clock_leave();
    ck_assert_msg(run.status == 0 && strstr(run.err, words) != NULL, "%s%s", run.out, run.err);
}

/* The leader has this clock, then another node leads, then the first one again. */
START_TEST(times_and_ids_never_go_back)
{
    unsigned stepped = leader;
    char *last = text("%s", "");
    widget_make("*");
    created("before");
    node_stop(nodes, stepped);
    nodes->options.yaml = "internal_listen: 127.0.0.1:0";
    node_configure(nodes, stepped);
    start_with_clock(stepped, steps[_i].ms);
    expect_step_is_said(stepped, steps[_i].ms, steps[_i].says);
    for (int turn = 0; turn < 4; turn++) {
        leader = nodes_await_leader(nodes, NODES_AWAY);
        server = nodes->node[leader].server;
        for (int i = 0; i < 5; i++) {
            created(text("%d-%d", turn, i));
            struct visitor v = visitor_new();
            ck_assert_msg(strcmp(last, v.conversation) < 0, "%s after %s", v.conversation, last);
            last = text("%s", v.conversation);
        }
        nodes_catch_up(nodes);
        node_stop(nodes, leader); /* so that the next one leads at once */
        nodes_await_leader(nodes, (int)leader);
        start_with_clock(leader, leader == stepped ? steps[_i].ms : 0);
    }
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        expect_times_in_order(i);
    nodes_expect_equal(nodes);
}
END_TEST

/* It leads, and the others follow. */
static void let_lead(unsigned i)
{
    for (unsigned j = 0; j < nodes->count; j++)
        if (j != i)
            node_stop(nodes, j);
    ck_assert_uint_eq(nodes_await_leader(nodes, NODES_AWAY), i);
    for (unsigned j = 0; j < nodes->count; j++)
        if (j != i)
            node_start(nodes, j);
    nodes->asked[NODES_WRITE] = leader = i;
    server = nodes->node[i].server;
}

static char *epoch(void)
{
    return postgres_query(nodes->log, "SELECT epoch FROM assay_cluster");
}

/* Each conversation is later than those before. */
static char *create_later_than(char *last)
{
    for (int i = 0; i < 5; i++) {
        created(text("%lld", (long long)now_ms()));
        struct visitor v = visitor_new();
        ck_assert_msg(strcmp(last, v.conversation) < 0, "%s after %s", v.conversation, last);
        last = text("%s", v.conversation);
    }
    return last;
}

/*
 * While it leads, and while it follows. Leases and timeouts do not follow the wall clock, and a
 * report is graded as fast as before.
 */
START_TEST(a_step_of_the_clock_of_a_running_node_changes_no_order_and_no_leader)
{
    unsigned stepped = leader;
    char *last = text("%s", "");
    widget_make("*");
    node_stop(nodes, stepped);
    start_with_clock(stepped, 0);
    for (int leads = 1; leads >= 0; leads--) {
        let_lead(leads ? stepped : follower(0));
        char *before = epoch();
        last = create_later_than(last);
        wall_clock_step(nodes->node[stepped].clock, steps[_i].ms);
        last = create_later_than(last);
        int64_t graded =
            report_new(nodes->node[stepped].server, origin_url(nodes->origin, "/good"));
        wall_clock_step(nodes->node[stepped].clock, 0);
        last = create_later_than(last);
        ck_assert_str_eq(before, epoch());
        nodes_catch_up(nodes);
        for (unsigned i = 0; i < nodes->count; i++)
            expect_str(http_get(nodes->node[i].server, report_path(graded)), "data.status", "done");
    }
    for (unsigned i = 0; i < nodes->count; i++)
        expect_times_in_order(i);
    nodes_expect_equal(nodes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_change_is_on_every_node_at_once);
    tcase_add_test(tcase, a_report_is_graded_and_its_results_are_on_every_node);
    tcase_add_test(tcase, a_message_to_the_leader_is_in_streams_of_every_node);
    tcase_add_loop_test(tcase, a_node_that_was_away_catches_up, 0, 2);
    tcase_add_test(tcase, a_new_node_gets_every_entry);
    tcase_add_test(tcase, a_follower_that_is_killed_at_random_skips_nothing);
    tcase_add_test(tcase, a_follower_with_a_full_disk_stops_and_goes_on);
    tcase_add_loop_test(tcase, times_and_ids_never_go_back, 0, COUNT(steps));
    tcase_add_loop_test(tcase, a_step_of_the_clock_of_a_running_node_changes_no_order_and_no_leader,
                        0, COUNT(steps));
}

int main(void)
{
    return three_nodes_main("following", add_tests);
}
