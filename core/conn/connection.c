#include "core/conn/conn_internal.h"

#include "core/conn/eviction_internal.h"
#include "core/conn/lingering_close_internal.h"
#include "core/shm/connection_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    if (c->lingering)
        return;
    c->linger_fd = dup(h2o_socket_get_fd(c->socket));
    c->lingering = c->linger_fd >= 0;
}

void conn_response_memory(struct conn *c, size_t bytes)
{
    if (c->ended)
        return;
    if (c->socket->ssl != NULL)
        bytes *= 2; /* plain and encrypted */
    if (c->response_bytes == 0)
        c->response_ms = c->loop->now_ms;
    c->acceptor->response_bytes += bytes - c->response_bytes;
    c->response_bytes = bytes;
}

/* The client sends its next request already, or hung up: stop watching, as libh2o wants it. */
static void on_watched_readable(h2o_socket_t *socket, const char *err)
{
    (void)err;
    h2o_socket_read_stop(socket);
}

void conn_watch(struct conn *c)
{
    h2o_socket_dont_read(c->socket, 1);
    h2o_socket_read_start(c->socket, on_watched_readable);
}

void conn_unwatch(struct conn *c)
{
    h2o_socket_read_stop(c->socket);
    h2o_socket_dont_read(c->socket, 0);
}

bool conn_send_error(struct conn *c, const char *status, const char *headers, const char *code,
                     const char *message)
{
    char body[256], response[768];
    int size = snprintf(body, sizeof(body), "{\"error\":{\"code\":\"%s\",\"message\":\"%s\"}}",
                        code, message);
    int n = snprintf(response, sizeof(response),
                     "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
                     "X-Content-Type-Options: nosniff\r\nX-Request-Id: %.*s\r\n"
                     "%sConnection: close\r\nContent-Length: %d\r\n\r\n%s",
                     status, LOOP_ID_BYTES, loop_next_id(c->loop).p, headers, size, body);
    return send(h2o_socket_get_fd(c->socket), response, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

/* ---- life ---- */

static void on_conn_closed(void *data)
{
    struct conn *c = data;
    struct acceptor *a = c->acceptor;
    conn_response_memory(c, 0);
    c->prev->next = c->next;
    c->next->prev = c->prev;
    *(c->queued ? &a->waiting : &a->connections) -= 1;
    eviction_forget(a->eviction, c);
    connection_table_remove_address(acceptor_connection_table(a), c->address);
    if (c->counted)
        connection_table_remove(acceptor_connection_table(a), a->loop->process->connection_slot);
    else if (c->reserved)
        a->reserved--;
    if (c->lingering)
        lingering_add(a->lingering, c->linger_fd, c->loop->now_ms);
    free(c->proxy_read);
    free(c);
    a->retry_at_ms = 0;
}

static void ring_add(struct conn *head, struct conn *c)
{
    c->prev = head->prev;
    c->next = head;
    c->prev->next = c;
    head->prev = c;
}

struct conn *conn_new(struct acceptor *a, struct endpoint *endpoint, h2o_socket_t *socket,
                      bool queued)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    *c = (struct conn){.loop = a->loop,
                       .acceptor = a,
                       .endpoint = endpoint,
                       .socket = socket,
                       .admitted_ms = a->loop->now_ms,
                       .phase_ms = a->loop->now_ms,
                       .queued = queued,
                       .internal = endpoint->listener->internal};
    ring_add(queued ? &a->accept_queue : &a->conns, c);
    *(queued ? &a->waiting : &a->connections) += 1;
    socket->on_close.cb = on_conn_closed;
    socket->on_close.data = c;
    return c;
}

void conn_leave_queue(struct conn *c)
{
    struct acceptor *a = c->acceptor;
    c->prev->next = c->next;
    c->next->prev = c->prev;
    ring_add(&a->conns, c);
    a->waiting--;
    a->connections++;
    c->queued = false;
    c->admitted_ms = c->phase_ms = a->loop->now_ms;
}

void conn_shutdown(struct conn *c)
{
    conn_response_memory(c, 0);
    c->ended = true;
    shutdown(h2o_socket_get_fd(c->socket), SHUT_RDWR);
}
