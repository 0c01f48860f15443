/*
 * Nodes that follow: what the leader changes is on each of them some milliseconds later, with its
 * events. A node that was away, or could not apply an entry, gets every entry.
 */
#include "t/kit/supervisor.h"
#include "t/kit/three_nodes.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

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

static void limit_files_of_writer(unsigned i, rlim_t bytes)
{
    struct rlimit was;
    pid_t writer = node_writer(nodes, i);
    ck_assert_int_eq(prlimit(writer, RLIMIT_FSIZE, NULL, &was), 0);
    ck_assert_int_eq(prlimit(writer, RLIMIT_FSIZE, &(struct rlimit){bytes, was.rlim_max}, NULL), 0);
}

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

/*
 * It sleeps while the leader appends more than it has space for: later the leader would refuse
 * that. Sleeping longer than 10 s would end it.
 */
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

START_TEST(a_follower_with_a_full_disk_stops_and_goes_on)
{
    struct stat st;
    unsigned full = follower(0);
    int64_t last = created("first");
    nodes_catch_up(nodes);
    ck_assert_int_eq(stat(text("%s/data.mdb", nodes->node[full].server->data), &st), 0);
    pid_t writer = node_writer(nodes, full);
    process_stop(writer);
    limit_files_of_writer(full, (rlim_t)st.st_size);
    create_much();
    kill(writer, SIGCONT);
    expect_says(full, "of the log cannot be applied");
    ck_assert_uint_lt(node_position(nodes, full), nodes_entries(nodes));
    uint64_t position = node_position(nodes, full);
    ck_assert(wait_until(serves_its_position, nodes->node[full].server, SAYS_MS));

    ck_assert(wait_until(refuses_growth, server, SAYS_MS));
    int64_t total = total_on(leader);
    expect_status(http_delete(server, report_path(last)), 200);
    poll(NULL, 0, 1500); /* it tries again each second */
    ck_assert_uint_eq(node_position(nodes, full), position);

    limit_files_of_writer(full, RLIM_INFINITY);
    nodes_catch_up(nodes);
    ck_assert_int_eq(total_on(full), total - 1);
    expect_says(full, "the store fits the log, which answers again");
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

static const int64_t steps_ms[] = {DAY_MS, -(int64_t)DAY_MS};

/* The leader has this clock, then another node leads, then the first one again. */
START_TEST(times_and_ids_never_go_back)
{
    unsigned stepped = leader;
    char *last = text("%s", "");
    widget_make("*");
    created("before");
    node_stop(nodes, stepped);
    start_with_clock(stepped, steps_ms[_i]);
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
        start_with_clock(leader, leader == stepped ? steps_ms[_i] : 0);
    }
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        expect_times_in_order(i);
    nodes_expect_equal(nodes);
}
END_TEST

/* ---- signing keys ---- */

/* The file of signing keys of a node; "": it has none. */
static char *keys_of(unsigned i)
{
    char *path = text("%s/secrets", nodes->node[i].server->data), *out = calloc(1, 8192);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(out);
    if (file != NULL) {
        ck_assert_uint_lt(fread(out, 1, 8191, file), 8191);
        fclose(file);
    }
    free(path);
    return out;
}

static unsigned lines_of(const char *of)
{
    unsigned lines = 0;
    for (; (of = strchr(of, '\n')) != NULL; of++)
        lines++;
    return lines;
}

/* ${arg}: how many lines each file has, a comment among them. */
static bool have_equal_keys(void *arg)
{
    char *first = keys_of(0);
    bool equal = lines_of(first) == *(unsigned *)arg;
    for (unsigned i = 1; i < nodes->count; i++) {
        char *other = keys_of(i);
        equal = equal && strcmp(first, other) == 0;
        free(other);
    }
    free(first);
    return equal;
}

START_TEST(every_node_signs_with_the_same_keys)
{
    unsigned lines = 2;
    ck_assert(wait_until(have_equal_keys, &lines, SAYS_MS));
    assay_ok(follower_server(0), "secret", "rotate", NULL);
    lines = 3;
    ck_assert(wait_until(have_equal_keys, &lines, SAYS_MS));
    node_kill_writer(nodes, follower(1));
    char *path = text("%s/secrets", follower_server(1)->data);
    ck_assert_int_eq(unlink(path), 0);
    node_kill_writer(nodes, follower(1)); /* the next writer makes the file again */
    ck_assert(wait_until(have_equal_keys, &lines, SAYS_MS));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, every_node_signs_with_the_same_keys);
    tcase_add_test(tcase, a_change_is_on_every_node_at_once);
    tcase_add_test(tcase, a_report_is_graded_and_its_results_are_on_every_node);
    tcase_add_test(tcase, a_message_to_the_leader_is_in_streams_of_every_node);
    tcase_add_loop_test(tcase, a_node_that_was_away_catches_up, 0, 2);
    tcase_add_test(tcase, a_new_node_gets_every_entry);
    tcase_add_test(tcase, a_follower_that_is_killed_at_random_skips_nothing);
    tcase_add_test(tcase, a_follower_with_a_full_disk_stops_and_goes_on);
    tcase_add_loop_test(tcase, times_and_ids_never_go_back, 0, COUNT(steps_ms));
}

int main(void)
{
    return three_nodes_main("following", add_tests);
}
