/*
 * The log thread: the thread of the writer that has the connection to the log of the cluster
 * (core/cluster/cluster_log.h). It decides by the log alone whether this node leads or follows.
 *
 *   follows:  thread reads entries -> event_fd -> loop: log_thread_take, a transaction,
 *             log_thread_applied -> thread reads on; at the head, and if nobody leads: it leads
 *   leads:    loop: log_thread_append blocks -> thread appends -> the loop commits
 *   stopped:  the store does not fit the log, and the thread applies nothing until it does
 *
 * Invariants: the position of the store never passes the log. One append is in flight at a time,
 * and the thread returns from it only when it knows whether the log has the entry. A node registers
 * when its store fits the log, and is not noted while it is stopped: the log is not kept for it for
 * longer than for a node that is away.
 */
#ifndef ASSAY_WRITER_LOG_THREAD_H
#define ASSAY_WRITER_LOG_THREAD_H

#include "core/cluster/position.h"
#include "core/writer/log_batch.h"

enum log_state {
    LOG_CONNECTS, /* the store is not compared with the log, or does not fit it */
    LOG_FOLLOWS,
    LOG_LEADS,
    LOG_LOST, /* it led, and another node may lead now: the process must end */
};

/* What the thread knows; a copy. */
struct log_view {
    enum log_state state;
    struct cluster_log_head head;
    struct store_position position; /* of the store */
    uint64_t epoch;                 /* of the own lead */
    unsigned nodes; /* that may admit requests, this one among them; 0: the list was not read */
    /* while this node leads: */
    char full_node[NODE_TEXT]; /* a live node without space; "": none */
    uint32_t format;           /* of the next entries: core/cluster/formats.h */
    /* CLOCK_MONOTONIC: what was in the log then is up to ${head}; 0: the head was not read */
    uint64_t confirmed_us;
    int64_t clock_offset_ms; /* the clock of this node minus that of the log */
    char why[POSITION_WHY];  /* what keeps it from going on; "": nothing */
};

struct log_thread;

/*
 * log_thread_new(log, node, position, empty): ${log}: of cluster_log_new, freed with the thread;
 * ${node}: what others see of this node; ${position}: of the store, NULL: it has none; ${empty}: it
 * has no records either. NULL: the thread cannot start, and the error log says why.
 * log_thread_end(t): as background_thread_end. log_thread_free(t): after the end.
 */
struct log_thread *log_thread_new(struct cluster_log *log, const struct cluster_log_node *node,
                                  const struct store_position *position, bool empty);
bool log_thread_end(struct log_thread *t);
void log_thread_free(struct log_thread *t);

/* log_thread_fd(t): readable when there is something new. log_thread_look(t, out): what it is. */
int log_thread_fd(const struct log_thread *t);
void log_thread_look(struct log_thread *t, struct log_view *out);

/*
 * log_thread_take(t): the entries to apply; NULL: none. log_thread_applied(t, status, why): once
 * after each take: they are committed, or ${status} and ${why} say why not; then the thread offers
 * the same ones again after a second.
 */
const struct log_batch *log_thread_take(struct log_thread *t);
void log_thread_applied(struct log_thread *t, enum store_status status, const char *why);

/*
 * log_thread_append(t, what, tick, arg, out): append a row set of this node's lead and return the
 * position after it. ${what}: its rows, their format and the time; the thread fills the other
 * members. ${tick} is called every 50 ms; when it returns false, the thread gives up. False: the
 * outcome is unknown, or the lead is lost: nothing may be committed, and the process must end.
 */
typedef bool log_tick_fn(void *arg);
bool log_thread_append(struct log_thread *t, const struct cluster_log_entry *what,
                       log_tick_fn *tick, void *arg, struct store_position *out)
    __attribute__((warn_unused_result));

/*
 * log_thread_trims(t, keep_ms, away_ms): what the leader deletes of the log: entries that are older
 * than the last one by ${keep_ms} and that every node has applied. It deregisters nodes that were
 * not heard of for ${away_ms}. Until it is called, it deletes nothing.
 */
void log_thread_trims(struct log_thread *t, uint64_t keep_ms, uint64_t away_ms);

/*
 * log_thread_counts(t, away_ms): a node that was not heard of for longer is not one of the view's
 * ${nodes} (core/cluster/live_nodes.h). Until it is called, all that are registered are.
 */
void log_thread_counts(struct log_thread *t, int64_t away_ms);

/*
 * log_thread_hash(t, sequence, hash, took_ms): the hash of the rows of the store at that entry, for
 * other nodes, which took ${took_ms}. The thread then compares: if this node differs, it stops. Any
 * thread.
 */
void log_thread_hash(struct log_thread *t, uint64_t sequence, const uint8_t hash[STORE_HASH_BYTES],
                     uint64_t took_ms);

/*
 * log_thread_note(t, free_bytes): how much the store can still grow, for other nodes.
 * log_thread_wake(t): look at the log now.
 * log_thread_confirm(t): read the head now, also while this node leads; log_thread_fd tells when.
 */
void log_thread_note(struct log_thread *t, uint64_t free_bytes);
void log_thread_wake(struct log_thread *t);
void log_thread_confirm(struct log_thread *t);

#endif
