/* assay cluster verify: have the records of all nodes the same hash? */
#include "cmd/cmd_cluster.h"

#include "core/cluster/verification.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POLL_US 200000

/* The hashes of live nodes after the entry ${asked}. */
struct looking {
    struct verification v; /* its sequence: the highest that a node has a hash of */
    struct cluster_log_node nodes[VERIFICATION_NODES];
    size_t count;
};

static bool takes_part(const struct cluster_log_node *n)
{
    return n->seen_ms < CLUSTER_LOG_LEASE_MS;
}

static void look_at_node(void *arg, const struct cluster_log_node *n)
{
    struct looking *l = arg;
    if (!takes_part(n) || l->count == VERIFICATION_NODES)
        return;
    l->nodes[l->count++] = *n;
    if (n->hash_sequence > l->v.sequence)
        l->v.sequence = n->hash_sequence;
}

/* Nodes that a verification has stopped are judged too, while they have that hash. */
static void judge_all(struct looking *l)
{
    for (size_t i = 0; i < l->count; i++) {
        struct cluster_log_node n = l->nodes[i];
        if (n.hash_sequence == l->v.sequence)
            n.differs_at = 0;
        verification_add(&l->v, &n);
    }
}

static enum cluster_log_status look(struct cluster_log *log, uint64_t asked, struct looking *l)
{
    struct cluster_log_head head;
    *l = (struct looking){.v.sequence = asked};
    enum cluster_log_status status = log->engine->position(log, NULL, &head);
    if (status == CLUSTER_LOG_OK)
        status = log->engine->nodes(log, look_at_node, l);
    if (status != CLUSTER_LOG_OK)
        return status;
    memcpy(l->v.leader, head.leader, sizeof(l->v.leader));
    judge_all(l);
    return CLUSTER_LOG_OK;
}

/* Does every node that takes part have its hash? */
static bool is_complete(const struct looking *l, uint64_t asked)
{
    bool complete = l->v.sequence > asked && l->v.count > 0;
    for (size_t i = 0; i < l->v.count; i++)
        complete = complete && l->v.nodes[i].hash_sequence == l->v.sequence;
    return complete;
}

static const char *result_of(const struct looking *l, const struct cluster_log_node *n)
{
    if (n->hash_sequence != l->v.sequence)
        return n->differs_at != 0 ? "stopped earlier" : "no hash";
    switch (verification_judge(&l->v, n->id)) {
    case VERDICT_EQUAL:
        return "equal";
    case VERDICT_DIFFERS:
        return "differs";
    default:
        return "no majority";
    }
}

/* Returns whether all are equal. */
static bool print(const struct looking *l, bool json)
{
    char hash[2 * STORE_HASH_BYTES + 1] = "";
    struct records r = {0};
    bool equal = true;
    records_start(&r, json);
    for (size_t i = 0; i < l->count; i++) {
        const struct cluster_log_node *n = &l->nodes[i];
        const char *result = result_of(l, n);
        for (size_t j = 0; j < STORE_HASH_BYTES; j++)
            snprintf(hash + 2 * j, 3, "%02x", n->hash[j]);
        records_text(&r, "node", str_of(n->name));
        records_number(&r, "entry", n->hash_sequence);
        records_text(&r, "hash", str_of(n->hash_sequence == 0 ? NULL : hash));
        records_text(&r, "result", str_of(result));
        records_end_row(&r);
        equal = equal && strcmp(result, "equal") == 0;
    }
    records_finish(&r);
    return equal;
}

static enum cluster_log_status await(struct cluster_log *log, struct looking *l)
{
    uint64_t asked;
    enum cluster_log_status status = log->engine->verify(log, &asked);
    if (status == CLUSTER_LOG_OK)
        status = look(log, asked, l);
    while (status == CLUSTER_LOG_OK && !is_complete(l, asked) && !cmd_interrupted()) {
        usleep(POLL_US);
        status = look(log, asked, l);
    }
    return status;
}

int cmd_cluster_verify(struct cmd *cmd)
{
    struct looking l;
    struct cluster_log *log = cmd_log_open(cmd);
    if (log == NULL)
        return CMD_REFUSED;
    cmd_catch_interrupts();
    enum cluster_log_status status = await(log, &l);
    if (status != CLUSTER_LOG_OK)
        return cmd_log_refuse(log, status);
    log->engine->free(log);
    bool equal = print(&l, cmd->json);
    if (cmd_interrupted())
        return cmd_refuse("interrupted; nodes compare themselves when they have their hashes");
    if (!equal)
        return cmd_refuse("nodes differ at entry %" PRIu64 ": a node that differs stops; copy the "
                          "store of another node to it by assay cluster join FROM --replace",
                          l.v.sequence);
    cmd_say("All nodes have the same records at entry %" PRIu64 ".", l.v.sequence);
    return CMD_DONE;
}
