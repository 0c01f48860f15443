/*
 * Which format of row sets (struct rows_formats, ${own}: of this version) the leader writes. Pure
 * functions.
 */
#ifndef ASSAY_CLUSTER_FORMATS_H
#define ASSAY_CLUSTER_FORMATS_H

#include "core/cluster/cluster_log.h"

#define FORMATS_UNLIMITED UINT32_MAX

/*
 * formats_limit(limit, node): lower ${limit}, at first FORMATS_UNLIMITED, to what ${node} knows. A
 * node that was not heard of for CLUSTER_LOG_LEASE_MS does not count.
 *
 * formats_to_write(own, last, limit): the newest format that this version and all live nodes know.
 * It is never earlier than ${last}, that of the last entry (0: there is none): a node that cannot
 * read the last entry applies nothing until it is upgraded.
 */
void formats_limit(uint32_t *limit, const struct cluster_log_node *node);
uint32_t formats_to_write(const struct rows_formats *own, uint32_t last, uint32_t limit);

#endif
