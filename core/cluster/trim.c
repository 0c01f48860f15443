#include "core/cluster/trim.h"

bool trim_forgets(const struct trim *t, const struct cluster_log_node *node)
{
    return node->seen_ms > t->away_ms && node->differs_at == 0;
}

void trim_add(struct trim *t, const struct cluster_log_node *node)
{
    bool follows =
        node->sequence + 1 >= t->first && node->seen_ms <= t->away_ms && node->differs_at == 0;
    if (follows && node->sequence < t->before)
        t->before = node->sequence;
}
