#include "core/writer/group_commit.h"

#include "core/writer/concurrent_callers.h"

#define WAIT_MAX_US 2000
#define TRAVEL_US 16 /* from an answer to the next change of its caller */
#define SMALL_BATCH 4

size_t group_commit_size(const struct group_commit *g)
{
    return g->small_commit_us > g->callers * TRAVEL_US ? g->callers : (g->callers + 1) / 2;
}

uint64_t group_commit_wait_us(const struct group_commit *g)
{
    return g->commit_us < WAIT_MAX_US ? g->commit_us : WAIT_MAX_US;
}

void group_commit_note(struct group_commit *g, size_t size, uint64_t us)
{
    g->commit_us = us;
    g->last_size = size;
    if (size > SMALL_BATCH)
        return;
    /* slow commits have little weight: they may have waited for a core or the disk */
    g->small_commit_us =
        us < g->small_commit_us ? us : g->small_commit_us + (us - g->small_commit_us) / 8;
}

void group_commit_count(struct group_commit *g, size_t arrived)
{
    if (g->last_size > 0)
        g->callers = concurrent_callers_next(g->callers, g->last_size + arrived);
    g->last_size = 0;
}
