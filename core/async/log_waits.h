/*
 * In a cluster: requests of a worker that wait until this node has an entry of the log, or all
 * entries that were in the log when they arrived. On the loop's thread only.
 *
 *   request -> POSITION to the writer -> the log thread reads the head, entries are applied
 *           -> cluster_score, and an event to the worker -> log_waits_look ends what it can
 *
 * All waits share one confirmation of the head, and all workers of a server ask for at most a
 * hundred a second.
 */
#ifndef ASSAY_ASYNC_LOG_WAITS_H
#define ASSAY_ASYNC_LOG_WAITS_H

#include "core/async/writer_client.h"

#define LOG_WAIT_HEAD UINT64_MAX
#define LOG_ASK_US 10000 /* between two confirmations that workers ask for */

enum log_verdict {
    LOG_REACHED,
    LOG_ABOVE_HEAD,  /* the log does not have this entry */
    LOG_NOT_YET,     /* the log has it, and the store does not */
    LOG_UNCONFIRMED, /* the log must be asked */
};

/*
 * log_verdict(view, entry, since_us): has this node ${entry}, or with LOG_WAIT_HEAD all entries
 * that were in the log at ${since_us}? A confirmation of before ${since_us} does not tell that the
 * log does not have ${entry}.
 */
enum log_verdict log_verdict(const struct cluster_view *view, uint64_t entry, uint64_t since_us);

struct log_waits;
typedef void log_wait_done_fn(struct waiter *w, enum log_verdict verdict);

/* log_waits_new(loop): NULL when memory is short. log_waits_free(NULL) does nothing. */
struct log_waits *log_waits_new(struct loop *loop);
void log_waits_free(struct log_waits *l);

/*
 * log_waits_add(l, entry, since_us, timeout_ms, w, done): ${done} with LOG_REACHED or
 * LOG_ABOVE_HEAD, or after ${timeout_ms} with what is missing; never within this call. False:
 * memory is short.
 */
bool log_waits_add(struct log_waits *l, uint64_t entry, uint64_t since_us, unsigned timeout_ms,
                   struct waiter *w, log_wait_done_fn *done) __attribute__((warn_unused_result));

/*
 * log_waits_look(l, writer): ends finished waits, and asks the writer for the others; once a turn,
 * and when the writer has news.
 * log_waits_wake_ms(l, most): how long the loop may sleep. log_waits_count(l): the number of waits.
 */
void log_waits_look(struct log_waits *l, struct writer_client *writer);
int log_waits_wake_ms(const struct log_waits *l, int most);
size_t log_waits_count(const struct log_waits *l);

#endif
