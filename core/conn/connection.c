#include "core/conn/acceptor_internal.h"

#include "core/shm/connection_table.h"
#include "core/conn/lingering_close.h"
#include "core/conn/eviction.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct conn *conn_of(h2o_req_t *req)
{
    return req->conn->callbacks->get_socket(req->conn)->on_close.data;
}

uint64_t conn_hsts_s(const struct conn *c)
{
    const struct listener *l = c->endpoint->listener;
    return l->tls ? c->loop->conf->listen[l->conf_index].tls_hsts_ms / 1000 : 0;
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
        c->held_ms = c->loop->now_ms;
    c->acceptor->held += bytes - c->held;
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

static void on_conn_closed(void *data)
{
    struct conn *c = data;
    struct acceptor *d = c->acceptor;
    conn_hold(c, 0);
    c->prev->next = c->next;
    c->next->prev = c->prev;
    *(c->waits ? &d->waiting : &d->connections) -= 1;
    eviction_forget(d->eviction, c);
    connection_table_remove_address(acceptor_connection_table(d), c->share);
    if (c->seated)
        connection_table_remove(acceptor_connection_table(d), d->loop->process->connection_slot);
    else if (c->extra)
        d->internal_extra--;
    if (c->lingers)
        linger(d->lingering, c->linger_fd, c->loop->now_ms);
    free(c->proxy_header);
    free(c);
    if (d->full)
        endpoint_let_in(d, true, true);
}

static void join(struct conn *ring, struct conn *c)
{
    c->prev = ring->prev;
    c->next = ring;
    c->prev->next = c;
    ring->prev = c;
}

struct conn *conn_new(struct acceptor *d, struct endpoint *endpoint, h2o_socket_t *socket, bool waits)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    *c = (struct conn){.loop = d->loop,
                       .acceptor = d,
                       .endpoint = endpoint,
                       .socket = socket,
                       .came_ms = d->loop->now_ms,
                       .since_ms = d->loop->now_ms,
                       .waits = waits,
                       .internal = endpoint->listener->internal};
    join(waits ? &d->accept_queue : &d->conns, c);
    *(waits ? &d->waiting : &d->connections) += 1;
    socket->on_close.cb = on_conn_closed;
    socket->on_close.data = c;
    return c;
}

void conn_sit(struct conn *c)
{
    struct acceptor *d = c->acceptor;
    c->prev->next = c->next;
    c->next->prev = c->prev;
    join(&d->conns, c);
    d->waiting--;
    d->connections++;
    c->waits = false;
    c->came_ms = c->since_ms = d->loop->now_ms;
}

void conn_end(struct conn *c)
{
    conn_hold(c, 0);
    c->ended = true;
    shutdown(h2o_socket_get_fd(c->socket), SHUT_RDWR);
}
