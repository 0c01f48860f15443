#include "core/cluster/live_nodes.h"

int64_t live_watch_look(struct live_watch *w, uint64_t now_ms)
{
    if (w->looked_ms == 0 || now_ms > w->looked_ms + CLUSTER_LOG_LEASE_MS)
        w->since_ms = now_ms;
    w->looked_ms = now_ms;
    return (int64_t)(now_ms - w->since_ms);
}

void live_nodes_add(struct live_nodes *l, const struct cluster_log_node *node)
{
    l->count += node->seen_ms <= l->away_ms || l->watched_ms <= l->away_ms;
}
