/*
 * Who does not get past the handshake of a channel between nodes, and what both logs say; mistakes
 * in the key file and in addresses.
 */
#include "t/kit/suite.h"
#include "t/kit/tls_ends.h"
#include "t/kit/tls_peer.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OURS 3 /* the version of the channel in these tests */
#define OTHER_KEY "the other side has another key"
#define NO_TLS "the other side does not speak TLS: it is not a node"
#define NO_TLS_1_3 "the other side does not speak TLS 1.3: it is not a node"
#define OTHER_VERSION "the other side does not speak this version of the channel"

static struct channel_tls_context *context;
static struct tls_end ours;
static int listener;
static char address[64];

static struct channel_tls_context *context_new(unsigned char fill, unsigned version)
{
    struct channel_tls_key key = tls_key(fill);
    struct channel_tls_context *made = channel_tls_context_new(&key, version);
    ck_assert_ptr_nonnull(made);
    return made;
}

static void setup(void)
{
    context = context_new(7, OURS);
    listener = tls_listen(address, 0);
    ours = (struct tls_end){.channel.fd = -1};
}

static void teardown(void)
{
    tls_end_close(&ours);
    channel_tls_context_free(context);
    close(listener);
}

static int socket_to_listener(void)
{
    struct sockaddr_in sa;
    socklen_t size = sizeof(sa);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&sa, &size), 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, size), 0);
    return fd;
}

static void expect_why(const struct tls_end *end, const char *start)
{
    ck_assert(end->ended && !channel_tls_is_established(&end->channel));
    ck_assert_uint_eq(end->frames, 0);
    ck_assert_msg(strncmp(end->why, start, strlen(start)) == 0, "\"%s\", not \"%s\"", end->why,
                  start);
}

/* ---- between nodes ---- */

/* Columns: key and version of the client's node; what the server's log and the client's say. */
static const struct {
    unsigned char fill;
    unsigned version;
    const char *server, *client;
} nodes[] = {
    {8, OURS, OTHER_KEY ": copy one cluster.key_file to every node", OTHER_KEY},
    {7, 4,
     "the other side speaks version 4 of the channel and this node version 3: install one "
     "version of Assay on every node",
     OTHER_VERSION},
    {7, 12345678, "the other side speaks version 12345678 of the channel", OTHER_VERSION},
    {7, 123456789, "the other side uses a key of another program", OTHER_VERSION},
    {8, 2, "the other side speaks version 2 of the channel", OTHER_VERSION},
};

START_TEST(nodes_of_another_key_or_version_read_why)
{
    struct channel_tls_context *theirs = context_new(nodes[_i].fill, nodes[_i].version);
    struct tls_end client;
    tls_connect(theirs, address, &client);
    channel_put(&client.channel, FRAME_HELLO, 1, 0, (struct str){0});
    tls_accept(context, listener, &ours);
    while (!client.ended || !ours.ended)
        tls_turn2(&client, &ours);
    expect_why(&ours, nodes[_i].server);
    expect_why(&client, nodes[_i].client);
    tls_end_close(&client);
    channel_tls_context_free(theirs);
}
END_TEST

/* ---- other programs ---- */

static void run_with_peer(struct tls_peer *peer)
{
    char bytes[4096];
    while (!ours.ended && !channel_tls_is_established(&ours.channel)) {
        tls_peer_turn(peer, bytes, sizeof(bytes));
        tls_turn((struct tls_end *const[]){&ours}, 1, -1, 0);
    }
}

/* Columns: a client, and what our server's log says. */
static const struct {
    struct tls_peer_kind kind;
    const char *why;
} clients[] = {
    {{.identity = NULL}, "the other side has no key: it is not a node"},
    {{.has_certificate = true}, "the other side has no key: it is not a node"},
    {{.tls_1_2 = true}, NO_TLS_1_3},
    {{.identity = "Client_identity", .fill = 7}, "the other side uses a key of another program"},
    {{.identity = "", .fill = 7}, "TLS failed: "},
    {{.identity = "assay-channel-", .fill = 7}, "the other side uses a key of another program"},
    {{.identity = "assay-channel-3x", .fill = 7}, "the other side uses a key of another program"},
    {{.identity = "assay-channel-03", .fill = 7}, "the other side speaks version 3"},
    {{.identity = "assay-channel-3", .fill = 8}, OTHER_KEY},
    {{.identity = "assay-channel-3", .fill = 7, .ciphers = "TLS_AES_256_GCM_SHA384"},
     "TLS failed: no shared cipher"},
};

START_TEST(another_client_is_refused)
{
    struct tls_peer peer;
    tls_peer_begin(&clients[_i].kind, socket_to_listener(), &peer);
    tls_accept(context, listener, &ours);
    run_with_peer(&peer);
    expect_why(&ours, clients[_i].why);
    tls_peer_close(&peer);
}
END_TEST

static const struct {
    struct tls_peer_kind kind;
    const char *why;
} servers[] = {
    {{.is_server = true}, NO_TLS_1_3},
    {{.is_server = true, .has_certificate = true}, "the other side sends a certificate"},
    {{.is_server = true, .has_certificate = true, .tls_1_2 = true}, NO_TLS_1_3},
    {{.is_server = true, .identity = "Client_identity"}, OTHER_VERSION},
    {{.is_server = true, .identity = "assay-channel-3", .fill = 8}, OTHER_KEY},
    {{.is_server = true, .identity = "assay-channel-3", .fill = 8, .has_certificate = true},
     OTHER_KEY},
};

START_TEST(another_server_is_refused)
{
    struct tls_peer peer;
    tls_connect(context, address, &ours);
    tls_peer_begin(&servers[_i].kind, accept(listener, NULL, NULL), &peer);
    run_with_peer(&peer);
    expect_why(&ours, servers[_i].why);
    tls_peer_close(&peer);
}
END_TEST

static const struct frame_head plain_hello = {0, FRAME_HELLO, 1, 0};
static const char zeros[70000];

/* Columns: bytes without TLS, whose sender then closes; what the log says. */
static const struct {
    struct str bytes;
    const char *why;
} plain[] = {
    {{"", 0}, "the other side closed the connection during the TLS handshake"},
    {{"\x16\x03\x01", 3}, "the other side closed the connection during the TLS handshake"},
    {{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11},
     "the other side closed the connection during the TLS handshake"},
    {{"GET / HTTP/1.1\r\n\r\n", 18}, NO_TLS},
    {{"SSH-2.0-OpenSSH_9.2\r\n", 21}, NO_TLS},
    {{"HTTP/1.1 400 Bad Request\r\n\r\n", 28}, NO_TLS},
    {{(const char *)&plain_hello, sizeof(plain_hello)}, NO_TLS},
    {{zeros, sizeof(zeros)}, NO_TLS},
    {{"\x16\x03\x01\xff\xff", 5}, "TLS failed: "},                 /* a record above the limit */
    {{"\x16\x03\x01\x00\x04\x01\xff\xff\xff", 9}, "TLS failed: "}, /* so is its message */
};

static void send_and_close(int fd, struct str bytes)
{
    ck_assert_int_eq(send(fd, bytes.p, bytes.n, 0), (int)bytes.n);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    while (!ours.ended)
        tls_turn((struct tls_end *const[]){&ours}, 1, -1, -1);
    close(fd);
}

START_TEST(a_client_without_tls_is_refused)
{
    int fd = socket_to_listener();
    tls_accept(context, listener, &ours);
    send_and_close(fd, plain[_i].bytes);
    expect_why(&ours, plain[_i].why);
}
END_TEST

START_TEST(a_server_without_tls_is_refused)
{
    tls_connect(context, address, &ours);
    send_and_close(accept(listener, NULL, NULL), plain[_i].bytes);
    ck_assert_str_ne(ours.why, "");
    if (strcmp(plain[_i].why, NO_TLS) == 0 || plain[_i].bytes.n == 0)
        expect_why(&ours, plain[_i].why);
}
END_TEST

START_TEST(a_silent_client_is_not_established)
{
    int fd = socket_to_listener();
    tls_accept(context, listener, &ours);
    ck_assert_int_eq(send(fd, "\x16\x03\x01\x02", 4, 0), 4);
    ck_assert(tls_turn((struct tls_end *const[]){&ours}, 1, -1, -1));
    ck_assert(!ours.ended && !channel_tls_is_established(&ours.channel));
    ck_assert_str_eq(channel_tls_why(&ours.channel), "");
    ck_assert_int_eq(channel_flush(&ours.channel), 0);
    close(fd);
}
END_TEST

START_TEST(a_server_that_is_away_is_reported)
{
    close(listener);
    tls_connect(context, address, &ours);
    while (!ours.ended)
        ck_assert(tls_turn((struct tls_end *const[]){&ours}, 1, -1, -1) || ours.ended);
    expect_why(&ours, "the connection failed: Connection refused");
    listener = -1;
}
END_TEST

/* ---- the secret of a connection ---- */

START_TEST(a_client_offers_no_key_exchange_without_a_secret_of_its_own)
{
    static const char psk_dhe_ke_alone[] = "\x00\x2d\x00\x02\x01\x01"; /* RFC 8446, 4.2.9 */
    char hello[4096];
    tls_connect(context, address, &ours);
    int fd = accept(listener, NULL, NULL);
    while (channel_pending(&ours.channel) > 0)
        tls_turn((struct tls_end *const[]){&ours}, 1, -1, 0);
    ssize_t n = recv(fd, hello, sizeof(hello), 0);
    ck_assert_int_gt(n, 0);
    ck_assert_ptr_nonnull(memmem(hello, (size_t)n, psk_dhe_ke_alone, sizeof(psk_dhe_ke_alone) - 1));
    close(fd);
}
END_TEST

START_TEST(a_server_makes_a_secret_where_the_client_offers_none_too)
{
    static const struct tls_peer_kind both = {
        .identity = "assay-channel-3", .fill = 7, .allows_psk_ke = true};
    struct tls_peer peer;
    tls_peer_begin(&both, socket_to_listener(), &peer);
    tls_accept(context, listener, &ours);
    run_with_peer(&peer);
    ck_assert(channel_tls_is_established(&ours.channel));
    ck_assert_int_ne(SSL_get_negotiated_group(peer.ssl), 0);
    ck_assert_str_eq(SSL_get_cipher(peer.ssl), "TLS_AES_128_GCM_SHA256");
    tls_peer_close(&peer);
}
END_TEST

/* ---- addresses and sockets ---- */

static const char *const not_addresses[] = {
    "",
    "127.0.0.1",
    ":7443",
    "localhost:7443",
    "node.example.com:7443",
    "127.1:7443",
    "127.0.0.1:",
    "127.0.0.1:x",
    "127.0.0.1:65536",
    "127.0.0.1:070443",
    "::1:7443",
    "[::1]7443",
    "[::1:7443",
    "[127.0.0.1]:7443",
    "unix:/tmp/socket",
    "[]:7443",
    "127.0.0.1:-1",
    "[::1]:+1",
    "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:1"};

START_TEST(an_address_that_is_not_numeric_is_refused)
{
    char why[256], start[128];
    struct channel c;
    snprintf(start, sizeof(start), "%s: this is not a numeric address with a port; write it as",
             not_addresses[_i]);
    ck_assert_int_eq(channel_tls_listen(not_addresses[_i], why, sizeof(why)), -1);
    ck_assert_msg(strncmp(why, start, strlen(start)) == 0, "%s", why);
    ck_assert(!channel_tls_connect(context, &c, not_addresses[_i], why, sizeof(why)));
    ck_assert_msg(strncmp(why, start, strlen(start)) == 0, "%s", why);
    ck_assert_int_eq(c.fd, -1);
    channel_close(&c);
}
END_TEST

START_TEST(an_address_in_use_is_refused)
{
    char why[256];
    ck_assert_int_eq(channel_tls_listen(address, why, sizeof(why)), -1);
    ck_assert_msg(strstr(why, address) == why && strstr(why, ": Address already in use"), "%s",
                  why);
}
END_TEST

START_TEST(an_ipv6_address_is_taken)
{
    char why[256];
    int fd = channel_tls_listen("[::1]:0", why, sizeof(why));
    ck_assert_msg(fd >= 0 || strstr(why, "Cannot assign requested address") != NULL ||
                      strstr(why, "Address family not supported") != NULL,
                  "%s", why);
    if (fd >= 0)
        close(fd);
}
END_TEST

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof(value);
    ck_assert_int_eq(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

static void expect_options(int fd)
{
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 10000);
    ck_assert_int_eq(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 3);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 3);
}

START_TEST(a_dead_connection_ends_within_seconds)
{
    struct tls_end client;
    tls_connect(context, address, &client);
    tls_accept(context, listener, &ours);
    expect_options(client.channel.fd);
    expect_options(ours.channel.fd);
    ck_assert_int_ne(fcntl(listener, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(listener, F_GETFD) & FD_CLOEXEC, 0);
    tls_end_close(&client);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel_tls_refused");
    TCase *t = tcase_create("peers");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, nodes_of_another_key_or_version_read_why, 0, COUNT(nodes));
    tcase_add_loop_test(t, another_client_is_refused, 0, COUNT(clients));
    tcase_add_loop_test(t, another_server_is_refused, 0, COUNT(servers));
    tcase_add_loop_test(t, a_client_without_tls_is_refused, 0, COUNT(plain));
    tcase_add_loop_test(t, a_server_without_tls_is_refused, 0, COUNT(plain));
    tcase_add_test(t, a_silent_client_is_not_established);
    tcase_add_test(t, a_server_that_is_away_is_reported);
    tcase_add_test(t, a_client_offers_no_key_exchange_without_a_secret_of_its_own);
    tcase_add_test(t, a_server_makes_a_secret_where_the_client_offers_none_too);
    tcase_add_loop_test(t, an_address_that_is_not_numeric_is_refused, 0, COUNT(not_addresses));
    tcase_add_test(t, an_address_in_use_is_refused);
    tcase_add_test(t, an_ipv6_address_is_taken);
    tcase_add_test(t, a_dead_connection_ends_within_seconds);
    suite_add_tcase(s, t);
    return suite_run(s);
}
