/*
 * Group commit: how many changes the writer waits for before it commits, so that callers share an
 * fsync.
 *
 * A caller sends nothing while it waits for an answer, so a commit that takes everybody leaves the
 * workers idle. With half of the callers in a commit, the other half's changes travel meanwhile.
 * That costs a second commit, so it pays only where a small commit is quicker than the travel that
 * it hides; on a slower disk everybody shares one. A lone caller never waits for others.
 */
#ifndef ASSAY_WRITER_GROUP_COMMIT_H
#define ASSAY_WRITER_GROUP_COMMIT_H

#include <stddef.h>
#include <stdint.h>

struct group_commit {
    uint64_t commit_us;       /* time of the last commit */
    uint64_t small_commit_us; /* typical time of a commit of few changes */
    size_t last_size;         /* changes in the last commit */
    size_t callers;           /* who lately sent changes at the same time: concurrent_callers.h */
};

/* group_commit_size(g): wait for so many changes. group_commit_wait_us(g): at most so long. */
size_t group_commit_size(const struct group_commit *g);
uint64_t group_commit_wait_us(const struct group_commit *g);

/* group_commit_note(g, size, us): a commit of ${size} changes took ${us}. */
void group_commit_note(struct group_commit *g, size_t size, uint64_t us);

/* group_commit_count(g, arrived): after it, ${arrived} changes came while it was written. */
void group_commit_count(struct group_commit *g, size_t arrived);

#endif
