#include "core/http/error_html.h"

#include "core/conn/connection.h"
#include "core/http/accept.h"
#include "core/http/request.h"
#include "core/http/route.h"

bool error_may_be_page(struct request *r)
{
    const struct route *row = r->route != NULL ? r->route : r->other_method;
    struct str query, path = row != NULL ? str_of(row->path) : route_path(r->h2o, &query);
    return !str_starts(path, STR("/api/")) && !str_starts(path, STR("/v1/")) &&
           (row == NULL || (row->flags & ROUTE_INTERNAL) == 0) && !r->wait.conn->internal;
}

bool error_is_page(struct request *r)
{
    struct str accept;
    return error_may_be_page(r) && request_token_header(r, H2O_TOKEN_ACCEPT, &accept) &&
           accept_prefers_html(accept);
}
