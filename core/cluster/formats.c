#include "core/cluster/formats.h"

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t greatest(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

void formats_limit(uint32_t *limit, const struct cluster_log_node *node)
{
    if (node->seen_ms < CLUSTER_LOG_LEASE_MS)
        *limit = least(*limit, node->format);
}

uint32_t formats_to_write(const struct rows_formats *own, uint32_t last, uint32_t limit)
{
    return greatest(greatest(own->oldest, last), least(own->newest, limit));
}
