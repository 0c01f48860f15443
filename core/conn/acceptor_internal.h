/*
 * The doors' parts: acceptor.c is their life and the listeners, admission.c who is let in and who gives way, accept_queue.c who waits, proxy_header.c the
 * PROXY protocol, conn.c one connection, timeouts.c what goes on too long and what is held too much. A worker's; nobody else includes this.
 */
#ifndef ASSAY_CONN_ACCEPTOR_INTERNAL_H
#define ASSAY_CONN_ACCEPTOR_INTERNAL_H

#include "core/conn/acceptor.h"

struct eviction;
struct lingering;

#define TRY_ROOM_EVERY_MS 20 /* whether somebody may give way */
#define WARN_EVERY_MS 60000

/* one listening socket a worker may serve */
struct endpoint {
    struct acceptor *acceptor;
    const struct listener *listener;
    size_t slot;
    h2o_socket_t *socket; /* NULL: not served by us */
    bool own;
    h2o_accept_ctx_t *accept;
};

struct acceptor {
    struct loop *loop;
    struct endpoint *endpoints;
    size_t count, connections, internal_extra;
    unsigned slots; /* the first: those whose sockets we have a copy of */
    struct conn conns, accept_queue; /* rings' anchors */
    size_t waiting;           /* in the lobby; the others are ${connections} */
    struct eviction *eviction;
    struct lingering *lingering;
    h2o_accept_ctx_t accept[LISTENERS_MAX];
    uint64_t sweep_at_ms, opened_ms, warned_ms, turned_away_ms, crowded_ms, try_at_ms, pressed_until_ms;
    size_t held; /* by answers, on connections that are not ended */
    unsigned called; /* out of the lobby, while somebody had waited there for long */
    bool open;
    bool full; /* nobody is let in until a connection ends, or the next try finds that descriptors or memory are free again */
};

static inline struct connection_table *acceptor_connection_table(const struct acceptor *d)
{
    return d->loop->process->connection_table;
}

/* ---- conn.c ---- */

/*
 * conn_new(d, door, socket, waits): ${socket}, which came in through ${door}, is a connection, in the lobby if it ${waits}; NULL when out
 * of memory, and it is still the caller's. conn_sit(c): it is in the lobby no more.
 */
struct conn *conn_new(struct acceptor *d, struct endpoint *endpoint, h2o_socket_t *socket, bool waits);
void conn_sit(struct conn *c);
/* conn_end(c): libh2o sees its client going away, in a later turn. */
void conn_end(struct conn *c);

/* ---- admission.c ---- */

/* endpoint_on_accept(listener, err): somebody waits in the queue. */
void endpoint_on_accept(h2o_socket_t *listener, const char *err);
/* endpoint_let_in(d, allowed, internal_too): a listener that is not read leaves connections in its queue, and the loop asleep. */
void endpoint_let_in(struct acceptor *d, bool allowed, bool internal_too);
/* conn_arrive(c, tls): count it as one of its address; false: that has as many as it may, and ${c} is gone. */
bool conn_arrive(struct conn *c, bool tls);
/* conn_turn_away(c, tls): its address has too many: say so, and close it. Nothing of it was read. */
void conn_turn_away(struct conn *c, bool tls);
/* acceptor_help(d): somebody waits before another worker, which has nobody who may give way. */
void acceptor_help(struct acceptor *d);
/* acceptor_seat(d): places for who waits in the lobby, as far as there are some; for all of them if we drain. */
void acceptor_seat(struct acceptor *d);

/* ---- accept_queue.c ---- */

/*
 * accept_queue_takes(d): one more may wait inside, if need be in place of one of an address that crowds. accept_queue_enter(d, socket, door): it waits,
 * and who has to go for it is turned away. accept_queue_next(d): whose turn it is, of the address that has fewest connections here, and of those
 * who came first; NULL: nobody waits. accept_queue_patient(d): before that, once in a few times, whoever has waited there for long, or ever new
 * addresses could keep one with several connections out for ever; else NULL. accept_queue_sweep(d): forget those who have gone.
 */
bool accept_queue_takes(const struct acceptor *d);
void accept_queue_enter(struct acceptor *d, h2o_socket_t *socket, struct endpoint *endpoint);
struct conn *accept_queue_next(struct acceptor *d);
struct conn *accept_queue_patient(struct acceptor *d);
void accept_queue_sweep(struct acceptor *d);

/* ---- proxy_header.c ---- */

/*
 * proxy_header_expected(door): every connection there begins with the PROXY protocol's header. proxy_header_trusted(d, socket): its peer may send one; the
 * log names who may not. proxy_header_read(door, socket): read it, then let it in.
 */
bool proxy_header_expected(const struct endpoint *endpoint);
bool proxy_header_trusted(struct acceptor *d, h2o_socket_t *socket);
void proxy_header_read(struct endpoint *endpoint, h2o_socket_t *socket);

/* ---- timeouts.c ---- */

/*
 * timeouts_conns(d): end what takes too long, and the largest of what is received past a bound. timeouts_answers(d): what is sent, past its
 * own.
 */
void timeouts_conns(struct acceptor *d);
void timeouts_answers(struct acceptor *d);

#endif
