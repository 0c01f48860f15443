/*
 * The fallback local: while Redis does not answer, each node admits its part of a limit by its own
 * table. The parts of all nodes together are the limit, or one request for each node.
 *
 * The number of nodes is limits.redis.nodes. With auto it is what the writer read last in the log
 * of the cluster (cluster_score.h). While the log is away that number stays, so a node that is cut
 * off keeps its part. A node that has not read the log since its master started knows no number:
 * it admits one request of a caller in a window, since any greater part may be too much.
 */
#ifndef ASSAY_LIMITS_FALLBACK_H
#define ASSAY_LIMITS_FALLBACK_H

#include "core/conf/conf.h"
#include "core/shm/cluster_score.h"

/*
 * fallback_nodes(conf, score): how many nodes share a limit; 0: not known yet.
 * fallback_limit(limit, nodes): the part of one of them, at least 1.
 */
uint64_t fallback_nodes(const struct conf *conf, const struct cluster_score *score);
uint32_t fallback_limit(uint32_t limit, uint64_t nodes);

#endif
