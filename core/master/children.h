/*
 * Child processes: a slot for each process that must run (the writer, auditor i, worker i), and the
 * children in them. After a reload, a worker of the old generation stays beside its successor until
 * the successor serves, and then drains; it has no slot any more.
 */
#ifndef ASSAY_MASTER_CHILDREN_H
#define ASSAY_MASTER_CHILDREN_H

#include "core/master/generations.h"
#include "core/master/shutdown.h"
#include "core/master/upgrade_state.h"

struct child {
    pid_t pid;
    struct process process;
    struct score *score;
    uint64_t started_ms;
    uint64_t signalled_ms;
    bool draining, stopping;
    bool alarmed; /* the alarm about a slow disk was logged */
    struct child *next;
};

struct child_slot {
    enum role role;
    unsigned index;
    struct child *child;       /* the newest; NULL: none */
    struct child *predecessor; /* serves until ${child} is ready */
    uint64_t start_at_ms;
    unsigned short_lives; /* in a row */
};

struct children {
    struct child_slot *slots;
    size_t slots_count;
    struct child *list;       /* all, also those without a slot */
    uint64_t watched_ms;      /* the last children_watch */
    uint64_t woken_ms;        /* when the master went on after it was stopped; 0: never */
    struct process inherited; /* what every child gets; the rest is set for each */
    bool store_known;         /* there is a store, so the writer must not make one */
    struct generations *generations;
    const struct upgrade *upgrade;
    struct shutdown *shutdown;
    const unsigned *listener_slots; /* of reuseport.h */
    /* called in a new child, to close what its role does not use */
    void (*close_unused)(void *arg, enum role role);
    void *arg;
};

/*
 * children_set_slots(c): slots for the newest configuration. A child keeps its slot; one that has
 * none any more is told to drain. 0, or -1: out of memory.
 */
int children_set_slots(struct children *c);

/* children_start(c): fork a child for every empty slot whose time has come. */
void children_start(struct children *c);

/*
 * children_replace(c): a reload: the new generation takes over, workers all at once, the writer and
 * the auditors each after its predecessor has ended.
 */
void children_replace(struct children *c);

/* children_retire(c): let predecessors drain whose successors serve. */
void children_retire(struct children *c);

/*
 * children_reaped(c, pid, status): this process ended. It may begin a shutdown: a child cannot
 * start, or keeps dying.
 */
void children_reaped(struct children *c, pid_t pid, int status);

/*
 * children_watch(c): kill what is stuck or did not drain in time; log when the disk is slow. A
 * master that was stopped knows nothing of its children, which may have been stopped with it.
 */
void children_watch(struct children *c);

/*
 * children_signal(c, number): to all. child_signal(child, number): SIGQUIT: drain; SIGTERM: stop.
 */
void children_signal(struct children *c, int number);
void child_signal(struct child *child, int number);

/*
 * children_ready(c, role): are all of this role?
 * children_in_transition(c): is one starting, or a predecessor not retired? Then no reload begins.
 * children_settled(c): are all workers ready and of the newest generation?
 * children_used_slots(c): the most listener slots of which a child has a socket.
 * children_alive(c, within_ms): have all workers and the writer sent a heartbeat lately? A writer
 * that waits for the disk counts.
 * children_have(c, role): is there one?
 */
bool children_ready(const struct children *c, enum role role);
bool children_in_transition(const struct children *c);
bool children_settled(const struct children *c);
unsigned children_used_slots(const struct children *c);
bool children_alive(const struct children *c, uint64_t within_ms);
bool children_have(const struct children *c, enum role role);

/* children_free(c): the slots; at the master's end, when no child is left. */
void children_free(struct children *c);

#endif
