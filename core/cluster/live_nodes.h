/* The number of nodes that share a limit: those that may admit requests. Pure functions. */
#ifndef ASSAY_CLUSTER_LIVE_NODES_H
#define ASSAY_CLUSTER_LIVE_NODES_H

#include "core/cluster/cluster_log.h"

/* Since when this node has read the list of nodes without a gap. Starts as zeros. */
struct live_watch {
    uint64_t looked_ms, since_ms; /* CLOCK_MONOTONIC */
};

struct live_nodes {
    int64_t away_ms;    /* a node that was not seen for longer admits nothing */
    int64_t watched_ms; /* of live_watch_look */
    unsigned count;
};

/*
 * live_watch_look(w, now_ms): this node reads the list now. Returns for how long it has read the
 * list without a gap; more than CLUSTER_LOG_LEASE_MS between two reads is a gap.
 */
int64_t live_watch_look(struct live_watch *w, uint64_t now_ms);

/*
 * live_nodes_add(l, node): counts a node of the list. A node that was not seen for ${away_ms}
 * counts until this node has read the list for as long: after an outage of the log no node was
 * seen, and all nodes may return.
 */
void live_nodes_add(struct live_nodes *l, const struct cluster_log_node *node);

#endif
