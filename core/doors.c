#include "doors.h"

#include "crowd.h"
#include "linger.h"
#include "log.h"
#include "proxy_protocol.h"
#include "room.h"
#include "http/pipeline.h"
#include "http/stream.h"
#include "tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTS_PER_WAKE 32
#define ADOPT_AFTER_MS 250
#define SWEEP_MS 1000
/* for so long after somebody had to give way, slowness is looked for more often */
#define PRESSED_MS 2000
/* connections of the internal listener, of one worker, that max_connections does not count */
#define INTERNAL_EXTRA 16
#define TRY_EVERY_MS 250    /* whether there are descriptors again */
#define TRY_ROOM_EVERY_MS 100 /* whether somebody may give way */
/* bodies being received, of all connections of a worker: past it the largest are closed first */
#ifndef BUFFERED_MAX
#define BUFFERED_MAX (256u << 20)
#endif
/* answers that wait for their clients: past it those that wait longest are ended */
#ifndef ANSWERS_MAX
#define ANSWERS_MAX (256u << 20)
#endif
/* time for the PROXY protocol's header to arrive */
#define GREETING_MS 5000
#define WARN_EVERY_MS 60000
/* a reload waits this long for an idle connection to be used once more; a stop, for one that is in use, or has just come and says nothing yet */
#define GENTLE_IDLE_MS 5000
#define STOP_IDLE_MS 500

/* one listening socket a worker may serve */
struct door {
    struct doors *doors;
    const struct listener *listener;
    size_t slot;
    h2o_socket_t *socket; /* NULL: not served by us */
    bool own;
    h2o_accept_ctx_t *accept;
};

struct doors {
    struct worker *worker;
    struct door *doors;
    size_t count, connections, internal_extra;
    unsigned slots; /* the first: those whose sockets we have a copy of */
    struct conn conns; /* ring's anchor */
    struct room *room;
    struct lingering *lingering;
    h2o_accept_ctx_t accept[LISTENERS_MAX];
    uint64_t sweep_at_ms, opened_ms, warned_ms, turned_away_ms, try_at_ms, pressed_until_ms;
    size_t held; /* by answers, on connections that are not ended */
    bool open;
    bool full; /* nobody is let in until a connection ends, or the next try finds that descriptors or memory are free again */
};

static void on_accept(h2o_socket_t *listener, const char *err);

/* ---- connections ---- */

static struct crowd *crowd_of(const struct doors *d)
{
    return d->worker->process->crowd;
}

struct conn *conn_of(h2o_req_t *req)
{
    return req->conn->callbacks->get_socket(req->conn)->on_close.data;
}

void conn_linger(struct conn *c)
{
    if (c->lingers)
        return;
    c->linger_fd = dup(h2o_socket_get_fd(c->socket));
    c->lingers = c->linger_fd >= 0;
}

void conn_hold(struct conn *c, size_t bytes)
{
    if (c->ended)
        return;
    if (c->socket->ssl != NULL)
        bytes *= 2; /* as it is, and as it is sent */
    if (c->held == 0)
        c->held_ms = c->worker->now_ms;
    c->worker->doors->held += bytes - c->held;
    c->held = bytes;
}

/* it sends its next request already, or it is gone: not watched from now on, as the library wanted it */
static void on_held_readable(h2o_socket_t *socket, const char *err)
{
    (void)err;
    h2o_socket_read_stop(socket);
}

void conn_watch(struct conn *c)
{
    h2o_socket_dont_read(c->socket, 1);
    h2o_socket_read_start(c->socket, on_held_readable);
}

void conn_unwatch(struct conn *c)
{
    h2o_socket_read_stop(c->socket);
    h2o_socket_dont_read(c->socket, 0);
}

/* a listener that is not read leaves connections in its queue, and the loop asleep */
static void let_in(struct doors *d, bool allowed, bool internal_too)
{
    d->full = !allowed;
    d->try_at_ms = d->worker->now_ms + (internal_too ? TRY_EVERY_MS : TRY_ROOM_EVERY_MS);
    for (size_t i = 0; i < d->count; i++) {
        h2o_socket_t *socket = d->doors[i].socket;
        if (socket != NULL && h2o_socket_is_reading(socket) != allowed && (internal_too || !d->doors[i].listener->internal)) {
            if (allowed)
                h2o_socket_read_start(socket, on_accept);
            else
                h2o_socket_read_stop(socket);
        }
    }
}

static void on_conn_closed(void *data)
{
    struct conn *c = data;
    struct doors *d = c->worker->doors;
    conn_hold(c, 0);
    c->prev->next = c->next;
    c->next->prev = c->prev;
    d->connections--;
    room_forget(d->room, c);
    crowd_depart(crowd_of(d), c->share);
    if (c->seated)
        crowd_unclaim(crowd_of(d), d->worker->process->place);
    else if (c->extra)
        d->internal_extra--;
    if (c->lingers)
        linger(d->lingering, c->linger_fd, c->worker->now_ms);
    free(c->greeting);
    free(c);
    if (d->full)
        let_in(d, true, true);
}

static struct conn *conn_new(struct doors *d, const struct door *door, h2o_socket_t *socket)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    *c = (struct conn){.prev = d->conns.prev,
                       .next = &d->conns,
                       .worker = d->worker,
                       .socket = socket,
                       .came_ms = d->worker->now_ms,
                       .since_ms = d->worker->now_ms,
                       .internal = door->listener->internal};
    c->prev->next = c;
    d->conns.prev = c;
    d->connections++;
    socket->on_close.cb = on_conn_closed;
    socket->on_close.data = c;
    return c;
}

static void end(struct conn *c)
{
    conn_hold(c, 0);
    c->ended = true;
    shutdown(h2o_socket_get_fd(c->socket), SHUT_RDWR);
}

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

/* nothing was read, so nothing is under way; a client of TLS would not understand it */
static void turn_away(struct conn *c, bool tls)
{
    static const char body[] = "{\"error\":{\"code\":\"unavailable\",\"message\":\"There are too many connections from your address: close some.\"}}";
    char answer[512];
    int n = snprintf(answer, sizeof(answer),
                     "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\nX-Request-Id: %.*s\r\n"
                     "Retry-After: 1\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                     (int)sizeof(c->worker->id), pipeline_id(c->worker).p, strlen(body), body);
    if (!tls && send(h2o_socket_get_fd(c->socket), answer, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        conn_linger(c);
    h2o_socket_close(c->socket);
}

/* false: its address has as many as it may, and it is gone */
static bool arrive(struct conn *c, bool tls)
{
    struct doors *d = c->worker->doors;
    struct limiter_key key;
    struct ip ip;
    c->stands_for_many = !find_caller(c, &ip);
    if (c->stands_for_many)
        return true;
    limiter_key_make(BY_IP, c->worker->conf->limits_ipv6_prefix, &(struct limiter_caller){.ip = &ip}, &key);
    if (crowd_arrive(crowd_of(d), c->worker->process->place, key.bytes, key.size, c->worker->conf->max_connections_per_ip, &c->share))
        return true;
    crowd_tell(crowd_of(d), CROWD_TURNED_AWAY);
    warn_of_many(d, &ip);
    turn_away(c, tls);
    return false;
}

/* ---- the PROXY protocol ---- */

/* what has been read of the header; the rest of the connection stays in the kernel */
struct greeting {
    h2o_accept_ctx_t *accept;
    size_t n;
    uint8_t bytes[PROXY_HEADER_MAX];
};

static void greeted(struct conn *c, const struct proxy_header *header)
{
    h2o_socket_t *socket = c->socket;
    h2o_accept_ctx_t *accept = c->greeting->accept;
    h2o_socket_read_stop(socket);
    h2o_socket_dont_read(socket, 0);
    free(c->greeting);
    c->greeting = NULL;
    c->since_ms = c->worker->now_ms;
    c->direct = header->client.ss_family == AF_UNSPEC;
    if (!c->direct) {
        struct sockaddr_storage client = header->client;
        h2o_socket_setpeername(socket, (struct sockaddr *)&client, header->client_size);
    }
    if (arrive(c, accept->ssl_ctx != NULL))
        h2o_accept(accept, socket);
}

/* all that is there while it belongs to the header, and not a byte beyond it */
static void on_greeting(h2o_socket_t *socket, const char *err)
{
    struct conn *c = socket->on_close.data;
    struct greeting *g = c->greeting;
    struct proxy_header header;
    int fd = h2o_socket_get_fd(socket);
    ssize_t got = err != NULL ? 0 : recv(fd, g->bytes + g->n, sizeof(g->bytes) - g->n, MSG_PEEK);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    enum proxy_verdict verdict = got <= 0 ? PROXY_WRONG : proxy_header_parse(g->bytes, g->n + (size_t)got, &header);
    size_t taken = verdict == PROXY_WHOLE ? header.size - g->n : got > 0 ? (size_t)got : 0;
    if (verdict == PROXY_WRONG || recv(fd, g->bytes + g->n, taken, 0) != (ssize_t)taken) {
        h2o_socket_close(socket);
        return;
    }
    g->n += taken;
    if (verdict == PROXY_WHOLE)
        greeted(c, &header);
    else if (g->n == sizeof(g->bytes))
        h2o_socket_close(socket);
}

static bool is_trusted(struct doors *d, h2o_socket_t *socket)
{
    struct sockaddr_storage peer = {0};
    struct ip ip;
    if (h2o_socket_getpeername(socket, (struct sockaddr *)&peer) == 0 || !ip_of((struct sockaddr *)&peer, &ip))
        return true; /* a Unix socket's */
    if (cidr_list_has(&d->worker->conf->trusted_proxies, &ip))
        return true;
    if (d->warned_ms == 0 || d->worker->now_ms - d->warned_ms > WARN_EVERY_MS) {
        char text[INET6_ADDRSTRLEN];
        ip_text(&ip, text);
        log_warn("a connection from %s to a listener with proxy_protocol is closed: it is not in trusted_proxies", text);
        d->warned_ms = d->worker->now_ms;
    }
    return false;
}

static void greet(struct door *door, h2o_socket_t *socket)
{
    struct conn *c = socket->on_close.data;
    struct greeting *g = is_trusted(door->doors, socket) ? calloc(1, sizeof(*g)) : NULL;
    if (g == NULL) {
        h2o_socket_close(socket);
        return;
    }
    g->accept = door->accept;
    c->greeting = g;
    h2o_socket_dont_read(socket, 1);
    h2o_socket_read_start(socket, on_greeting);
}

static bool expects_greeting(const struct door *door)
{
    const struct listener *l = door->listener;
    return !l->internal && door->doors->worker->conf->listen[l->conf_index].proxy_protocol;
}

/* ---- letting in ---- */

/* what a newcomer takes: a place of its own, that of another connection, or one beyond max_connections */
struct place {
    enum { PLACE_NONE, PLACE_FREE, PLACE_OF_ANOTHER, PLACE_EXTRA } kind;
    struct conn *another;
};

static struct place find_place(struct doors *d, const struct door *door)
{
    if (door->listener->internal && d->internal_extra < INTERNAL_EXTRA)
        return (struct place){PLACE_EXTRA, NULL};
    if (crowd_claim(crowd_of(d), d->worker->process->place, d->worker->conf->max_connections))
        return (struct place){PLACE_FREE, NULL};
    if (d->pressed_until_ms < d->worker->now_ms)
        d->sweep_at_ms = 0;
    d->pressed_until_ms = d->worker->now_ms + PRESSED_MS;
    struct conn *another = room_find(d->room, d->connections);
    return (struct place){another != NULL ? PLACE_OF_ANOTHER : PLACE_NONE, another};
}

static void give_place_back(struct doors *d, struct place place)
{
    if (place.kind == PLACE_FREE)
        crowd_unclaim(crowd_of(d), d->worker->process->place);
}

/* from now on its place is another's */
static void give_way(struct doors *d, struct conn *c)
{
    room_forget(d->room, c);
    c->seated = false;
    end(c);
    crowd_tell(crowd_of(d), CROWD_GAVE_WAY);
}

static void come_in(struct door *door, h2o_socket_t *socket, struct place place)
{
    struct doors *d = door->doors;
    struct conn *c = conn_new(d, door, socket);
    if (c == NULL) {
        give_place_back(d, place);
        h2o_socket_close(socket);
        return;
    }
    bool greeting = expects_greeting(door);
    c->seated = place.kind == PLACE_FREE;
    c->extra = place.kind == PLACE_EXTRA;
    d->internal_extra += c->extra;
    if (!greeting && !arrive(c, door->accept->ssl_ctx != NULL))
        return; /* nobody gives way to who is turned away */
    if (place.kind == PLACE_OF_ANOTHER) {
        give_way(d, place.another);
        c->seated = true;
    }
    if (greeting)
        greet(door, socket);
    else
        h2o_accept(door->accept, socket);
}

static void on_accept(h2o_socket_t *listener, const char *err)
{
    struct door *door = listener->data;
    struct doors *d = door->doors;
    if (err != NULL)
        return;
    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        struct place place = find_place(d, door);
        if (place.kind == PLACE_NONE && i > 0)
            return; /* perhaps nobody else waits; if somebody does, the loop wakes for it again */
        if (place.kind == PLACE_NONE) {
            crowd_ask(crowd_of(d), d->worker->process->place);
            let_in(d, false, false);
            return;
        }
        h2o_socket_t *socket = h2o_evloop_socket_accept(listener);
        if (socket == NULL) {
            bool out = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            give_place_back(d, place);
            if (out)
                let_in(d, false, true);
            return;
        }
        come_in(door, socket, place);
    }
}

/* another worker has nobody who may give way */
static void help(struct doors *d)
{
    struct conn *c = crowd_asks(crowd_of(d), d->worker->process->place) ? room_find(d->room, d->connections) : NULL;
    if (c == NULL || !crowd_answer(crowd_of(d)))
        return;
    give_way(d, c);
    crowd_unclaim(crowd_of(d), d->worker->process->place);
}

/* ---- the sweep ---- */

/* the library has nothing to send on this connection before the head is whole, so we may */
static void refuse_head(const struct conn *c)
{
    static const char answer[] =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 91\r\n\r\n"
        "{\"error\":{\"code\":\"bad_request\",\"message\":\"The head of the request is larger than 32 KiB.\"}}";
    if (c->socket->ssl == NULL && send(h2o_socket_get_fd(c->socket), answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
        return; /* it is going anyway */
}

static void sweep_receiving(struct conn *c, uint64_t now)
{
    const struct conf *conf = c->worker->conf;
    const h2o_buffer_t *input = c->socket->input;
    conn_received(c, now);
    if (!c->head_done && input->size > CONN_HEAD_MAX) {
        refuse_head(c);
        end(c);
    } else if (now - c->since_ms > (c->head_done ? conf->body_timeout_ms : conf->header_timeout_ms))
        end(c);
}

static void sweep_idle(struct conn *c, uint64_t now)
{
    const struct worker *w = c->worker;
    uint64_t idle = now - c->since_ms, most = c->requests == 0 ? w->conf->header_timeout_ms : w->conf->idle_timeout_ms;
    if (w->draining)
        most = w->stopping ? STOP_IDLE_MS : GENTLE_IDLE_MS;
    if (idle >= most && conn_quiet(c))
        end(c);
}

static void sweep_sending(struct conn *c, uint64_t now)
{
    uint64_t sent = conn_taken(c);
    if (conn_keeps_pace(c, sent)) {
        c->paced = sent;
        c->paced_ms = now;
    }
    if (sent != c->sent) {
        c->sent = sent;
        c->since_ms = now;
    } else if (now - c->since_ms > (c->streaming && c->worker->conf->send_timeout_ms < 3 * STREAM_BEAT_MS
                                        ? 3 * STREAM_BEAT_MS
                                        : c->worker->conf->send_timeout_ms))
        end(c);
}

/* nothing reads from a connection while its request is held */
static void sweep_held(struct conn *c)
{
    struct pollfd peer = {h2o_socket_get_fd(c->socket), POLLRDHUP, 0};
    c->vanished = poll(&peer, 1, 0) > 0 && (peer.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void sweep_conn(struct conn *c, uint64_t now)
{
    if (c->ended)
        return;
    if (c->greeting != NULL) {
        if (now - c->since_ms >= GREETING_MS)
            end(c);
    } else if (c->request != NULL) {
        if (c->sending)
            sweep_sending(c, now);
        else
            sweep_held(c);
    } else if (c->socket->input->size > 0)
        sweep_receiving(c, now);
    else
        sweep_idle(c, now);
}

/* what is being received on it; what a handler has is not its to give up */
static size_t receiving(const struct conn *c)
{
    return c->ended || c->request != NULL ? 0 : c->socket->input->size;
}

static size_t answering(const struct conn *c)
{
    return c->ended ? 0 : c->held;
}

static uint64_t waits_ms(const struct conn *c)
{
    return c->worker->now_ms - c->held_ms + 1;
}

static uint64_t is_large(const struct conn *c)
{
    return receiving(c);
}

/* What may be given back: the bytes a connection takes, and which go first: those of which there is more. */
struct bounded {
    size_t (*bytes)(const struct conn *c);
    uint64_t (*first)(const struct conn *c);
};
static const struct bounded uploads = {receiving, is_large}, answers = {answering, waits_ms};

static unsigned class_of(const struct bounded *what, const struct conn *c)
{
    uint64_t first = what->bytes(c) == 0 ? 0 : what->first(c);
    return first == 0 ? 0 : 64 - (unsigned)__builtin_clzll(first);
}

/* the first of them, by powers of two, until ${excess} bytes are given back: two looks at every connection, however many must go */
static void end_some(struct doors *d, const struct bounded *what, size_t excess)
{
    size_t bytes[65] = {0}, freed = 0;
    unsigned class = 64;
    for (const struct conn *c = d->conns.next; c != &d->conns; c = c->next)
        bytes[class_of(what, c)] += what->bytes(c);
    for (size_t above = 0; class > 1 && above + bytes[class] < excess; class--)
        above += bytes[class];
    /* all of the classes above that one, and of it as many as it takes */
    for (unsigned pass = 0; pass < 2; pass++)
        for (struct conn *c = d->conns.next; c != &d->conns && freed < excess; c = c->next) {
            unsigned its = class_of(what, c);
            if (pass == 0 ? its <= class : its != class)
                continue;
            freed += what->bytes(c);
            end(c);
        }
}

static void sweep(struct doors *d)
{
    uint64_t now = d->worker->now_ms;
    lingering_tick(d->lingering, now);
    size_t buffered = 0;
    for (struct conn *c = d->conns.next, *next; c != &d->conns; c = next) {
        next = c->next;
        sweep_conn(c, now);
        buffered += receiving(c);
    }
    if (buffered > BUFFERED_MAX)
        end_some(d, &uploads, buffered - BUFFERED_MAX);
}

/* ---- listeners ---- */

static void serve(struct door *door)
{
    int fd = dup(door->listener->fds[door->slot]);
    if (fd < 0)
        return; /* tried again at the next tick */
    door->socket = h2o_evloop_socket_create(door->doors->worker->ctx.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    door->socket->data = door;
    if (!door->doors->full)
        h2o_socket_read_start(door->socket, on_accept);
}

static void leave(struct door *door)
{
    if (door->socket != NULL)
        h2o_socket_close(door->socket);
    door->socket = NULL;
}

static bool orphaned(const struct doors *d, const struct door *door)
{
    const struct scoreboard *sb = d->worker->process->scoreboard;
    uint64_t since = score_get(sb->listener[door->slot].unserved_since_ms), now = d->worker->now_ms;
    if (since < d->opened_ms)
        since = d->opened_ms;
    return score_get(sb->listener[door->slot].pid) == 0 && now > since && now - since > ADOPT_AFTER_MS;
}

/* of the sockets of removed slots; the master's is the last copy, or closing them would reset what waits there */
static void let_go(struct doors *d, unsigned slots)
{
    if (slots >= d->slots)
        return;
    for (size_t i = 0; i < d->count; i++) {
        struct door *door = &d->doors[i];
        if (door->listener->shared || door->slot < slots || door->slot >= d->slots)
            continue;
        leave(door);
        close(door->listener->fds[door->slot]);
    }
    d->slots = slots;
    score_set(d->worker->process->score->slots, slots);
}

void doors_tick(struct doors *d)
{
    uint64_t now = d->worker->now_ms;
    if (d->full && now >= d->try_at_ms)
        let_in(d, true, true);
    help(d);
    let_go(d, score_get(d->worker->process->scoreboard->listener_slots));
    for (size_t i = 0; d->open && i < d->count; i++) {
        struct door *door = &d->doors[i];
        if (!door->listener->shared && door->slot >= d->slots)
            continue;
        if (door->own || door->listener->shared) {
            if (door->socket == NULL)
                serve(door);
        } else if (door->socket == NULL && orphaned(d, door))
            serve(door);
        else if (door->socket != NULL && score_get(d->worker->process->scoreboard->listener[door->slot].pid) != 0)
            leave(door);
    }
    if (d->held > ANSWERS_MAX)
        end_some(d, &answers, d->held - ANSWERS_MAX);
    if (now >= d->sweep_at_ms) {
        d->sweep_at_ms = now + (d->worker->draining ? SWEEP_MS / 10 : now < d->pressed_until_ms ? SWEEP_MS / 5 : SWEEP_MS);
        sweep(d);
    }
}

int doors_wake_ms(const struct doors *d, int most)
{
    return d->full && most > TRY_ROOM_EVERY_MS ? TRY_ROOM_EVERY_MS : most;
}

void doors_open(struct doors *d)
{
    struct process *p = d->worker->process;
    d->open = true;
    d->opened_ms = d->worker->now_ms;
    doors_tick(d);
    atomic_store(&p->scoreboard->listener[p->index].pid, getpid());
}

void doors_close(struct doors *d)
{
    struct process *p = d->worker->process;
    int32_t mine = getpid();
    d->open = false;
    for (size_t i = 0; i < d->count; i++)
        if (d->doors[i].socket != NULL) {
            on_accept(d->doors[i].socket, NULL);
            leave(&d->doors[i]);
        }
    let_go(d, 0);
    score_set(p->scoreboard->listener[p->index].unserved_since_ms, d->worker->now_ms);
    atomic_compare_exchange_strong(&p->scoreboard->listener[p->index].pid, &mine, 0);
    d->sweep_at_ms = 0;
}

size_t doors_connections(const struct doors *d)
{
    return d->connections + lingering_count(d->lingering);
}

/* ---- making them ---- */

static void make_accepts(struct doors *d)
{
    struct process *p = d->worker->process;
    for (size_t i = 0; i < p->listeners_count; i++)
        d->accept[i] = (h2o_accept_ctx_t){.ctx = &d->worker->ctx,
                                          .hosts = d->worker->config.hosts,
                                          .ssl_ctx = p->listeners[i].tls ? p->tls->ctx[p->listeners[i].conf_index] : NULL};
}

struct doors *doors_new(struct worker *w)
{
    struct process *p = w->process;
    struct doors *d = calloc(1, sizeof(*d));
    size_t count = 0;
    for (size_t i = 0; i < p->listeners_count; i++)
        count += p->listeners[i].count;
    if (d == NULL || (d->doors = calloc(count, sizeof(*d->doors))) == NULL || (d->lingering = lingering_new(w->ctx.loop)) == NULL ||
        (d->room = room_new(w, &d->conns)) == NULL) {
        doors_free(d);
        return NULL;
    }
    d->worker = w;
    d->conns.prev = d->conns.next = &d->conns;
    d->slots = score_get(p->score->slots);
    for (size_t i = 0; i < p->listeners_count; i++)
        for (size_t k = 0; k < p->listeners[i].count; k++)
            d->doors[d->count++] =
                (struct door){.doors = d, .listener = &p->listeners[i], .slot = k, .own = k == p->index, .accept = &d->accept[i]};
    make_accepts(d);
    return d;
}

void doors_free(struct doors *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->count; i++)
        leave(&d->doors[i]);
    lingering_free(d->lingering);
    room_free(d->room);
    free(d->doors);
    free(d);
}
