/*
 * The doors' parts: doors.c is their life and the listeners, admit.c who is let in and who gives way, lobby.c who waits, greet.c the
 * PROXY protocol, conn.c one connection, sweep.c what goes on too long and what is held too much. A worker's; nobody else includes this.
 */
#ifndef ASSAY_DOORS_PARTS_H
#define ASSAY_DOORS_PARTS_H

#include "core/doors.h"

struct room;
struct lingering;

#define TRY_ROOM_EVERY_MS 20 /* whether somebody may give way */
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
    struct conn conns, lobby; /* rings' anchors */
    size_t waiting;           /* in the lobby; the others are ${connections} */
    struct room *room;
    struct lingering *lingering;
    h2o_accept_ctx_t accept[LISTENERS_MAX];
    uint64_t sweep_at_ms, opened_ms, warned_ms, turned_away_ms, crowded_ms, try_at_ms, pressed_until_ms;
    size_t held; /* by answers, on connections that are not ended */
    unsigned called; /* out of the lobby, while somebody had waited there for long */
    bool open;
    bool full; /* nobody is let in until a connection ends, or the next try finds that descriptors or memory are free again */
};

static inline struct crowd *doors_crowd(const struct doors *d)
{
    return d->worker->process->crowd;
}

/* ---- conn.c ---- */

/*
 * conn_new(d, door, socket, waits): ${socket}, which came in through ${door}, is a connection, in the lobby if it ${waits}; NULL when out
 * of memory, and it is still the caller's. conn_sit(c): it is in the lobby no more.
 */
struct conn *conn_new(struct doors *d, struct door *door, h2o_socket_t *socket, bool waits);
void conn_sit(struct conn *c);
/* conn_end(c): libh2o sees its client going away, in a later turn. */
void conn_end(struct conn *c);

/* ---- admit.c ---- */

/* door_on_accept(listener, err): somebody waits in the queue. */
void door_on_accept(h2o_socket_t *listener, const char *err);
/* door_let_in(d, allowed, internal_too): a listener that is not read leaves connections in its queue, and the loop asleep. */
void door_let_in(struct doors *d, bool allowed, bool internal_too);
/* conn_arrive(c, tls): count it as one of its address; false: that has as many as it may, and ${c} is gone. */
bool conn_arrive(struct conn *c, bool tls);
/* conn_turn_away(c, tls): its address has too many: say so, and close it. Nothing of it was read. */
void conn_turn_away(struct conn *c, bool tls);
/* doors_help(d): somebody waits before another worker, which has nobody who may give way. */
void doors_help(struct doors *d);
/* doors_seat(d): places for who waits in the lobby, as far as there are some; for all of them if we drain. */
void doors_seat(struct doors *d);

/* ---- lobby.c ---- */

/*
 * lobby_takes(d): one more may wait inside, if need be in place of one of an address that crowds. lobby_enter(d, socket, door): it waits,
 * and who has to go for it is turned away. lobby_next(d): whose turn it is, of the address that has fewest connections here, and of those
 * who came first; NULL: nobody waits. lobby_patient(d): before that, once in a few times, whoever has waited there for long, or ever new
 * addresses could keep one with several connections out for ever; else NULL. lobby_sweep(d): forget those who have gone.
 */
bool lobby_takes(const struct doors *d);
void lobby_enter(struct doors *d, h2o_socket_t *socket, struct door *door);
struct conn *lobby_next(struct doors *d);
struct conn *lobby_patient(struct doors *d);
void lobby_sweep(struct doors *d);

/* ---- greet.c ---- */

/*
 * greet_expected(door): every connection there begins with the PROXY protocol's header. greet_trusts(d, socket): its peer may send one; the
 * log names who may not. greet(door, socket): read it, then let it in.
 */
bool greet_expected(const struct door *door);
bool greet_trusts(struct doors *d, h2o_socket_t *socket);
void greet(struct door *door, h2o_socket_t *socket);

/* ---- sweep.c ---- */

/*
 * sweep_conns(d): end what takes too long, and the largest of what is received past a bound. sweep_answers(d): what is sent, past its
 * own.
 */
void sweep_conns(struct doors *d);
void sweep_answers(struct doors *d);

#endif
