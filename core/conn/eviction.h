/*
 * Room for one more connection, where max_connections is reached: which of a worker's own gives way. In this order:
 *
 *   1. of an address that holds more than an eighth of this worker's connections, then of others;
 *   2. heads that did not become whole in 400 ms (also connections that said nothing yet, TLS handshakes, the PROXY protocol's header);
 *      connections that rested so long between requests; bodies that come, then answers that are taken, at less than 10 KB a second;
 *      heads, then rests, that are shorter; and event streams, of such an address alone;
 *   3. of the address that holds more, by powers of two; 4. what began first.
 *
 * A request that is under way never gives way, and neither does an answer that is being taken, nor a connection on which bytes wait to be
 * read, nor one that was let in less than 50 ms ago and whose first request is not there yet. Proxies that are trusted, networks that are
 * exempt from limits and Unix sockets hold one connection each, so to speak: they stand for many. One per worker.
 */
#ifndef ASSAY_CONN_EVICTION_H
#define ASSAY_CONN_EVICTION_H

#include "core/conn/acceptor.h"

struct eviction;

/* an address crowds that holds more than one in so many of a worker's connections */
#define EVICTION_CROWDING 8

/* eviction_new(loop, ring): ${ring} is the anchor of the worker's connections. NULL when out of memory. eviction_free(NULL) does nothing. */
struct eviction *eviction_new(const struct loop *loop, struct conn *ring);
void eviction_free(struct eviction *eviction);

/* eviction_find(room, count): of its ${count} connections the one that gives way next; the same until it does. NULL: none may. */
struct conn *eviction_find(struct eviction *eviction, size_t count);

/*
 * eviction_spares(room, c, newcomer, count): ${c} has only just begun, or come to rest, and its address does not crowd, as that of
 * ${newcomer} does (NULL: whose that is is not known): it does not go for that one.
 */
bool eviction_spares(const struct eviction *eviction, struct conn *c, const struct conn *newcomer, size_t count);

/* eviction_forget(room, c): ${c} has given way, or ends. */
void eviction_forget(struct eviction *eviction, struct conn *c);

/*
 * conn_quiet(c): no bytes wait to be read. conn_taken(c): what only grows while the peer takes what is sent.
 * conn_received(c, now): something of a request is there: see whether its head is whole, and note since when.
 * conn_keeps_pace(c, taken): whether, with ${taken}, it took enough since c->paced_ms.
 */
bool conn_quiet(const struct conn *c);
uint64_t conn_taken(const struct conn *c);
void conn_received(struct conn *c, uint64_t now);
bool conn_keeps_pace(const struct conn *c, uint64_t taken);

#endif
