/*
 * Verification: all nodes hash their rows at one entry of the log, and those that differ stop. Pure
 * functions.
 */
#ifndef ASSAY_CLUSTER_VERIFICATION_H
#define ASSAY_CLUSTER_VERIFICATION_H

#include "core/cluster/cluster_log.h"

#define VERIFICATION_NODES 64 /* more are not looked at */

struct verification {
    uint64_t sequence; /* of the entry */
    uint8_t leader[NODE_BYTES];
    bool late; /* nodes without a hash do not count: they had time enough */
    size_t count;
    struct cluster_log_node nodes[VERIFICATION_NODES]; /* live ones that are not stopped */
};

/*
 * verification_wait_ms(took_ms): how long other nodes may take for their hashes after a node that
 * took ${took_ms}.
 * verification_add(v, node): a node, as it is registered.
 * verification_judge(v, node): the majority of live nodes decides; without one the leader, when all
 * have their hash. VERDICT_OPEN: not enough hashes are there.
 */
enum verdict { VERDICT_OPEN, VERDICT_EQUAL, VERDICT_DIFFERS };
uint64_t verification_wait_ms(uint64_t took_ms);
void verification_add(struct verification *v, const struct cluster_log_node *node);
enum verdict verification_judge(const struct verification *v, const uint8_t node[NODE_BYTES]);

#endif
