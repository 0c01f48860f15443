/* The old master's side of a binary upgrade (upgrade.h): start the new one, hand over, or go on. */
#ifndef ASSAY_MASTER_UPGRADE_OLD_H
#define ASSAY_MASTER_UPGRADE_OLD_H

#include "core/master/parts_internal.h"

/* upgrade_request(m): USR2. It begins when no reload is under way. */
void upgrade_request(struct master *m);

/*
 * upgrade_defer_stop(m, again): TERM. True: it waits until it is known which master is the server.
 * ${again}: it came before; then the attempt ends and false is returned.
 * upgrade_take_deferred_stop(m): true once, when the attempt has failed and the writer is back.
 */
bool upgrade_defer_stop(struct master *m, bool again);
bool upgrade_take_deferred_stop(struct master *m);

/*
 * upgrade_forward_signal(m, number): true: the new master is the server, and got the signal. USR1
 * also goes to one that does not serve yet.
 */
bool upgrade_forward_signal(struct master *m, int number);

/*
 * upgrade_reaped(m, pid, status): was this the new master? If it was the server, this one stops
 * too.
 */
bool upgrade_reaped(struct master *m, pid_t pid, int status);

/* upgrade_old_tick(m): in the master's loop. */
void upgrade_old_tick(struct master *m);

/*
 * upgrade_waits_for_new(m): at the end, while the new master serves: it is given time to stop.
 * upgrade_old_end(n): at the end: kill a new master that does not serve.
 * upgrade_old_close(n): close the channel.
 */
bool upgrade_waits_for_new(struct master *m);
void upgrade_old_end(struct new_master *n);
void upgrade_old_close(struct new_master *n);

#endif
