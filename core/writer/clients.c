#include "core/writer/clients.h"

#include "core/writer/grow.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PENDING_MAX (8u << 20) /* a client that does not read its answers is not read from */

bool clients_listen(struct clients *c)
{
    struct epoll_event listen = {.events = EPOLLIN, .data.ptr = NULL};
    return epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->process->writer_fd, &listen) == 0;
}

static void watch(struct clients *c, struct client *client, int op)
{
    struct epoll_event ev = {
        .events = (client->full ? 0 : EPOLLIN) | (client->blocked ? EPOLLOUT : 0),
        .data.ptr = client,
    };
    epoll_ctl(c->epoll, op, client->channel.fd, &ev);
}

static enum role role_of(const struct process *self, pid_t pid)
{
    enum role role = scoreboard_role_of(self->scoreboard, pid);
    for (size_t i = 0; role == ROLE_NONE && i < self->old_workers_count; i++)
        if (self->old_workers[i] == pid)
            role = ROLE_WORKER;
    return role != ROLE_NONE ? role : ROLE_COMMAND;
}

void clients_add(struct clients *c, const struct channel *channel, enum role role)
{
    struct client *client = calloc(1, sizeof(*client));
    struct channel refused = *channel;
    if (client == NULL) {
        channel_close(&refused);
        return;
    }
    client->channel = *channel;
    client->role = role;
    client->connected_ms = clock_mono_ms();
    c->list = array_grow(c->list, c->count, &c->capacity, sizeof(*c->list));
    c->list[c->count++] = client;
    watch(c, client, EPOLL_CTL_ADD);
}

void clients_accept(struct clients *c)
{
    for (;;) {
        int fd = accept4(c->process->writer_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        struct ucred who = {0};
        socklen_t size = sizeof(who);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 ||
            (who.uid != geteuid() && who.uid != 0)) {
            close(fd);
            continue;
        }
        struct channel channel;
        channel_init(&channel, fd);
        clients_add(c, &channel, role_of(c->process, who.pid));
    }
}

void client_answer(struct client *client, uint64_t sequence, uint64_t entry,
                   const struct store_answer *answer)
{
    client->unanswered--;
    channel_put(&client->channel, FRAME_ANSWER, sequence, entry,
                (struct str){(const char *)answer, sizeof(*answer)});
}

void client_flush(struct clients *c, struct client *client)
{
    if (client->gone || (channel_pending(&client->channel) == 0 && !client->blocked))
        return;
    int left = channel_flush(&client->channel);
    bool blocked = left == 1, full = channel_pending(&client->channel) > PENDING_MAX;
    if (left < 0) {
        client->gone = true;
    } else if (client->blocked != blocked || client->full != full) {
        client->blocked = blocked;
        client->full = full;
        watch(c, client, EPOLL_CTL_MOD);
    }
}

void clients_flush(struct clients *c)
{
    for (size_t i = 0; i < c->count; i++)
        client_flush(c, c->list[i]);
}

void clients_notify(struct clients *c, const struct store_event *event)
{
    const struct str payload = {(const char *)event, sizeof(*event)};
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i]->role == ROLE_WORKER && !c->list[i]->gone)
            channel_put(&c->list[i]->channel, FRAME_EVENT, 0, 0, payload);
}

void clients_tell_position(struct clients *c, uint64_t turn)
{
    const struct store_event event = {.kind = EVENT_POSITION};
    for (size_t i = 0; i < c->count; i++) {
        struct client *client = c->list[i];
        if (!client->awaits_position || client->position_turn == turn)
            continue;
        client->awaits_position = false;
        channel_put(&client->channel, FRAME_EVENT, 0, 0,
                    (struct str){(const char *)&event, sizeof(event)});
    }
}

bool clients_has(const struct clients *c, uint64_t id)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i]->id == id && !c->list[i]->gone)
            return true;
    return false;
}

struct client *clients_auditor(struct clients *c, unsigned index)
{
    for (size_t i = 0; i < c->count; i++) {
        struct client *client = c->list[i];
        if (client->role == ROLE_AUDITOR && client->has_hello && !client->gone &&
            !client->draining && client->index == index)
            return client;
    }
    return NULL;
}

static void client_free(struct client *client)
{
    channel_close(&client->channel);
    buf_free(&client->unconfirmed);
    free(client);
}

void clients_remove(struct clients *c, size_t i)
{
    client_free(c->list[i]);
    c->list[i] = c->list[--c->count];
}

void clients_free(struct clients *c)
{
    while (c->count > 0)
        clients_remove(c, c->count - 1);
    free(c->list);
}
