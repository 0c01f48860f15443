#include "core/conn/acceptor_internal.h"

#include "core/base/log.h"
#include "core/conn/proxy_protocol.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

/* what has been read of the header; the rest of the connection stays in the kernel */
struct pending_header {
    h2o_accept_ctx_t *accept;
    size_t n;
    uint8_t bytes[PROXY_HEADER_MAX];
};

static void greeted(struct conn *c, const struct proxy_header *header)
{
    h2o_socket_t *socket = c->socket;
    h2o_accept_ctx_t *accept = c->proxy_header->accept;
    h2o_socket_read_stop(socket);
    h2o_socket_dont_read(socket, 0);
    free(c->proxy_header);
    c->proxy_header = NULL;
    c->since_ms = c->loop->now_ms;
    c->direct = header->client.ss_family == AF_UNSPEC;
    if (!c->direct) {
        struct sockaddr_storage client = header->client;
        h2o_socket_setpeername(socket, (struct sockaddr *)&client, header->client_size);
    }
    if (conn_arrive(c, accept->ssl_ctx != NULL))
        h2o_accept(accept, socket);
}

/* all that is there while it belongs to the header, and not a byte beyond it */
static void on_greeting(h2o_socket_t *socket, const char *err)
{
    struct conn *c = socket->on_close.data;
    struct pending_header *g = c->proxy_header;
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

bool proxy_header_trusted(struct acceptor *d, h2o_socket_t *socket)
{
    struct sockaddr_storage peer = {0};
    struct ip ip;
    if (h2o_socket_getpeername(socket, (struct sockaddr *)&peer) == 0 || !ip_of((struct sockaddr *)&peer, &ip))
        return true; /* a Unix socket's */
    if (cidr_list_has(&d->loop->conf->trusted_proxies, &ip))
        return true;
    if (d->warned_ms == 0 || d->loop->now_ms - d->warned_ms > WARN_EVERY_MS) {
        char text[INET6_ADDRSTRLEN];
        ip_text(&ip, text);
        log_warn("a connection from %s to a listener with proxy_protocol is closed: it is not in trusted_proxies", text);
        d->warned_ms = d->loop->now_ms;
    }
    return false;
}

void proxy_header_read(struct endpoint *endpoint, h2o_socket_t *socket)
{
    struct conn *c = socket->on_close.data;
    struct pending_header *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        h2o_socket_close(socket);
        return;
    }
    g->accept = endpoint->accept;
    c->proxy_header = g;
    h2o_socket_dont_read(socket, 1);
    h2o_socket_read_start(socket, on_greeting);
}

bool proxy_header_expected(const struct endpoint *endpoint)
{
    const struct listener *l = endpoint->listener;
    return !l->internal && endpoint->acceptor->loop->conf->listen[l->conf_index].proxy_protocol;
}
