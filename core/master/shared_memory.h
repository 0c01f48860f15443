/* The tables of core/shm and the limiter's table, made before the first fork. */
#ifndef ASSAY_MASTER_SHARED_MEMORY_H
#define ASSAY_MASTER_SHARED_MEMORY_H

#include "core/master/upgrade_state.h"
#include "core/shm/connection_table.h"
#include "core/shm/limiter_stats.h"
#include "core/shm/request_stats.h"
#include "core/shm/typing_table.h"
#include "ratelimit/ratelimit.h"

struct shared_memory {
    struct scoreboard *scoreboard;
    struct limiter_stats *limiters;
    struct ratelimit *ratelimit;
    struct typing_table *typing;
    struct connection_table *connection_table;
    struct request_stats *request_stats;
};

/*
 * shared_memory_make(s, conf, upgrade): 0, or -1 after it has logged why. In a new master, the
 * limiter's table is the old master's, so that the counts are kept.
 */
int shared_memory_make(struct shared_memory *s, const struct conf *conf,
                       const struct upgrade *upgrade);

/*
 * shared_memory_replace_cut_table(s, conf): when another process has cut the limiter's table short,
 * make a new one. True: it did, and every worker must be replaced, since the old one kills it or
 * counts apart from the others.
 */
bool shared_memory_replace_cut_table(struct shared_memory *s, const struct conf *conf);

/* shared_memory_limit(s, role): in a child: unmap what this role does not use. */
void shared_memory_limit(struct shared_memory *s, enum role role);

/* shared_memory_install(conf): run_dir: rename our files over the old master's; _remove: ours. */
void shared_memory_install(const struct conf *conf);
void shared_memory_remove_next(const struct conf *conf);

void shared_memory_free(struct shared_memory *s);

#endif
