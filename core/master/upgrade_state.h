/*
 * How far a binary upgrade (upgrade.h) has come: what the old master knows of the new one, and the
 * new one of the old. A master is one of the two, or neither, and seldom both.
 */
#ifndef ASSAY_MASTER_UPGRADE_STATE_H
#define ASSAY_MASTER_UPGRADE_STATE_H

#include "core/master/listeners.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* descriptors that the old master passes to the new one: inherited_state.h */
struct passed_fds {
    int *fds;
    size_t count;
};

/* in the old master */
enum new_master_state {
    NEW_MASTER_NONE,
    NEW_MASTER_STARTING,
    NEW_MASTER_PREPARED,    /* its workers are up; our writer and auditors are stopping */
    NEW_MASTER_TAKING_OVER, /* its writer and auditors may start */
    NEW_MASTER_SERVING
};
struct new_master {
    enum new_master_state state;
    pid_t pid;
    int fd;       /* the channel to it */
    int child_fd; /* its end, kept to revoke the descriptors in it */
    struct passed_fds passed;
    uint64_t deadline_ms;
    bool requested;    /* USR2 came, and waits for a reload to end */
    bool stop_pending; /* TERM came while the writers change */
};

/* in the new master */
enum old_master_state {
    OLD_MASTER_NONE,
    OLD_MASTER_SERVING,
    OLD_MASTER_HANDING_OVER, /* PREPARED was sent */
    OLD_MASTER_HANDED_OVER,  /* TAKE was received */
    OLD_MASTER_DRAINING      /* SERVES was sent */
};
struct old_master {
    enum old_master_state state;
    int fd;         /* the channel to it; -1: it has ended */
    bool accepting; /* our workers accept connections */
    bool confirmed; /* GO was received, or the old master has ended: this one is the server */
    unsigned slots, steered, generation;
    struct inherited_listener *listeners;
    size_t listeners_count;
    pid_t *workers; /* which our writer serves until they have drained */
    size_t workers_count;
};

struct upgrade {
    struct new_master new_master;
    struct old_master old_master;
};

/*
 * upgrade_blocks_role(u, role): children of this role are not started: the other master has them,
 * or its writer would not know them.
 */
static inline bool upgrade_blocks_role(const struct upgrade *u, enum role role)
{
    if (role == ROLE_WORKER) /* TAKE has named our workers */
        return u->new_master.state == NEW_MASTER_TAKING_OVER;
    return u->new_master.state >= NEW_MASTER_PREPARED ||
           u->old_master.state == OLD_MASTER_SERVING ||
           u->old_master.state == OLD_MASTER_HANDING_OVER;
}

/*
 * upgrade_is_trial(u): a new master whose old one can still go on: any death ends the attempt, and
 * nothing of the old master's is removed.
 */
static inline bool upgrade_is_trial(const struct upgrade *u)
{
    return u->old_master.state != OLD_MASTER_NONE && u->old_master.state != OLD_MASTER_DRAINING &&
           u->old_master.fd >= 0;
}

/* upgrade_in_progress(u): then no reload begins, and the slots' sockets stay as they are. */
static inline bool upgrade_in_progress(const struct upgrade *u)
{
    return u->new_master.state != NEW_MASTER_NONE ||
           (u->old_master.state != OLD_MASTER_NONE && !u->old_master.confirmed);
}

/* upgrade_suffix(u): of our files in run_dir, beside the old master's until we take over. */
#define UPGRADE_NEXT ".next"
static inline const char *upgrade_suffix(const struct upgrade *u)
{
    return u->old_master.state == OLD_MASTER_NONE ? "" : UPGRADE_NEXT;
}

#endif
