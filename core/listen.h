/*
 * Listeners: made by the master before it forks and kept open by it for the server's life, so that no connection waiting in a queue dies
 * with a worker. Master only.
 */
#ifndef ASSAY_LISTEN_H
#define ASSAY_LISTEN_H

#include "process.h"

/*
 * listen_open(conf, out, count, why, why_size):
 * Bind every listener of ${conf}: one SO_REUSEPORT socket per worker slot (a Unix socket: one, shared), after a probe bind without
 * SO_REUSEPORT, so that another server's port is refused. Port 0 becomes a free port, the same for all slots. Return 0, or -1 with a
 * sentence. A failed call leaves nothing open.
 */
int listen_open(const struct conf *conf, struct listener *out, size_t *count, char *why, size_t why_size);

/*
 * listen_grow(l, slots): sockets for more worker slots (a reload); those of removed slots stay, and the workers left adopt them. 0 or -1
 * with errno.
 */
int listen_grow(struct listener *l, size_t slots);

void listen_close(struct listener *listeners, size_t count);

/* listen_remove(listeners, count): take the Unix sockets bound here off the file system; the server's end, before listen_close. */
void listen_remove(const struct listener *listeners, size_t count);

#endif
