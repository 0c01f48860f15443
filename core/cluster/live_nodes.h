/* How many nodes share a limit: those that may admit requests. Pure functions. */
#ifndef ASSAY_CLUSTER_LIVE_NODES_H
#define ASSAY_CLUSTER_LIVE_NODES_H

#include "core/cluster/cluster_log.h"

/* Since when this node has looked at the list without a gap; zeros: it has not. */
struct live_watch {
    uint64_t looked_ms, since_ms; /* CLOCK_MONOTONIC */
};

struct live_nodes {
    int64_t away_ms;    /* a node that was not heard of for longer admits nothing */
    int64_t watched_ms; /* of live_watch_look */
    unsigned count;
};

/*
 * live_watch_look(w, now_ms): this node looks now; for how long it has watched the list. It has not
 * while CLUSTER_LOG_LEASE_MS passed between two looks.
 */
int64_t live_watch_look(struct live_watch *w, uint64_t now_ms);

/*
 * live_nodes_add(l, node): count a node that is in the list. One that was not heard of for long
 * still counts until this node has watched the list for as long: after an outage of the log nobody
 * was heard of, and all are about to come back.
 */
void live_nodes_add(struct live_nodes *l, const struct cluster_log_node *node);

#endif
