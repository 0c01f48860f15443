/* The log thread: registers the state of this node for the others. */
#include "core/writer/log_thread_internal.h"

#include <stdio.h>

static struct cluster_log_node node_now(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    struct cluster_log_node node = t->node;
    node.sequence = t->place.position.sequence;
    pthread_mutex_unlock(&t->lock);
    return node;
}

#define SAME_NAME                                                                                  \
    "has the name of this node and was seen in the last %d s: give this node another "             \
    "cluster.name, or stop that server"
#define SAME_STORE                                                                                 \
    "has the same store and was seen in the last %d s: if data_dir of this node is a copy, stop "  \
    "this server and run `assay cluster join FROM --replace`, which makes a store with an id of "  \
    "its own"

static void say_taken(struct log_thread *t, const struct cluster_log_head *head)
{
    snprintf(t->reason, sizeof(t->reason),
             head->taken_by_name ? "node %s at %s " SAME_NAME : "node %s at %s " SAME_STORE,
             head->taken_name, head->taken_address, CLUSTER_LOG_LEASE_MS / 1000);
}

enum cluster_log_status log_note(struct log_thread *t, struct cluster_log_head *out)
{
    const uint64_t now = clock_mono_ms();
    const struct cluster_log_node node = node_now(t);
    enum cluster_log_status status = t->log->engine->position(t->log, &node, out);
    if (status != CLUSTER_LOG_OK)
        return status;
    t->differs_at = out->differs_at;
    if (out->taken) {
        say_taken(t, out);
    } else {
        t->note_ms = now + CLUSTER_LOG_RENEW_MS;
        t->stopped[0] = '\0';
    }
    return status;
}

enum cluster_log_status log_note_stopped(struct log_thread *t, const char *why, uint64_t differs_at)
{
    struct cluster_log_node node = node_now(t);
    if (strcmp(t->stopped, why) == 0)
        return CLUSTER_LOG_OK;
    node.differs_at = differs_at;
    snprintf(node.stopped, sizeof(node.stopped), "%s", why);
    enum cluster_log_status status = t->log->engine->stop(t->log, &node);
    if (status == CLUSTER_LOG_OK)
        snprintf(t->stopped, sizeof(t->stopped), "%s", why);
    return status;
}
