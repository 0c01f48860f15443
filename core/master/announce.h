/*
 * The log's first and last line of a server: what runs and where it listens, and why it ended.
 * Master only.
 */
#ifndef ASSAY_MASTER_ANNOUNCE_H
#define ASSAY_MASTER_ANNOUNCE_H

#include "core/master/master_internal.h"

/* announce_start(m): version, configuration, processes and listeners; when the listeners are bound. */
void announce_start(const struct master *m);

/*
 * announce_signal(m, signo, from): remember that this signal is why the server ends; the first one
 * counts. announce_end(m, status): why, exit status, uptime and requests; before tidying up.
 */
void announce_signal(struct master *m, int signo, pid_t from);
void announce_end(const struct master *m, int status);

#endif
