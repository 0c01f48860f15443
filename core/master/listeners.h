/*
 * Listeners: made by the master before it forks and kept open by it for the server's life, so that no connection waiting in a queue dies
 * with a worker. Master only.
 */
#ifndef ASSAY_MASTER_LISTENERS_H
#define ASSAY_MASTER_LISTENERS_H

#include "core/process/process.h"

/*
 * Sockets made before us: a listener of the master that we succeed (upgrade.h), or a socket of the service manager's (systemd.h). It is the
 * configured listener of the same address: as that master's configuration wrote it, or else the socket's own.
 */
struct listen_given {
    char address[256]; /* "": the socket's own */
    int *fds;          /* a socket for each slot, or one that is shared; NULL: it was taken */
    size_t count, listening;
    bool shared, bound, internal;
};

/*
 * listen_open(conf, given, given_count, out, count, why, why_size):
 * Bind every listener of ${conf}: one SO_REUSEPORT socket per worker slot (a Unix socket: one, shared), after a probe bind without
 * SO_REUSEPORT, so that another server's port is refused. Port 0 becomes a free port, the same for all slots. Where one of ${given} is of
 * that address it is taken over instead: a shared one stays so, and slots that it lacks are bound and not heard yet. Return 0, or -1 with
 * a sentence. A failed call leaves nothing open but what was not taken.
 */
int listen_open(const struct conf *conf, struct listen_given *given, size_t given_count,
                struct listener *out, size_t *count, char *why, size_t why_size);

/*
 * listen_apply(listeners, count, conf): set what a reload may change in open listeners: whether each
 * speaks TLS, and its URL. ${conf} has the addresses they were opened for. listen_open calls it.
 */
void listen_apply(struct listener *listeners, size_t count, const struct conf *conf);

/* listen_options(fd): what a listening socket hands on to what it accepts; nothing on a Unix socket, which has no such options. */
void listen_options(int fd);

/* listen_drop(given, count): close those that were not taken and free all; the socket files of ours are removed if ${remove}. */
void listen_drop(struct listen_given *given, size_t count, bool remove);

/*
 * listen_grow(l, slots): sockets for more worker slots (a reload); bound, but nobody gets through to them before listen_hear(l). Both: 0 or
 * -1 with errno. listen_shrink(l, slots): close the sockets of the slots from ${slots} on; what waits in their queues is reset.
 */
int listen_grow(struct listener *l, size_t slots);
int listen_hear(struct listener *l);
void listen_shrink(struct listener *l, size_t slots);

/*
 * listen_unsteer(l): to those of all slots again.
 * listen_steer(l, slots): from now on new connections go to the sockets of the first ${slots} slots alone (SO_ATTACH_REUSEPORT_CBPF, Linux
 * 4.5), until the next call; handshakes under way still end where they began. 0, or -1 with errno: they go to all as before.
 */
int listen_steer(const struct listener *l, size_t slots);
void listen_unsteer(const struct listener *l);

/*
 * listen_handshake_ms(): so long after a steering no handshake from before is under way. listen_quiet(l, from): no connection waits in the
 * queues of slot ${from} and the later ones.
 */
uint64_t listen_handshake_ms(void);
bool listen_quiet(const struct listener *l, size_t from);

void listen_close(struct listener *listeners, size_t count);

/*
 * listen_remove(listeners, count, inherited): take the Unix sockets bound here off the file system, those of the master before us only if
 * ${inherited}; the server's end, before listen_close.
 */
void listen_remove(const struct listener *listeners, size_t count, bool inherited);

#endif
