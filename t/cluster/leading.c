/*
 * One node of a cluster leads. Another one takes over when it stops, dies, sleeps or loses its
 * connection to the database, and nothing acknowledged is lost or applied twice.
 */
#include "t/kit/nodes.h"
#include "t/kit/supervisor.h"

#include <poll.h>
#include <signal.h>

enum { LEASE_MS = 10000, PROCESSES = 2, CREATES = 20, UNREAD_BYTES = 300 };

static struct response *create(struct nodes *n, const char *name)
{
    return nodes_write(n, .method = "POST", .path = "/api/v1/reports",
                       .headers = {"Prefer: respond-async", text("Idempotency-Key: %s", name)},
                       .body = form("url", text("http://127.0.0.9/%s", name), NULL));
}

static int64_t created(struct nodes *n, const char *name)
{
    struct response *r = create(n, name);
    expect_status(r, 202);
    return int_at(r, "data.id");
}

/* How long it takes until a change is answered. */
static int64_t ms_without_leader(struct nodes *n)
{
    int64_t since = now_ms();
    created(n, "after");
    return now_ms() - since;
}

/* ---- who leads ---- */

START_TEST(the_command_status_shows_leader_and_followers)
{
    struct nodes *n = nodes_new(&(struct nodes_options){0});
    unsigned leader = nodes_await_leader(n, NODES_AWAY);
    created(n, "one");
    nodes_catch_up(n);
    for (unsigned i = 0; i < n->count; i++) {
        struct json_object *rows = assay_list(n->node[i].server, "cluster", "status", NULL);
        ck_assert_uint_eq(json_object_array_length(rows), n->count);
        for (unsigned j = 0; j < n->count; j++)
            ck_assert_str_eq(record_text(record_find(rows, "node", text("node%u", j)), "role"),
                             j == leader ? "leads" : "follows");
    }
    nodes_expect_equal(n);
    nodes_free(n);
}
END_TEST

/* ---- another one leads ---- */

enum how { STOPPED, KILLED };
static const struct {
    enum how how;
    int within_ms;
} ends[] = {{STOPPED, 4000}, {KILLED, LEAD_MS}};

START_TEST(another_node_leads_after_the_leader_has_ended)
{
    struct nodes *n = nodes_new(&(struct nodes_options){0});
    unsigned leader = nodes_await_leader(n, NODES_AWAY);
    created(n, "before");
    if (ends[_i].how == STOPPED)
        node_stop(n, leader);
    else
        node_kill(n, leader);
    int64_t away_ms = ms_without_leader(n);
    fprintf(stderr, "a change is answered %lld ms after the leader was %s\n", (long long)away_ms,
            ends[_i].how == STOPPED ? "stopped" : "killed");
    ck_assert_int_le(away_ms, ends[_i].within_ms);
    ck_assert_uint_ne(nodes_await_leader(n, NODES_AWAY), leader);
    nodes_expect_reports(n, 2);
    node_start(n, leader);
    nodes_expect_reports(n, 2);
    nodes_expect_equal(n);
    nodes_free(n);
}
END_TEST

START_TEST(a_leader_whose_writer_is_killed_leads_again)
{
    struct nodes *n = nodes_new(&(struct nodes_options){0});
    unsigned leader = nodes_await_leader(n, NODES_AWAY);
    created(n, "before");
    pid_t writer = node_writer(n, leader);
    kill(writer, SIGKILL);
    int64_t away_ms = ms_without_leader(n);
    fprintf(stderr, "a change is answered %lld ms after the writer was killed\n",
            (long long)away_ms);
    ck_assert_int_le(away_ms, LEASE_MS / 2);
    nodes_expect_reports(n, 2);
    nodes_expect_equal(n);
    nodes_free(n);
}
END_TEST

/* ---- a leader that sleeps ---- */

/* A change that the leader got before it was paused: not answered while it does not lead. */
static struct raw *change_in_flight(const struct nodes *n, unsigned leader, const char *name)
{
    struct raw *raw = raw_open(n->node[leader].server);
    raw_post(raw, n->key, "Prefer: respond-async\r\n",
             form("url", text("http://127.0.0.9/%s", name), NULL));
    return raw;
}

/* 202: acknowledged, so it is stored. Else it may be stored. Every node has it once at most. */
static void expect_true_answer(struct nodes *n, const struct response *r, const char *name)
{
    struct response *list =
        http_get(n->node[0].server, text("/api/v1/reports?search=127.0.0.9/%s", name));
    expect_status(list, 200);
    expect(list, int_at(list, "meta.total") <= 1);
    ck_assert_msg(r->status != 202 || int_at(list, "meta.total") == 1,
                  "acknowledged, and not stored: %s", response_text(r));
    ck_assert_msg(r->status == 202 || r->status == 503 || r->status == 0, "%s", response_text(r));
}

START_TEST(a_leader_that_was_stopped_longer_than_its_lease_follows)
{
    enum { MANY = 8 };
    struct nodes *n = nodes_new(&(struct nodes_options){0});
    struct raw *raws[MANY];
    unsigned leader = nodes_await_leader(n, NODES_AWAY);
    pid_t writer = node_writer(n, leader);
    created(n, "before");
    /* the writer sleeps first: the requests wait in its sockets, one of them in an append */
    if (_i == 1)
        process_stop(writer);
    for (int i = 0; i < MANY; i++)
        raws[i] = change_in_flight(n, leader, text("flight%d.", i));
    node_pause(n, leader);
    n->asked[NODES_WRITE] = (leader + 1) % n->count;
    unsigned next = nodes_await_leader(n, (int)leader);
    created(n, "after");
    node_resume(n, leader);
    for (int i = 0; i < MANY; i++) {
        struct response *r = raw_response(raws[i], false, 40000);
        nodes_catch_up(n);
        expect_true_answer(n, r, text("flight%d.", i));
    }
    ck_assert_uint_eq(nodes_await_leader(n, NODES_AWAY), next);
    created(n, "again");
    nodes_expect_equal(n);
    nodes_free(n);
}
END_TEST

/* ---- between append and commit ---- */

/* The log has an entry that the store of the leader lacks: the answer is on its way. */
static bool is_between(void *arg)
{
    const struct nodes *n = arg;
    return nodes_entries(n) > node_position(n, n->asked[NODES_WRITE]);
}

START_TEST(a_change_that_is_appended_and_not_committed_is_applied_once)
{
    struct nodes *n = nodes_new(&(struct nodes_options){.count = 2, .proxies = true});
    unsigned leader = nodes_await_leader(n, NODES_AWAY);
    for (int i = 0; i < CREATES; i++) {
        char *name = text("between%d.", i);
        nodes_catch_up(n);
        n->asked[NODES_WRITE] = leader;
        pid_t writer = node_writer(n, leader);
        fault_proxy_delay(n->node[leader].proxy, TO_CLIENT, 2000);
        struct raw *raw = change_in_flight(n, leader, name);
        ck_assert(wait_until(is_between, n, LEAD_MS));
        kill(writer, SIGKILL);
        fault_proxy_delay(n->node[leader].proxy, TO_CLIENT, 0);
        expect_status(raw_response(raw, false, 40000), 202);
        raw_close(raw);
    }
    nodes_expect_reports(n, CREATES);
    nodes_expect_equal(n);
    nodes_free(n);
}
END_TEST

/* ---- connections to the database ---- */

static const struct {
    const char *name;
    enum fault_when when;
} cuts[] = {{"before", CUT_BEFORE}, {"behind", CUT_BEHIND}, {"answer", CUT_ANSWER}};

START_TEST(an_append_whose_connection_is_lost_is_resolved)
{
    struct nodes *n = nodes_new(&(struct nodes_options){.proxies = true});
    unsigned leader = nodes_await_leader(n, NODES_AWAY);
    struct fault_proxy *proxy = n->node[leader].proxy;
    n->asked[NODES_WRITE] = leader;
    created(n, "first");
    for (int i = 0; i < CREATES; i++) {
        /* the row of the report is in the entry */
        char *name = text("%s%d.", cuts[_i].name, i), *bytes = text("127.0.0.9/%s", name);
        unsigned before = fault_proxy_cuts(proxy);
        fault_proxy_cut_at(proxy, bytes, strlen(bytes), cuts[_i].when);
        struct response *r = http(n->node[leader].server, .method = "POST",
                                  .path = "/api/v1/reports", .headers = {"Prefer: respond-async"},
                                  .body = form("url", text("http://%s", bytes), NULL));
        expect_status(r, 202);
        ck_assert_uint_eq(fault_proxy_cuts(proxy), before + 1);
    }
    nodes_expect_reports(n, CREATES + 1);
    ck_assert_uint_eq(nodes_await_leader(n, NODES_AWAY), leader);
    nodes_expect_equal(n);
    nodes_free(n);
}
END_TEST

/* Neither a lost packet nor a reset: the leader gives up waiting. */
START_TEST(a_leader_that_is_cut_off_is_replaced_and_follows_again)
{
    struct nodes *n = nodes_new(&(struct nodes_options){.proxies = true});
    unsigned leader = nodes_await_leader(n, NODES_AWAY);
    created(n, "before");
    fault_proxy_drop(n->node[leader].proxy);
    struct raw *raw = change_in_flight(n, leader, "flight");
    n->asked[NODES_WRITE] = (leader + 1) % n->count;
    nodes_await_leader(n, (int)leader);
    created(n, "after");
    fault_proxy_pass(n->node[leader].proxy);
    expect_true_answer(n, raw_response(raw, false, 40000), "flight");
    nodes_expect_equal(n);
    nodes_free(n);
}
END_TEST

START_TEST(a_backend_that_sleeps_longer_than_every_timeout_loses_nothing)
{
    struct nodes *n = nodes_new(&(struct nodes_options){0});
    unsigned leader = nodes_await_leader(n, NODES_AWAY);
    created(n, "before");
    pid_t backend = postgres_pause_backend(n->log, text("assay node%u", leader));
    struct raw *raw = change_in_flight(n, leader, "flight");
    struct response *r = raw_response(raw, false, LEAD_MS);
    kill(backend, SIGCONT);
    if (r->status == 0)
        r = raw_response(raw, false, 40000);
    expect_true_answer(n, r, "flight");
    created(n, "after");
    nodes_expect_equal(n);
    nodes_free(n);
}
END_TEST

static bool has_no_backend(void *arg)
{
    const struct nodes *n = arg;
    char *count = postgres_query(n->log,
                                 "SELECT count(*) FROM pg_stat_activity WHERE application_name = "
                                 "'assay node%u'",
                                 n->asked[NODES_WRITE]);
    bool none = !strcmp(count, "0");
    free(count);
    return none;
}

/* A connection of the database has received an entry, and its backend has not read it. */
static bool has_unread_entry(void *arg)
{
    const struct nodes *n = arg;
    FILE *file = fopen("/proc/net/tcp", "r");
    char line[512];
    unsigned port, unread, most = 0;
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "%*u: %*x:%x %*x:%*x %*x %*x:%x", &port, &unread) == 2 &&
            port == n->log->port && unread > most)
            most = unread;
    fclose(file);
    return most >= UNREAD_BYTES;
}

/* The pid of the backend of the leader, which sleeps with an entry. Another call may come first. */
static pid_t entry_in_backend(struct nodes *n, unsigned leader, int *sent)
{
    for (;;) {
        pid_t backend = postgres_pause_backend(n->log, text("assay node%u", leader));
        change_in_flight(n, leader, text("late%d", (*sent)++));
        if (wait_until(has_unread_entry, n, 1000))
            return backend;
        kill(backend, SIGCONT);
        nodes_catch_up(n);
    }
}

/* The backend runs the append after another node has begun to lead. */
START_TEST(an_append_of_an_earlier_lead_is_refused)
{
    int sent = 0;
    struct nodes *n = nodes_new(&(struct nodes_options){0});
    unsigned leader = nodes_await_leader(n, NODES_AWAY);
    pid_t backend = entry_in_backend(n, leader, &sent);
    node_kill(n, leader);
    n->asked[NODES_WRITE] = leader;
    nodes_await_leader(n, (int)leader);
    uint64_t entries = nodes_entries(n);
    kill(backend, SIGCONT);
    ck_assert(wait_until(has_no_backend, n, LEAD_MS));
    ck_assert_uint_eq(nodes_entries(n), entries);
    created(n, "after");
    node_start(n, leader);
    nodes_expect_reports(n, sent);
    nodes_expect_equal(n);
    nodes_free(n);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_leader_whose_writer_is_killed_leads_again);
    tcase_add_test(tcase, the_command_status_shows_leader_and_followers);
    tcase_add_loop_test(tcase, another_node_leads_after_the_leader_has_ended, 0, COUNT(ends));
    tcase_add_loop_test(tcase, a_leader_that_was_stopped_longer_than_its_lease_follows, 0, 2);
    tcase_add_test(tcase, a_change_that_is_appended_and_not_committed_is_applied_once);
    tcase_add_loop_test(tcase, an_append_whose_connection_is_lost_is_resolved, 0, COUNT(cuts));
    tcase_add_test(tcase, a_leader_that_is_cut_off_is_replaced_and_follows_again);
    tcase_add_test(tcase, a_backend_that_sleeps_longer_than_every_timeout_loses_nothing);
    tcase_add_test(tcase, an_append_of_an_earlier_lead_is_refused);
}

int main(void)
{
    return nodes_main("leading", PROCESSES, NULL, NULL, add_tests);
}
