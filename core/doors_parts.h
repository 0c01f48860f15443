/*
 * The doors' parts: doors.c is their life and the listeners, admit.c who is let in and who gives way, greet.c the PROXY protocol, conn.c one
 * connection, sweep.c what goes on too long and what is held too much. A worker's; nobody else includes this.
 */
#ifndef ASSAY_DOORS_PARTS_H
#define ASSAY_DOORS_PARTS_H

#include "doors.h"

struct room;
struct lingering;

#define TRY_ROOM_EVERY_MS 100 /* whether somebody may give way */
#define WARN_EVERY_MS 60000

/* one listening socket a worker may serve */
struct door {
    struct doors *doors;
    const struct listener *listener;
    size_t slot;
    h2o_socket_t *socket; /* NULL: not served by us */
    bool own;
    h2o_accept_ctx_t *accept;
};

struct doors {
    struct worker *worker;
    struct door *doors;
    size_t count, connections, internal_extra;
    unsigned slots; /* the first: those whose sockets we have a copy of */
    struct conn conns; /* ring's anchor */
    struct room *room;
    struct lingering *lingering;
    h2o_accept_ctx_t accept[LISTENERS_MAX];
    uint64_t sweep_at_ms, opened_ms, warned_ms, turned_away_ms, try_at_ms, pressed_until_ms;
    size_t held; /* by answers, on connections that are not ended */
    bool open;
    bool full; /* nobody is let in until a connection ends, or the next try finds that descriptors or memory are free again */
};

static inline struct crowd *doors_crowd(const struct doors *d)
{
    return d->worker->process->crowd;
}

/* ---- conn.c ---- */

/* conn_new(d, door, socket): ${socket}, which came in through ${door}, is a connection; NULL when out of memory, and it is still the caller's. */
struct conn *conn_new(struct doors *d, const struct door *door, h2o_socket_t *socket);
/* conn_end(c): libh2o sees its client going away, in a later turn. */
void conn_end(struct conn *c);

/* ---- admit.c ---- */

/* door_on_accept(listener, err): somebody waits in the queue. */
void door_on_accept(h2o_socket_t *listener, const char *err);
/* door_let_in(d, allowed, internal_too): a listener that is not read leaves connections in its queue, and the loop asleep. */
void door_let_in(struct doors *d, bool allowed, bool internal_too);
/* conn_arrive(c, tls): count it as one of its address; false: that has as many as it may, and ${c} is gone. */
bool conn_arrive(struct conn *c, bool tls);
/* doors_help(d): somebody waits before another worker, which has nobody who may give way. */
void doors_help(struct doors *d);

/* ---- greet.c ---- */

/* greet_expected(door): every connection there begins with the PROXY protocol's header. greet(door, socket): read it, then let it in. */
bool greet_expected(const struct door *door);
void greet(struct door *door, h2o_socket_t *socket);

/* ---- sweep.c ---- */

/* sweep_conns(d): end what takes too long, and the largest of what is received past a bound. sweep_answers(d): what is sent, past its own. */
void sweep_conns(struct doors *d);
void sweep_answers(struct doors *d);

#endif
