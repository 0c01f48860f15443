/*
 * Verification: all nodes hash their rows at one entry of the log, and those that differ stop. Pure
 * functions.
 */
#ifndef ASSAY_CLUSTER_VERIFICATION_H
#define ASSAY_CLUSTER_VERIFICATION_H

#include "core/cluster/cluster_log.h"

#define VERIFICATION_NODES 64 /* further nodes are ignored */

struct verification {
    uint64_t sequence; /* of the entry */
    uint8_t leader[NODE_BYTES];
    bool late; /* the time for hashes is over: nodes without one do not count */
    size_t count;
    struct cluster_log_node nodes[VERIFICATION_NODES]; /* live ones that are not stopped */
};

/*
 * verification_wait_ms(took_ms): the time for the hashes of other nodes, if one node took
 * ${took_ms}.
 * verification_add(v, node): adds a registered node.
 * verification_judge(v, node): compares the node with the majority of live nodes. Without a
 * majority the leader is right, once all nodes have a hash. VERDICT_OPEN: hashes are missing.
 */
enum verdict { VERDICT_OPEN, VERDICT_EQUAL, VERDICT_DIFFERS };
uint64_t verification_wait_ms(uint64_t took_ms);
void verification_add(struct verification *v, const struct cluster_log_node *node);
enum verdict verification_judge(const struct verification *v, const uint8_t node[NODE_BYTES]);

#endif
