/*
 * Frames between nodes over TLS: all sizes, full sockets, streams that are split, damaged or cut
 * anywhere, and floods. The program renews its keys every few records (TLS_KEY_RECORDS).
 */
#include "t/kit/suite.h"
#include "t/kit/tls_ends.h"
#include "t/kit/tls_peer.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SHIFTS 251

static struct channel_tls_context *context;
static struct tls_end a, b; /* a: the client */
static int listener;
static char address[64];
static char *pattern; /* frame i has the bytes from i % SHIFTS on */

static void setup(void)
{
    struct channel_tls_key key = tls_key(7);
    pattern = malloc(FRAME_MAX_PAYLOAD + SHIFTS);
    ck_assert_int_eq(RAND_bytes((unsigned char *)pattern, FRAME_MAX_PAYLOAD + SHIFTS), 1);
    context = channel_tls_context_new(&key, CHANNEL_VERSION);
    ck_assert_ptr_nonnull(context);
}

static void teardown(void)
{
    tls_end_close(&a);
    tls_end_close(&b);
    channel_tls_context_free(context);
    free(pattern);
}

static void link_ends(int buffer)
{
    listener = tls_listen(address, buffer);
    tls_connect(context, address, &a);
    tls_accept(context, listener, &b);
    if (buffer > 0)
        setsockopt(a.channel.fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
    close(listener);
}

static void put(struct tls_end *end, uint64_t i, size_t size)
{
    channel_put(&end->channel, FRAME_CHANGE, i, size, (struct str){pattern + i % SHIFTS, size});
}

static void expect_in_order(struct tls_end *end, const struct frame *f)
{
    ck_assert_uint_eq(f->head.type, FRAME_CHANGE);
    ck_assert_uint_eq(f->head.a, end->frames);
    ck_assert_uint_eq(f->head.b, f->payload.n);
    ck_assert_int_eq(memcmp(f->payload.p, pattern + f->head.a % SHIFTS, f->payload.n), 0);
}

/* ---- whole streams ---- */

static const size_t sizes[] = {0,     1,     2,     300,    4096,     16359,    16360,
                               16361, 16384, 65536, 100000, 1u << 20, 5u << 20, FRAME_MAX_PAYLOAD};

START_TEST(frames_of_all_sizes_cross_in_both_directions)
{
    link_ends(0);
    a.on_frame = b.on_frame = expect_in_order;
    for (uint64_t i = 0; i < COUNT(sizes); i++) {
        put(&a, i, sizes[i]);
        put(&b, i, sizes[COUNT(sizes) - 1 - i]);
    }
    while (a.frames < COUNT(sizes) || b.frames < COUNT(sizes))
        tls_turn2(&a, &b);
    ck_assert_uint_eq(channel_pending(&a.channel) + channel_pending(&b.channel), 0);
    ck_assert_str_eq(channel_tls_why(&a.channel), "");
}
END_TEST

START_TEST(full_sockets_keep_the_rest_until_read)
{
    uint64_t count = 400;
    link_ends(8192);
    a.on_frame = b.on_frame = expect_in_order;
    for (uint64_t i = 0; i < count; i++) {
        put(&a, i, i * 13);
        put(&b, i, i * 7);
    }
    while (!channel_tls_is_established(&a.channel) || !channel_tls_is_established(&b.channel))
        tls_turn2(&a, &b);
    while (channel_flush(&a.channel) == 0)
        ck_assert_uint_gt(channel_pending(&a.channel), 0);
    while (a.frames < count || b.frames < count)
        tls_turn2(&a, &b);
}
END_TEST

START_TEST(frames_before_the_handshake_wait_without_watching_output)
{
    link_ends(0);
    put(&a, 0, 300);
    while (channel_flush(&a.channel) == 1)
        ;
    ck_assert_int_eq(channel_flush(&a.channel), 0);
    ck_assert_uint_ge(channel_pending(&a.channel), 300);
    ck_assert(!channel_tls_is_established(&a.channel));
    while (b.frames < 1)
        tls_turn2(&a, &b);
    ck_assert(channel_tls_is_established(&a.channel) && channel_tls_is_established(&b.channel));
}
END_TEST

START_TEST(a_closed_peer_is_reported_after_its_frames)
{
    link_ends(0);
    b.on_frame = expect_in_order;
    put(&a, 0, 300);
    put(&a, 1, 70000);
    while (channel_pending(&a.channel) > 0)
        tls_turn2(&a, &b);
    tls_end_close(&a);
    a.ended = true;
    while (!b.ended)
        tls_turn2(&a, &b);
    ck_assert_uint_eq(b.frames, 2);
    ck_assert_str_eq(b.why, "the other side closed the connection");
    ck_assert_int_eq(channel_flush(&b.channel), -1);
    ck_assert_int_eq(channel_read(&b.channel), -1);
}
END_TEST

/* a signal handler must not call OpenSSL */
START_TEST(nothing_is_sent_past_tls)
{
    link_ends(0);
    while (!channel_tls_is_established(&b.channel))
        tls_turn2(&a, &b);
    channel_send_now(&a.channel, FRAME_SUSPECT, 1);
    put(&a, 0, 10);
    b.on_frame = expect_in_order;
    while (b.frames < 1)
        tls_turn2(&a, &b);
}
END_TEST

/* ---- streams through a relay ---- */

/* Between two sockets. It damages and cuts what the client sends. */
struct relay {
    int client, server;
    size_t most;                       /* of a piece */
    size_t passed, cut_at, damaged_at; /* bytes of the client; SIZE_MAX: never */
};

static size_t random_below(size_t n)
{
    return (size_t)random() % n;
}

/* the client ends at the relay and so does the server */
static struct relay link_by_relay(size_t most)
{
    int pair[2];
    struct relay r = {.most = most, .cut_at = SIZE_MAX, .damaged_at = SIZE_MAX};
    listener = tls_listen(address, 0);
    tls_connect(context, address, &a);
    r.client = accept(listener, NULL, NULL);
    close(listener);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    r.server = pair[0];
    b = (struct tls_end){0};
    ck_assert(channel_tls_accept(context, &b.channel, pair[1]));
    a.on_frame = b.on_frame = expect_in_order;
    return r;
}

static void relay_close(struct relay *r)
{
    close(r->client);
    close(r->server);
    r->client = r->server = -1;
}

/* One piece. False: nothing was there, or is taken. */
static bool pass(struct relay *r, int from, int to)
{
    char bytes[4096];
    bool is_client = from == r->client;
    size_t most = 1 + random_below(r->most < sizeof(bytes) ? r->most : sizeof(bytes));
    if (is_client && r->cut_at - r->passed < most)
        most = r->cut_at - r->passed;
    ssize_t n = most == 0 ? 0 : recv(from, bytes, most, MSG_PEEK | MSG_DONTWAIT);
    if (n <= 0)
        return false;
    if (is_client && r->damaged_at >= r->passed && r->damaged_at < r->passed + (size_t)n)
        bytes[r->damaged_at - r->passed] ^= (char)(1 << random_below(8));
    n = send(to, bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0 || recv(from, bytes, (size_t)n, MSG_DONTWAIT) != n)
        return false;
    r->passed += is_client ? (size_t)n : 0;
    return true;
}

static bool relay_turn(struct relay *r)
{
    bool some = tls_turn((struct tls_end *const[]){&a, &b}, 2, -1, 0);
    some = pass(r, r->client, r->server) || some;
    return pass(r, r->server, r->client) || some;
}

/* until nothing moves any more; then cut it, and both sides notice */
static void relay_until_quiet(struct relay *r)
{
    while (relay_turn(r))
        ;
    relay_close(r);
    while (!a.ended || !b.ended)
        tls_turn2(&a, &b);
    ck_assert_str_ne(a.why, "");
    ck_assert_str_ne(b.why, "");
}

static void relay_end(void)
{
    tls_end_close(&a);
    tls_end_close(&b);
}

/* What a client sends from its first byte to the end of its frame. */
static size_t bytes_of_a_frame(size_t size)
{
    struct relay r = link_by_relay(4096);
    put(&a, 0, size);
    while (b.frames < 1)
        relay_turn(&r);
    size_t n = r.passed;
    relay_close(&r);
    relay_end();
    return n;
}

START_TEST(a_stream_cut_at_any_byte_delivers_no_partial_frame)
{
    size_t all = bytes_of_a_frame(300);
    ck_assert_uint_gt(all, 600);
    for (size_t at = 0; at <= all; at++) {
        struct relay r = link_by_relay(4096);
        r.cut_at = at;
        put(&a, 0, 300);
        relay_until_quiet(&r);
        ck_assert_uint_eq(r.passed, at);
        ck_assert_uint_eq(b.frames, at == all);
        relay_end();
    }
}
END_TEST

/* A bit that nobody reads may be damaged: the version in the head of a record. */
START_TEST(a_stream_damaged_at_any_byte_delivers_no_other_frame)
{
    size_t all = bytes_of_a_frame(300), delivered = 0;
    for (size_t at = 0; at < all; at++) {
        struct relay r = link_by_relay(4096);
        r.damaged_at = at;
        put(&a, 0, 300);
        relay_until_quiet(&r);
        delivered += b.frames;
        relay_end();
    }
    ck_assert_uint_le(delivered, 12);
}
END_TEST

START_TEST(streams_split_anywhere_arrive_whole)
{
    srandom((unsigned)_i);
    for (unsigned round = 0; round < 4; round++) {
        struct relay r = link_by_relay(1u << random_below(12));
        uint64_t count = 1 + random_below(40);
        for (uint64_t i = 0; i < count; i++) {
            put(&a, i, random_below(1u << random_below(15)));
            put(&b, i, random_below(1u << random_below(15)));
        }
        while (a.frames < count || b.frames < count) {
            relay_turn(&r);
            ck_assert_msg(!a.ended && !b.ended, "seed %d: \"%s\", \"%s\"", _i, a.why, b.why);
        }
        relay_close(&r);
        relay_end();
    }
}
END_TEST

START_TEST(streams_split_and_damaged_anywhere_deliver_a_prefix)
{
    srandom((unsigned)_i);
    for (unsigned round = 0; round < 4; round++) {
        struct relay r = link_by_relay(1u << random_below(12));
        uint64_t count = 10 + random_below(40);
        for (uint64_t i = 0; i < count; i++) {
            put(&a, i, 100 + random_below(2000));
            put(&b, i, random_below(2000));
        }
        *(random_below(2) == 0 ? &r.cut_at : &r.damaged_at) = random_below(1000 + count * 100);
        relay_until_quiet(&r);
        ck_assert_uint_lt(b.frames, count);
        relay_end();
    }
}
END_TEST

/* ---- peers that have the key and misbehave ---- */

static char identity[32];
static struct tls_peer_kind node = {.identity = identity, .fill = 7};

static void link_peer(struct tls_peer *peer)
{
    char bytes[4096];
    int pair[2];
    snprintf(identity, sizeof(identity), "assay-channel-%d", CHANNEL_VERSION);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    tls_peer_begin(&node, pair[0], peer);
    b = (struct tls_end){0};
    ck_assert(channel_tls_accept(context, &b.channel, pair[1]));
    while (!channel_tls_is_established(&b.channel)) {
        tls_peer_turn(peer, bytes, sizeof(bytes));
        tls_turn((struct tls_end *const[]){&b}, 1, -1, 0);
        ck_assert_msg(!b.ended, "%s", b.why);
    }
}

static void turn_b(void)
{
    tls_turn((struct tls_end *const[]){&b}, 1, -1, 0);
}

START_TEST(a_malformed_frame_ends_the_channel)
{
    struct tls_peer peer;
    struct frame_head head = {FRAME_MAX_PAYLOAD + 1, FRAME_CHANGE, 0, 0};
    link_peer(&peer);
    ck_assert_int_eq(SSL_write(peer.ssl, &head, sizeof(head)), sizeof(head));
    while (!b.ended)
        turn_b();
    tls_peer_close(&peer);
}
END_TEST

START_TEST(garbage_after_the_handshake_ends_the_channel)
{
    struct tls_peer peer;
    link_peer(&peer);
    ck_assert_int_eq(send(SSL_get_fd(peer.ssl), "\x17\x03\x03\x00\x20garbage", 12, 0), 12);
    ck_assert_int_eq(send(SSL_get_fd(peer.ssl), pattern, 1000, 0), 1000);
    while (!b.ended)
        turn_b();
    ck_assert_str_ne(b.why, "");
    ck_assert_uint_eq(b.frames, 0);
    tls_peer_close(&peer);
}
END_TEST

START_TEST(a_peer_that_dies_is_reported)
{
    struct tls_peer peer;
    link_peer(&peer);
    tls_peer_close(&peer);
    while (!b.ended)
        turn_b();
    ck_assert_str_eq(b.why, "the connection ended without a close_notify: the other side died, or "
                            "the network cut the connection");
}
END_TEST

/* until the socket is full; ${at}: how much of an endless row of largest frames was sent */
static void send_largest_frames(struct tls_peer *peer, size_t *at)
{
    static const struct frame_head head = {FRAME_MAX_PAYLOAD, FRAME_CHANGE, 0, FRAME_MAX_PAYLOAD};
    size_t sent;
    do {
        bool in_head = *at < sizeof(head);
        const char *from = in_head ? (const char *)&head + *at : pattern + *at - sizeof(head);
        size_t left = (in_head ? sizeof(head) : sizeof(head) + FRAME_MAX_PAYLOAD) - *at;
        if (SSL_write_ex(peer->ssl, from, left, &sent) != 1)
            return;
        *at = (*at + sent) % (sizeof(head) + FRAME_MAX_PAYLOAD);
    } while (sent > 0);
}

static size_t unread(const struct channel *c)
{
    return c->in.n - c->in_at;
}

START_TEST(a_flood_of_frames_is_read_in_bounded_steps_and_memory)
{
    struct tls_peer peer;
    struct frame f;
    size_t at = 0, before = 0;
    link_peer(&peer);
    SSL_set_mode(peer.ssl, SSL_MODE_ENABLE_PARTIAL_WRITE);
    for (unsigned frames = 0; frames < 4;) {
        send_largest_frames(&peer, &at);
        before = unread(&b.channel);
        ck_assert_int_ge(channel_read(&b.channel), 0);
        ck_assert(before > 0 || unread(&b.channel) > 80u << 10); /* all that was there */
        ck_assert(before <= FRAME_MAX_PAYLOAD || unread(&b.channel) - before <= 80u << 10);
        frames += before > FRAME_MAX_PAYLOAD && channel_next(&b.channel, &f) == 1;
        ck_assert_uint_le(b.channel.in.cap, (size_t)3 * FRAME_MAX_PAYLOAD);
    }
    tls_peer_close(&peer);
}
END_TEST

/* each asks for an answer that the peer does not read */
START_TEST(a_flood_of_key_updates_ends_the_channel)
{
    struct tls_peer peer;
    link_peer(&peer);
    for (unsigned i = 0; i < 100000 && !b.ended; i++) {
        SSL_key_update(peer.ssl, SSL_KEY_UPDATE_REQUESTED);
        SSL_do_handshake(peer.ssl);
        turn_b();
        ck_assert_uint_le(channel_pending(&b.channel), 64u << 10);
        ck_assert_uint_le(b.channel.in.cap, 64u << 10);
    }
    ck_assert_str_eq(b.why, "the other side requests key updates and does not read the answers");
    tls_peer_close(&peer);
}
END_TEST

/* _i: how often the peer asks for a new key before each frame */
START_TEST(keys_are_renewed_and_no_tickets_are_sent)
{
    struct tls_peer peer;
    char bytes[4096];
    unsigned renewed = 20 / TLS_KEY_RECORDS - 1;
    link_peer(&peer);
    for (uint64_t i = 0; i < 20; i++) {
        for (int k = 0; k < _i; k++) {
            ck_assert_int_eq(SSL_key_update(peer.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
            ck_assert_int_eq(SSL_do_handshake(peer.ssl), 1);
        }
        turn_b();
        put(&b, i, 100);
        turn_b();
    }
    for (int n, got = 0; got<20 * 124; got += n> 0 ? n : 0)
        n = tls_peer_turn(&peer, bytes, sizeof(bytes));
    ck_assert_str_eq(b.why, "");
    ck_assert_uint_ge(peer.received[SSL3_MT_KEY_UPDATE], _i == 0 ? renewed : 20);
    ck_assert_uint_eq(peer.received[SSL3_MT_NEWSESSION_TICKET], 0);
    tls_peer_close(&peer);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel_tls");
    TCase *t = tcase_create("channel_tls");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, frames_of_all_sizes_cross_in_both_directions);
    tcase_add_test(t, full_sockets_keep_the_rest_until_read);
    tcase_add_test(t, frames_before_the_handshake_wait_without_watching_output);
    tcase_add_test(t, a_closed_peer_is_reported_after_its_frames);
    tcase_add_test(t, nothing_is_sent_past_tls);
    tcase_add_test(t, a_stream_cut_at_any_byte_delivers_no_partial_frame);
    tcase_add_test(t, a_stream_damaged_at_any_byte_delivers_no_other_frame);
    tcase_add_loop_test(t, streams_split_anywhere_arrive_whole, 0, 4);
    tcase_add_loop_test(t, streams_split_and_damaged_anywhere_deliver_a_prefix, 0, 8);
    tcase_add_test(t, a_peer_that_dies_is_reported);
    tcase_add_test(t, a_malformed_frame_ends_the_channel);
    tcase_add_test(t, garbage_after_the_handshake_ends_the_channel);
    tcase_add_test(t, a_flood_of_frames_is_read_in_bounded_steps_and_memory);
    tcase_add_test(t, a_flood_of_key_updates_ends_the_channel);
    tcase_add_loop_test(t, keys_are_renewed_and_no_tickets_are_sent, 0, 3);
    suite_add_tcase(s, t);
    return suite_run(s);
}
