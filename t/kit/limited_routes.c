/*
 * A route table for an assayd in tests of limits: one route for each path that a built-in limiter
 * names. A route answers with the status of its query (?status=503). Used by
 * t/server/limits_rows.c.
 */
#include "core/http/handler.h"

#include <stdlib.h>

static void answer(struct request *r)
{
    static const char name[] = "status=";
    int status = r->query.n > strlen(name) && memcmp(r->query.p, name, strlen(name)) == 0
                     ? atoi(r->query.p + strlen(name))
                     : 200;
    if (status == 304 || status == 204)
        reply_empty(r, status);
    else if (status < 400)
        reply_json(r, status, &STR("{}"), 1);
    else
        reply_error(r, err_of_status(status), NULL);
}

#define WIDGET(method, path, limiter, flags)                                                       \
    {                                                                                              \
        method, "/api/v1/widget/" path, AUTH_NONE, 0, limiter, BODY_FIELDS, 1024, flags, NULL,     \
            answer                                                                                 \
    }
#define SYNC(method, path)                                                                         \
    {                                                                                              \
        method, path, AUTH_API_KEY, SCOPE_WP_SYNC, LIMITER_BULK_SYNC, BODY_FIELDS, 1024, 0, NULL,  \
            answer                                                                                 \
    }

const struct route routes[] = {
    WIDGET("POST", "init", LIMITER_WIDGET_INIT, ROUTE_BODY_FIRST),
    WIDGET("POST", "messages", LIMITER_WIDGET_SESSION, 0),
    WIDGET("POST", "messages/stream", LIMITER_WIDGET_SESSION, 0),
    WIDGET("POST", "events", LIMITER_WIDGET_SESSION, 0),
    WIDGET("GET", "conversation/messages", LIMITER_WIDGET_SESSION, 0),
    WIDGET("POST", "conversation/close", LIMITER_WIDGET_SESSION, 0),
    WIDGET("POST", "leads", LIMITER_WIDGET_LEADS, 0),
    WIDGET("POST", "typing", LIMITER_WIDGET_TYPING, 0),
    WIDGET("POST", "satisfaction", LIMITER_WIDGET_SATISFACTION, 0),
    WIDGET("POST", "coupon/apply", LIMITER_WIDGET_COUPON, 0),
    SYNC("POST", "/v1/wp/posts/sync"),
    SYNC("POST", "/api/v1/wp/posts/sync"),
    SYNC("GET", "/v1/wp/status"),
    {"POST", "/reports/{id}/password", AUTH_NONE, 0, LIMITER_REPORT_PASSWORD, BODY_FIELDS, 1024, 0,
     NULL, answer},
};
const size_t routes_count = sizeof(routes) / sizeof(routes[0]);
