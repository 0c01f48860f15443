/*
 * The format of row sets that the leader writes. ${own} has the formats of this version. Pure
 * functions.
 */
#ifndef ASSAY_CLUSTER_FORMATS_H
#define ASSAY_CLUSTER_FORMATS_H

#include "core/cluster/cluster_log.h"

#define FORMATS_UNLIMITED UINT32_MAX

/*
 * formats_limit(limit, node): lowers ${limit}, initially FORMATS_UNLIMITED, to the newest format of
 * ${node}. A node that was not seen for CLUSTER_LOG_LEASE_MS does not count.
 *
 * formats_to_write(own, last, limit): the newest format that this version and all live nodes read.
 * Never earlier than ${last}, the format of the last entry (0: no entry): a node that cannot read
 * the last entry applies nothing until it is upgraded.
 */
void formats_limit(uint32_t *limit, const struct cluster_log_node *node);
uint32_t formats_to_write(const struct rows_formats *own, uint32_t last, uint32_t limit);

#endif
