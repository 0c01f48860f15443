/*
 * The sockets of the worker slots when a reload changes `workers`.
 *
 * More workers: connections are steered to the old slots until a worker serves every new one, so
 * that none waits for a worker that does not come up. Fewer workers: connections are steered to the
 * slots that stay, and workers adopt the removed ones. When nothing waits there and nothing can
 * arrive any more, every worker closes its copies, and the master closes its own last. Until then
 * another reload may use the slots again. When the kernel cannot steer, removed slots stay open.
 */
#ifndef ASSAY_MASTER_REUSEPORT_H
#define ASSAY_MASTER_REUSEPORT_H

#include "core/master/listeners.h"

struct reuseport {
    struct listeners *listeners;
    struct scoreboard *scoreboard;
    unsigned slots;         /* that have sockets */
    unsigned steered;       /* new connections go to the first so many; 0: to all */
    uint64_t quiet_from_ms; /* no handshake from before the steering is under way then */
};

/*
 * reuseport_bind(r, workers): the step of a reload that may fail: 0, or -1 with errno.
 * reuseport_unbind(r): undo it, since the reload is refused.
 */
int reuseport_bind(struct reuseport *r, unsigned workers);
void reuseport_unbind(struct reuseport *r);

/* reuseport_change(r, workers): use the bound slots, before children are started for them. */
void reuseport_change(struct reuseport *r, unsigned workers);

/* reuseport_is_changing(r): reuseport_tick has something to do. */
bool reuseport_is_changing(const struct reuseport *r);

/*
 * reuseport_tick(r, workers, used): in the master's loop, once every worker is of the newest
 * generation and serves. ${used}: the most slots of which a child still has a socket.
 */
void reuseport_tick(struct reuseport *r, unsigned workers, unsigned used);

/* reuseport_take_over(r, slots, steered): a new master: the state of the old one. */
void reuseport_take_over(struct reuseport *r, unsigned slots, unsigned steered);

/* reuseport_restore(r): a failed new master may have changed the steering of the shared sockets. */
void reuseport_restore(struct reuseport *r);

#endif
