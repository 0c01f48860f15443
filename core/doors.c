#include "core/doors_parts.h"

#include "core/linger.h"
#include "core/plain_http.h"
#include "core/room.h"
#include "core/tls.h"

#include <stdlib.h>
#include <unistd.h>

#define ADOPT_AFTER_MS 250
#define SWEEP_MS 1000

/* ---- listeners ---- */

static void serve(struct door *door)
{
    int fd = dup(door->listener->fds[door->slot]);
    if (fd < 0)
        return; /* tried again at the next tick */
    door->socket = h2o_evloop_socket_create(door->doors->worker->ctx.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    door->socket->data = door;
    if (!door->doors->full)
        h2o_socket_read_start(door->socket, door_on_accept);
}

static void leave(struct door *door)
{
    if (door->socket != NULL)
        h2o_socket_close(door->socket);
    door->socket = NULL;
}

static bool orphaned(const struct doors *d, const struct door *door)
{
    const struct scoreboard *sb = d->worker->process->scoreboard;
    uint64_t since = score_get(sb->listener[door->slot].unserved_since_ms), now = d->worker->now_ms;
    if (since < d->opened_ms)
        since = d->opened_ms;
    return score_get(sb->listener[door->slot].pid) == 0 && now > since && now - since > ADOPT_AFTER_MS;
}

/* of the sockets of removed slots; the master's is the last copy, or closing them would reset what waits there */
static void let_go(struct doors *d, unsigned slots)
{
    if (slots >= d->slots)
        return;
    for (size_t i = 0; i < d->count; i++) {
        struct door *door = &d->doors[i];
        if (door->listener->shared || door->slot < slots || door->slot >= d->slots)
            continue;
        leave(door);
        close(door->listener->fds[door->slot]);
    }
    d->slots = slots;
    score_set(d->worker->process->score->slots, slots);
}

void doors_tick(struct doors *d)
{
    uint64_t now = d->worker->now_ms;
    doors_help(d);
    doors_seat(d);
    if (d->full && now >= d->try_at_ms)
        door_let_in(d, true, true);
    let_go(d, score_get(d->worker->process->scoreboard->listener_slots));
    for (size_t i = 0; d->open && i < d->count; i++) {
        struct door *door = &d->doors[i];
        if (!door->listener->shared && door->slot >= d->slots)
            continue;
        if (door->own || door->listener->shared) {
            if (door->socket == NULL)
                serve(door);
        } else if (door->socket == NULL && orphaned(d, door))
            serve(door);
        else if (door->socket != NULL && score_get(d->worker->process->scoreboard->listener[door->slot].pid) != 0)
            leave(door);
    }
    sweep_answers(d);
    if (now >= d->sweep_at_ms) {
        d->sweep_at_ms = now + (d->worker->draining ? SWEEP_MS / 10 : now < d->pressed_until_ms ? SWEEP_MS / 5 : SWEEP_MS);
        sweep_conns(d);
    }
}

int doors_wake_ms(const struct doors *d, int most)
{
    return (d->full || d->waiting > 0) && most > TRY_ROOM_EVERY_MS ? TRY_ROOM_EVERY_MS : most;
}

void doors_open(struct doors *d)
{
    struct process *p = d->worker->process;
    d->open = true;
    d->opened_ms = d->worker->now_ms;
    doors_tick(d);
    atomic_store(&p->scoreboard->listener[p->index].pid, getpid());
}

void doors_close(struct doors *d)
{
    struct process *p = d->worker->process;
    int32_t mine = getpid();
    d->open = false;
    for (size_t i = 0; i < d->count; i++)
        if (d->doors[i].socket != NULL) {
            door_on_accept(d->doors[i].socket, NULL);
            leave(&d->doors[i]);
        }
    doors_seat(d);
    let_go(d, 0);
    score_set(p->scoreboard->listener[p->index].unserved_since_ms, d->worker->now_ms);
    atomic_compare_exchange_strong(&p->scoreboard->listener[p->index].pid, &mine, 0);
    d->sweep_at_ms = 0;
}

size_t doors_connections(const struct doors *d)
{
    return d->connections + d->waiting + lingering_count(d->lingering);
}

/* ---- making them ---- */

static void make_accepts(struct doors *d)
{
    struct process *p = d->worker->process;
    for (size_t i = 0; i < p->listeners_count; i++) {
        d->accept[i] = (h2o_accept_ctx_t){.ctx = &d->worker->ctx,
                                          .hosts = d->worker->config.hosts,
                                          .ssl_ctx = p->listeners[i].tls ? p->tls->ctx[p->listeners[i].conf_index] : NULL};
        if (d->accept[i].ssl_ctx != NULL)
            plain_http_answer(d->accept[i].ssl_ctx);
    }
}

struct doors *doors_new(struct worker *w)
{
    struct process *p = w->process;
    struct doors *d = calloc(1, sizeof(*d));
    size_t count = 0;
    for (size_t i = 0; i < p->listeners_count; i++)
        count += p->listeners[i].count;
    if (d == NULL || (d->doors = calloc(count, sizeof(*d->doors))) == NULL || (d->lingering = lingering_new(w->ctx.loop, w->conf->lingering_connections)) == NULL ||
        (d->room = room_new(w, &d->conns)) == NULL) {
        doors_free(d);
        return NULL;
    }
    d->worker = w;
    d->conns.prev = d->conns.next = &d->conns;
    d->lobby.prev = d->lobby.next = &d->lobby;
    d->slots = score_get(p->score->slots);
    for (size_t i = 0; i < p->listeners_count; i++)
        for (size_t k = 0; k < p->listeners[i].count; k++)
            d->doors[d->count++] =
                (struct door){.doors = d, .listener = &p->listeners[i], .slot = k, .own = k == p->index, .accept = &d->accept[i]};
    make_accepts(d);
    return d;
}

void doors_free(struct doors *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->count; i++)
        leave(&d->doors[i]);
    lingering_free(d->lingering);
    room_free(d->room);
    free(d->doors);
    free(d);
}
