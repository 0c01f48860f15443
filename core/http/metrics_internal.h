/* What the files of metrics share. */
#ifndef ASSAY_HTTP_METRICS_INTERNAL_H
#define ASSAY_HTTP_METRICS_INTERNAL_H

#include "core/http/metrics.h"

/*
 * metric_line(out, m, label, value, number): a line; ${label} NULL: none. No escaping.
 * metric_time(out, us): microseconds as seconds.
 */
void metric_line(struct buf *out, const struct metric *m, const char *label, const char *value,
                 uint64_t number);
void metric_time(struct buf *out, uint64_t us);

/* metrics_cluster.c */
typedef void metric_fn(struct http *h, const struct metric *m, struct buf *out);
metric_fn metrics_cluster_state, metrics_cluster_epoch, metrics_cluster_head,
    metrics_cluster_position, metrics_cluster_lag, metrics_cluster_confirmed,
    metrics_cluster_current, metrics_cluster_clock, metrics_cluster_appends,
    metrics_cluster_append_time;

#endif
