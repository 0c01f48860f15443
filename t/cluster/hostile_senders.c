/*
 * Whoever has the key of the nodes and sends more changes than a node does: it is disconnected, and
 * neither the log nor changes of other senders suffer from it.
 */
#include "t/kit/supervisor.h"
#include "t/kit/three_nodes.h"
#include "t/kit/tls_ends.h"

#include <signal.h>

enum { SOON_MS = 10000, FLOOD = 400000, PEERS = 8 };

static struct channel_tls_context *context;

static void begin(void)
{
    struct channel_tls_key key;
    for (size_t i = 0; i < sizeof(key.bytes); i++) /* as in t/kit/nodes.c */
        key.bytes[i] = (unsigned char)i;
    context = channel_tls_context_new(&key, CHANNEL_VERSION);
    ck_assert_ptr_nonnull(context);
}

static void end(void)
{
    channel_tls_context_free(context);
}

static struct tls_end peer_of(unsigned i, uint64_t sender)
{
    struct tls_end peer;
    tls_connect(context, text("127.0.0.1:%u", nodes->node[i].port), &peer);
    channel_put(&peer.channel, FRAME_HELLO, sender, 0, (struct str){0});
    return peer;
}

static void turn(struct tls_end *peer)
{
    tls_turn((struct tls_end *const[]){peer}, 1, -1, 5);
}

static bool is_disconnected(void *arg)
{
    struct tls_end *peer = arg;
    turn(peer);
    return peer->ended;
}

/* It confirms answers before they come. The leader takes what fits into the window. */
START_TEST(a_flood_of_changes_makes_no_large_entry)
{
    struct tls_end peer = peer_of(leader, 1);
    for (uint64_t i = 1; i <= FLOOD; i++)
        channel_put(&peer.channel, FRAME_CHANGE, i, i - 1, (struct str){0});
    bool ended = wait_until(is_disconnected, &peer, SOON_MS);
    created("meanwhile");
    nodes_catch_up(nodes);
    char *largest = postgres_query(nodes->log, "SELECT max(length(rows)) FROM assay_log");
    fprintf(stderr, "the largest entry has %s bytes\n", largest);
    ck_assert_int_lt(atoi(largest), 1 << 20);
    ck_assert(ended);
    expect_says(leader, "disconnected a node: it sent an invalid frame");
    tls_end_close(&peer);
    nodes_expect_equal(nodes);
}
END_TEST

static struct tls_end peers[PEERS];
static uint64_t entries[PEERS]; /* of the last answer of each */

static void note_answer(struct tls_end *peer, const struct frame *frame)
{
    ck_assert_uint_eq(frame->head.type, FRAME_ANSWER);
    entries[peer - peers] = frame->head.b;
}

/* ${arg}: how many changes of each peer are answered. */
static bool are_answered(void *arg)
{
    const uint64_t *count = arg;
    bool all = true;
    for (unsigned i = 0; i < PEERS; i++) {
        turn(&peers[i]);
        ck_assert_msg(!peers[i].ended, "%s", peers[i].why);
        all = all && peers[i].frames == *count;
    }
    return all;
}

static bool are_sent(void *arg)
{
    bool all = true;
    (void)arg;
    for (unsigned i = 0; i < PEERS; i++) {
        turn(&peers[i]);
        all = all && channel_pending(&peers[i].channel) == 0;
    }
    return all;
}

/* Changes of these numbers from each. */
static void put_all(uint64_t first, uint64_t last)
{
    for (unsigned i = 0; i < PEERS; i++)
        for (uint64_t k = first; k <= last; k++)
            channel_put(&peers[i].channel, FRAME_CHANGE, k, first - 1, (struct str){0});
}

/* A window of each of them, which are all there when the writer wakes. */
START_TEST(many_senders_share_several_batches)
{
    uint64_t count = 1;
    const pid_t writer = node_writer(nodes, leader);
    for (unsigned i = 0; i < PEERS; i++) {
        peers[i] = peer_of(leader, 1 + i);
        peers[i].on_frame = note_answer;
    }
    put_all(1, 1);
    ck_assert(wait_until(are_answered, &count, SOON_MS));
    process_stop(writer);
    put_all(2, count += CHANNEL_WINDOW);
    ck_assert(wait_until(are_sent, NULL, SOON_MS));
    kill(writer, SIGCONT);
    ck_assert(wait_until(are_answered, &count, 3 * SOON_MS));
    bool several = false;
    for (unsigned i = 0; i < PEERS; i++) {
        several = several || entries[i] != entries[0];
        tls_end_close(&peers[i]);
    }
    ck_assert(several);
    nodes_expect_equal(nodes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, a_flood_of_changes_makes_no_large_entry);
    tcase_add_test(tcase, many_senders_share_several_batches);
}

int main(void)
{
    return three_nodes_main("hostile_senders", add_tests);
}
