#include "core/conn/lingering_close_internal.h"

#include <h2o/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_MS 2000
#define LINGER_MAX_BYTES (64u << 20)

struct lingerer {
    struct lingerer *next;
    struct lingering *all;
    h2o_socket_t *socket;
    uint64_t until_ms;
    size_t bytes;
};

struct lingering {
    h2o_loop_t *loop;
    struct lingerer *first;
    size_t count, most; /* above ${most}: closed at once */
};

struct lingering *lingering_new(void *loop, size_t most)
{
    struct lingering *l = calloc(1, sizeof(*l));
    if (l != NULL)
        *l = (struct lingering){.loop = loop, .most = most};
    return l;
}

static void lingerer_close(struct lingerer **at)
{
    struct lingerer *one = *at;
    *at = one->next;
    one->all->count--;
    h2o_socket_close(one->socket);
    free(one);
}

void lingering_free(struct lingering *l)
{
    while (l != NULL && l->first != NULL)
        lingerer_close(&l->first);
    free(l);
}

/* MSG_TRUNC drops the input without copying it. False: the client closed, or sent too much. */
static bool discard(struct lingerer *one)
{
    ssize_t got;
    while ((got = recv(h2o_socket_get_fd(one->socket), NULL, 1u << 20, MSG_TRUNC | MSG_DONTWAIT)) >
           0)
        if ((one->bytes += (size_t)got) > LINGER_MAX_BYTES)
            return false;
    return got < 0 && (errno == EAGAIN || errno == EINTR);
}

static void on_readable(h2o_socket_t *socket, const char *err)
{
    struct lingerer *one = socket->data;
    struct lingerer **at = &one->all->first;
    if (err == NULL && discard(one))
        return;
    while (*at != one)
        at = &(*at)->next;
    lingerer_close(at);
}

void lingering_add(struct lingering *l, int fd, uint64_t now_ms)
{
    struct lingerer *one = l->count < l->most ? calloc(1, sizeof(*one)) : NULL;
    if (one == NULL || shutdown(fd, SHUT_WR) != 0) {
        free(one);
        close(fd);
        return;
    }
    *one = (struct lingerer){.next = l->first, .all = l, .until_ms = now_ms + LINGER_MS};
    one->socket = h2o_evloop_socket_create(l->loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    one->socket->data = one;
    l->first = one;
    l->count++;
    h2o_socket_read_start(one->socket, on_readable);
}

void lingering_tick(struct lingering *l, uint64_t now_ms)
{
    for (struct lingerer **at = &l->first; *at != NULL;)
        if ((*at)->until_ms <= now_ms)
            lingerer_close(at);
        else
            at = &(*at)->next;
}

size_t lingering_count(const struct lingering *l)
{
    return l->count;
}
