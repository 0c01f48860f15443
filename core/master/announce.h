/*
 * What the server tells others about its own state: the first and the last line of the log, the
 * ready lines on standard output, and notifications to the service manager.
 */
#ifndef ASSAY_MASTER_ANNOUNCE_H
#define ASSAY_MASTER_ANNOUNCE_H

#include "core/master/parts_internal.h"

/*
 * announce_start(m): version, configuration, processes and listeners, once the listeners are bound.
 * announce_signal(m, signo, from): remember it as the reason of the end; the first one counts.
 * announce_end(m): reason, exit status, uptime and requests.
 */
void announce_start(const struct master *m);
void announce_signal(struct master *m, int signo, pid_t from);
void announce_end(const struct master *m);

/*
 * In the master's loop. announce_ready(m): when every child serves for the first time.
 * announce_reloaded(m): when every child of the new generation serves.
 * announce_alive(m): the watchdog of the service manager, while no child is stuck. A new master
 * sends it at once, since it does not know when the old one last did.
 * announce_delay(m): ask the service manager for more time while a start or a stop goes on: opening
 * a large store and draining (timeouts.drain) take long.
 */
void announce_ready(struct master *m);
void announce_reloaded(struct master *m);
void announce_alive(struct master *m);
void announce_delay(struct master *m);

#define ANNOUNCE_DELAY_MS 5000 /* between two requests for more time */

#endif
