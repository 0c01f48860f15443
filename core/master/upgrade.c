#include "core/master/upgrade.h"

#include <stdlib.h>

void upgrade_tick(struct master *m)
{
    upgrade_new_tick(m);
    upgrade_old_tick(m);
}

int upgrade_fd(const struct master *m)
{
    if (m->upgrade.new_master.state != NEW_MASTER_NONE)
        return m->upgrade.new_master.fd;
    return upgrade_new_reads(m) ? m->upgrade.old_master.fd : -1;
}

/* except when it gives up: no process accepts connections until it has ended */
bool upgrade_old_master_drains(const struct master *m)
{
    const struct old_master *old = &m->upgrade.old_master;
    return old->state == OLD_MASTER_DRAINING && old->fd >= 0 && m->shutdown.exit_status == 0;
}

bool upgrade_delays_exit(struct master *m)
{
    const struct new_master *n = &m->upgrade.new_master;
    if (!m->shutdown.stopping)
        return false;
    if (n->state == NEW_MASTER_SERVING && n->pid != 0)
        return upgrade_waits_for_new(m);
    return upgrade_old_master_drains(m) && clock_mono_ms() < m->shutdown.deadline_ms;
}

void upgrade_close(struct master *m)
{
    upgrade_old_close(&m->upgrade.new_master);
    upgrade_new_close(&m->upgrade.old_master);
}

void upgrade_end(struct master *m)
{
    upgrade_old_end(&m->upgrade.new_master);
    upgrade_close(m);
    free(m->upgrade.old_master.workers);
}
