/* Changes that clients send to a node that follows: it relays them to the leader. */
#include "t/kit/three_nodes.h"

#include <poll.h>
#include <signal.h>

enum { KILLS = 16, CUTS = 24, SILENCES = 4 };

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

/* A client that takes the position of its change along reads it on any node. */
START_TEST(a_read_with_the_position_of_a_change_shows_it)
{
    for (unsigned i = 0; i < 60; i++) {
        struct response *r = create_on(i % nodes->count, text("%u", i), NULL);
        expect_status(r, 202);
        const char *position = header(r, "X-Assay-Position");
        expect(r, position != NULL);
        expect_status(http(nodes->node[(i + 1) % nodes->count].server,
                           .path = report_path(int_at(r, "data.id")),
                           .headers = {text("X-Assay-Position: %s", position)}),
                      200);
    }
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
    struct raw *raw = stream_open(follower_server(1), &v);
    for (int k = 0; k < 10; k++) {
        char *body = text("{\"message\":\"answer %d\"}", k);
        expect_status(operate("POST", text("conversations/%s/messages", v.conversation), body),
                      201);
        stream_expect(raw, text("\"content\":\"answer %d\"", k));
    }
    nodes_expect_equal(nodes);
}
END_TEST

/* The relay is lost with the writer of either end; the change is repeated, and happens once. */
START_TEST(a_relayed_change_happens_once_when_a_writer_dies)
{
    for (int i = 0; i < KILLS; i++) {
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
        ck_assert_int_eq(total_on(i), KILLS);
    nodes_expect_equal(nodes);
}
END_TEST

/* ---- a relay that is lost, while both writers live ---- */

static void expect_once(const char *name)
{
    for (unsigned i = 0; i < nodes->count; i++)
        expect_int(
            http_get(nodes->node[i].server, text("/api/v1/reports?search=127.0.0.9/%s", name)),
            "meta.total", 1);
}

/* Columns: the direction that is cut, how many more bytes of it pass in the first round. */
static const struct {
    enum fault_side side;
    unsigned bytes;
} cuts[] = {{TO_SERVER, 1}, {TO_CLIENT, 1}};

/*
 * The cut is within the frame of the change, or of its answer: a few bytes of it have passed. What
 * the auditors of the node say over their relays may take the cut; then the change is sent again.
 */
START_TEST(a_relayed_change_happens_once_when_its_relay_is_cut_within_a_frame)
{
    struct fault_proxy *relay = nodes->node[leader].relay;
    unsigned from = follower(0), cut = 0;
    warm_up(from);
    for (unsigned i = 0; i < CUTS; i++) {
        char *name = text("cut%u.", i);
        unsigned before = fault_proxy_cuts(relay);
        fault_proxy_cut_after(relay, cuts[_i].side, cuts[_i].bytes + 5 * i);
        expect_status(create_on(from, name, NULL), 202);
        cut += fault_proxy_cuts(relay) > before;
        fault_proxy_pass(relay);
        nodes_catch_up(nodes);
        expect_once(name);
    }
    fprintf(stderr, "%u of %u relays were cut before the answer\n", cut, CUTS);
    ck_assert_uint_ge(cut, CUTS / 2);
    nodes_expect_equal(nodes);
}
END_TEST

/* The second is longer than a relay waits for an acknowledgement. */
static const int silences_ms[] = {1500, 11500};

/* Packets are lost for a while: TCP sends them again, or the relay is given up. */
START_TEST(a_relayed_change_happens_once_when_its_relay_is_silent)
{
    struct fault_proxy *relay = nodes->node[leader].relay;
    struct raw *raws[SILENCES];
    unsigned from = follower(0);
    warm_up(from);
    fault_proxy_drop(relay);
    for (int i = 0; i < SILENCES; i++) {
        raws[i] = raw_open(nodes->node[from].server);
        raw_post(raws[i], nodes->key, "Prefer: respond-async\r\n",
                 form("url", text("http://127.0.0.9/silent%d.", i), NULL));
    }
    ck_assert_uint_eq(raw_response(raws[0], false, silences_ms[_i])->status, 0);
    int64_t id = created("meanwhile"); /* the leader itself is not cut off */
    fault_proxy_pass(relay);
    for (int i = 0; i < SILENCES; i++)
        expect_status(raw_response(raws[i], false, 2 * SAYS_MS), 202);
    nodes_catch_up(nodes);
    for (int i = 0; i < SILENCES; i++)
        expect_once(text("silent%d.", i));
    expect_status(http_get(nodes->node[from].server, report_path(id)), 200);
    nodes_expect_equal(nodes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_follower_answers_when_it_has_the_change);
    tcase_add_test(tcase, a_read_with_the_position_of_a_change_shows_it);
    tcase_add_test(tcase, a_repeated_key_is_recognised_on_every_node);
    tcase_add_test(tcase, a_held_post_on_a_follower_ends_with_its_grading);
    tcase_add_test(tcase, a_visitor_and_an_operator_meet_on_followers);
    tcase_add_test(tcase, a_relayed_change_happens_once_when_a_writer_dies);
    tcase_add_loop_test(tcase, a_relayed_change_happens_once_when_its_relay_is_cut_within_a_frame,
                        0, COUNT(cuts));
    tcase_add_loop_test(tcase, a_relayed_change_happens_once_when_its_relay_is_silent, 0,
                        COUNT(silences_ms));
}

int main(void)
{
    three_nodes_options.relay_proxies = true;
    return three_nodes_main("relaying", add_tests);
}
