/* The log thread of the leader: trims the log. */
#include "core/writer/log_thread_internal.h"

#include "core/base/log.h"
#include "core/cluster/trim.h"

#define TRIM_MS 60000
#define FORGET_MAX 8 /* nodes a minute */

struct round {
    struct trim trim;
    struct cluster_log_node gone[FORGET_MAX];
    size_t count;
};

static void look_at_node(void *arg, const struct cluster_log_node *n)
{
    struct round *r = arg;
    trim_add(&r->trim, n);
    if (trim_forgets(&r->trim, n) && r->count < FORGET_MAX)
        r->gone[r->count++] = *n;
}

/* Unless the node was seen since. */
static enum cluster_log_status forget(struct log_thread *t, const struct round *r)
{
    enum cluster_log_status status = CLUSTER_LOG_OK;
    for (size_t i = 0; i < r->count; i++) {
        status = t->log->engine->remove(t->log, r->gone[i].id, r->trim.away_ms);
        if (status == CLUSTER_LOG_OK)
            log_warn("the cluster: node %s was away for longer than cluster.away: it is "
                     "deregistered",
                     r->gone[i].name);
        else if (status != CLUSTER_LOG_NONE)
            return status;
    }
    return CLUSTER_LOG_OK;
}

static enum cluster_log_status trim(struct log_thread *t, const struct cluster_log_head *head,
                                    int64_t keep_ms, int64_t away_ms)
{
    struct round r = {.trim = {.away_ms = away_ms, .before = head->sequence}};
    const struct cluster_log_engine *engine = t->log->engine;
    enum cluster_log_status status = engine->first(t->log, &r.trim.first);
    if (status == CLUSTER_LOG_OK)
        status = engine->nodes(t->log, look_at_node, &r);
    if (status == CLUSTER_LOG_OK)
        status = forget(t, &r);
    if (status == CLUSTER_LOG_OK)
        status = engine->trim(t->log, r.trim.before, head->at_ms - keep_ms);
    return status == CLUSTER_LOG_NONE ? CLUSTER_LOG_OK : status;
}

/* Appends wait for this call: a failure is retried after a minute. */
void log_trim(struct log_thread *t, const struct cluster_log_head *head)
{
    const uint64_t now = clock_mono_ms();
    pthread_mutex_lock(&t->lock);
    const int64_t keep_ms = t->keep_ms, away_ms = t->away_ms;
    pthread_mutex_unlock(&t->lock);
    if (now < t->trim_ms || away_ms == 0)
        return;
    t->trim_ms = now + TRIM_MS;
    if (trim(t, head, keep_ms, away_ms) != CLUSTER_LOG_OK)
        log_warn("the cluster: the log was not trimmed: %s", t->log->engine->why(t->log));
}
