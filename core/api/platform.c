/* The OpenAPI document, health checks and metrics. */
#include "core/api/api_internal.h"
#include "core/api/openapi_internal.h"
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

void platform_readyz(struct request *r)
{
    reply_header(r, "cache-control", STR("no-store"));
    if (http_ready(r->http))
        reply_json(r, 200, &STR("{\"status\":\"ready\"}"), 1);
    else
        reply_error(r, ERR_UNAVAILABLE,
                    "Not ready: there is no writer, or the server is stopping.");
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
