#include "core/conn/conn_internal.h"

#include "core/conn/eviction_internal.h"
#include "core/conn/lingering_close_internal.h"
#include "core/shm/connection_table.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* an upload or a response advances by at least this much, or it is slow */
#define PROGRESS_BYTES 2048

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

/* ---- progress ---- */

bool conn_input_empty(const struct conn *c)
{
    int unread = 0;
    return ioctl(h2o_socket_get_fd(c->socket), FIONREAD, &unread) != 0 || unread == 0;
}

uint64_t conn_acked_bytes(const struct conn *c)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    if (getsockopt(h2o_socket_get_fd(c->socket), IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
        return info.tcpi_bytes_acked;
    int unsent = 0;
    return ioctl(h2o_socket_get_fd(c->socket), TIOCOUTQ, &unsent) == 0
               ? (uint64_t)c->socket->bytes_written - (uint64_t)unsent
               : c->acked + 1;
}

bool conn_made_progress(const struct conn *c, uint64_t acked)
{
    return acked - c->progress_acked >= PROGRESS_BYTES;
}

static bool head_complete(const h2o_buffer_t *input)
{
    size_t n = input->size < CONN_HEAD_MAX ? input->size : CONN_HEAD_MAX;
    return memmem(input->bytes, n, "\r\n\r\n", 4) != NULL ||
           memmem(input->bytes, n, "\n\n", 2) != NULL;
}

void conn_note_input(struct conn *c, uint64_t now)
{
    if (!c->receiving) {
        c->receiving = true;
        c->phase_ms = now;
    }
    size_t size = c->socket->input->size;
    if (!c->head_done && head_complete(c->socket->input)) {
        c->head_done = true;
        c->phase_ms = now;
        /* a first head may have been complete for a while, at most since the admission */
        c->progress_input = c->requests == 0 ? 0 : size;
        c->progress_ms = c->requests == 0 ? c->admitted_ms : now;
    }
    if (c->head_done && size >= c->progress_input + PROGRESS_BYTES) {
        c->progress_input = size;
        c->progress_ms = now;
    }
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
    if (a->paused)
        acceptor_set_accepting(a, true, true);
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
