/*
 * A client connection of a worker: the state that the acceptor, the timeouts and the request
 * pipeline share. One struct for each socket; it is freed when libh2o closes the socket. On the
 * loop's thread only.
 */
#ifndef ASSAY_CONN_CONNECTION_H
#define ASSAY_CONN_CONNECTION_H

#include "core/loop/loop.h"
#include "core/base/cidr.h"

struct acceptor;
struct endpoint;
struct request;
struct proxy_read;

/* an open event stream sends at least a comment this often, so that both ends notice a lost peer */
#define CONN_HEARTBEAT_MS 15000

/* a longer request head ends the connection */
#define CONN_HEAD_MAX (32u << 10)

struct conn {
    struct conn *prev, *next;
    struct loop *loop;
    struct acceptor *acceptor;
    struct endpoint *endpoint; /* the listening socket that accepted it */
    h2o_socket_t *socket;
    struct request *request;       /* in the pipeline; NULL while idle or receiving */
    struct proxy_read *proxy_read; /* the PROXY header is being read; NULL: done, or none */
    struct ip peer;                /* valid if ${peer_known} and not ${unix_socket} */
    uint32_t address;              /* row of its address in the connection table */
    int linger_fd;                 /* if ${lingering}: a second descriptor of the socket */
    uint64_t requests;             /* answered on this connection */
    uint64_t admitted_ms;
    uint64_t phase_ms; /* start of the phase: idle, receiving a head, a body, or sending */
    uint64_t acked;    /* bytes that the client had acknowledged at the last check */
    /* when a body or a response last advanced by a fair amount, and the bytes at that time */
    uint64_t progress_ms, progress_acked;
    size_t progress_input;
    size_t response_bytes; /* memory of a response that the client has not taken yet */
    uint64_t response_ms;  /* since when it takes any */
    bool receiving, head_done, sending, streaming;
    bool ended;    /* shut down; libh2o closes it in a later turn */
    bool internal; /* accepted on internal_listen */
    bool direct;   /* the PROXY header says that the proxy speaks for itself */
    bool peer_known, unix_socket;
    bool lingering;      /* answered before all of the request was read: lingering_close */
    bool queued;         /* in the accept queue: not admitted yet */
    bool counted;        /* uses one of max_connections */
    bool reserved;       /* uses one of the internal listener's reserved connections */
    bool shared_address; /* its address has many clients: a trusted proxy's, or exempt */
    bool hung_up;        /* the client closed its side while its request waits */
};

/* conn_of(req): the connection of a request. */
struct conn *conn_of(h2o_req_t *req);

/* conn_hsts_s(c): max-age of Strict-Transport-Security; 0: no header. */
uint64_t conn_hsts_s(const struct conn *c);

/*
 * conn_watch(c): keep the socket in epoll while a request waits. libh2o would remove it and add it
 * again with the response: two system calls for a client that rarely sends in between.
 * conn_unwatch(c): call it before the request is answered.
 */
void conn_watch(struct conn *c);
void conn_unwatch(struct conn *c);

/* conn_linger(c): the response ends ${c} before all of the request is read; close it lingering. */
void conn_linger(struct conn *c);

/*
 * conn_response_memory(c, bytes): memory that the response on ${c} takes; 0: none. When all
 * responses of a worker exceed a bound, those unread for longest are ended.
 */
void conn_response_memory(struct conn *c, size_t bytes);

/* conn_begin_response(c): a response starts. */
static inline void conn_begin_response(struct conn *c)
{
    c->sending = true;
    c->phase_ms = c->progress_ms = c->loop->now_ms;
    c->acked = 0;
}

/* conn_end_request(c): the request has ended; the connection is idle. */
static inline void conn_end_request(struct conn *c)
{
    c->request = NULL;
    c->requests++;
    c->phase_ms = c->loop->now_ms;
    c->receiving = c->head_done = c->sending = c->streaming = false;
    conn_response_memory(c, 0);
}

#endif
