/*
 * Who types shows on every node, ends there by itself, and is in no log. Nodes with wrong clocks,
 * a new leader, and a node that was stopped.
 */
#include "t/kit/three_nodes.h"

#include <poll.h>

enum { SOON_MS = 5000, LASTS_MS = 5000, DAY_MS = 86400000, MANY = 400 };

static const char on[] = "{\"typing_status\":\"on\"}", off[] = "{\"typing_status\":\"off\"}";
static const char visitor_types[] = "data.visitor_typing",
                  operator_types[] = "data.operator_typing";
static struct visitor v;

static void begin(void)
{
    widget_make("*");
    v = visitor_new();
    nodes_catch_up(nodes);
}

static void set_typing(unsigned i, const char *who, const char *status)
{
    server = nodes->node[i].server;
    expect_status(who == visitor_types
                      ? post(&v, "typing", status)
                      : operate("POST", text("conversations/%s/typing", v.conversation), status),
                  200);
}

struct sight {
    unsigned node;
    const char *who;
    bool types;
};

static bool is_seen(void *arg)
{
    const struct sight *sight = arg;
    struct response *r = http(nodes->node[sight->node].server, .key = operators,
                              .path = text("/api/v1/conversations/%s", v.conversation));
    expect_status(r, 200);
    bool seen = bool_at(r, sight->who) == sight->types;
    response_free(r);
    if (!seen)
        poll(NULL, 0, 20);
    return seen;
}

static void expect_seen(unsigned i, const char *who, bool types, int within_ms)
{
    ck_assert_msg(wait_until(is_seen, &(struct sight){i, who, types}, within_ms),
                  "node %u: %s is not %d\n%s", i, who, types, nodes_logs(nodes));
}

static void expect_on_all(const char *who, bool types)
{
    for (unsigned i = 0; i < nodes->count; i++)
        if (nodes->node[i].server->pid > 0 && !nodes->node[i].paused)
            expect_seen(i, who, types, SOON_MS);
}

/* ${arg}: a node. Does it show who types through the others? */
static bool reaches(void *arg)
{
    const struct sight *sight = arg;
    for (unsigned i = 0; i < nodes->count; i++)
        if (i != sight->node && nodes->node[i].server->pid > 0)
            set_typing(i, sight->who, on);
    poll(NULL, 0, 100);
    return is_seen(arg);
}

/* ${arg}: a node. One that was just started has not read the log yet. */
static bool serves(void *arg)
{
    struct response *r = http(arg, .key = operators, .may_fail = true,
                              .path = text("/api/v1/conversations/%s", v.conversation));
    bool served = r->status == 200;
    response_free(r);
    return served;
}

/* Notices are lost while a node connects. */
static void expect_connected(void)
{
    for (unsigned i = 0; i < nodes->count; i++)
        if (nodes->node[i].server->pid > 0)
            ck_assert(wait_until(serves, nodes->node[i].server, SAYS_MS));
    for (unsigned i = 0; i < nodes->count; i++) {
        if (nodes->node[i].server->pid == 0)
            continue;
        set_typing(i, operator_types, off);
        ck_assert_msg(wait_until(reaches, &(struct sight){i, operator_types, true}, SAYS_MS),
                      "node %u gets no notices\n%s", i, nodes_logs(nodes));
    }
    set_typing(leader, operator_types, off);
    expect_on_all(operator_types, false);
}

/* Each worker writes a note. What it wrote at the first use of a key comes before. */
static void write_notes(unsigned i)
{
    server = nodes->node[i].server;
    for (unsigned j = 0; j < WARM_UPS; j++)
        expect_status(operate("POST", text("conversations/%s/notes", v.conversation),
                              "{\"note\":\"walrus\"}"),
                      201);
}

START_TEST(typing_through_any_node_shows_on_all_and_stops_on_all)
{
    struct raw *streams[NODES_MAX];
    expect_connected();
    for (unsigned i = 0; i < nodes->count; i++)
        write_notes(i);
    uint64_t entries = nodes_entries(nodes);
    for (unsigned i = 0; i < nodes->count; i++)
        streams[i] = stream_open(nodes->node[i].server, &v);
    for (unsigned from = 0; from < nodes->count; from++) {
        set_typing(from, visitor_types, on);
        expect_on_all(visitor_types, true);
        set_typing(from, visitor_types, off);
        set_typing(from, operator_types, on);
        for (unsigned i = 0; i < nodes->count; i++)
            stream_expect(streams[i], "event: typing\ndata: {\"typing\":true}\n\n");
        set_typing((from + 1) % nodes->count, operator_types, off);
        for (unsigned i = 0; i < nodes->count; i++)
            stream_expect(streams[i], "event: typing\ndata: {\"typing\":false}\n\n");
        expect_on_all(visitor_types, false);
    }
    ck_assert_uint_eq(nodes_entries(nodes), entries);
    nodes_expect_equal(nodes);
}
END_TEST

static bool ends_on_one(void *arg)
{
    for (unsigned i = 0; i < nodes->count; i++)
        if (is_seen(&(struct sight){i, arg, false}))
            return true;
    return false;
}

static const int64_t offsets_ms[] = {0, DAY_MS, -(int64_t)DAY_MS};

/* One node has another clock than the rest. */
START_TEST(typing_lasts_equally_long_on_every_node)
{
    unsigned wrong = follower(0);
    node_stop(nodes, wrong);
    start_with_clock(wrong, offsets_ms[_i]);
    expect_connected();
    for (unsigned j = 0; j < 2; j++) {
        int64_t before = now_ms();
        set_typing(j == 0 ? wrong : follower(1), operator_types, on);
        int64_t since = now_ms();
        expect_on_all(operator_types, true);
        ck_assert(wait_until(ends_on_one, (void *)operator_types, LASTS_MS + SOON_MS));
        ck_assert_int_ge(now_ms() - before, LASTS_MS);
        expect_on_all(operator_types, false);
        ck_assert_int_lt(now_ms() - since, LASTS_MS + SOON_MS);
    }
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(typing_shows_with_the_next_leader)
{
    unsigned killed = leader;
    expect_connected();
    node_kill(nodes, killed);
    leader = nodes_await_leader(nodes, (int)killed);
    expect_connected();
    node_start(nodes, killed);
    expect_connected();
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(a_stopped_node_delays_no_other)
{
    unsigned stopped = follower(0), other = follower(1);
    expect_connected();
    node_pause(nodes, stopped);
    for (int i = 0; i < MANY; i++)
        set_typing(leader, operator_types, on);
    expect_on_all(operator_types, true);
    set_typing(other, operator_types, off);
    expect_on_all(operator_types, false);
    created("meanwhile");
    node_resume(nodes, stopped);
    expect_connected();
    nodes_expect_equal(nodes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, NULL);
    tcase_add_test(tcase, typing_through_any_node_shows_on_all_and_stops_on_all);
    tcase_add_loop_test(tcase, typing_lasts_equally_long_on_every_node, 0, COUNT(offsets_ms));
    tcase_add_test(tcase, typing_shows_with_the_next_leader);
    tcase_add_test(tcase, a_stopped_node_delays_no_other);
}

int main(void)
{
    return three_nodes_main("typing", add_tests);
}
