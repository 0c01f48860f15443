/* The master process: binds, maps, forks, watches. It handles no request and opens no store. */
#ifndef ASSAY_MASTER_MASTER_H
#define ASSAY_MASTER_MASTER_H

#include "core/master/options.h"

/*
 * master_run(options): the whole life of the server; the exit status of assayd (assayd(8)).
 * Prints the ready lines on standard output when every child serves.
 */
int master_run(const struct master_options *options);

#endif
