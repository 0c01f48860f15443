#include "core/conn/acceptor_internal.h"

#include "core/conn/lingering_close.h"
#include "core/conn/plain_http.h"
#include "core/conn/eviction.h"
#include "core/conn/tls.h"

#include <stdlib.h>
#include <unistd.h>

#define ADOPT_AFTER_MS 250
#define SWEEP_MS 1000

/* ---- listeners ---- */

static void serve(struct endpoint *endpoint)
{
    int fd = dup(endpoint->listener->fds[endpoint->slot]);
    if (fd < 0)
        return; /* tried again at the next tick */
    endpoint->socket = h2o_evloop_socket_create(endpoint->acceptor->loop->ctx.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    endpoint->socket->data = endpoint;
    if (!endpoint->acceptor->full)
        h2o_socket_read_start(endpoint->socket, endpoint_on_accept);
}

static void leave(struct endpoint *endpoint)
{
    if (endpoint->socket != NULL)
        h2o_socket_close(endpoint->socket);
    endpoint->socket = NULL;
}

static bool orphaned(const struct acceptor *d, const struct endpoint *endpoint)
{
    const struct scoreboard *sb = d->loop->process->scoreboard;
    uint64_t since = score_get(sb->listener[endpoint->slot].unserved_since_ms), now = d->loop->now_ms;
    if (since < d->opened_ms)
        since = d->opened_ms;
    return score_get(sb->listener[endpoint->slot].pid) == 0 && now > since && now - since > ADOPT_AFTER_MS;
}

/* of the sockets of removed slots; the master's is the last copy, or closing them would reset what waits there */
static void let_go(struct acceptor *d, unsigned slots)
{
    if (slots >= d->slots)
        return;
    for (size_t i = 0; i < d->count; i++) {
        struct endpoint *endpoint = &d->endpoints[i];
        if (endpoint->listener->shared || endpoint->slot < slots || endpoint->slot >= d->slots)
            continue;
        leave(endpoint);
        close(endpoint->listener->fds[endpoint->slot]);
    }
    d->slots = slots;
    score_set(d->loop->process->score->slots, slots);
}

void acceptor_tick(struct acceptor *d)
{
    uint64_t now = d->loop->now_ms;
    acceptor_help(d);
    acceptor_seat(d);
    if (d->full && now >= d->try_at_ms)
        endpoint_let_in(d, true, true);
    let_go(d, score_get(d->loop->process->scoreboard->listener_slots));
    for (size_t i = 0; d->open && i < d->count; i++) {
        struct endpoint *endpoint = &d->endpoints[i];
        if (!endpoint->listener->shared && endpoint->slot >= d->slots)
            continue;
        if (endpoint->own || endpoint->listener->shared) {
            if (endpoint->socket == NULL)
                serve(endpoint);
        } else if (endpoint->socket == NULL && orphaned(d, endpoint))
            serve(endpoint);
        else if (endpoint->socket != NULL && score_get(d->loop->process->scoreboard->listener[endpoint->slot].pid) != 0)
            leave(endpoint);
    }
    timeouts_answers(d);
    if (now >= d->sweep_at_ms) {
        d->sweep_at_ms = now + (d->loop->draining ? SWEEP_MS / 10 : now < d->pressed_until_ms ? SWEEP_MS / 5 : SWEEP_MS);
        timeouts_conns(d);
    }
}

int acceptor_wake_ms(const struct acceptor *d, int most)
{
    return (d->full || d->waiting > 0) && most > TRY_ROOM_EVERY_MS ? TRY_ROOM_EVERY_MS : most;
}

void acceptor_open(struct acceptor *d)
{
    struct process *p = d->loop->process;
    d->open = true;
    d->opened_ms = d->loop->now_ms;
    acceptor_tick(d);
    atomic_store(&p->scoreboard->listener[p->index].pid, getpid());
}

void acceptor_close(struct acceptor *d)
{
    struct process *p = d->loop->process;
    int32_t mine = getpid();
    d->open = false;
    for (size_t i = 0; i < d->count; i++)
        if (d->endpoints[i].socket != NULL) {
            endpoint_on_accept(d->endpoints[i].socket, NULL);
            leave(&d->endpoints[i]);
        }
    acceptor_seat(d);
    let_go(d, 0);
    score_set(p->scoreboard->listener[p->index].unserved_since_ms, d->loop->now_ms);
    atomic_compare_exchange_strong(&p->scoreboard->listener[p->index].pid, &mine, 0);
    d->sweep_at_ms = 0;
}

size_t acceptor_connections(const struct acceptor *d)
{
    return d->connections + d->waiting + lingering_count(d->lingering);
}

/* ---- making them ---- */

static void make_accepts(struct acceptor *d)
{
    struct process *p = d->loop->process;
    for (size_t i = 0; i < p->listeners_count; i++) {
        d->accept[i] = (h2o_accept_ctx_t){.ctx = &d->loop->ctx,
                                          .hosts = d->loop->config.hosts,
                                          .ssl_ctx = p->listeners[i].tls ? p->tls->ctx[p->listeners[i].conf_index] : NULL};
        if (d->accept[i].ssl_ctx != NULL)
            plain_http_answer(d->accept[i].ssl_ctx);
    }
}

struct acceptor *acceptor_new(struct loop *loop)
{
    struct process *p = loop->process;
    struct acceptor *d = calloc(1, sizeof(*d));
    size_t count = 0;
    for (size_t i = 0; i < p->listeners_count; i++)
        count += p->listeners[i].count;
    if (d == NULL || (d->endpoints = calloc(count, sizeof(*d->endpoints))) == NULL || (d->lingering = lingering_new(loop->ctx.loop, loop->conf->lingering_connections)) == NULL ||
        (d->eviction = eviction_new(loop, &d->conns)) == NULL) {
        acceptor_free(d);
        return NULL;
    }
    d->loop = loop;
    d->conns.prev = d->conns.next = &d->conns;
    d->accept_queue.prev = d->accept_queue.next = &d->accept_queue;
    d->slots = score_get(p->score->slots);
    for (size_t i = 0; i < p->listeners_count; i++)
        for (size_t k = 0; k < p->listeners[i].count; k++)
            d->endpoints[d->count++] =
                (struct endpoint){.acceptor = d, .listener = &p->listeners[i], .slot = k, .own = k == p->index, .accept = &d->accept[i]};
    make_accepts(d);
    return d;
}

void acceptor_free(struct acceptor *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->count; i++)
        leave(&d->endpoints[i]);
    lingering_free(d->lingering);
    eviction_free(d->eviction);
    free(d->endpoints);
    free(d);
}
