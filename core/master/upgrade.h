/*
 * The binary upgrade (USR2): the old master starts the new binary, passes it the listeners, the
 * locks and the writer's socket, and is replaced by it while no request fails.
 *
 *   old master                              new master
 *   starts the binary; state and        ->  reads them, starts workers that do not accept yet
 *   descriptors (inherited_state.h)
 *                                       <-  PREPARED
 *   stops its writer and auditors, TAKE ->  starts its own (they wait for the store's lock), then
 *                                           its workers accept
 *                                       <-  SERVES
 *   names it to systemd, GO, drains     ->  is ready, and is the server
 *   ends
 *
 * Until SERVES the old master can go on, and does so when the new one fails, dies or takes too
 * long: its workers have answered all the time, only changes have waited. When a master dies, its
 * children die with it; two writers never have the store (core/writer/startup.h). When the old
 * master dies, the new one goes on alone.
 *
 * A stop while the old master drains is the new master's: its writer and auditors stay until the
 * old master's workers have ended. An old master that is told to stop waits for the new one, so
 * that whoever waits for either has waited for both.
 */
#ifndef ASSAY_MASTER_UPGRADE_H
#define ASSAY_MASTER_UPGRADE_H

#include "core/master/upgrade_new.h"
#include "core/master/upgrade_old.h"

/*
 * upgrade_tick(m): in the master's loop. upgrade_fd(m): its channel, for poll; -1: none.
 * upgrade_close(m): in a child: close the descriptors of the upgrade.
 * upgrade_end(m): at the master's end.
 */
void upgrade_tick(struct master *m);
int upgrade_fd(const struct master *m);
void upgrade_close(struct master *m);
void upgrade_end(struct master *m);

/*
 * upgrade_old_master_drains(m): then a new master that stops keeps its writer and auditors.
 * upgrade_delays_exit(m): a master that stops without children does not end yet.
 */
bool upgrade_old_master_drains(const struct master *m);
bool upgrade_delays_exit(struct master *m);

#endif
