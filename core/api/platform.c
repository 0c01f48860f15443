/* The OpenAPI document, health checks and metrics. */
#include "core/api/api_internal.h"
#include "core/api/openapi_internal.h"
#include "core/http/cluster_reads.h"
#include "core/http/metrics.h"
#include "core/http/lifecycle.h"

void platform_openapi(struct request *r)
{
    if (reply_etag(r, openapi_version))
        return;
    struct str body = {(const char *)openapi_text, openapi_size};
    reply_json(r, 200, &body, 1);
}

void platform_healthz(struct request *r)
{
    reply_header(r, "cache-control", STR("no-store"));
    reply_json(r, 200, &STR("{\"status\":\"ok\"}"), 1);
}

static void reply_behind(struct request *r)
{
    struct cluster_view view;
    cluster_score_read(&r->http->loop->process->scoreboard->cluster, &view);
    const uint64_t lag_us = cluster_view_lag_us(&view, clock_mono_us());
    if (lag_us == UINT64_MAX)
        reply_error(r, ERR_UNAVAILABLE,
                    "Not ready: this node has not reached the head of the cluster's log since it "
                    "was started.");
    else
        reply_error(r, ERR_UNAVAILABLE,
                    "Not ready: this node has been behind the cluster's log for %llu seconds.",
                    (unsigned long long)(lag_us / 1000000));
}

void platform_readyz(struct request *r)
{
    reply_header(r, "cache-control", STR("no-store"));
    if (!http_ready(r->http))
        reply_error(r, ERR_UNAVAILABLE,
                    "Not ready: there is no writer, or the server is stopping.");
    else if (cluster_reads_are_stale(r->http))
        reply_behind(r);
    else
        reply_json(r, 200, &STR("{\"status\":\"ready\"}"), 1);
}

void platform_metrics(struct request *r)
{
    struct buf text = {0};
    metrics_write(r->http, &text);
    struct str body = buf_view(&text);
    reply_header(r, "cache-control", STR("no-store"));
    if (buf_ok(&text))
        reply_parts(r, 200, "text/plain; version=0.0.4; charset=utf-8", &body, 1);
    else
        reply_error(r, ERR_UNAVAILABLE, NULL);
    buf_free(&text);
}
