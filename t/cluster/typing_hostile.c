/*
 * Whoever has the key of the nodes and sends typing notices that are not valid, or too many of
 * them: it is disconnected, or its notices are dropped. The leader goes on.
 */
#include "core/ipc/typing_notice.h"
#include "t/kit/three_nodes.h"
#include "t/kit/tls_ends.h"

#include <poll.h>

enum { SOON_MS = 5000, FLOOD = 100000 };

static struct channel_tls_context *context;
static struct visitor v;
static struct ulid id;

static void begin(void)
{
    struct channel_tls_key key;
    for (size_t i = 0; i < sizeof(key.bytes); i++) /* as in t/kit/nodes.c */
        key.bytes[i] = (unsigned char)i;
    context = channel_tls_context_new(&key, CHANNEL_VERSION);
    ck_assert_ptr_nonnull(context);
    widget_make("*");
    v = visitor_new();
    ck_assert(ulid_parse((struct str){v.conversation, ULID_TEXT}, &id));
    nodes_catch_up(nodes);
}

static void end(void)
{
    channel_tls_context_free(context);
}

/* ---- a peer ---- */

static struct tls_end peer_of(unsigned i, enum frame_type first)
{
    struct tls_end peer;
    tls_connect(context, text("127.0.0.1:%u", nodes->node[i].port), &peer);
    channel_put(&peer.channel, first, 0, 0, (struct str){0});
    return peer;
}

static void turn(struct tls_end *peer)
{
    tls_turn((struct tls_end *const[]){peer}, 1, -1, 20);
}

static void send_all(struct tls_end *peer)
{
    for (int64_t deadline = now_ms() + SOON_MS; !peer->ended; turn(peer)) {
        ck_assert_int_lt(now_ms(), deadline);
        if (channel_tls_is_established(&peer->channel) && channel_pending(&peer->channel) == 0)
            return;
    }
}

static bool is_disconnected(void *arg)
{
    struct tls_end *peer = arg;
    turn(peer);
    return peer->ended;
}

/* ${arg}: a server. */
static bool shows(void *arg)
{
    struct response *r =
        http(arg, .key = operators, .path = text("/api/v1/conversations/%s", v.conversation));
    expect_status(r, 200);
    bool typing = bool_at(r, "data.visitor_typing");
    response_free(r);
    return typing;
}

static void expect_shown(void)
{
    for (unsigned i = 0; i < nodes->count; i++)
        ck_assert_msg(wait_until(shows, nodes->node[i].server, SOON_MS), "node %u\n%s", i,
                      nodes_logs(nodes));
}

/* ---- tests ---- */

static const struct {
    enum frame_type first, type;
    uint64_t left_ms, who;
    size_t bytes;
} invalid[] = {
    {FRAME_NOTICES, FRAME_TYPING, TYPING_MS + 1, TYPIST_VISITOR, ULID_BYTES},
    {FRAME_NOTICES, FRAME_TYPING, UINT64_MAX, TYPIST_VISITOR, ULID_BYTES},
    {FRAME_NOTICES, FRAME_TYPING, TYPING_MS, TYPISTS, ULID_BYTES},
    {FRAME_NOTICES, FRAME_TYPING, TYPING_MS, UINT64_MAX, ULID_BYTES},
    {FRAME_NOTICES, FRAME_TYPING, TYPING_MS, TYPIST_VISITOR, 0},
    {FRAME_NOTICES, FRAME_TYPING, TYPING_MS, TYPIST_VISITOR, ULID_BYTES - 1},
    {FRAME_NOTICES, FRAME_TYPING, TYPING_MS, TYPIST_VISITOR, sizeof(v)},
    {FRAME_NOTICES, FRAME_NOTICES, 0, 0, 0},
    {FRAME_NOTICES, FRAME_CHANGE, 1, 0, 0},
    {FRAME_HELLO, FRAME_TYPING, TYPING_MS, TYPIST_VISITOR, ULID_BYTES},
    {FRAME_TYPING, FRAME_TYPING, TYPING_MS, TYPIST_VISITOR, ULID_BYTES},
};

START_TEST(a_peer_with_invalid_notices_is_disconnected)
{
    char bytes[sizeof(v)] = {0};
    memcpy(bytes, &id, sizeof(id));
    for (size_t i = 0; i < COUNT(invalid); i++) {
        struct tls_end peer = peer_of(leader, invalid[i].first);
        channel_put(&peer.channel, invalid[i].type, invalid[i].left_ms, invalid[i].who,
                    (struct str){bytes, invalid[i].bytes});
        ck_assert_msg(wait_until(is_disconnected, &peer, SOON_MS), "case %zu", i);
        tls_end_close(&peer);
    }
    expect_says(leader, "disconnected a node: it sent an invalid frame");
    for (unsigned i = 0; i < nodes->count; i++)
        ck_assert(!shows(nodes->node[i].server));
    nodes_expect_equal(nodes);
}
END_TEST

START_TEST(a_node_that_follows_takes_no_notices_of_peers)
{
    struct tls_end peer = peer_of(follower(0), FRAME_NOTICES);
    typing_notice_put(&peer.channel, &(struct typing_notice){id, TYPIST_VISITOR, TYPING_MS});
    ck_assert(wait_until(is_disconnected, &peer, SOON_MS));
    ck_assert(!shows(follower_server(0)));
    tls_end_close(&peer);
}
END_TEST

START_TEST(a_flood_of_notices_delays_nothing)
{
    struct tls_end peer = peer_of(leader, FRAME_NOTICES);
    typing_notice_put(&peer.channel, &(struct typing_notice){id, TYPIST_VISITOR, TYPING_MS});
    send_all(&peer);
    expect_shown();
    for (int i = 0; i < FLOOD; i++) {
        const struct typing_notice notice = {
            {{(uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16)}}, TYPIST_VISITOR, TYPING_MS};
        if (i % 1000 == 0)
            send_all(&peer);
        typing_notice_put(&peer.channel, &notice);
    }
    send_all(&peer);
    ck_assert(!peer.ended);
    created("meanwhile");
    nodes_catch_up(nodes);
    server = follower_server(0);
    expect_status(post(&v, "typing", NULL), 200);
    expect_shown();
    tls_end_close(&peer);
    nodes_expect_equal(nodes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, a_peer_with_invalid_notices_is_disconnected);
    tcase_add_test(tcase, a_node_that_follows_takes_no_notices_of_peers);
    tcase_add_test(tcase, a_flood_of_notices_delays_nothing);
}

int main(void)
{
    return three_nodes_main("typing_hostile", add_tests);
}
