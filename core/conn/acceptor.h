/*
 * The acceptor of a worker: its listening sockets, admission, and the timeouts of connections.
 *
 * A worker inherits the listening sockets of all worker slots. It serves its own slot, and adopts a
 * slot that had no worker for 250 ms until that slot's worker is back.
 *
 * max_connections counts the connections of all workers (connection_table.h). When it is reached, a
 * new connection replaces an idle or slow one (eviction), here or in another worker; otherwise it
 * waits in the accept queue: accepted, unread, and next if its address has the fewest connections.
 * When the queue is full, connections wait in the kernel's backlog. internal_listen has some
 * reserved connections of its own.
 *
 * A worker that drains admits its queue at once, above max_connections if need be. A worker that is
 * killed loses its queue; connections in the kernel's backlog wait for the next worker.
 */
#ifndef ASSAY_CONN_ACCEPTOR_H
#define ASSAY_CONN_ACCEPTOR_H

#include "core/loop/loop.h"

struct acceptor;

/* acceptor_new(loop): NULL when memory is short. acceptor_free(NULL) does nothing. */
struct acceptor *acceptor_new(struct loop *loop);
void acceptor_free(struct acceptor *a);

/* acceptor_open(a): begin to serve the worker's own slot. */
void acceptor_open(struct acceptor *a);

/*
 * acceptor_tick(a): once a turn of the loop: admit, adopt and release slots, and once a second
 * check the timeouts of all connections.
 * acceptor_wake_ms(a, most): how long the loop may sleep before the next tick, at most ${most}.
 */
void acceptor_tick(struct acceptor *a);
int acceptor_wake_ms(const struct acceptor *a, int most);

/* acceptor_close(a): accept what is in the backlogs of its sockets, then stop accepting. */
void acceptor_close(struct acceptor *a);

/* acceptor_connections(a): open connections, with queued and lingering ones. */
size_t acceptor_connections(const struct acceptor *a);

#endif
