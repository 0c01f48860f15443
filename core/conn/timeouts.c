#include "core/conn/acceptor_internal.h"

#include "core/shm/connection_table.h"
#include "core/conn/lingering_close.h"
#include "core/conn/eviction.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

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
/* a reload waits this long for an idle connection to be used once more; a stop, for one that is in use, or has just come and says nothing yet */
#define GENTLE_IDLE_MS 5000
#define STOP_IDLE_MS 500

/* the library has nothing to send on this connection before the head is whole, so we may */
static void refuse_head(const struct conn *c)
{
    static const char body[] = "{\"error\":{\"code\":\"bad_request\",\"message\":\"The request head is larger than 32 KiB.\"}}";
    char answer[512];
    int n = snprintf(answer, sizeof(answer),
                     "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\n"
                     "X-Request-Id: %.*s\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                     LOOP_ID_BYTES, loop_next_id(c->loop).p, strlen(body), body);
    if (c->socket->ssl == NULL && send(h2o_socket_get_fd(c->socket), answer, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* it is going anyway */
}

static void sweep_receiving(struct conn *c, uint64_t now)
{
    const struct conf *conf = c->loop->conf;
    const h2o_buffer_t *input = c->socket->input;
    conn_received(c, now);
    if (!c->head_done && input->size > CONN_HEAD_MAX) {
        refuse_head(c);
        conn_end(c);
    } else if (now - c->since_ms > (c->head_done ? conf->body_timeout_ms : conf->header_timeout_ms))
        conn_end(c);
}

static void sweep_idle(struct conn *c, uint64_t now)
{
    const struct loop *w = c->loop;
    uint64_t idle = now - c->since_ms, most = c->requests == 0 ? w->conf->header_timeout_ms : w->conf->idle_timeout_ms;
    if (w->draining)
        most = w->stopping ? STOP_IDLE_MS : GENTLE_IDLE_MS;
    if (idle >= most && conn_quiet(c))
        conn_end(c);
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
    } else if (now - c->since_ms > (c->streaming && c->loop->conf->send_timeout_ms < 3 * CONN_BEAT_MS
                                        ? 3 * CONN_BEAT_MS
                                        : c->loop->conf->send_timeout_ms))
        conn_end(c);
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
    if (c->proxy_header != NULL) {
        if (now - c->since_ms >= GREETING_MS)
            conn_end(c);
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
    return c->loop->now_ms - c->held_ms + 1;
}

static uint64_t is_large(const struct conn *c)
{
    return receiving(c);
}

/* What may be given back: the bytes a connection takes; which go first: those of which there is more; and as what they are counted. */
struct bounded {
    size_t (*bytes)(const struct conn *c);
    uint64_t (*first)(const struct conn *c);
    enum connection_table_event event;
};
static const struct bounded uploads = {receiving, is_large, CONNECTIONS_UPLOAD_CUT}, answers = {answering, waits_ms, CONNECTIONS_RESPONSE_CUT};

static unsigned class_of(const struct bounded *what, const struct conn *c)
{
    uint64_t first = what->bytes(c) == 0 ? 0 : what->first(c);
    return first == 0 ? 0 : 64 - (unsigned)__builtin_clzll(first);
}

/* the first of them, by powers of two, until ${excess} bytes are given back: two looks at every connection, however many must go */
static void end_some(struct acceptor *d, const struct bounded *what, size_t excess)
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
            conn_end(c);
            connection_table_count_event(acceptor_connection_table(d), what->event);
        }
}

void timeouts_conns(struct acceptor *d)
{
    uint64_t now = d->loop->now_ms;
    lingering_tick(d->lingering, now);
    accept_queue_sweep(d);
    size_t buffered = 0;
    for (struct conn *c = d->conns.next, *next; c != &d->conns; c = next) {
        next = c->next;
        sweep_conn(c, now);
        buffered += receiving(c);
    }
    if (buffered > BUFFERED_MAX)
        end_some(d, &uploads, buffered - BUFFERED_MAX);
}

void timeouts_answers(struct acceptor *d)
{
    if (d->held > ANSWERS_MAX)
        end_some(d, &answers, d->held - ANSWERS_MAX);
}
