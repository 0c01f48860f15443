#include "core/writer/nodes.h"

#include "core/base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static bool make_context(struct nodes *n, char *why, size_t why_size)
{
    struct channel_tls_key key;
    if (!channel_tls_key(n->process->conf->cluster_key_file, &key, why, why_size))
        return false;
    n->tls = channel_tls_context_new(&key, CHANNEL_VERSION);
    explicit_bzero(&key, sizeof(key));
    if (n->tls == NULL)
        snprintf(why, why_size, "out of memory");
    return n->tls != NULL;
}

bool nodes_start(struct nodes *n, int epoll)
{
    char why[512];
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &n->arrived};
    n->fd = -1;
    if (n->leading->thread == NULL)
        return true;
    if (make_context(n, why, sizeof(why)))
        n->fd = channel_tls_listen(n->process->conf->cluster_address, why, sizeof(why));
    if (n->fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, n->fd, &event) == 0)
        return true;
    log_error("the cluster: other nodes cannot reach this one: %s", why);
    return false;
}

void nodes_free(struct nodes *n)
{
    if (n->fd >= 0)
        close(n->fd);
    channel_tls_context_free(n->tls);
}

void nodes_accept(struct nodes *n)
{
    struct channel channel;
    n->arrived = false;
    for (int fd; (fd = accept4(n->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;)
        if (channel_tls_accept(n->tls, &channel, fd))
            clients_add(n->clients, &channel, ROLE_NODE);
}

void nodes_end_slow(struct nodes *n)
{
    const uint64_t now = clock_mono_ms();
    for (size_t i = 0; n->tls != NULL && i < n->clients->count; i++) {
        struct client *client = n->clients->list[i];
        if (client->role == ROLE_NODE && !client->greeted &&
            now - client->connected_ms > CHANNEL_TLS_HANDSHAKE_MS)
            client->gone = true;
    }
}
