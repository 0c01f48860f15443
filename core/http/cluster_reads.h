/*
 * What a node of a cluster answers while it is behind the log. Every answer of the API has the
 * position of the node in X-Assay-Position. A request with that header, or with a visitor's token
 * that has a position, waits until this node has that entry. Before an unknown record or credential
 * is refused, the head of the log is confirmed. A node that is behind for cluster.max_lag refuses
 * credentials.
 *
 * Without a cluster http->log_waits is NULL, the steps are not in the pipeline, and nothing here
 * has an effect.
 */
#ifndef ASSAY_HTTP_CLUSTER_READS_H
#define ASSAY_HTTP_CLUSTER_READS_H

#include "core/async/log_waits.h"
#include "core/http/http.h"
#include "core/http/request.h"
#include "core/text/log_position.h"

/*
 * cluster_reads_are_stale(h): entries may be missing for longer than cluster.max_lag, and
 * cluster.stale_reads is not set. Requests with a credential then get reply_stale.
 */
bool cluster_reads_are_stale(const struct http *h);

/* cluster_reads_log_is_away(h): in a cluster: cluster_log_is_away; then no change is sent. */
bool cluster_reads_log_is_away(const struct http *h);

/*
 * cluster_reads_position(h): of all that was read until now; log 0: none.
 * cluster_reads_text(r): the value of X-Assay-Position; p NULL: the response has none.
 */
struct log_position cluster_reads_position(const struct http *h);
struct str cluster_reads_text(struct request *r);

/*
 * cluster_reads_confirm(r, steps): true: ${r} is not answered yet. When this node has all entries
 * that were in the log at its arrival, or after cluster.wait, the last ${steps} steps of the
 * pipeline run again. False: it was confirmed before, or needs no confirmation.
 */
bool cluster_reads_confirm(struct request *r, unsigned steps);

#endif
