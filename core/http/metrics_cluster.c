/* Metrics of a node of a cluster. Without a cluster they have no samples. */
#include "core/http/cluster_reads.h"
#include "core/http/metrics_internal.h"

#include <stdlib.h>

static bool look(const struct http *h, struct cluster_view *out)
{
    if (h->log_waits == NULL)
        return false;
    cluster_score_read(&h->loop->process->scoreboard->cluster, out);
    return true;
}

void metrics_cluster_state(struct http *h, const struct metric *m, struct buf *out)
{
    struct cluster_view view;
    if (!look(h, &view))
        return;
    const uint64_t is = cluster_view_role(&view, clock_mono_us());
    for (uint64_t role = CLUSTER_CONNECTS; role <= CLUSTER_LEADS; role++)
        metric_line(out, m, "state", cluster_role_name(role), is == role);
}

void metrics_cluster_epoch(struct http *h, const struct metric *m, struct buf *out)
{
    struct cluster_view view;
    if (look(h, &view))
        metric_line(out, m, NULL, NULL, view.epoch);
}

void metrics_cluster_head(struct http *h, const struct metric *m, struct buf *out)
{
    struct cluster_view view;
    if (look(h, &view))
        metric_line(out, m, NULL, NULL, view.head);
}

void metrics_cluster_position(struct http *h, const struct metric *m, struct buf *out)
{
    struct cluster_view view;
    if (look(h, &view))
        metric_line(out, m, NULL, NULL, view.applied);
}

void metrics_cluster_lag(struct http *h, const struct metric *m, struct buf *out)
{
    struct cluster_view view;
    if (look(h, &view))
        metric_line(out, m, NULL, NULL, view.head - view.applied);
}

/* A node that has never reached the head is behind since its start. */
static void put_age(const struct http *h, const struct metric *m, struct buf *out,
                    uint64_t since_us)
{
    const uint64_t started_us = score_get(h->loop->process->scoreboard->cluster.started_us);
    buf_printf(out, "%s ", m->name);
    metric_time(out, clock_mono_us() - (since_us != 0 ? since_us : started_us));
    buf_adds(out, "\n");
}

void metrics_cluster_confirmed(struct http *h, const struct metric *m, struct buf *out)
{
    struct cluster_view view;
    if (look(h, &view))
        put_age(h, m, out, view.confirmed_us);
}

void metrics_cluster_current(struct http *h, const struct metric *m, struct buf *out)
{
    struct cluster_view view;
    if (look(h, &view))
        put_age(h, m, out, view.current_us);
}

void metrics_cluster_clock(struct http *h, const struct metric *m, struct buf *out)
{
    struct cluster_view view;
    if (!look(h, &view) || view.confirmed_us == 0)
        return;
    const int64_t ms = score_get(h->loop->process->scoreboard->cluster.clock_offset_ms);
    buf_printf(out, "%s %s%lld.%03lld\n", m->name, ms < 0 ? "-" : "", llabs(ms) / 1000,
               llabs(ms) % 1000);
}

void metrics_cluster_appends(struct http *h, const struct metric *m, struct buf *out)
{
    if (h->log_waits != NULL)
        metric_line(out, m, NULL, NULL, score_get(h->loop->process->scoreboard->cluster.appends));
}

void metrics_cluster_append_time(struct http *h, const struct metric *m, struct buf *out)
{
    if (h->log_waits == NULL)
        return;
    buf_printf(out, "%s ", m->name);
    metric_time(out, score_get(h->loop->process->scoreboard->cluster.append_us));
    buf_adds(out, "\n");
}
