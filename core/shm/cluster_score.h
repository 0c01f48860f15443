/*
 * In a cluster: what the writer knows of the log, for workers and commands; part of the scoreboard.
 *
 * One writer process publishes views, and everybody reads them. There are two copies: the writer
 * fills the one that nobody reads and then makes it the current one, so a writer that is killed
 * leaves the last view whole.
 */
#ifndef ASSAY_SHM_CLUSTER_SCORE_H
#define ASSAY_SHM_CLUSTER_SCORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CLUSTER_LEASE_MS 10000 /* how long a lead lasts that is not renewed */

enum cluster_role {
    CLUSTER_NONE,     /* no cluster, or the writer has not started */
    CLUSTER_CONNECTS, /* the store is not compared with the log, or does not fit it */
    CLUSTER_FOLLOWS,
    CLUSTER_LEADS,
};

/* Times are microseconds of CLOCK_MONOTONIC; 0: never. */
struct cluster_view {
    uint64_t role;         /* enum cluster_role */
    uint64_t log;          /* the first 8 bytes of its id; 0: unknown */
    uint64_t epoch;        /* of the lead */
    uint64_t head;         /* the last entry that is known to be in the log */
    uint64_t applied;      /* the last entry that the store has */
    uint64_t confirmed_us; /* entries that were in the log at that time are up to ${head} */
    uint64_t current_us;   /* entries that were in the log at that time are in the store */
    /*
     * Nodes that may admit requests, as the log noted them when it was last read; while it is away
     * the number stays. 0: no writer of this master has read them.
     */
    uint64_t nodes;
};

struct cluster_copy {
    _Atomic uint64_t role, log, epoch, head, applied, confirmed_us, current_us, nodes;
};

struct cluster_score {
    _Atomic uint64_t turn; /* how many views were published; its lowest bit: the current copy */
    struct cluster_copy copies[2];
    /*
     * The last entry whose commit has begun. What anybody has read of the store is not of a later
     * entry.
     */
    _Atomic uint64_t begun;
    _Atomic uint64_t asked_us;   /* when a worker last asked for a confirmation of the head */
    _Atomic uint64_t started_us; /* of the server */
    _Atomic uint64_t appends, append_us; /* entries that this node appended; the time of all */
    /* the clock of this node minus that of the log; known with a view that was confirmed */
    _Atomic int64_t clock_offset_ms;
};

/*
 * cluster_score_publish(c, view): the writer's call.
 * cluster_score_read(c, out): the current view; returns its turn.
 * cluster_score_turn(c): it changes with each view.
 */
void cluster_score_publish(struct cluster_score *c, const struct cluster_view *view);
uint64_t cluster_score_read(const struct cluster_score *c, struct cluster_view *out);
uint64_t cluster_score_turn(const struct cluster_score *c);

/*
 * cluster_view_is_silent(view, now_us): the log has not answered for longer than the time between
 * two confirmations, or never.
 * cluster_log_is_away(c, now_us): the log answered before and is silent now: it is unknown when a
 * change that is sent to the writer will end.
 */
#define CLUSTER_SILENT_US 4000000 /* the head is confirmed at least every two seconds */
bool cluster_view_is_silent(const struct cluster_view *view, uint64_t now_us);
bool cluster_log_is_away(const struct cluster_score *c, uint64_t now_us);

/* cluster_view_lag_us(view, now_us): since when entries may be missing; UINT64_MAX: unknown. */
uint64_t cluster_view_lag_us(const struct cluster_view *view, uint64_t now_us);

/*
 * cluster_view_role(view, now_us): the role. CLUSTER_CONNECTS also of a leader that has not reached
 * the log for so long that its lease has ended.
 */
uint64_t cluster_view_role(const struct cluster_view *view, uint64_t now_us);

/* cluster_score_begin(c, entry): the writer's call before it commits ${entry}. */
void cluster_score_begin(struct cluster_score *c, uint64_t entry);

/*
 * cluster_score_may_ask(c, now_us, interval_us): true for one caller of all processes in each
 * interval: it asks for a confirmation of the head.
 */
bool cluster_score_may_ask(struct cluster_score *c, uint64_t now_us, uint64_t interval_us);

/* cluster_role_name(role): "none", "connects", "follows", "leads". */
const char *cluster_role_name(uint64_t role);

#endif
