#include "core/conn/conn_internal.h"

#include "core/base/log.h"
#include "core/conn/proxy_protocol.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The bytes of the header that arrived so far; later bytes stay in the kernel. */
struct proxy_read {
    h2o_accept_ctx_t *accept;
    size_t n;
    uint8_t bytes[PROXY_HEADER_MAX];
};

static void start_http(struct conn *c, const struct proxy_header *header)
{
    h2o_socket_t *socket = c->socket;
    h2o_accept_ctx_t *accept = c->proxy_read->accept;
    h2o_socket_read_stop(socket);
    h2o_socket_dont_read(socket, 0);
    free(c->proxy_read);
    c->proxy_read = NULL;
    c->phase_ms = c->loop->now_ms;
    c->direct = header->client.ss_family == AF_UNSPEC;
    if (!c->direct) {
        struct sockaddr_storage client = header->client;
        h2o_socket_setpeername(socket, (struct sockaddr *)&client, header->client_size);
    }
    if (conn_count_address(c, accept->ssl_ctx != NULL))
        h2o_accept(accept, socket);
}

/* Peek first, so that no byte after the header is taken from the socket. */
static void on_header_bytes(h2o_socket_t *socket, const char *err)
{
    struct conn *c = socket->on_close.data;
    struct proxy_read *p = c->proxy_read;
    struct proxy_header header;
    int fd = h2o_socket_get_fd(socket);
    ssize_t got = err != NULL ? 0 : recv(fd, p->bytes + p->n, sizeof(p->bytes) - p->n, MSG_PEEK);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    enum proxy_verdict verdict =
        got <= 0 ? PROXY_WRONG : proxy_header_parse(p->bytes, p->n + (size_t)got, &header);
    size_t taken = verdict == PROXY_WHOLE ? header.size - p->n : got > 0 ? (size_t)got : 0;
    if (verdict == PROXY_WRONG || recv(fd, p->bytes + p->n, taken, 0) != (ssize_t)taken) {
        h2o_socket_close(socket);
        return;
    }
    p->n += taken;
    if (verdict == PROXY_WHOLE)
        start_http(c, &header);
    else if (p->n == sizeof(p->bytes))
        h2o_socket_close(socket);
}

bool proxy_header_trusted(struct acceptor *a, h2o_socket_t *socket)
{
    struct sockaddr_storage peer = {0};
    struct ip ip;
    if (h2o_socket_getpeername(socket, (struct sockaddr *)&peer) == 0 ||
        !ip_of((struct sockaddr *)&peer, &ip))
        return true; /* a Unix socket */
    if (cidr_list_has(&a->loop->conf->trusted_proxies, &ip))
        return true;
    if (a->warned_proxy_ms == 0 || a->loop->now_ms - a->warned_proxy_ms > WARN_EVERY_MS) {
        char text[INET6_ADDRSTRLEN];
        ip_text(&ip, text);
        log_warn("refusing a connection from %s to a listener with proxy_protocol: the address is "
                 "not in trusted_proxies",
                 text);
        a->warned_proxy_ms = a->loop->now_ms;
    }
    return false;
}

void proxy_header_read(struct endpoint *endpoint, h2o_socket_t *socket)
{
    struct conn *c = socket->on_close.data;
    struct proxy_read *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        h2o_socket_close(socket);
        return;
    }
    p->accept = endpoint->accept;
    c->proxy_read = p;
    h2o_socket_dont_read(socket, 1);
    h2o_socket_read_start(socket, on_header_bytes);
}

bool proxy_header_expected(const struct endpoint *endpoint)
{
    const struct listener *l = endpoint->listener;
    return !l->internal && endpoint->acceptor->loop->conf->listen[l->conf_index].proxy_protocol;
}
