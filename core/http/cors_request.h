/*
 * CORS (api.md §2) on the widget's surface, what lies below /api/v1/widget/: what every response of
 * it carries, and preflights; and on ROUTE_PUBLIC, which is open to all and takes no preflight.
 * Nowhere else. Whether an origin may use an agent is the session's to judge (session.h).
 */
#ifndef ASSAY_HTTP_CORS_REQUEST_H
#define ASSAY_HTTP_CORS_REQUEST_H

#include "core/http/request.h"

/* cors_headers(r): put them on the response that is about to start; nothing elsewhere. */
void cors_headers(struct request *r);

/* cors_preflight(r): true when the request is a preflight, which has been answered. */
bool cors_preflight(struct request *r);

/* cors_origin(r): the Origin that was sent; p NULL: none. */
struct str cors_origin(struct request *r);

#endif
