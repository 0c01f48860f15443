/* What the command line gives the master. */
#ifndef ASSAY_MASTER_OPTIONS_H
#define ASSAY_MASTER_OPTIONS_H

#include "core/conf/conf.h"

struct master_options {
    const char *program;   /* absolute path of the binary that an upgrade starts */
    const char *conf_path; /* read again by a reload; NULL: defaults alone */
    bool conf_required;
    const char *const *sets;
    size_t set_count;
    struct conf *conf; /* the first configuration; the master frees it */
};

#endif
