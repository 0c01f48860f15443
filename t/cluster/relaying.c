/* Changes that clients send to a node that follows: it relays them to the leader. */
#include "t/kit/three_nodes.h"

#include <poll.h>
#include <signal.h>

enum { KILLS = 16 };

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

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_follower_answers_when_it_has_the_change);
    tcase_add_test(tcase, a_read_with_the_position_of_a_change_shows_it);
    tcase_add_test(tcase, a_repeated_key_is_recognised_on_every_node);
    tcase_add_test(tcase, a_held_post_on_a_follower_ends_with_its_grading);
    tcase_add_test(tcase, a_visitor_and_an_operator_meet_on_followers);
    tcase_add_test(tcase, a_relayed_change_happens_once_when_a_writer_dies);
}

int main(void)
{
    return three_nodes_main("relaying", add_tests);
}
