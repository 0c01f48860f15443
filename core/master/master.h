/*
 * The master: binds, maps, forks, reaps, signals. It runs no request code and never opens the store.
 */
#ifndef ASSAY_MASTER_MASTER_H
#define ASSAY_MASTER_MASTER_H

#include "core/conf/conf.h"

struct master_options {
    const char *program;   /* for an upgrade: the path of what runs, absolute */
    const char *conf_path; /* for HUP: read again; NULL: defaults alone */
    bool conf_required;
    const char *const *sets;
    size_t set_count;
    struct conf *conf; /* the first one; the master frees it */
};

/*
 * master_run(options): the server's whole life; the exit status of assayd (operating.md). Prints the ready lines on standard output when
 * every worker serves.
 */
int master_run(const struct master_options *options);

#endif
