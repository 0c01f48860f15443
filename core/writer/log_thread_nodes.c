/* The log thread: reads the list of nodes. */
#include "core/writer/log_thread_internal.h"

#include "core/cluster/formats.h"

#include <stdio.h>

struct look {
    struct live_nodes live;
    /* what the leader must know: */
    char full[NODE_TEXT]; /* a live node without space for creates */
    uint32_t limit;       /* of formats */
};

static void look_at_node(void *arg, const struct cluster_log_node *n)
{
    struct look *look = arg;
    live_nodes_add(&look->live, n);
    if (n->seen_ms < CLUSTER_LOG_LEASE_MS && n->free_bytes == 0)
        snprintf(look->full, sizeof(look->full), "%s", n->name);
    formats_limit(&look->limit, n);
}

/* Returns whether the view has changed. */
static bool view_of_leader(struct log_view *v, const struct look *look, uint32_t last_format)
{
    const uint32_t format = formats_to_write(&store_rows_formats, last_format, look->limit);
    bool changed = strcmp(v->full_node, look->full) != 0 || v->format != format;
    snprintf(v->full_node, sizeof(v->full_node), "%s", look->full);
    v->format = format;
    return changed;
}

static bool view_nodes(struct log_view *v, const struct look *look, uint32_t last_format)
{
    bool changed = v->nodes != look->live.count;
    v->nodes = look->live.count;
    return (v->state == LOG_LEADS && view_of_leader(v, look, last_format)) || changed;
}

enum cluster_log_status log_look_at_nodes(struct log_thread *t, uint32_t last_format, bool *changed)
{
    struct look look = {.limit = FORMATS_UNLIMITED};
    *changed = false;
    pthread_mutex_lock(&t->lock);
    look.live.away_ms = t->counts_ms;
    pthread_mutex_unlock(&t->lock);
    look.live.watched_ms = live_watch_look(&t->watch, clock_mono_ms());
    enum cluster_log_status status = t->log->engine->nodes(t->log, look_at_node, &look);
    if (status != CLUSTER_LOG_OK)
        return status;
    pthread_mutex_lock(&t->lock);
    *changed = view_nodes(&t->view, &look, last_format);
    pthread_mutex_unlock(&t->lock);
    return CLUSTER_LOG_OK;
}
