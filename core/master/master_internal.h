/*
 * The master's seats and who sits in them: generations of configurations, children, their births and deaths. Between master.c, which is the
 * server's life, and children.c; nobody else includes this.
 */
#ifndef ASSAY_MASTER_MASTER_INTERNAL_H
#define ASSAY_MASTER_MASTER_INTERNAL_H

#include "core/shm/connection_table.h"
#include "core/shm/limiter_stats.h"
#include "core/master/listeners.h"
#include "core/master/master.h"
#include "core/process/process.h"
#include "core/conn/tls.h"
#include "core/shm/typing_table.h"
#include "core/master/upgrade.h"
#include "ratelimit/ratelimit.h"

/*
 * A seat is a place that must be filled: writer, auditor i, worker i. Who sits there may be of an older generation until the newer is
 * ready, so a child is apart from its seat.
 */
struct child {
    pid_t pid;
    struct process process;
    struct score *score;
    uint64_t born_ms, told_ms;
    bool draining, stopping, alarmed;
    struct child *next;
};

struct child_slot {
    enum role role;
    unsigned index;
    struct child *child; /* the newest; NULL: empty */
    struct child *old;   /* still serving until ${child} is ready */
    uint64_t fill_at_ms;
    unsigned short_lives;
};

/* a configuration in use by children of one generation */
struct generation {
    struct conf *conf;
    struct tls tls;
    unsigned number, children;
    struct generation *next;
};

struct master {
    const struct master_options *options;
    struct generation *generation; /* newest first */
    struct scoreboard *scoreboard;
    struct limiter_stats *limiters;
    struct ratelimit *ratelimit;
    struct typing_table *typing;
    struct connection_table *connection_table;
    struct request_stats *request_stats;
    struct listener listeners[LISTENERS_MAX];
    size_t listeners_count;
    /* the slots that have sockets; those new connections go to, the first, or 0: all; from when on none of before steering is under way */
    unsigned slots, steered;
    uint64_t quiet_from_ms;
    struct child_slot *child_slots;
    size_t child_slots_count;
    struct child *children;
    char writer_path[108];
    int writer_fd, notify_fd, signal_fd, data_lock, run_lock;
    bool ready_said, hup_waits, reloading, stopping;
    bool store_known; /* there is a store, so none must be made */
    bool left;        /* an heir is the server now, and this one only drains */
    struct new_master new_master;
    struct old_master old_master;
    int exit_status;
    char why[64]; /* it ends: announce.h */
    uint64_t started_ms, stop_at_ms, watchdog_at_ms, time_at_ms;
};

/* master_conf(m): the configuration of the newest generation. */
static inline struct conf *master_conf(const struct master *m)
{
    return m->generation->conf;
}

/* generation_new(m, conf): make ${conf} the newest generation's and take it over. NULL, with the reasons logged, where it cannot be used. */
struct generation *generation_new(struct master *m, struct conf *conf);
void generation_free(struct generation *g);

/* children_make(m): the seats of the newest generation; whoever sits in one of the same name stays, the others are told to drain. 0 or -1. */
int children_make(struct master *m);

/* children_succeed(m): the newest generation's children take over, workers side by side, writer and auditors one after the other. */
void children_succeed(struct master *m);

/* children_fill(m): fork for every empty seat whose time has come. children_relieve(m): let old workers go whose successors serve. */
void children_fill(struct master *m);
void children_relieve(struct master *m);

/* children_reap(m): bury the dead. It may set m->stopping and m->exit_status: cannot start, or gave up. */
void children_reap(struct master *m);

/* children_watch(m): kill whoever has not moved or not drained in time; an alarm where the disk keeps the writer waiting. */
void children_watch(struct master *m);

/* children_move(m, within_ms): every worker there is has moved in the last ${within_ms}, and the writer too, whom only the disk may keep longer. */
bool children_move(const struct master *m, uint64_t within_ms);

/*
 * children_ready(m, role): everybody of ${role} is. children_changing(m): somebody is just starting, or not relieved yet: no next generation may sit down.
 * children_draining(m): generations that are.
 */
bool children_ready(const struct master *m, enum role role);
bool children_changing(const struct master *m);
unsigned children_draining(const struct master *m);

/* child_tell(c, number): SIGQUIT: drain; SIGTERM: stop. */
void child_tell(struct child *c, int number);

#endif
