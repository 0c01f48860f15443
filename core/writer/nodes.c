#include "core/writer/nodes.h"

#include "core/auth/secret_file.h"
#include "core/base/cidr.h"
#include "core/base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define STRANGERS_MAX 1024 /* connections with an unfinished handshake */
#define LOG_MS 5000        /* between two lines about refused nodes */

static bool make_context(struct nodes *n, char *why, size_t why_size)
{
    struct channel_tls_key key;
    if (!secret_file_key(n->process->conf->cluster_key_file, key.bytes, why, why_size))
        return false;
    n->tls = channel_tls_context_new(&key, CHANNEL_VERSION);
    explicit_bzero(&key, sizeof(key));
    if (n->tls == NULL)
        snprintf(why, why_size, "out of memory");
    return n->tls != NULL;
}

bool nodes_start(struct nodes *n, int epoll)
{
    char why[512] = "no descriptor can be watched";
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

/* It has not proved that it has the key. */
static bool is_stranger(const struct client *client)
{
    return client->role == ROLE_NODE && !client->has_hello;
}

static size_t count_strangers(const struct nodes *n)
{
    size_t count = 0;
    for (size_t i = 0; i < n->clients->count; i++)
        count += is_stranger(n->clients->list[i]);
    return count;
}

void nodes_accept(struct nodes *n)
{
    struct channel channel;
    size_t strangers = count_strangers(n);
    n->arrived = false;
    for (int fd; (fd = accept4(n->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;)
        if (strangers++ >= STRANGERS_MAX)
            close(fd);
        else if (channel_tls_accept(n->tls, &channel, fd))
            clients_add(n->clients, &channel, ROLE_NODE);
}

void nodes_say_refused(struct nodes *n, const struct client *client, const char *why)
{
    struct sockaddr_storage peer = {0};
    socklen_t size = sizeof(peer);
    struct ip ip;
    char host[INET6_ADDRSTRLEN] = "an unknown address";
    const uint64_t now = clock_mono_ms();
    if (now < n->logged_ms + LOG_MS)
        return;
    n->logged_ms = now;
    if (getpeername(client->channel.fd, (struct sockaddr *)&peer, &size) == 0 &&
        ip_of((struct sockaddr *)&peer, &ip))
        ip_text(&ip, host);
    log_warn("the cluster: refused a node at %s: %s", host, why);
}

static void end_slow(struct nodes *n, struct client *client)
{
    if (is_stranger(client) && !client->gone &&
        clock_mono_ms() - client->connected_ms > CHANNEL_TLS_HANDSHAKE_MS) {
        nodes_say_refused(n, client, "its handshake took too long");
        client->gone = true;
    }
}

void nodes_end_slow(struct nodes *n)
{
    for (size_t i = 0; n->tls != NULL && i < n->clients->count; i++)
        end_slow(n, n->clients->list[i]);
}
