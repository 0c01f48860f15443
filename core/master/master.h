/* The master process: binds, maps, forks, watches. It handles no request and opens no store. */
#ifndef ASSAY_MASTER_MASTER_H
#define ASSAY_MASTER_MASTER_H

#include "core/conf/conf.h"

struct master_options {
    const char *program;   /* absolute path of the binary that an upgrade starts */
    const char *conf_path; /* read again by a reload; NULL: defaults alone */
    bool conf_required;
    const char *const *sets;
    size_t set_count;
    struct conf *conf; /* the first configuration; the master frees it */
};

/*
 * master_run(options): the whole life of the server; the exit status of assayd (operating.md).
 * Prints the ready lines on standard output when every child serves.
 */
int master_run(const struct master_options *options);

#endif
