/*
 * Leading: in a cluster one node executes changes. It appends the rows that they write to the log
 * before it commits them. Without a cluster every writer leads, and there is no log.
 */
#ifndef ASSAY_WRITER_LEADING_H
#define ASSAY_WRITER_LEADING_H

#include "core/process/process.h"
#include "core/writer/log_thread.h"

struct leading {
    struct process *process;
    struct store *store;
    struct log_thread *thread; /* NULL: no cluster */
    bool leads;                /* true: this writer executes changes */
    uint8_t node[NODE_BYTES];  /* the id of this node */
    char leader[NODE_TEXT];    /* the address of the leader; "": no other node leads */
    struct store_position position;
    int64_t at_ms;   /* of the last entry */
    uint32_t format; /* of the next row sets; 0: this writer does not lead */
    struct buf rows;
    bool logged;               /* the open transaction is in the log */
    struct cluster_view shown; /* to workers */
};

/*
 * leading_start(l): starts the log thread, if the configuration has a cluster. False: it cannot
 * start; the error log says why.
 * leading_end(l): ends it. False: the thread did not end in time; call _exit.
 */
bool leading_start(struct leading *l);
bool leading_end(struct leading *l);
void leading_free(struct leading *l);

/* leading_describe(conf, out): name, address, version and format of this node. */
void leading_describe(const struct conf *conf, struct cluster_log_node *out);

/* leading_begin(l, view): this node leads from now on. */
void leading_begin(struct leading *l, const struct log_view *view);

/*
 * leading_show(l, view): publishes the state of the log for workers; ${view} is a new state of the
 * log thread, or NULL. Returns the turn of core/shm/cluster_score.h.
 */
uint64_t leading_show(struct leading *l, const struct log_view *view);

/* leading_now_ms(l): the time of the next changes, never less than that of earlier changes. */
int64_t leading_now_ms(const struct leading *l);

/*
 * leading_log(l, t, several): appends the row set of ${t} to the log; then commit ${t}.
 * STORE_TOO_MANY: the row set is too large for an entry, and ${t} has ${several} changes: apply
 * fewer. Exits with EXIT_RETRY when the lead is lost: the log may have the changes, and the next
 * writer applies them.
 */
enum store_status leading_log(struct leading *l, struct store_txn *t, bool several);

/*
 * leading_settle(l, status): call it after the commit of such a transaction. If the commit failed,
 * the log has an entry that the store lacks: exits with EXIT_RETRY, and the next writer applies the
 * entry.
 */
void leading_settle(struct leading *l, enum store_status status);

/*
 * leading_mark(l): appends an entry without rows and commits its position; no transaction may be
 * open. False: the store refused to begin. Exits like leading_log, also if the commit fails.
 */
bool leading_mark(struct leading *l);

#endif
