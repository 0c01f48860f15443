/* The new master's side of a binary upgrade (upgrade.h): inherit, take over. */
#ifndef ASSAY_MASTER_UPGRADE_NEW_H
#define ASSAY_MASTER_UPGRADE_NEW_H

#include "core/master/parts_internal.h"

/*
 * upgrade_inherit(m): at the start: take over what the old master has passed, if there is one. 0,
 * or -1 after it has logged why; the old master then goes on.
 */
int upgrade_inherit(struct master *m);

/* upgrade_new_tick(m): in the master's loop. upgrade_new_reads(m): does it read the channel? */
void upgrade_new_tick(struct master *m);
bool upgrade_new_reads(const struct master *m);

/* upgrade_new_close(old): close the channel and the listeners that were not taken. */
void upgrade_new_close(struct old_master *old);

#endif
