/* How far the client of a connection is: with its request, or with taking the response. */
#include "core/conn/conn_internal.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* an upload or a response advances by at least this much, or it is slow */
#define PROGRESS_BYTES 2048

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
