#include "core/doors_parts.h"

#include "core/crowd.h"
#include "core/log.h"
#include "core/room.h"
#include "core/http/pipeline.h"

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
    const struct conf *conf = c->worker->conf;
    struct sockaddr_storage peer = {0};
    return !c->internal && !c->direct && h2o_socket_getpeername(c->socket, (struct sockaddr *)&peer) != 0 &&
           ip_of((struct sockaddr *)&peer, ip) && !cidr_list_has(&conf->trusted_proxies, ip) && !cidr_list_has(&conf->limits_exempt, ip);
}

static void warn_of_many(struct doors *d, const struct ip *ip)
{
    char text[INET6_ADDRSTRLEN];
    if (d->turned_away_ms != 0 && d->worker->now_ms - d->turned_away_ms < WARN_EVERY_MS)
        return;
    ip_text(ip, text);
    log_warn("a connection from %s is closed: it has %u others, which is max_connections_per_ip", text,
             d->worker->conf->max_connections_per_ip);
    d->turned_away_ms = d->worker->now_ms;
}

/* a client of TLS would not understand it */
void conn_turn_away(struct conn *c, bool tls)
{
    static const char body[] = "{\"error\":{\"code\":\"unavailable\",\"message\":\"There are too many connections from your address: close some.\"}}";
    char answer[512];
    int n = snprintf(answer, sizeof(answer),
                     "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\nX-Request-Id: %.*s\r\n"
                     "Retry-After: 1\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                     (int)sizeof(c->worker->id), pipeline_id(c->worker).p, strlen(body), body);
    crowd_tell(doors_crowd(c->worker->doors), CROWD_TURNED_AWAY);
    if (!tls && send(h2o_socket_get_fd(c->socket), answer, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        conn_linger(c);
    h2o_socket_close(c->socket);
}

bool conn_arrive(struct conn *c, bool tls)
{
    struct doors *d = c->worker->doors;
    struct limiter_key key;
    struct ip ip;
    c->stands_for_many = !find_caller(c, &ip);
    if (c->stands_for_many)
        return true;
    limiter_key_make(BY_IP, c->worker->conf->limits_ipv6_prefix, &(struct limiter_caller){.ip = &ip}, &key);
    if (crowd_arrive(doors_crowd(d), c->worker->process->place, key.bytes, key.size, c->worker->conf->max_connections_per_ip, &c->share))
        return true;
    warn_of_many(d, &ip);
    conn_turn_away(c, tls);
    return false;
}

/* ---- letting in ---- */

void door_let_in(struct doors *d, bool allowed, bool internal_too)
{
    d->full = !allowed;
    d->try_at_ms = d->worker->now_ms + TRY_ROOM_EVERY_MS;
    for (size_t i = 0; i < d->count; i++) {
        h2o_socket_t *socket = d->doors[i].socket;
        if (socket != NULL && h2o_socket_is_reading(socket) != allowed && (internal_too || !d->doors[i].listener->internal)) {
            if (allowed)
                h2o_socket_read_start(socket, door_on_accept);
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

static int part_of(const struct doors *d)
{
    return crowd_part(doors_crowd(d), d->worker->process->place, d->worker->conf->max_connections);
}

static bool claim_of(struct doors *d, size_t most)
{
    return crowd_claim(doors_crowd(d), d->worker->process->place, most);
}

/* a place of ours, and a descriptor for it */
static bool claim(struct doors *d)
{
    const struct conf *conf = d->worker->conf;
    return d->connections < conf->worker_connections && claim_of(d, conf->max_connections);
}

/*
 * Newcomers come to every worker alike, so a worker with few places has the longest queue: where somebody waits before another, who has no
 * less than its part leaves what is free to that one, while it has somebody of its own who may give way.
 */
static bool leaves_to_others(const struct doors *d)
{
    return crowd_asks(doors_crowd(d), d->worker->process->place) && part_of(d) >= 0;
}

/* ${newcomer}: NULL where it has not been let in at all, and is not known */
static struct place find_place(struct doors *d, const struct door *door, const struct conn *newcomer)
{
    if (door->listener->internal && d->internal_extra < INTERNAL_EXTRA)
        return (struct place){PLACE_EXTRA, NULL};
    bool leaves = leaves_to_others(d);
    if (!leaves && claim(d))
        return (struct place){PLACE_FREE, NULL};
    if (d->pressed_until_ms < d->worker->now_ms)
        d->sweep_at_ms = 0;
    d->pressed_until_ms = d->worker->now_ms + PRESSED_MS;
    struct conn *another = room_find(d->room, d->connections);
    if (another != NULL && (newcomer == NULL || !room_spares(d->room, another, newcomer, d->connections)))
        return (struct place){PLACE_OF_ANOTHER, another};
    return (struct place){leaves && claim(d) ? PLACE_FREE : PLACE_NONE, NULL};
}

static void give_place_back(struct doors *d, struct place place)
{
    if (place.kind == PLACE_FREE)
        crowd_unclaim(doors_crowd(d), d->worker->process->place);
}

/* from now on its place is another's */
static void give_way(struct doors *d, struct conn *c)
{
    room_forget(d->room, c);
    c->seated = false;
    conn_end(c);
    crowd_tell(doors_crowd(d), CROWD_GAVE_WAY);
}

static void come_in(struct door *door, h2o_socket_t *socket, struct place place)
{
    struct doors *d = door->doors;
    struct conn *c = conn_new(d, door, socket, false);
    if (c == NULL) {
        give_place_back(d, place);
        h2o_socket_close(socket);
        return;
    }
    bool greeting = greet_expected(door);
    c->seated = place.kind == PLACE_FREE;
    c->extra = place.kind == PLACE_EXTRA;
    d->internal_extra += c->extra;
    /* nobody gives way to who is turned away */
    if (greeting && !greet_trusts(d, socket)) {
        h2o_socket_close(socket);
        return;
    }
    if (!greeting && !conn_arrive(c, door->accept->ssl_ctx != NULL))
        return;
    if (place.kind == PLACE_OF_ANOTHER) {
        give_way(d, place.another);
        c->seated = true;
    }
    if (greeting)
        greet(door, socket);
    else
        h2o_accept(door->accept, socket);
}

static void ask_for_room(struct doors *d, bool asks)
{
    if (asks)
        crowd_ask(doors_crowd(d), d->worker->process->place);
    else
        crowd_unask(doors_crowd(d), d->worker->process->place);
}

/* who speaks for others first, or for the operators, has no address to go by */
static bool may_wait_inside(const struct door *door)
{
    return !door->listener->internal && !greet_expected(door);
}

/* whoever is to have another's place is looked at first, inside */
static struct place free_place(struct doors *d)
{
    bool has = d->waiting == 0 && !leaves_to_others(d) && claim(d);
    return (struct place){has ? PLACE_FREE : PLACE_NONE, NULL};
}

/*
 * As at the maximum, somebody gives way; when that connection is closed, which is with the loop's next turn, the doors open again
 * (conn.c). Where nobody may, it is tried again after a time.
 */
static void descriptors_are_out(struct doors *d)
{
    struct conn *c = room_find(d->room, d->connections);
    if (c != NULL) {
        give_way(d, c);
        crowd_unclaim(doors_crowd(d), d->worker->process->place);
    }
    door_let_in(d, false, true);
    d->try_at_ms = d->worker->now_ms + TRY_EVERY_MS;
}

void door_on_accept(h2o_socket_t *listener, const char *err)
{
    struct door *door = listener->data;
    struct doors *d = door->doors;
    if (err != NULL)
        return;
    worker_look_at_clock(d->worker);
    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        bool inside = may_wait_inside(door);
        struct place place = inside ? free_place(d) : find_place(d, door, NULL);
        inside = inside && place.kind == PLACE_NONE && lobby_takes(d);
        if (place.kind == PLACE_NONE && !inside) {
            if (i > 0)
                return; /* perhaps nobody else waits; if somebody does, the loop wakes for it again */
            ask_for_room(d, true);
            door_let_in(d, false, door->listener->internal);
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
            lobby_enter(d, socket, door);
        else
            come_in(door, socket, place);
    }
}

static void seat(struct conn *c, struct place place)
{
    struct doors *d = c->worker->doors;
    if (place.kind == PLACE_OF_ANOTHER)
        give_way(d, place.another);
    conn_sit(c);
    c->seated = place.kind == PLACE_FREE || place.kind == PLACE_OF_ANOTHER;
    h2o_accept(c->door->accept, c->socket);
}

/* counted like any other, also where that is more than max_connections: nobody else may answer who is in the lobby */
static struct place one_more_place(struct doors *d)
{
    return (struct place){claim_of(d, SIZE_MAX) ? PLACE_FREE : PLACE_NONE, NULL};
}

static bool seat_if_free(struct doors *d, struct conn *c)
{
    struct place place = d->open ? find_place(d, c->door, c) : one_more_place(d);
    if (place.kind != PLACE_NONE)
        seat(c, place);
    return place.kind != PLACE_NONE;
}

void doors_seat(struct doors *d)
{
    struct conn *c = lobby_patient(d);
    if (c != NULL)
        seat_if_free(d, c);
    do
        c = lobby_next(d);
    while (c != NULL && seat_if_free(d, c));
    if (d->waiting > 0 || !d->full)
        ask_for_room(d, d->waiting > 0);
}

void doors_help(struct doors *d)
{
    if (!crowd_asks(doors_crowd(d), d->worker->process->place) || crowd_count(doors_crowd(d)) < d->worker->conf->max_connections)
        return;
    if ((d->full || d->waiting > 0) && part_of(d) <= 0)
        return; /* somebody waits here too */
    struct conn *c = room_find(d->room, d->connections);
    if (c == NULL || room_spares(d->room, c, NULL, d->connections) || !crowd_answer(doors_crowd(d)))
        return;
    give_way(d, c);
    crowd_unclaim(doors_crowd(d), d->worker->process->place);
}
