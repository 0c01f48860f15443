/* The log thread: compares the hash of this node's rows with those of the other nodes. */
#include "core/writer/log_thread_internal.h"

#include "core/base/log.h"
#include "core/cluster/verification.h"

#include <stdio.h>

#define JUDGE_MS 1000

static void describe(char out[POSITION_WHY], uint64_t sequence)
{
    snprintf(
        out, POSITION_WHY,
        "the records of this node differ from those of the other nodes at entry %llu: copy the "
        "store of another node by `assay cluster join FROM --replace`",
        (unsigned long long)sequence);
}

void log_say_stopped(struct log_thread *t)
{
    describe(t->reason, t->differs_at);
}

static enum cluster_log_status stop_at(struct log_thread *t, uint64_t sequence)
{
    char why[POSITION_WHY];
    describe(why, sequence);
    enum cluster_log_status status = log_note_stopped(t, why, sequence);
    if (status == CLUSTER_LOG_OK)
        t->differs_at = sequence;
    return status;
}

static void add_node(void *arg, const struct cluster_log_node *n)
{
    verification_add(arg, n);
}

/* Its sequence is that of the hash to compare; 0: none. */
static struct verification open_verification(struct log_thread *t,
                                             const struct cluster_log_head *head)
{
    struct verification v = {0};
    const uint64_t now = clock_mono_ms();
    memcpy(v.leader, head->leader, sizeof(v.leader));
    if (now < t->judge_ms)
        return v;
    pthread_mutex_lock(&t->lock);
    v.sequence = t->judges ? t->node.hash_sequence : 0;
    v.late = now >= t->late_ms;
    pthread_mutex_unlock(&t->lock);
    if (v.sequence != 0)
        t->judge_ms = now + JUDGE_MS;
    return v;
}

static void say(const struct verification *v, enum verdict verdict)
{
    const unsigned long long at = v->sequence;
    for (size_t i = 0; i < v->count && v->late; i++)
        if (v->nodes[i].hash_sequence != v->sequence)
            log_warn("the cluster: node %s did not hash its records at entry %llu in time, and is "
                     "not compared",
                     v->nodes[i].name, at);
    if (verdict == VERDICT_EQUAL)
        log_info("the cluster: the records of this node are those of the others at entry %llu", at);
    else if (verdict == VERDICT_OPEN)
        log_warn("the cluster: nodes differ at entry %llu, and too few have hashed their records "
                 "to tell which are right: run `assay cluster verify` again",
                 at);
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
    struct verification v = open_verification(t, head);
    if (v.sequence == 0)
        return CLUSTER_LOG_OK;
    enum cluster_log_status status = t->log->engine->nodes(t->log, add_node, &v);
    enum verdict verdict =
        status == CLUSTER_LOG_OK ? verification_judge(&v, t->node.id) : VERDICT_OPEN;
    if (verdict == VERDICT_DIFFERS)
        status = stop_at(t, v.sequence);
    if (status != CLUSTER_LOG_OK || (verdict == VERDICT_OPEN && !v.late))
        return status;
    end_judging(t, v.sequence);
    say(&v, verdict);
    return CLUSTER_LOG_OK;
}
