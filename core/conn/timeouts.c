#include "core/conn/conn_internal.h"

#include "core/shm/connection_table.h"
#include "core/conn/lingering_close_internal.h"
#include "core/conn/eviction_internal.h"

#include <poll.h>

/* bounds of a worker: above them the largest uploads, or the oldest responses, are ended */
#ifndef UPLOADS_MAX
#define UPLOADS_MAX (256u << 20)
#endif
#ifndef RESPONSES_MAX
#define RESPONSES_MAX (256u << 20)
#endif
#define PROXY_HEADER_TIMEOUT_MS 5000
/* an idle connection is closed after this time when the worker drains for a reload or a stop */
#define RELOAD_IDLE_MS 5000
#define STOP_IDLE_MS 500

static void check_receiving(struct conn *c, uint64_t now)
{
    const struct conf *conf = c->loop->conf;
    const h2o_buffer_t *input = c->socket->input;
    conn_note_input(c, now);
    if (!c->head_done && input->size > CONN_HEAD_MAX) {
        if (c->socket->ssl == NULL)
            conn_send_error(c, "400 Bad Request", "", "bad_request",
                            "The request head is larger than 32 KiB.");
        conn_shutdown(c);
    } else if (now - c->phase_ms > (c->head_done ? conf->body_timeout_ms : conf->header_timeout_ms))
        conn_shutdown(c);
}

static void check_idle(struct conn *c, uint64_t now)
{
    const struct loop *l = c->loop;
    uint64_t idle = now - c->phase_ms,
             most = c->requests == 0 ? l->conf->header_timeout_ms : l->conf->idle_timeout_ms;
    if (l->draining)
        most = l->stopping ? STOP_IDLE_MS : RELOAD_IDLE_MS;
    if (idle >= most && conn_input_empty(c))
        conn_shutdown(c);
}

/* An idle event stream sends only heartbeats, so it needs time for some. */
static uint64_t send_timeout_ms(const struct conn *c)
{
    uint64_t ms = c->loop->conf->send_timeout_ms;
    return c->streaming && ms < 3 * CONN_HEARTBEAT_MS ? 3 * CONN_HEARTBEAT_MS : ms;
}

static void check_sending(struct conn *c, uint64_t now)
{
    uint64_t acked = conn_acked_bytes(c);
    if (conn_made_progress(c, acked)) {
        c->progress_acked = acked;
        c->progress_ms = now;
    }
    if (acked != c->acked) {
        c->acked = acked;
        c->phase_ms = now;
    } else if (now - c->phase_ms > send_timeout_ms(c))
        conn_shutdown(c);
}

/* Nothing reads from a connection while its request waits. */
static void check_waiting(struct conn *c)
{
    struct pollfd peer = {h2o_socket_get_fd(c->socket), POLLRDHUP, 0};
    c->hung_up = poll(&peer, 1, 0) > 0 && (peer.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void check_conn(struct conn *c, uint64_t now)
{
    if (c->ended)
        return;
    if (c->proxy_read != NULL) {
        if (now - c->phase_ms >= PROXY_HEADER_TIMEOUT_MS)
            conn_shutdown(c);
    } else if (c->request != NULL) {
        if (c->sending)
            check_sending(c, now);
        else
            check_waiting(c);
    } else if (c->socket->input->size > 0)
        check_receiving(c, now);
    else
        check_idle(c, now);
}

/* ---- memory bounds ---- */

/* Of a body that is being received. A request in the pipeline is not cancelled. */
static size_t upload_bytes(const struct conn *c)
{
    return c->ended || c->request != NULL ? 0 : c->socket->input->size;
}

static size_t unread_bytes(const struct conn *c)
{
    return c->ended ? 0 : c->response_bytes;
}

static uint64_t response_age_ms(const struct conn *c)
{
    return c->loop->now_ms - c->response_ms + 1;
}

static uint64_t upload_size(const struct conn *c)
{
    return upload_bytes(c);
}

struct memory_bound {
    size_t (*bytes)(const struct conn *c);      /* freed by closing ${c} */
    uint64_t (*priority)(const struct conn *c); /* the largest is closed first */
    enum connection_table_event event;          /* that counts it */
};
static const struct memory_bound uploads = {upload_bytes, upload_size, CONNECTIONS_UPLOAD_CUT},
                                 responses = {unread_bytes, response_age_ms,
                                              CONNECTIONS_RESPONSE_CUT};

static unsigned class_of(const struct memory_bound *bound, const struct conn *c)
{
    uint64_t priority = bound->bytes(c) == 0 ? 0 : bound->priority(c);
    return priority == 0 ? 0 : 64 - (unsigned)__builtin_clzll(priority);
}

/*
 * Close connections until ${excess} bytes are free. The order by priority is exact to a power of
 * two, so that two passes over the connections are enough.
 */
static void close_some(struct acceptor *a, const struct memory_bound *bound, size_t excess)
{
    size_t bytes[65] = {0}, freed = 0;
    unsigned class = 64;
    for (const struct conn *c = a->conns.next; c != &a->conns; c = c->next)
        bytes[class_of(bound, c)] += bound->bytes(c);
    for (size_t above = 0; class > 1 && above + bytes[class] < excess; class --)
        above += bytes[class];
    /* all classes above ${class} first, then as many of ${class} as needed */
    for (unsigned pass = 0; pass < 2; pass++)
        for (struct conn *c = a->conns.next; c != &a->conns && freed < excess; c = c->next) {
            unsigned own = class_of(bound, c);
            if (pass == 0 ? own <= class : own != class)
                continue;
            freed += bound->bytes(c);
            conn_shutdown(c);
            connection_table_count_event(acceptor_connection_table(a), bound->event);
        }
}

void timeouts_check(struct acceptor *a)
{
    uint64_t now = a->loop->now_ms;
    lingering_tick(a->lingering, now);
    accept_queue_drop_closed(a);
    size_t buffered = 0;
    for (struct conn *c = a->conns.next, *next; c != &a->conns; c = next) {
        next = c->next;
        check_conn(c, now);
        buffered += upload_bytes(c);
    }
    if (buffered > UPLOADS_MAX)
        close_some(a, &uploads, buffered - UPLOADS_MAX);
}

void timeouts_bound_responses(struct acceptor *a)
{
    if (a->response_bytes > RESPONSES_MAX)
        close_some(a, &responses, a->response_bytes - RESPONSES_MAX);
}
