/* A reload (HUP): the configuration is read again, and a new generation of children starts. */
#ifndef ASSAY_MASTER_RELOAD_H
#define ASSAY_MASTER_RELOAD_H

#include "core/master/parts_internal.h"

/*
 * reload(m): waits (m->reload_pending) while a start, an upgrade or another reload is under way. A
 * configuration that cannot be used is refused with its mistakes in the log, and nothing changes.
 */
void reload(struct master *m);

/*
 * reload_fit_descriptors(m, conf): lower the limits of ${conf} to RLIMIT_NOFILE; also at the start.
 */
int reload_fit_descriptors(const struct master *m, struct conf *conf);

/* reload_publish(m): the newest generation, on the scoreboard; also at the start. */
void reload_publish(struct master *m);

#endif
