#include "core/limits/fallback.h"

uint64_t fallback_nodes(const struct conf *conf, const struct cluster_score *score)
{
    struct cluster_view view;
    if (conf->redis_nodes != CONF_NODES_AUTO)
        return conf->redis_nodes;
    if (conf->cluster_log[0] == '\0')
        return 1;
    cluster_score_read(score, &view);
    return view.nodes;
}

uint32_t fallback_limit(uint32_t limit, uint64_t nodes)
{
    return nodes == 0 || limit < nodes ? 1 : (uint32_t)(limit / nodes);
}
