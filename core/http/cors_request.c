#include "core/http/cors_request.h"

#include "core/http/route.h"
#include "core/http/reply.h"

static bool is_widget_path(struct request *r)
{
    static const struct str prefix = STR("/api/v1/widget/");
    if (r->route != NULL) /* its path has the same prefix */
        return strncmp(r->route->path, prefix.p, prefix.n) == 0;
    struct str query, path = route_path(r->h2o, &query);
    return path.n > prefix.n && memcmp(path.p, prefix.p, prefix.n) == 0;
}

struct str cors_origin(struct request *r)
{
    struct str origin = {NULL, 0};
    request_header(r, "origin", &origin);
    return origin;
}

void cors_headers(struct request *r)
{
    if (r->route != NULL && (r->route->flags & ROUTE_PUBLIC) != 0) {
        reply_header(r, "access-control-allow-origin", STR("*"));
        /* for pages with Cross-Origin-Embedder-Policy */
        reply_header(r, "cross-origin-resource-policy", STR("cross-origin"));
    }
    if (!is_widget_path(r))
        return;
    struct str origin = cors_origin(r);
    reply_header(r, "vary", STR("Origin"));
    if (origin.p == NULL)
        return;
    reply_header(r, "access-control-allow-origin", origin);
    reply_header(r, "access-control-expose-headers",
                 STR("X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, "
                     "X-Request-Id, Idempotent-Replayed, ETag, X-Assay-Position"));
}

bool cors_preflight(struct request *r)
{
    struct str method;
    if (!h2o_memis(r->h2o->input.method.base, r->h2o->input.method.len, H2O_STRLIT("OPTIONS")) ||
        !is_widget_path(r) || cors_origin(r).p == NULL ||
        !request_header(r, "access-control-request-method", &method))
        return false;
    reply_header(r, "access-control-allow-methods", STR("GET, POST, DELETE, OPTIONS"));
    reply_header(r, "access-control-allow-headers",
                 STR("Authorization, Content-Type, Accept, Idempotency-Key, X-Request-Id, "
                     "Last-Event-ID, If-None-Match, X-Assay-Position"));
    reply_header(r, "access-control-max-age", STR("7200"));
    return true;
}
