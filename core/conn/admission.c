#include "core/conn/acceptor_internal.h"

#include "core/shm/connection_table.h"
#include "core/base/log.h"
#include "core/conn/eviction.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define ACCEPTS_PER_WAKE 32
/* for so long after somebody had to give way, slowness is looked for more often */
#define PRESSED_MS 2000
/* connections of the internal listener, of one worker, that max_connections does not count */
#define INTERNAL_EXTRA 16
#define TRY_EVERY_MS 250 /* whether there are descriptors again */

/* ---- how many of one address ---- */

/* whom its address stands for; false: for many, and no number is too large */
static bool find_caller(struct conn *c, struct ip *ip)
{
    const struct conf *conf = c->loop->conf;
    struct sockaddr_storage peer = {0};
    return !c->internal && !c->direct && h2o_socket_getpeername(c->socket, (struct sockaddr *)&peer) != 0 &&
           ip_of((struct sockaddr *)&peer, ip) && !cidr_list_has(&conf->trusted_proxies, ip) && !cidr_list_has(&conf->limits_exempt, ip);
}

static void warn_of_many(struct acceptor *d, const struct ip *ip)
{
    char text[INET6_ADDRSTRLEN];
    if (d->turned_away_ms != 0 && d->loop->now_ms - d->turned_away_ms < WARN_EVERY_MS)
        return;
    ip_text(ip, text);
    log_warn("a connection from %s is closed: it has %u others, which is max_connections_per_ip", text,
             d->loop->conf->max_connections_per_ip);
    d->turned_away_ms = d->loop->now_ms;
}

/* a client of TLS would not understand it */
void conn_turn_away(struct conn *c, bool tls)
{
    static const char body[] = "{\"error\":{\"code\":\"unavailable\",\"message\":\"There are too many connections from your address. Close some.\"}}";
    char answer[512];
    int n = snprintf(answer, sizeof(answer),
                     "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\nX-Request-Id: %.*s\r\n"
                     "Retry-After: 1\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                     LOOP_ID_BYTES, loop_next_id(c->loop).p, strlen(body), body);
    connection_table_count_event(acceptor_connection_table(c->acceptor), CONNECTIONS_REFUSED);
    if (!tls && send(h2o_socket_get_fd(c->socket), answer, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        conn_linger(c);
    h2o_socket_close(c->socket);
}

bool conn_arrive(struct conn *c, bool tls)
{
    struct acceptor *d = c->acceptor;
    struct limiter_key key;
    struct ip ip;
    c->stands_for_many = !find_caller(c, &ip);
    if (c->stands_for_many)
        return true;
    limiter_key_make(BY_IP, c->loop->conf->limits_ipv6_prefix, &(struct limiter_caller){.ip = &ip}, &key);
    if (connection_table_add_address(acceptor_connection_table(d), c->loop->process->connection_slot, key.bytes, key.size, c->loop->conf->max_connections_per_ip, &c->share))
        return true;
    warn_of_many(d, &ip);
    conn_turn_away(c, tls);
    return false;
}

/* ---- letting in ---- */

void endpoint_let_in(struct acceptor *d, bool allowed, bool internal_too)
{
    d->full = !allowed;
    d->try_at_ms = d->loop->now_ms + TRY_ROOM_EVERY_MS;
    for (size_t i = 0; i < d->count; i++) {
        h2o_socket_t *socket = d->endpoints[i].socket;
        if (socket != NULL && h2o_socket_is_reading(socket) != allowed && (internal_too || !d->endpoints[i].listener->internal)) {
            if (allowed)
                h2o_socket_read_start(socket, endpoint_on_accept);
            else
                h2o_socket_read_stop(socket);
        }
    }
}

/* what a newcomer takes: a place of its own, that of another connection, or one beyond max_connections */
struct place {
    enum { PLACE_NONE, PLACE_FREE, PLACE_OF_ANOTHER, PLACE_EXTRA } kind;
    struct conn *another;
};

static int part_of(const struct acceptor *d)
{
    return connection_table_compare_share(acceptor_connection_table(d), d->loop->process->connection_slot, d->loop->conf->max_connections);
}

static bool claim_of(struct acceptor *d, size_t most)
{
    return connection_table_add(acceptor_connection_table(d), d->loop->process->connection_slot, most);
}

/* a place of ours, and a descriptor for it */
static bool claim(struct acceptor *d)
{
    const struct conf *conf = d->loop->conf;
    return d->connections < conf->worker_connections && claim_of(d, conf->max_connections);
}

/*
 * Newcomers come to every worker alike, so a worker with few places has the longest queue: where somebody waits before another, who has no
 * less than its part leaves what is free to that one, while it has somebody of its own who may give way.
 */
static bool leaves_to_others(const struct acceptor *d)
{
    return connection_table_eviction_requested(acceptor_connection_table(d), d->loop->process->connection_slot) && part_of(d) >= 0;
}

/* ${newcomer}: NULL where it has not been let in at all, and is not known */
static struct place find_place(struct acceptor *d, const struct endpoint *endpoint, const struct conn *newcomer)
{
    if (endpoint->listener->internal && d->internal_extra < INTERNAL_EXTRA)
        return (struct place){PLACE_EXTRA, NULL};
    bool leaves = leaves_to_others(d);
    if (!leaves && claim(d))
        return (struct place){PLACE_FREE, NULL};
    if (d->pressed_until_ms < d->loop->now_ms)
        d->sweep_at_ms = 0;
    d->pressed_until_ms = d->loop->now_ms + PRESSED_MS;
    struct conn *another = eviction_find(d->eviction, d->connections);
    if (another != NULL && (newcomer == NULL || !eviction_spares(d->eviction, another, newcomer, d->connections)))
        return (struct place){PLACE_OF_ANOTHER, another};
    return (struct place){leaves && claim(d) ? PLACE_FREE : PLACE_NONE, NULL};
}

static void give_place_back(struct acceptor *d, struct place place)
{
    if (place.kind == PLACE_FREE)
        connection_table_remove(acceptor_connection_table(d), d->loop->process->connection_slot);
}

/* from now on its place is another's */
static void give_way(struct acceptor *d, struct conn *c)
{
    eviction_forget(d->eviction, c);
    c->seated = false;
    conn_end(c);
    connection_table_count_event(acceptor_connection_table(d), CONNECTIONS_EVICTED);
}

static void come_in(struct endpoint *endpoint, h2o_socket_t *socket, struct place place)
{
    struct acceptor *d = endpoint->acceptor;
    struct conn *c = conn_new(d, endpoint, socket, false);
    if (c == NULL) {
        give_place_back(d, place);
        h2o_socket_close(socket);
        return;
    }
    bool proxy_header = proxy_header_expected(endpoint);
    c->seated = place.kind == PLACE_FREE;
    c->extra = place.kind == PLACE_EXTRA;
    d->internal_extra += c->extra;
    /* nobody gives way to who is turned away */
    if (proxy_header && !proxy_header_trusted(d, socket)) {
        h2o_socket_close(socket);
        return;
    }
    if (!proxy_header && !conn_arrive(c, endpoint->accept->ssl_ctx != NULL))
        return;
    if (place.kind == PLACE_OF_ANOTHER) {
        give_way(d, place.another);
        c->seated = true;
    }
    if (proxy_header)
        proxy_header_read(endpoint, socket);
    else
        h2o_accept(endpoint->accept, socket);
}

static void ask_for_room(struct acceptor *d, bool asks)
{
    if (asks)
        connection_table_request_eviction(acceptor_connection_table(d), d->loop->process->connection_slot);
    else
        connection_table_cancel_eviction(acceptor_connection_table(d), d->loop->process->connection_slot);
}

/* who speaks for others first, or for the operators, has no address to go by */
static bool may_wait_inside(const struct endpoint *endpoint)
{
    return !endpoint->listener->internal && !proxy_header_expected(endpoint);
}

/* whoever is to have another's place is looked at first, inside */
static struct place free_place(struct acceptor *d)
{
    bool has = d->waiting == 0 && !leaves_to_others(d) && claim(d);
    return (struct place){has ? PLACE_FREE : PLACE_NONE, NULL};
}

/*
 * As at the maximum, somebody gives way; when that connection is closed, which is with the loop's next turn, the doors open again
 * (conn.c). Where nobody may, it is tried again after a time.
 */
static void descriptors_are_out(struct acceptor *d)
{
    struct conn *c = eviction_find(d->eviction, d->connections);
    if (c != NULL) {
        give_way(d, c);
        connection_table_remove(acceptor_connection_table(d), d->loop->process->connection_slot);
    }
    endpoint_let_in(d, false, true);
    d->try_at_ms = d->loop->now_ms + TRY_EVERY_MS;
}

void endpoint_on_accept(h2o_socket_t *listener, const char *err)
{
    struct endpoint *endpoint = listener->data;
    struct acceptor *d = endpoint->acceptor;
    if (err != NULL)
        return;
    loop_look_at_clock(d->loop);
    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        bool inside = may_wait_inside(endpoint);
        struct place place = inside ? free_place(d) : find_place(d, endpoint, NULL);
        inside = inside && place.kind == PLACE_NONE && accept_queue_takes(d);
        if (place.kind == PLACE_NONE && !inside) {
            if (i > 0)
                return; /* perhaps nobody else waits; if somebody does, the loop wakes for it again */
            ask_for_room(d, true);
            endpoint_let_in(d, false, endpoint->listener->internal);
            return;
        }
        h2o_socket_t *socket = h2o_evloop_socket_accept(listener);
        if (socket == NULL) {
            bool out = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            give_place_back(d, place);
            if (out)
                descriptors_are_out(d);
            return;
        }
        if (inside)
            accept_queue_enter(d, socket, endpoint);
        else
            come_in(endpoint, socket, place);
    }
}

static void seat(struct conn *c, struct place place)
{
    struct acceptor *d = c->acceptor;
    if (place.kind == PLACE_OF_ANOTHER)
        give_way(d, place.another);
    conn_sit(c);
    c->seated = place.kind == PLACE_FREE || place.kind == PLACE_OF_ANOTHER;
    h2o_accept(c->endpoint->accept, c->socket);
}

/* counted like any other, also where that is more than max_connections: nobody else may answer who is in the lobby */
static struct place one_more_place(struct acceptor *d)
{
    return (struct place){claim_of(d, SIZE_MAX) ? PLACE_FREE : PLACE_NONE, NULL};
}

static bool slot_if_free(struct acceptor *d, struct conn *c)
{
    struct place place = d->open ? find_place(d, c->endpoint, c) : one_more_place(d);
    if (place.kind != PLACE_NONE)
        seat(c, place);
    return place.kind != PLACE_NONE;
}

void acceptor_seat(struct acceptor *d)
{
    struct conn *c = accept_queue_patient(d);
    if (c != NULL)
        slot_if_free(d, c);
    do
        c = accept_queue_next(d);
    while (c != NULL && slot_if_free(d, c));
    if (d->waiting > 0 || !d->full)
        ask_for_room(d, d->waiting > 0);
}

void acceptor_help(struct acceptor *d)
{
    if (!connection_table_eviction_requested(acceptor_connection_table(d), d->loop->process->connection_slot) || connection_table_count(acceptor_connection_table(d)) < d->loop->conf->max_connections)
        return;
    if ((d->full || d->waiting > 0) && part_of(d) <= 0)
        return; /* somebody waits here too */
    struct conn *c = eviction_find(d->eviction, d->connections);
    if (c == NULL || eviction_spares(d->eviction, c, NULL, d->connections) || !connection_table_take_eviction(acceptor_connection_table(d)))
        return;
    give_way(d, c);
    connection_table_remove(acceptor_connection_table(d), d->loop->process->connection_slot);
}
