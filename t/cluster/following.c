/*
 * Nodes that follow: what the leader changes is on each of them some milliseconds later, with its
 * events. A node applies every entry or stops and says why.
 */
#include "t/kit/nodes.h"
#include "t/kit/supervisor.h"
#include "t/kit/widget.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { PROCESSES = 2, SOON_MS = 2000, SAYS_MS = 15000, DAY_MS = 86400000, MANY = 400 };

static struct nodes *nodes;
static unsigned leader;

static void begin(const struct nodes_options *options)
{
    nodes = nodes_new(options);
    leader = nodes_await_leader(nodes, NODES_AWAY);
    server = nodes->node[leader].server;
    nodes->asked[NODES_WRITE] = leader;
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
    return (leader + 1 + i) % nodes->count;
}

static struct server *follower_server(unsigned i)
{
    return nodes->node[follower(i)].server;
}

static struct response *create(const char *name)
{
    return nodes_write(nodes, .method = "POST", .path = "/api/v1/reports",
                       .headers = {"Prefer: respond-async"},
                       .body = form("url", text("http://127.0.0.9/%s", name), NULL));
}

static int64_t created(const char *name)
{
    struct response *r = create(name);
    expect_status(r, 202);
    int64_t id = int_at(r, "data.id");
    response_free(r);
    return id;
}

/* ${i}: a node. */
static void expect_says(unsigned i, const char *words)
{
    const struct server *s = nodes->node[i].server;
    ck_assert_msg(server_says(s, words, 0, SAYS_MS), "node %u does not say: %s\n%s", i, words,
                  server_log(s));
}

static int64_t total_on(unsigned i)
{
    struct response *r = http_get(nodes->node[i].server, "/api/v1/reports");
    expect_status(r, 200);
    int64_t total = int_at(r, "meta.total");
    response_free(r);
    return total;
}

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

/* A stream that is read until it has these words. */
static void expect_event(struct raw *raw, const char *words)
{
    static char seen[65536];
    size_t n = 0;
    for (int64_t deadline = now_ms() + SOON_MS; now_ms() < deadline;) {
        struct pollfd p = {raw->fd, POLLIN, 0};
        if (poll(&p, 1, 50) <= 0)
            continue;
        ssize_t got = read(raw->fd, seen + n, sizeof(seen) - 1 - n);
        ck_assert_msg(got > 0, "the stream ends:\n%s", seen);
        n += (size_t)got;
        seen[n] = '\0';
        if (strstr(seen, words))
            return;
    }
    ck_abort_msg("%s did not arrive:\n%s", words, seen);
}

START_TEST(a_message_to_the_leader_is_in_streams_of_every_node)
{
    widget_make("*");
    struct visitor v = visitor_new();
    struct raw *raws[NODES_MAX];
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++) {
        raws[i] = raw_open(nodes->node[i].server);
        raw_text(raws[i],
                 "GET /api/v1/widget/conversation/stream HTTP/1.1\r\nHost: x\r\n"
                 "Authorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n",
                 v.jwt);
        expect_event(raws[i], ": here");
    }
    for (int k = 0; k < 10; k++) {
        char *body = text("{\"message\":\"answer %d\"}", k);
        expect_status(operate("POST", text("conversations/%s/messages", v.conversation), body),
                      201);
        for (unsigned i = 0; i < nodes->count; i++)
            expect_event(raws[i], text("\"content\":\"answer %d\"", k));
    }
    nodes_expect_equal(nodes);
}
END_TEST

/* ---- changes that a follower relays ---- */

static struct response *create_on(unsigned i, const char *name, const char *key)
{
    return http(nodes->node[i].server, .method = "POST", .path = "/api/v1/reports",
                .headers = {"Prefer: respond-async", key ? text("Idempotency-Key: %s", key) : NULL},
                .body = form("url", text("http://127.0.0.9/%s", name), NULL));
}

/* The answer comes when the node that answers has the change. */
START_TEST(a_follower_answers_when_it_has_the_change)
{
    for (int i = 0; i < 50; i++) {
        unsigned j = (unsigned)i / 2 % 2;
        struct server *s = follower_server(j);
        struct response *r = create_on(follower(j), text("%d", i), NULL);
        expect_status(r, 202);
        char *path = report_path(int_at(r, "data.id"));
        expect_status(http_get(s, path), 200);
        r = http_put(s, path, "privacy=1");
        expect_status(r, 200);
        expect_int(http_get(s, path), "data.privacy", 1);
        if (i % 2 == 0)
            continue;
        expect_status(http_delete(s, path), 200);
        expect_status(http_get(s, path), 404);
    }
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        ck_assert_int_eq(total_on(i), 25);
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(a_repeated_key_is_recognised_on_every_node)
{
    for (int i = 0; i < 20; i++) {
        char *name = text("%d", i);
        int64_t id = 0;
        for (unsigned j = 0; j < nodes->count; j++) {
            struct response *r = create_on((j + (unsigned)i) % nodes->count, name, name);
            expect_status(r, 202);
            expect(r, id == 0 || int_at(r, "data.id") == id);
            id = int_at(r, "data.id");
        }
    }
    nodes_catch_up(nodes);
    ck_assert_int_eq(total_on(0), 20);
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(a_held_post_on_a_follower_ends_with_its_grading)
{
    struct raw *raw = held_post(follower_server(0), nodes->origin, "/held");
    ck_assert_msg(!raw_closed(raw, 300), "%s", raw->in);
    ck_assert_uint_eq(raw->in_size, 0);
    origin_release(nodes->origin, "/held");
    struct response *r = raw_response(raw, false, SAYS_MS);
    expect_status(r, 201);
    expect_str(r, "data.status", "done");
    nodes_catch_up(nodes);
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(a_visitor_and_an_operator_meet_on_followers)
{
    widget_make("*");
    nodes_catch_up(nodes);
    server = follower_server(0);
    struct visitor v = visitor_new();
    nodes_catch_up(nodes);
    struct raw *raw = raw_open(follower_server(1));
    raw_text(raw,
             "GET /api/v1/widget/conversation/stream HTTP/1.1\r\nHost: x\r\n"
             "Authorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n",
             v.jwt);
    expect_event(raw, ": here");
    for (int k = 0; k < 10; k++) {
        char *body = text("{\"message\":\"answer %d\"}", k);
        expect_status(operate("POST", text("conversations/%s/messages", v.conversation), body),
                      201);
        expect_event(raw, text("\"content\":\"answer %d\"", k));
    }
    nodes_expect_equal(nodes);
}
END_TEST

/* The relay is lost with the writer of either end; the change is repeated, and happens once. */
START_TEST(a_relayed_change_happens_once_when_a_writer_dies)
{
    for (int i = 0; i < 40; i++) {
        unsigned from = follower((unsigned)i / 2 % 2);
        struct raw *raw = raw_open(nodes->node[from].server);
        pid_t writer = node_writer(nodes, i % 2 == 0 ? from : leader);
        raw_post(raw, nodes->key, "Prefer: respond-async\r\n",
                 form("url", text("http://127.0.0.9/%d", i), NULL));
        poll(NULL, 0, i % 7);
        kill(writer, SIGKILL);
        struct response *r = raw_response(raw, false, 2 * SAYS_MS);
        expect_status(r, 202);
        raw_close(raw);
    }
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        ck_assert_int_eq(total_on(i), 40);
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

/* ---- a node that cannot apply, or does not belong to the log ---- */

static void limit_files_of_writer(unsigned i, rlim_t bytes)
{
    struct rlimit was;
    pid_t writer = node_writer(nodes, i);
    ck_assert_int_eq(prlimit(writer, RLIMIT_FSIZE, NULL, &was), 0);
    ck_assert_int_eq(prlimit(writer, RLIMIT_FSIZE, &(struct rlimit){bytes, was.rlim_max}, NULL), 0);
}

static struct response *try_create(const char *name)
{
    return http(nodes->node[leader].server, .method = "POST", .path = "/api/v1/reports",
                .headers = {"Prefer: respond-async"},
                .body = form("url", text("http://127.0.0.9/%s", name), NULL));
}

/* Creates until the leader refuses them for the sake of a node without space; how many it took. */
static unsigned create_until_refused(void)
{
    static char filler[1901];
    memset(filler, 'f', sizeof(filler) - 1);
    for (unsigned made = 0;; made++) {
        struct response *r = try_create(text("%u/%s", made, filler));
        int status = r->status;
        response_free(r);
        if (status == 507)
            return made;
        ck_assert_int_eq(status, 202);
        ck_assert_uint_lt(made, 100000);
    }
}

static bool creates_again(void *name)
{
    struct response *r = try_create(name);
    int status = r->status;
    response_free(r);
    return status == 202;
}

/* It stops at its position if the leader notices too late, and goes on when there is space. */
START_TEST(a_follower_with_a_full_disk_stops_growth_and_goes_on)
{
    struct stat st;
    unsigned full = follower(0);
    created("first");
    nodes_catch_up(nodes);
    ck_assert_int_eq(stat(text("%s/data.mdb", nodes->node[full].server->data), &st), 0);
    limit_files_of_writer(full, (rlim_t)st.st_size);
    unsigned made = create_until_refused();
    expect_says((unsigned)nodes_leader(nodes), "has no space left");
    poll(NULL, 0, 1500); /* it tries again each second */
    uint64_t entries = nodes_entries(nodes), position = node_position(nodes, full);
    if (position < entries)
        expect_says(full, "of the log cannot be applied");
    limit_files_of_writer(full, RLIM_INFINITY);
    ck_assert(wait_until(creates_again, text("%s", "last"), 20000));
    nodes_catch_up(nodes);
    ck_assert_int_eq(total_on(full), made + 2);
    nodes_expect_equal(nodes);
}
END_TEST

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
    struct response *r = http(s, .method = "POST", .path = "/api/v1/reports", .key = "none");
    expect_status(r, 401);
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
        ck_assert_int_eq(total_on(i), 1);
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

/* ---- clocks ---- */

static volatile int64_t *offset_ms;
static char clock_path[] = "/tmp/assay-clock-XXXXXX";

/* Programs started while ${on} use the stepped clock. */
static void step_clock(bool on)
{
    if (!offset_ms) {
        int fd = mkstemp(clock_path);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(ftruncate(fd, sizeof(*offset_ms)), 0);
        ck_assert_int_eq(fchmod(fd, 0644), 0);
        offset_ms = mmap(NULL, sizeof(*offset_ms), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ck_assert_ptr_ne((void *)offset_ms, MAP_FAILED);
        close(fd);
    }
    if (on) {
        setenv("STEPPED_CLOCK", clock_path, 1);
        setenv("LD_PRELOAD", realpath("t/kit/stepped_clock.so", NULL), 1);
    } else {
        unsetenv("STEPPED_CLOCK");
        unsetenv("LD_PRELOAD");
    }
}

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
    ck_assert_int_gt(len_at(r, "data"), 0);
}

static const int64_t steps_ms[] = {DAY_MS, -(int64_t)DAY_MS};

/* The leader has this clock, then another node leads, then the first one again. */
START_TEST(times_and_ids_never_go_back)
{
    unsigned stepped = leader;
    char *last = text("%s", "");
    widget_make("*");
    created("before");
    node_stop(nodes, stepped);
    step_clock(true);
    *offset_ms = steps_ms[_i];
    node_start(nodes, stepped);
    step_clock(false);
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
        step_clock(leader == stepped);
        node_start(nodes, leader);
        step_clock(false);
    }
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        expect_times_in_order(i);
    nodes_expect_equal(nodes);
    unlink(clock_path);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_change_is_on_every_node_at_once);
    tcase_add_test(tcase, a_report_is_graded_and_its_results_are_on_every_node);
    tcase_add_test(tcase, a_message_to_the_leader_is_in_streams_of_every_node);
    tcase_add_test(tcase, a_follower_answers_when_it_has_the_change);
    tcase_add_test(tcase, a_repeated_key_is_recognised_on_every_node);
    tcase_add_test(tcase, a_held_post_on_a_follower_ends_with_its_grading);
    tcase_add_test(tcase, a_visitor_and_an_operator_meet_on_followers);
    tcase_add_test(tcase, a_relayed_change_happens_once_when_a_writer_dies);
    tcase_add_loop_test(tcase, a_node_that_was_away_catches_up, 0, 2);
    tcase_add_test(tcase, a_new_node_gets_every_entry);
    tcase_add_test(tcase, a_follower_that_is_killed_at_random_skips_nothing);
    tcase_add_test(tcase, a_follower_with_a_full_disk_stops_growth_and_goes_on);
    tcase_add_test(tcase, a_node_with_records_of_its_own_is_refused);
    tcase_add_test(tcase, a_node_behind_a_trimmed_log_is_refused);
    tcase_add_test(tcase, a_node_of_another_log_is_refused);
    tcase_add_test(tcase, an_entry_that_was_changed_in_the_database_is_refused);
    tcase_add_test(tcase, commands_change_nothing_while_the_server_is_stopped);
    tcase_add_loop_test(tcase, times_and_ids_never_go_back, 0, COUNT(steps_ms));
}

int main(void)
{
    if (postgres_missing()) {
        puts(postgres_missing());
        return SUITE_SKIPPED;
    }
    suite_processes(PROCESSES);
    Suite *suite = suite_create("following");
    TCase *tcase = harness_case(suite, "following");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 180);
    add_tests(tcase);
    return harness_main(suite);
}
