#include "core/conn/acceptor.h"

#include "core/conn/conn_internal.h"

#include "core/conn/lingering_close_internal.h"
#include "core/conn/plain_http_internal.h"
#include "core/conn/eviction_internal.h"
#include "core/conn/tls.h"

#include <stdlib.h>
#include <unistd.h>

#define ADOPT_AFTER_MS 250
#define TIMEOUTS_MS 1000

/* ---- listening sockets ---- */

static void endpoint_open(struct endpoint *endpoint)
{
    int fd = dup(endpoint->listener->fds[endpoint->slot]);
    if (fd < 0)
        return; /* the next tick tries again */
    endpoint->socket =
        h2o_evloop_socket_create(endpoint->acceptor->loop->ctx.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    endpoint->socket->data = endpoint;
    if (!endpoint->acceptor->paused)
        h2o_socket_read_start(endpoint->socket, acceptor_on_connection);
}

static void endpoint_close(struct endpoint *endpoint)
{
    if (endpoint->socket != NULL)
        h2o_socket_close(endpoint->socket);
    endpoint->socket = NULL;
}

static bool is_unserved(const struct acceptor *a, const struct endpoint *endpoint)
{
    const struct scoreboard *sb = a->loop->process->scoreboard;
    uint64_t since = score_get(sb->listener[endpoint->slot].unserved_since_ms),
             now = a->loop->now_ms;
    if (since < a->opened_ms)
        since = a->opened_ms;
    return score_get(sb->listener[endpoint->slot].pid) == 0 && now > since &&
           now - since > ADOPT_AFTER_MS;
}

/*
 * Close the sockets of slots that were removed. The master's copy must be the last one: closing the
 * last copy resets the connections in the backlog.
 */
static void drop_slots(struct acceptor *a, unsigned slots)
{
    if (slots >= a->slots)
        return;
    for (size_t i = 0; i < a->count; i++) {
        struct endpoint *endpoint = &a->endpoints[i];
        if (endpoint->listener->shared || endpoint->slot < slots || endpoint->slot >= a->slots)
            continue;
        endpoint_close(endpoint);
        close(endpoint->listener->fds[endpoint->slot]);
    }
    a->slots = slots;
    score_set(a->loop->process->score->slots, slots);
}

/* Serve the own slot, and others that have no worker. */
static void adopt_or_release(struct acceptor *a, struct endpoint *endpoint)
{
    if (endpoint->own || endpoint->listener->shared) {
        if (endpoint->socket == NULL)
            endpoint_open(endpoint);
    } else if (endpoint->socket == NULL && is_unserved(a, endpoint))
        endpoint_open(endpoint);
    else if (endpoint->socket != NULL &&
             score_get(a->loop->process->scoreboard->listener[endpoint->slot].pid) != 0)
        endpoint_close(endpoint);
}

void acceptor_tick(struct acceptor *a)
{
    uint64_t now = a->loop->now_ms;
    if (a->paused && a->retry_at_ms == 0)
        acceptor_set_accepting(a, true, true);
    acceptor_yield_slot(a);
    acceptor_admit_queued(a);
    if (a->paused && now >= a->retry_at_ms)
        acceptor_set_accepting(a, true, true);
    drop_slots(a, score_get(a->loop->process->scoreboard->listener_slots));
    for (size_t i = 0; a->open && i < a->count; i++)
        if (a->endpoints[i].listener->shared || a->endpoints[i].slot < a->slots)
            adopt_or_release(a, &a->endpoints[i]);
    timeouts_bound_responses(a);
    if (now >= a->timeouts_at_ms) {
        a->timeouts_at_ms = now + (a->loop->draining            ? TIMEOUTS_MS / 10
                                   : now < a->pressure_until_ms ? TIMEOUTS_MS / 5
                                                                : TIMEOUTS_MS);
        timeouts_check(a);
    }
}

int acceptor_wake_ms(const struct acceptor *a, int most)
{
    if (a->paused && a->retry_at_ms == 0)
        return 0;
    return (a->paused || a->waiting > 0) && most > RETRY_EVERY_MS ? RETRY_EVERY_MS : most;
}

void acceptor_open(struct acceptor *a)
{
    struct process *p = a->loop->process;
    a->open = true;
    a->opened_ms = a->loop->now_ms;
    acceptor_tick(a);
    atomic_store(&p->scoreboard->listener[p->index].pid, getpid());
}

void acceptor_close(struct acceptor *a)
{
    struct process *p = a->loop->process;
    int32_t mine = getpid();
    a->open = false;
    for (size_t i = 0; i < a->count; i++)
        if (a->endpoints[i].socket != NULL) {
            acceptor_on_connection(a->endpoints[i].socket, NULL);
            endpoint_close(&a->endpoints[i]);
        }
    acceptor_admit_queued(a);
    drop_slots(a, 0);
    score_set(p->scoreboard->listener[p->index].unserved_since_ms, a->loop->now_ms);
    atomic_compare_exchange_strong(&p->scoreboard->listener[p->index].pid, &mine, 0);
    a->timeouts_at_ms = 0;
}

size_t acceptor_connections(const struct acceptor *a)
{
    return a->connections + a->waiting + lingering_count(a->lingering);
}

/* ---- life ---- */

static void make_accept_contexts(struct acceptor *a)
{
    struct process *p = a->loop->process;
    for (size_t i = 0; i < p->listeners_count; i++) {
        a->accept[i] = (h2o_accept_ctx_t){
            .ctx = &a->loop->ctx,
            .hosts = a->loop->config.hosts,
            .ssl_ctx = p->listeners[i].tls ? p->tls->ctx[p->listeners[i].conf_index] : NULL};
        if (a->accept[i].ssl_ctx != NULL)
            plain_http_answer(a->accept[i].ssl_ctx);
    }
}

struct acceptor *acceptor_new(struct loop *loop)
{
    struct process *p = loop->process;
    struct acceptor *a = calloc(1, sizeof(*a));
    size_t count = 0;
    for (size_t i = 0; i < p->listeners_count; i++)
        count += p->listeners[i].count;
    if (a == NULL || (a->endpoints = calloc(count, sizeof(*a->endpoints))) == NULL ||
        (a->lingering = lingering_new(loop->ctx.loop, loop->conf->lingering_connections)) == NULL ||
        (a->eviction = eviction_new(loop, &a->conns)) == NULL) {
        acceptor_free(a);
        return NULL;
    }
    a->loop = loop;
    a->conns.prev = a->conns.next = &a->conns;
    a->accept_queue.prev = a->accept_queue.next = &a->accept_queue;
    a->slots = score_get(p->score->slots);
    for (size_t i = 0; i < p->listeners_count; i++)
        for (size_t k = 0; k < p->listeners[i].count; k++)
            a->endpoints[a->count++] = (struct endpoint){.acceptor = a,
                                                         .listener = &p->listeners[i],
                                                         .slot = k,
                                                         .own = k == p->index,
                                                         .accept = &a->accept[i]};
    make_accept_contexts(a);
    return a;
}

void acceptor_free(struct acceptor *a)
{
    if (a == NULL)
        return;
    for (size_t i = 0; i < a->count; i++)
        endpoint_close(&a->endpoints[i]);
    lingering_free(a->lingering);
    eviction_free(a->eviction);
    free(a->endpoints);
    free(a);
}
