/*
 * The worker slots' sockets when a reload changes `workers`; the master's.
 *
 * New slots: connections are steered to those there were until a worker sits in every new one, so that none waits for a worker that does not
 * come up. Removed slots: connections are steered to those that stay; what had begun is served on (workers adopt the slot); then, when
 * nothing waits there and nothing can come any more, every worker lets go of its copy of the sockets, and the master closes them last. So
 * until that moment another reload may take them into use again. Where the kernel cannot steer, removed slots are served for ever.
 */
#ifndef ASSAY_MASTER_REUSEPORT_H
#define ASSAY_MASTER_REUSEPORT_H

#include "core/master/master_internal.h"

/* reuseport_bind(m, workers): what a reload may fail at: 0 or -1 with errno. reuseport_unbind(m): undo it, since the reload is refused. */
int reuseport_bind(struct master *m, unsigned workers);
void reuseport_unbind(struct master *m);

/* reuseport_change(m): the newest generation, whose slots are bound, is about to be seated. reuseport_tick(m): in the master's loop. */
void reuseport_change(struct master *m);
void reuseport_tick(struct master *m);

/* reuseport_restore(m): an heir (upgrade.h) may have steered the sockets that it shared with us otherwise, and is gone. */
void reuseport_restore(struct master *m);

#endif
