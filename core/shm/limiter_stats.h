/*
 * Limiter statistics: the limits in force and what they admitted and refused, in a file of run_dir.
 * The master makes it before it forks. Every worker maps it, also those of an old generation, so
 * that a reload reaches them too. Commands map it read-only, also after the server has stopped.
 *
 * The limits are published as a whole, under a version that is odd while they are written. A reader
 * compares the version with the one it knows, and copies the limits only when it changed. Counters
 * belong to a limiter's name and live as long as the file. Each worker has counters of its own, so
 * that no two wait for one cache line.
 */
#ifndef ASSAY_SHM_LIMITER_STATS_H
#define ASSAY_SHM_LIMITER_STATS_H

#include "core/conf/limiters.h"

#include <stdatomic.h>

/* names that can be counted; more than limiters, so that removed ones keep their counts a while */
#define LIMITER_STATS_COUNTERS 64

enum limiter_count {
    COUNT_ADMITTED,
    COUNT_REFUSED,
    COUNT_DRY_RUN_REFUSED,
    COUNT_FALLBACK, /* of the others: decided without Redis, since it did not answer */
    LIMITER_COUNTS
};

struct limiter_stats;

/*
 * limiter_stats_create(path, limits): the master's: a new file with ${limits} in force; NULL with
 * errno. limiter_stats_open(path): map it read-only; NULL with errno, EPROTO: another version.
 */
struct limiter_stats *limiter_stats_create(const char *path, const struct limiters *limits);
const struct limiter_stats *limiter_stats_open(const char *path);
void limiter_stats_close(const struct limiter_stats *stats);

/* limiter_stats_publish(stats, limits): put them in force. The master's; no two at once. */
void limiter_stats_publish(struct limiter_stats *stats, const struct limiters *limits);

/* limiter_stats_version(stats): changes with every publish. */
uint64_t limiter_stats_version(const struct limiter_stats *stats);

/*
 * limiter_stats_read(stats, out, version): the limits in force, and their version. False: they are
 * being published; the caller keeps its copy until it looks again.
 */
bool limiter_stats_read(const struct limiter_stats *stats, struct limiters *out, uint64_t *version)
    __attribute__((warn_unused_result));

/*
 * limiter_stats_count(stats, worker, counter, what): one more; ${counter} is the limiter's.
 * limiter_stats_total: the sum of all workers.
 */
void limiter_stats_count(struct limiter_stats *stats, unsigned worker, unsigned counter,
                         enum limiter_count what);
uint64_t limiter_stats_total(const struct limiter_stats *stats, unsigned counter,
                             enum limiter_count what);

/* limiter_stats_counter(stats, name): the counter of a limiter of this name; -1: none. */
int limiter_stats_counter(const struct limiter_stats *stats, const char *name);

/*
 * Log lines about refusals: a few for each limiter and interval, over all workers.
 * limiter_stats_may_log(stats, counter, now): may one more line be written at ${now} (seconds)? If
 * not, it is counted as suppressed.
 * limiter_stats_suppressed(stats, counter, now): lines suppressed in past intervals; resets the
 * count, so the caller logs it.
 */
#define LIMITER_LOG_LINES 5
#define LIMITER_LOG_SECONDS 10
bool limiter_stats_may_log(struct limiter_stats *stats, unsigned counter, int64_t now);
uint64_t limiter_stats_suppressed(struct limiter_stats *stats, unsigned counter, int64_t now);

#endif
