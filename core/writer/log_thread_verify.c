/* The log thread: compares the hash of this node's rows with those of the other nodes. */
#include "core/writer/log_thread_internal.h"

#include "core/base/log.h"
#include "core/cluster/verification.h"

#include <stdio.h>

#define JUDGE_MS 1000

void log_say_stopped(struct log_thread *t)
{
    snprintf(
        t->reason, sizeof(t->reason),
        "the records of this node differ from those of the other nodes at entry %llu: copy the "
        "store of another node by `assay cluster join FROM --replace`",
        (unsigned long long)t->differs_at);
}

static void add_node(void *arg, const struct cluster_log_node *n)
{
    verification_add(arg, n);
}

/* The sequence of the hash that is to be compared; 0: none. */
static uint64_t open_sequence(struct log_thread *t)
{
    const uint64_t now = clock_mono_ms();
    pthread_mutex_lock(&t->lock);
    uint64_t sequence = t->judges ? t->node.hash_sequence : 0;
    pthread_mutex_unlock(&t->lock);
    if (sequence == 0 || now < t->judge_ms)
        return 0;
    t->judge_ms = now + JUDGE_MS;
    return sequence;
}

/* Unless there is a newer hash. */
static void end_judging(struct log_thread *t, uint64_t sequence)
{
    pthread_mutex_lock(&t->lock);
    t->judges = t->node.hash_sequence != sequence;
    pthread_mutex_unlock(&t->lock);
}

enum cluster_log_status log_judge(struct log_thread *t, const struct cluster_log_head *head)
{
    struct verification v = {.sequence = open_sequence(t)};
    memcpy(v.leader, head->leader, sizeof(v.leader));
    if (v.sequence == 0)
        return CLUSTER_LOG_OK;
    enum cluster_log_status status = t->log->engine->nodes(t->log, add_node, &v);
    enum verdict verdict =
        status == CLUSTER_LOG_OK ? verification_judge(&v, t->node.id) : VERDICT_OPEN;
    if (verdict == VERDICT_DIFFERS)
        status = t->log->engine->stop(t->log, t->node.id, v.sequence);
    if (status != CLUSTER_LOG_OK || verdict == VERDICT_OPEN)
        return status;
    end_judging(t, v.sequence);
    if (verdict == VERDICT_DIFFERS)
        t->differs_at = v.sequence;
    else
        log_info("the cluster: the records of this node are those of the others at entry %llu",
                 (unsigned long long)v.sequence);
    return CLUSTER_LOG_OK;
}
