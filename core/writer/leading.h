/*
 * Leading: in a cluster one node executes changes, and the rows that they write go into the log
 * before they are committed. Without a cluster every writer leads, and there is no log.
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
 * leading_start(l): the log thread, if the configuration has a cluster. False: it cannot start, and
 * the log says why.
 * leading_end(l): false: the thread did not end in time, and the process must _exit.
 */
bool leading_start(struct leading *l);
bool leading_end(struct leading *l);
void leading_free(struct leading *l);

/* leading_describe(conf, out): name, address, version and format of this node. */
void leading_describe(const struct conf *conf, struct cluster_log_node *out);

/* leading_begin(l, view): this node leads from now on. */
void leading_begin(struct leading *l, const struct log_view *view);

/*
 * leading_show(l, view): what workers see of the log; ${view}: news of the log thread, or NULL.
 * Returns the turn of core/shm/cluster_score.h.
 */
uint64_t leading_show(struct leading *l, const struct log_view *view);

/* leading_now_ms(l): the time of the next changes: never less than that of changes before. */
int64_t leading_now_ms(const struct leading *l);

/*
 * leading_log(l, t, several): put the row set of ${t} into the log; then only the commit of ${t} is
 * left. STORE_TOO_MANY: it is too large for an entry, and ${t} has ${several} changes: apply fewer.
 * Exits EXIT_RETRY when the lead is lost: the changes may be in the log, which the next writer of
 * this process' master applies.
 */
enum store_status leading_log(struct leading *l, struct store_txn *t, bool several);

/*
 * leading_settle(l, status): after the commit of such a transaction. When it failed, the log has
 * what the store lacks: exits EXIT_RETRY, and the next writer applies the entry.
 */
void leading_settle(struct leading *l, enum store_status status);

/*
 * leading_mark(l): append an entry without rows and commit its position; no transaction is open.
 * False: the store refused it before. Exits as leading_log, and when the commit fails.
 */
bool leading_mark(struct leading *l);

#endif
