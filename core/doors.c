#include "doors.h"

#include "linger.h"
#include "log.h"
#include "proxy_protocol.h"
#include "http/stream.h"
#include "tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTS_PER_WAKE 32
#define ADOPT_AFTER_MS 250
#define SWEEP_MS 1000
#define TRY_EVERY_MS 250
#define HEAD_MAX (32u << 10)
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
/* a reload waits this long for an idle connection to be used once more */
#define GENTLE_IDLE_MS 5000

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
    size_t count, connections, max_connections;
    unsigned slots; /* the first: those whose sockets we have a copy of */
    struct conn conns; /* ring's anchor */
    struct lingering *lingering;
    h2o_accept_ctx_t accept[LISTENERS_MAX];
    uint64_t sweep_at_ms, opened_ms, warned_ms, try_at_ms;
    size_t held; /* by answers, on connections that are not ended */
    bool open;
    bool full; /* nobody is let in until a connection ends, or the next try finds that descriptors or memory are free again */
};

static void on_accept(h2o_socket_t *listener, const char *err);

/* ---- connections ---- */

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
static void let_in(struct doors *d, bool allowed)
{
    d->full = !allowed;
    d->try_at_ms = d->worker->now_ms + TRY_EVERY_MS;
    for (size_t i = 0; i < d->count; i++) {
        h2o_socket_t *socket = d->doors[i].socket;
        if (socket != NULL && h2o_socket_is_reading(socket) != allowed) {
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
    if (c->lingers)
        linger(d->lingering, c->linger_fd, c->worker->now_ms);
    free(c->greeting);
    free(c);
    if (d->full)
        let_in(d, true);
}

static bool conn_new(struct doors *d, const struct door *door, h2o_socket_t *socket)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return false;
    *c = (struct conn){.prev = d->conns.prev,
                       .next = &d->conns,
                       .worker = d->worker,
                       .socket = socket,
                       .since_ms = d->worker->now_ms,
                       .internal = door->listener->internal};
    c->prev->next = c;
    d->conns.prev = c;
    d->connections++;
    socket->on_close.cb = on_conn_closed;
    socket->on_close.data = c;
    return true;
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

static void on_accept(h2o_socket_t *listener, const char *err)
{
    struct door *door = listener->data;
    struct doors *d = door->doors;
    if (err != NULL)
        return;
    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        h2o_socket_t *socket = NULL;
        errno = EMFILE;
        if (d->connections < d->max_connections)
            socket = h2o_evloop_socket_accept(listener);
        if (socket == NULL) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                let_in(d, false);
            return;
        }
        if (!conn_new(d, door, socket)) {
            h2o_socket_close(socket);
            return;
        }
        if (expects_greeting(door))
            greet(door, socket);
        else
            h2o_accept(door->accept, socket);
    }
}

static void end(struct conn *c)
{
    conn_hold(c, 0);
    c->ended = true;
    shutdown(h2o_socket_get_fd(c->socket), SHUT_RDWR);
}

/* ---- the sweep ---- */

static bool head_complete(const h2o_buffer_t *input)
{
    size_t n = input->size < HEAD_MAX ? input->size : HEAD_MAX;
    return memmem(input->bytes, n, "\r\n\r\n", 4) != NULL || memmem(input->bytes, n, "\n\n", 2) != NULL;
}

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
    if (!c->receiving) {
        c->receiving = true;
        c->since_ms = now;
    }
    if (!c->head_done && head_complete(input)) {
        c->head_done = true;
        c->since_ms = now;
    }
    if (!c->head_done && input->size > HEAD_MAX) {
        refuse_head(c);
        end(c);
    } else if (now - c->since_ms > (c->head_done ? conf->body_timeout_ms : conf->header_timeout_ms))
        end(c);
}

static bool nothing_arrived(const struct conn *c)
{
    int waiting = 0;
    return ioctl(h2o_socket_get_fd(c->socket), FIONREAD, &waiting) != 0 || waiting == 0;
}

static void sweep_idle(struct conn *c, uint64_t now)
{
    const struct worker *w = c->worker;
    uint64_t idle = now - c->since_ms, most = c->requests == 0 ? w->conf->header_timeout_ms : w->conf->idle_timeout_ms;
    if (w->draining)
        most = w->stopping ? 0 : GENTLE_IDLE_MS;
    if (idle >= most && nothing_arrived(c))
        end(c);
}

/* what the peer has acknowledged only grows while it reads */
static uint64_t acknowledged(const struct conn *c)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    if (getsockopt(h2o_socket_get_fd(c->socket), IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
        return info.tcpi_bytes_acked;
    int unsent = 0;
    return ioctl(h2o_socket_get_fd(c->socket), TIOCOUTQ, &unsent) == 0 ? (uint64_t)c->socket->bytes_written - (uint64_t)unsent
                                                                       : c->sent + 1;
}

static void sweep_sending(struct conn *c, uint64_t now)
{
    uint64_t sent = acknowledged(c);
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
    if (d->full && d->connections < d->max_connections && now >= d->try_at_ms)
        let_in(d, true);
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
        d->sweep_at_ms = now + (d->worker->draining ? SWEEP_MS / 10 : SWEEP_MS);
        sweep(d);
    }
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
    if (d == NULL || (d->doors = calloc(count, sizeof(*d->doors))) == NULL || (d->lingering = lingering_new(w->ctx.loop)) == NULL) {
        doors_free(d);
        return NULL;
    }
    d->worker = w;
    d->conns.prev = d->conns.next = &d->conns;
    d->slots = score_get(p->score->slots);
    d->max_connections = w->conf->max_connections / w->conf->workers + 1;
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
    free(d->doors);
    free(d);
}
