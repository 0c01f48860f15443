#include "core/cluster/trim.h"

bool trim_forgets(const struct trim *t, const struct cluster_log_node *node)
{
    return node->seen_ms > t->away_ms;
}

void trim_add(struct trim *t, const struct cluster_log_node *node)
{
    bool follows = node->sequence + 1 >= t->first && !trim_forgets(t, node);
    if (follows && node->sequence < t->before)
        t->before = node->sequence;
}
