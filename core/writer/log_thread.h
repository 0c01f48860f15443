/*
 * The log thread: the thread of the writer that has the connection to the log of the cluster
 * (core/cluster/cluster_log.h). The log alone decides whether this node leads or follows.
 *
 *   follows:  thread reads entries -> event_fd -> loop: log_thread_take, a transaction,
 *             log_thread_applied -> thread reads more; at the head, if no node leads, it leads
 *   leads:    loop: log_thread_append blocks -> thread appends -> the loop commits
 *   stopped:  the store does not fit the log; the thread applies nothing until it does
 *
 * Invariants: the position of the store is never beyond the head of the log. One append runs at a
 * time, and returns when the thread knows whether the log has the entry. A node registers when its
 * store fits the log. A stopped node does not count as seen: the log keeps entries for it as long
 * as for a node that is away.
 */
#ifndef ASSAY_WRITER_LOG_THREAD_H
#define ASSAY_WRITER_LOG_THREAD_H

#include "core/cluster/position.h"
#include "core/writer/log_batch.h"

enum log_state {
    LOG_CONNECTS, /* the store is not compared with the log, or does not fit it */
    LOG_FOLLOWS,
    LOG_LEADS,
    LOG_LOST, /* this node lost the lead: the process must end */
};

/* The state of the thread; a copy. */
struct log_view {
    enum log_state state;
    struct cluster_log_head head;
    struct store_position position; /* of the store */
    uint64_t epoch;                 /* of the own lead */
    unsigned nodes; /* that may admit requests, with this one; 0: the list was not read */
    /* while this node leads: */
    char full_node[NODE_TEXT]; /* a live node without space; "": none */
    uint32_t format;           /* of the next entries: core/cluster/formats.h */
    /* CLOCK_MONOTONIC: when the log ended at ${head}; 0: the head was not read */
    uint64_t confirmed_us;
    int64_t clock_offset_ms; /* the clock of this node minus that of the log */
    char why[POSITION_WHY];  /* why it does not continue; "": it does */
};

struct log_thread;

/*
 * log_thread_new(log, node, position, empty): ${log} is from cluster_log_new and freed with the
 * thread; ${node} is the registered state of this node; ${position} is that of the store, NULL: it
 * has none; ${empty}: the store has no records. NULL: the thread cannot start; the error log says
 * why.
 * log_thread_end(t): like background_thread_end. log_thread_free(t): after the end.
 */
struct log_thread *log_thread_new(struct cluster_log *log, const struct cluster_log_node *node,
                                  const struct store_position *position, bool empty);
bool log_thread_end(struct log_thread *t);
void log_thread_free(struct log_thread *t);

/* log_thread_fd(t): readable when the state has changed. log_thread_look(t, out): the state. */
int log_thread_fd(const struct log_thread *t);
void log_thread_look(struct log_thread *t, struct log_view *out);

/*
 * log_thread_take(t): the entries to apply; NULL: none. log_thread_applied(t, status, why): call it
 * once after each take. The entries are committed, or ${status} and ${why} say why not; the thread
 * then offers the same entries again after a second.
 */
const struct log_batch *log_thread_take(struct log_thread *t);
void log_thread_applied(struct log_thread *t, enum store_status status, const char *why);

/*
 * log_thread_append(t, what, tick, arg, out): appends a row set of this node's lead. ${out} is the
 * position after it. ${what} has the rows, their format and the time; the thread fills the other
 * members. ${tick} is called every 50 ms; if it returns false, the call ends. False: the outcome is
 * unknown, or the lead is lost: commit nothing, and end the process.
 */
typedef bool log_tick_fn(void *arg);
bool log_thread_append(struct log_thread *t, const struct cluster_log_entry *what,
                       log_tick_fn *tick, void *arg, struct store_position *out)
    __attribute__((warn_unused_result));

/*
 * log_thread_trims(t, keep_ms, away_ms): the leader deletes entries that are older than the last
 * one by ${keep_ms} and that every node has applied. It deregisters nodes that were not seen for
 * ${away_ms}. Before this call it deletes nothing.
 */
void log_thread_trims(struct log_thread *t, uint64_t keep_ms, uint64_t away_ms);

/*
 * log_thread_counts(t, away_ms): nodes that were not seen for longer are not counted in ${nodes} of
 * the view (core/cluster/live_nodes.h). Before this call all registered nodes are.
 */
void log_thread_counts(struct log_thread *t, int64_t away_ms);

/*
 * log_thread_hash(t, sequence, hash, took_ms): publishes the hash of the rows of the store at that
 * entry, which took ${took_ms}. The thread compares it with those of other nodes, and stops if this
 * node differs. May be called by any thread.
 */
void log_thread_hash(struct log_thread *t, uint64_t sequence, const uint8_t hash[STORE_HASH_BYTES],
                     uint64_t took_ms);

/*
 * log_thread_note(t, free_bytes): publishes the free space of the store for other nodes.
 * log_thread_wake(t): reads the log now.
 * log_thread_confirm(t): reads the head now, also while this node leads; then log_thread_fd is
 * readable.
 */
void log_thread_note(struct log_thread *t, uint64_t free_bytes);
void log_thread_wake(struct log_thread *t);
void log_thread_confirm(struct log_thread *t);

#endif
