/* What the parts of core/conn share; see README.md. Only core/conn includes this. */
#ifndef ASSAY_CONN_CONN_INTERNAL_H
#define ASSAY_CONN_CONN_INTERNAL_H

#include "core/conn/connection.h"

struct eviction;
struct lingering;

#define RETRY_EVERY_MS 20 /* while connections wait for a free slot */
#define WARN_EVERY_MS 60000

/* A listening socket that this worker may serve. */
struct endpoint {
    struct acceptor *acceptor;
    const struct listener *listener;
    size_t slot;          /* the worker slot it belongs to */
    h2o_socket_t *socket; /* NULL: not served by this worker */
    bool own;             /* of this worker's slot */
    h2o_accept_ctx_t *accept;
};

struct acceptor {
    struct loop *loop;
    struct endpoint *endpoints;
    size_t count;                    /* of ${endpoints} */
    unsigned slots;                  /* the worker has sockets of the first ${slots} slots */
    struct conn conns, accept_queue; /* heads of the rings; the queue is in order of arrival */
    size_t connections, waiting;     /* lengths of these rings */
    size_t reserved;                 /* reserved connections of the internal listener in use */
    size_t response_bytes;           /* sum over connections that are not ended */
    struct eviction *eviction;
    struct lingering *lingering;
    h2o_accept_ctx_t accept[LISTENERS_MAX];
    uint64_t opened_ms, timeouts_at_ms;
    uint64_t retry_at_ms; /* while ${paused}: when to accept again; 0: a connection has ended */
    uint64_t pressure_until_ms; /* connections were evicted: check timeouts more often */
    uint64_t warned_proxy_ms, warned_per_ip_ms, warned_queue_ms; /* last warnings; 0: none */
    unsigned overdue_turns; /* admissions while the oldest in the queue was overdue */
    bool open;
    bool paused; /* no accept until ${retry_at_ms} */
};

static inline struct connection_table *acceptor_connection_table(const struct acceptor *a)
{
    return a->loop->process->connection_table;
}

/* ---- connection.c ---- */

/*
 * conn_new(a, endpoint, socket, queued): a connection for ${socket}, in the accept queue if
 * ${queued}. NULL: memory is short; the caller keeps the socket.
 * conn_leave_queue(c): move it from the queue to the connections.
 * conn_shutdown(c): shutdown(2); libh2o closes it in a later turn.
 */
struct conn *conn_new(struct acceptor *a, struct endpoint *endpoint, h2o_socket_t *socket,
                      bool queued);
void conn_leave_queue(struct conn *c);
void conn_shutdown(struct conn *c);

/*
 * conn_send_error(c, status, headers, code, message): write an error response to the socket, while
 * libh2o has nothing to send on it: before a request head is complete. Not over TLS.
 */
bool conn_send_error(struct conn *c, const char *status, const char *headers, const char *code,
                     const char *message);

/* ---- progress.c ---- */

/*
 * conn_input_empty(c): no bytes wait in the socket.
 * conn_acked_bytes(c): a count that grows while the client acknowledges data.
 * conn_made_progress(c, acked): the client took enough since c->progress_ms.
 * conn_note_input(c, now): bytes of a request have arrived: note whether its head is complete.
 */
bool conn_input_empty(const struct conn *c);
uint64_t conn_acked_bytes(const struct conn *c);
bool conn_made_progress(const struct conn *c, uint64_t acked);
void conn_note_input(struct conn *c, uint64_t now);

/* ---- admission.c ---- */

/* acceptor_on_connection(listener, err): the callback of a listening socket. */
void acceptor_on_connection(h2o_socket_t *listener, const char *err);
/* acceptor_set_accepting(a, accepting, internal_too): start or stop watching the listeners. */
void acceptor_set_accepting(struct acceptor *a, bool accepting, bool internal_too);
/* acceptor_admit_queued(a): admit from the queue while slots are free; all if the worker drains. */
void acceptor_admit_queued(struct acceptor *a);
/* acceptor_yield_slot(a): evict a connection here for one that waits in another worker. */
void acceptor_yield_slot(struct acceptor *a);

/* ---- address_limit.c ---- */

/*
 * conn_count_address(c, tls): count it for its address. False: max_connections_per_ip is reached,
 * and ${c} was refused.
 * conn_refuse(c, tls): answer 503 (not over TLS) and close. Nothing of ${c} was read.
 */
bool conn_count_address(struct conn *c, bool tls);
void conn_refuse(struct conn *c, bool tls);

/* ---- accept_queue.c ---- */

/*
 * accept_queue_has_room(a): one more fits, perhaps by refusing one of a heavy address.
 * accept_queue_add(a, socket, endpoint): queue it; refuse one of a heavy address if it is full.
 * accept_queue_next(a): the first of the address with the fewest connections here; NULL: empty.
 * accept_queue_overdue(a): every few calls, the oldest if it waits for long, so that new addresses
 * cannot keep it out for ever; else NULL.
 * accept_queue_drop_closed(a): remove connections whose clients hung up.
 */
bool accept_queue_has_room(const struct acceptor *a);
void accept_queue_add(struct acceptor *a, h2o_socket_t *socket, struct endpoint *endpoint);
struct conn *accept_queue_next(struct acceptor *a);
struct conn *accept_queue_overdue(struct acceptor *a);
void accept_queue_drop_closed(struct acceptor *a);

/* ---- proxy_header.c ---- */

/*
 * proxy_header_expected(endpoint): its connections begin with a PROXY header.
 * proxy_header_trusted(a, socket): the peer is in trusted_proxies; if not, the log says so.
 * proxy_header_read(endpoint, socket): read the header, then start HTTP.
 */
bool proxy_header_expected(const struct endpoint *endpoint);
bool proxy_header_trusted(struct acceptor *a, h2o_socket_t *socket);
void proxy_header_read(struct endpoint *endpoint, h2o_socket_t *socket);

/* ---- timeouts.c ---- */

/*
 * timeouts_check(a): end connections that exceed a timeout, and the largest uploads above a bound.
 * timeouts_bound_responses(a): end the responses unread for longest above a bound.
 */
void timeouts_check(struct acceptor *a);
void timeouts_bound_responses(struct acceptor *a);

#endif
