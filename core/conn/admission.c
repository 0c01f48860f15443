#include "core/conn/conn_internal.h"

#include "core/conn/eviction_internal.h"
#include "core/shm/connection_table.h"

#include <errno.h>

#define ACCEPTS_PER_WAKE 32
/* after an eviction, timeouts are checked more often for this long */
#define PRESSURE_MS 2000
/* connections of the internal listener, per worker, that max_connections does not count */
#define RESERVED_MAX 16
#define DESCRIPTORS_RETRY_MS 250

/* ---- slots ---- */

void acceptor_set_accepting(struct acceptor *a, bool accepting, bool internal_too)
{
    a->paused = !accepting;
    a->retry_at_ms = a->loop->now_ms + RETRY_EVERY_MS;
    for (size_t i = 0; i < a->count; i++) {
        h2o_socket_t *socket = a->endpoints[i].socket;
        if (socket != NULL && h2o_socket_is_reading(socket) != accepting &&
            (internal_too || !a->endpoints[i].listener->internal)) {
            if (accepting)
                h2o_socket_read_start(socket, acceptor_on_connection);
            else
                h2o_socket_read_stop(socket);
        }
    }
}

/* What a new connection gets: a free slot, the slot of ${victim}, or a reserved one. */
struct grant {
    enum { GRANT_NONE, GRANT_FREE, GRANT_EVICT, GRANT_RESERVED } kind;
    struct conn *victim;
};

/* this worker has fewer connections than its fair share (-1), its share (0), or more (1) */
static int compare_to_share(const struct acceptor *a)
{
    return connection_table_compare_share(acceptor_connection_table(a),
                                          a->loop->process->connection_slot,
                                          a->loop->conf->max_connections);
}

static bool claim_within(struct acceptor *a, size_t most)
{
    return connection_table_add(acceptor_connection_table(a), a->loop->process->connection_slot,
                                most);
}

/* worker_connections are the descriptors that this worker has for them */
static bool claim(struct acceptor *a)
{
    const struct conf *conf = a->loop->conf;
    return a->connections < conf->worker_connections && claim_within(a, conf->max_connections);
}

static void unclaim(struct acceptor *a)
{
    connection_table_remove(acceptor_connection_table(a), a->loop->process->connection_slot);
}

/*
 * New connections arrive evenly, so a worker with few slots has the longest queue. A worker that
 * has its fair share leaves free slots to workers that wait, as long as it can evict.
 */
static bool leaves_slots_to_others(const struct acceptor *a)
{
    return connection_table_eviction_requested(acceptor_connection_table(a),
                                               a->loop->process->connection_slot) &&
           compare_to_share(a) >= 0;
}

/* ${newcomer}: NULL if it is not accepted yet, so its address is unknown. */
static struct grant find_slot(struct acceptor *a, const struct endpoint *endpoint,
                              const struct conn *newcomer)
{
    if (endpoint->listener->internal && a->reserved < RESERVED_MAX)
        return (struct grant){GRANT_RESERVED, NULL};
    bool leaves = leaves_slots_to_others(a);
    if (!leaves && claim(a))
        return (struct grant){GRANT_FREE, NULL};
    if (a->pressure_until_ms < a->loop->now_ms)
        a->timeouts_at_ms = 0;
    a->pressure_until_ms = a->loop->now_ms + PRESSURE_MS;
    struct conn *victim = eviction_find(a->eviction, a->connections);
    if (victim != NULL &&
        (newcomer == NULL || !eviction_protects(a->eviction, victim, newcomer, a->connections)))
        return (struct grant){GRANT_EVICT, victim};
    return (struct grant){leaves && claim(a) ? GRANT_FREE : GRANT_NONE, NULL};
}

static void return_grant(struct acceptor *a, struct grant grant)
{
    if (grant.kind == GRANT_FREE)
        unclaim(a);
}

/* Its slot stays claimed, for another connection. */
static void evict(struct acceptor *a, struct conn *c)
{
    eviction_forget(a->eviction, c);
    c->counted = false;
    conn_shutdown(c);
    connection_table_count_event(acceptor_connection_table(a), CONNECTIONS_EVICTED);
}

static void admit(struct endpoint *endpoint, h2o_socket_t *socket, struct grant grant)
{
    struct acceptor *a = endpoint->acceptor;
    struct conn *c = conn_new(a, endpoint, socket, false);
    if (c == NULL) {
        return_grant(a, grant);
        h2o_socket_close(socket);
        return;
    }
    bool proxy_header = proxy_header_expected(endpoint);
    c->counted = grant.kind == GRANT_FREE;
    c->reserved = grant.kind == GRANT_RESERVED;
    a->reserved += c->reserved;
    /* these two checks come before the eviction, so that no refused connection causes one */
    if (proxy_header && !proxy_header_trusted(a, socket)) {
        h2o_socket_close(socket);
        return;
    }
    if (!proxy_header && !conn_count_address(c, endpoint->accept->ssl_ctx != NULL))
        return;
    if (grant.kind == GRANT_EVICT) {
        evict(a, grant.victim);
        c->counted = true;
    }
    if (proxy_header)
        proxy_header_read(endpoint, socket);
    else
        h2o_accept(endpoint->accept, socket);
}

static void ask_for_slot(struct acceptor *a, bool asks)
{
    if (asks)
        connection_table_request_eviction(acceptor_connection_table(a),
                                          a->loop->process->connection_slot);
    else
        connection_table_cancel_eviction(acceptor_connection_table(a),
                                         a->loop->process->connection_slot);
}

/* ---- accepting ---- */

/* The queue is ordered by address; behind a PROXY header and for operators there is none. */
static bool may_queue(const struct endpoint *endpoint)
{
    return !endpoint->listener->internal && !proxy_header_expected(endpoint);
}

/* Without eviction: that needs the address of the newcomer, so the newcomer is queued first. */
static struct grant find_free_slot(struct acceptor *a)
{
    bool has = a->waiting == 0 && !leaves_slots_to_others(a) && claim(a);
    return (struct grant){has ? GRANT_FREE : GRANT_NONE, NULL};
}

/* Evict one: when it is closed, in the next turn of the loop, acceptor_tick resumes accepting. */
static void out_of_descriptors(struct acceptor *a)
{
    struct conn *c = eviction_find(a->eviction, a->connections);
    if (c != NULL) {
        evict(a, c);
        unclaim(a);
    }
    acceptor_set_accepting(a, false, true);
    a->retry_at_ms = a->loop->now_ms + DESCRIPTORS_RETRY_MS;
}

void acceptor_on_connection(h2o_socket_t *listener, const char *err)
{
    struct endpoint *endpoint = listener->data;
    struct acceptor *a = endpoint->acceptor;
    if (err != NULL)
        return;
    loop_read_clock(a->loop);
    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        bool queue = may_queue(endpoint);
        struct grant grant = queue ? find_free_slot(a) : find_slot(a, endpoint, NULL);
        queue = queue && grant.kind == GRANT_NONE && accept_queue_has_room(a);
        if (grant.kind == GRANT_NONE && !queue) {
            if (i > 0)
                return; /* if the backlog is not empty, the loop calls again */
            ask_for_slot(a, true);
            acceptor_set_accepting(a, false, endpoint->listener->internal);
            return;
        }
        h2o_socket_t *socket = h2o_evloop_socket_accept(listener);
        if (socket == NULL) {
            bool out = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            return_grant(a, grant);
            if (out)
                out_of_descriptors(a);
            return;
        }
        if (queue)
            accept_queue_add(a, socket, endpoint);
        else
            admit(endpoint, socket, grant);
    }
}

/* ---- admitting from the queue ---- */

static void admit_queued(struct conn *c, struct grant grant)
{
    struct acceptor *a = c->acceptor;
    if (grant.kind == GRANT_EVICT)
        evict(a, grant.victim);
    conn_leave_queue(c);
    c->counted = grant.kind == GRANT_FREE || grant.kind == GRANT_EVICT;
    h2o_accept(c->endpoint->accept, c->socket);
}

/* Counted, also above max_connections: no other worker can answer a connection in this queue. */
static struct grant claim_any(struct acceptor *a)
{
    return (struct grant){claim_within(a, SIZE_MAX) ? GRANT_FREE : GRANT_NONE, NULL};
}

static bool admit_if_possible(struct acceptor *a, struct conn *c)
{
    struct grant grant = a->open ? find_slot(a, c->endpoint, c) : claim_any(a);
    if (grant.kind != GRANT_NONE)
        admit_queued(c, grant);
    return grant.kind != GRANT_NONE;
}

void acceptor_admit_queued(struct acceptor *a)
{
    struct conn *c = accept_queue_overdue(a);
    if (c != NULL)
        admit_if_possible(a, c);
    do
        c = accept_queue_next(a);
    while (c != NULL && admit_if_possible(a, c));
    if (a->waiting > 0 || !a->paused)
        ask_for_slot(a, a->waiting > 0);
}

void acceptor_yield_slot(struct acceptor *a)
{
    if (!connection_table_eviction_requested(acceptor_connection_table(a),
                                             a->loop->process->connection_slot) ||
        connection_table_count(acceptor_connection_table(a)) < a->loop->conf->max_connections)
        return;
    if ((a->paused || a->waiting > 0) && compare_to_share(a) <= 0)
        return; /* connections wait here, too */
    struct conn *c = eviction_find(a->eviction, a->connections);
    if (c == NULL || eviction_protects(a->eviction, c, NULL, a->connections) ||
        !connection_table_take_eviction(acceptor_connection_table(a)))
        return;
    evict(a, c);
    unclaim(a);
}
