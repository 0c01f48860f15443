/*
 * A worker's doors: the listeners it serves and the connections that came in through them.
 *
 * Every worker inherits every slot's listening socket; it serves its own slot and adopts a slot that stood unserved for 250 ms, until that
 * slot's worker is back. Timeouts are ours, on CLOCK_MONOTONIC: a sweep once a second over all connections ends offenders with shutdown(2),
 * which libh2o sees as the client's going away.
 *
 * max_connections holds over all workers (connection_table.h). Where it is reached, a newcomer takes the place of a connection that gives way
 * (room.h), here or at another worker; where none may, newcomers wait. So that who comes from an address with few connections need not
 * stand behind hundreds of another's, they wait in a lobby, accepted and unread, as many as it takes, and the next place is for whose
 * address has fewest; the others wait in the listener's queue. The internal listener has some room of its own, so that operators get in.
 *
 * Of a worker that drains, those of its lobby are let in at once, counted, and may be more than max_connections for as long. A worker that is
 * killed takes its lobby with it, where those in the queue wait for the next.
 */
#ifndef ASSAY_CONN_ACCEPTOR_H
#define ASSAY_CONN_ACCEPTOR_H

#include "core/loop/loop.h"
#include "core/base/cidr.h"

struct endpoint;
struct request;
struct pending_header;

/* how often a streaming connection sends at least: a comment, so that both sides notice a lost peer */
#define CONN_BEAT_MS 15000

/* a longer head of a request ends its connection */
#define CONN_HEAD_MAX (32u << 10)

/* One client connection; found from a request by conn_of. */
struct conn {
    struct conn *prev, *next;
    struct loop *loop;
    struct acceptor *acceptor;
    struct endpoint *endpoint; /* through which it came */
    h2o_socket_t *socket;
    struct request *request; /* in the pipeline now; NULL while idle or receiving */
    uint64_t came_ms;        /* let in */
    uint64_t since_ms;       /* of what the sweep measures: idle, receiving the head, the body, sending */
    uint64_t sent;           /* bytes the client had acknowledged at the last sweep */
    uint64_t paced, paced_ms; /* the same when a body or an answer last went on at a fair pace: room.h */
    size_t grown;             /* what of a body was there then, with its head */
    uint64_t requests;
    struct ip peer; /* valid where ${peer_known} and not ${local} */
    struct pending_header *proxy_header; /* the PROXY protocol's header is being read; NULL: it is over, or there is none */
    bool receiving, head_done, internal, sending, ended, peer_known, local /* a Unix socket's */;
    bool streaming; /* sends now and then, without end: its heartbeats are what its client must take */
    bool direct; /* the peer speaks for itself, whatever its headers say */
    bool lingers;  /* answered before all was read: lingering_close.h */
    int linger_fd; /* then: the descriptor that outlives it */
    bool waits;           /* accepted, and not let in yet: accept_queue.c */
    bool seated;          /* one of max_connections */
    bool extra;           /* one of the internal listener's beyond them */
    bool stands_for_many; /* a trusted proxy's, or of a network without limits: one connection there is no one caller's */
    uint32_t share;       /* of its address, in the crowd */
    bool vanished; /* the client sends nothing more while its request is held: nobody need wait for it */
    size_t held;   /* bytes of memory that its answer takes until the client has it */
    uint64_t held_ms; /* since when there are any */
};

struct acceptor *acceptor_new(struct loop *loop);
void acceptor_free(struct acceptor *d);

/* acceptor_open(d): begin to serve the worker's own slots. acceptor_tick(d): adopt and give back slots, once a second sweep the connections. */
void acceptor_open(struct acceptor *d);
void acceptor_tick(struct acceptor *d);

/* acceptor_wake_ms(d, most): in how many ms, at most ${most}, acceptor_tick must come again. */
int acceptor_wake_ms(const struct acceptor *d, int most);

/* acceptor_close(d): take what waits in the queues, then nothing more. */
void acceptor_close(struct acceptor *d);

size_t acceptor_connections(const struct acceptor *d);

struct conn *conn_of(h2o_req_t *req);

/* conn_hsts_s(c): for how many seconds its client is told to come by TLS alone; 0: it is not told. */
uint64_t conn_hsts_s(const struct conn *c);

/*
 * conn_watch(c): its request waits for others, and nothing is read meanwhile. libh2o has stopped reading and would tell the kernel so, and the
 * contrary with the answer: two system calls, for a client that hardly ever sends before it is answered. So the socket stays watched until
 * something comes. conn_unwatch(c): the request goes on; before it is answered.
 */
void conn_watch(struct conn *c);
void conn_unwatch(struct conn *c);

/* conn_linger(c): the answer that now goes out ends ${c}, whatever its client still sends; it is to get the answer all the same. */
void conn_linger(struct conn *c);

/*
 * conn_hold(c, bytes): so much memory does the answer on ${c} take now; 0: none any more. What all answers of a worker take is bounded:
 * those that were begun first, so whose clients are the slowest, are ended.
 */
void conn_hold(struct conn *c, size_t bytes);

#endif
