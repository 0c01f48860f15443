/* The master's state: the structs of its parts, for master.c and the files beside it. */
#ifndef ASSAY_MASTER_PARTS_INTERNAL_H
#define ASSAY_MASTER_PARTS_INTERNAL_H

#include "core/master/children.h"
#include "core/master/directories.h"
#include "core/master/generations.h"
#include "core/master/listeners.h"
#include "core/master/options.h"
#include "core/master/reuseport.h"
#include "core/master/shared_memory.h"
#include "core/master/shutdown.h"
#include "core/master/upgrade_state.h"

struct master {
    const struct master_options *options;
    struct generations generations;
    struct directories directories;
    struct shared_memory shared;
    struct listeners listeners;
    struct reuseport reuseport;
    struct children children;
    struct upgrade upgrade;
    struct shutdown shutdown;
    int writer_fd, notify_fd, signal_fd; /* notify_fd: a child's phase changed */
    bool ready;                          /* all children were ready once */
    bool reload_pending;                 /* HUP came, and waits for a change to end */
    bool reloading;
    uint64_t started_ms;
    uint64_t watchdog_at_ms, extend_at_ms; /* of the next notification */
};

/* master_conf(m): the configuration of the newest generation. */
static inline struct conf *master_conf(const struct master *m)
{
    return generations_conf(&m->generations);
}

#endif
