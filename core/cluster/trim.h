/* What of the log may be deleted: how far every node is. Pure functions. */
#ifndef ASSAY_CLUSTER_TRIM_H
#define ASSAY_CLUSTER_TRIM_H

#include "core/cluster/cluster_log.h"

struct trim {
    uint64_t first;  /* sequence of the first entry of the log */
    int64_t away_ms; /* a node that was not heard of for longer does not count */
    uint64_t before; /* entries before that sequence may go; at first the head */
};

/*
 * trim_add(t, node): count a node: it needs the entry of its position, to compare itself with the
 * log, and those after it. A node that lacks entries before the first one can use none, and one
 * that was stopped by a verification applies none.
 * trim_forgets(t, node): was it away for so long that it is deregistered? Not one that was stopped:
 * it would begin again.
 */
void trim_add(struct trim *t, const struct cluster_log_node *node);
bool trim_forgets(const struct trim *t, const struct cluster_log_node *node);

#endif
