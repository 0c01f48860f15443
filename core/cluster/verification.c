#include "core/cluster/verification.h"

#define GRACE_MS 30000 /* to reach the entry */

uint64_t verification_wait_ms(uint64_t took_ms)
{
    return GRACE_MS + 3 * took_ms;
}

void verification_add(struct verification *v, const struct cluster_log_node *node)
{
    if (node->seen_ms < CLUSTER_LOG_LEASE_MS && node->differs_at == 0 && node->stopped[0] == '\0' &&
        v->count < VERIFICATION_NODES)
        v->nodes[v->count++] = *node;
}

static bool has_hash(const struct verification *v, const struct cluster_log_node *n)
{
    return n->hash_sequence == v->sequence;
}

/* NULL: it has no hash there. */
static const struct cluster_log_node *find(const struct verification *v,
                                           const uint8_t node[NODE_BYTES])
{
    for (size_t i = 0; i < v->count; i++)
        if (memcmp(v->nodes[i].id, node, NODE_BYTES) == 0 && has_hash(v, &v->nodes[i]))
            return &v->nodes[i];
    return NULL;
}

static bool is_equal(const struct cluster_log_node *a, const struct cluster_log_node *b)
{
    return memcmp(a->hash, b->hash, STORE_HASH_BYTES) == 0;
}

static size_t count_equal(const struct verification *v, const struct cluster_log_node *to)
{
    size_t count = 0;
    for (size_t i = 0; i < v->count; i++)
        count += has_hash(v, &v->nodes[i]) && is_equal(&v->nodes[i], to);
    return count;
}

static size_t count_hashes(const struct verification *v)
{
    size_t hashes = 0;
    for (size_t i = 0; i < v->count; i++)
        hashes += has_hash(v, &v->nodes[i]);
    return hashes;
}

/*
 * A node whose hash more than half of the nodes have; otherwise the leader, if all have a hash; or
 * NULL.
 */
static const struct cluster_log_node *find_right(const struct verification *v)
{
    const size_t hashes = count_hashes(v), all = v->late ? hashes : v->count;
    for (size_t i = 0; i < v->count; i++)
        if (has_hash(v, &v->nodes[i]) && 2 * count_equal(v, &v->nodes[i]) > all)
            return &v->nodes[i];
    return hashes == all ? find(v, v->leader) : NULL;
}

enum verdict verification_judge(const struct verification *v, const uint8_t node[NODE_BYTES])
{
    const struct cluster_log_node *own = find(v, node), *right = find_right(v);
    if (own == NULL || right == NULL)
        return VERDICT_OPEN;
    return is_equal(own, right) ? VERDICT_EQUAL : VERDICT_DIFFERS;
}
