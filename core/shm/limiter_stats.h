/*
 * The limiters' board: the limits in force and what was counted by them, in a file of run_dir that the master makes before it forks. Every
 * worker maps it, so that those of an old generation follow a reload too; commands map it read-only, also when the server has stopped.
 *
 * The limits are published as a whole under a version that is odd while that happens. A reader compares the version it knows with one load
 * and copies only when it has changed. Counters belong to a limiter's name and live as long as the file: over reloads and deaths of
 * workers. Each worker adds to rows of its own, so that no two of them wait for one cache line.
 */
#ifndef ASSAY_SHM_LIMITER_STATS_H
#define ASSAY_SHM_LIMITER_STATS_H

#include "core/conf/limiters.h"

#include <stdatomic.h>

#define LIMITERS_COUNTERS 64 /* names that can be counted; more than limiters, so that those of the last reload keep theirs */

enum limiter_count { COUNT_ADMITTED, COUNT_REFUSED, COUNT_DRY_RUN_REFUSED, LIMITER_COUNTS };

struct limiter_stats;

/*
 * limiter_stats_create(path, limits): make the file anew with ${limits} in force, and map it; NULL with errno. The master's.
 * limiter_stats_open(path): map one that is there, read-only; NULL with errno (EPROTO: of another version).
 */
struct limiter_stats *limiter_stats_create(const char *path, const struct limiters *limits);
const struct limiter_stats *limiter_stats_open(const char *path);
void limiter_stats_close(const struct limiter_stats *board);

/* limiter_stats_publish(board, limits): put them in force for everybody. The master's; no two at once. */
void limiter_stats_publish(struct limiter_stats *board, const struct limiters *limits);

/* limiter_stats_version(board): changes with every publish. */
uint64_t limiter_stats_version(const struct limiter_stats *board);

/*
 * limiter_stats_read(board, out, version): the limits in force, and their version. False: they are just being published; what was there
 * before is good until the next look.
 */
bool limiter_stats_read(const struct limiter_stats *board, struct limiters *out, uint64_t *version) __attribute__((warn_unused_result));

/* limiter_stats_count(board, worker, counter, what): one more; ${counter} is the row's. limiter_stats_total: of all workers. */
void limiter_stats_count(struct limiter_stats *board, unsigned worker, unsigned counter, enum limiter_count what);
uint64_t limiter_stats_total(const struct limiter_stats *board, unsigned counter, enum limiter_count what);

/* limiter_stats_counter(board, name): the counter of a limiter of that name; -1: there was none. For who has no limits from the board. */
int limiter_stats_counter(const struct limiter_stats *board, const char *name);

/*
 * Lines about refusals, a few for each limiter and interval over all workers.
 * limiter_stats_may_log(board, counter, now): whether one more line may be written at ${now} (seconds); else it is counted as left out.
 * limiter_stats_left_out(board, counter, now): how many were left out in intervals that are over; whoever gets a number is to tell it.
 */
#define LIMITER_LOG_LINES 5
#define LIMITER_LOG_SECONDS 10
bool limiter_stats_may_log(struct limiter_stats *board, unsigned counter, int64_t now);
uint64_t limiter_stats_left_out(struct limiter_stats *board, unsigned counter, int64_t now);

#endif
