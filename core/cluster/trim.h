/* Which entries of the log may be deleted, by the positions of all nodes. Pure functions. */
#ifndef ASSAY_CLUSTER_TRIM_H
#define ASSAY_CLUSTER_TRIM_H

#include "core/cluster/cluster_log.h"

struct trim {
    uint64_t first;  /* sequence of the first entry of the log */
    int64_t away_ms; /* a node that was not seen for longer does not count */
    uint64_t before; /* entries before that sequence may be deleted; initially the head */
};

/*
 * trim_add(t, node): keeps the entries that a node needs: that of its position, with which it
 * compares its store, and all later ones. A node that misses trimmed entries, and one that a
 * verification stopped, need none.
 * trim_forgets(t, node): whether the node was away for so long that it is deregistered. A stopped
 * node is not, because it would register again.
 */
void trim_add(struct trim *t, const struct cluster_log_node *node);
bool trim_forgets(const struct trim *t, const struct cluster_log_node *node);

#endif
