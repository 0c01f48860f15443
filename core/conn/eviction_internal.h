/*
 * Eviction: which connection of this worker is closed to admit another when max_connections is
 * reached. The order:
 *
 *   1. connections of heavy addresses: those with more than an eighth of this worker's connections;
 *   2. heads (also TLS handshakes and PROXY headers) incomplete after 400 ms; connections idle for
 *      400 ms; uploads, then responses, slower than 10 KB/s; younger heads; younger idle ones; and
 *      event streams, of heavy addresses only;
 *   3. the address with more connections, by powers of two;
 *   4. the oldest.
 *
 * Never evicted: a request in progress, a response that the client takes, a connection with unread
 * input, and one admitted less than 50 ms ago whose first request has not arrived. Each connection
 * of a trusted proxy, an exempt network or a Unix socket counts as an address of its own.
 */
#ifndef ASSAY_CONN_EVICTION_INTERNAL_H
#define ASSAY_CONN_EVICTION_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

struct conn;
struct eviction;
struct loop;

/* an address is heavy if it has more than 1 in so many of a worker's connections */
#define EVICTION_HEAVY_SHARE 8

/* eviction_new(loop, ring): ${ring} is the head of the worker's connections; NULL: no memory. */
struct eviction *eviction_new(const struct loop *loop, struct conn *ring);
void eviction_free(struct eviction *eviction);

/*
 * eviction_find(eviction, count): the next to evict of ${count} connections; NULL: none. The answer
 * stays the same until that one is evicted.
 */
struct conn *eviction_find(struct eviction *eviction, size_t count);

/*
 * eviction_protects(eviction, c, newcomer, count): do not evict ${c} for ${newcomer} (NULL: its
 * address is unknown): ${c} began or became idle a moment ago, its address is not heavy, and the
 * newcomer's is.
 */
bool eviction_protects(const struct eviction *eviction, struct conn *c, const struct conn *newcomer,
                       size_t count);

/* eviction_forget(eviction, c): ${c} is evicted or ends. */
void eviction_forget(struct eviction *eviction, struct conn *c);

#endif
