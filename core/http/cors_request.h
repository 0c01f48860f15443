/*
 * CORS: response headers and preflights below /api/v1/widget/, and headers of ROUTE_PUBLIC, which
 * allows every origin without a preflight. Whether an agent allows an origin: session.h.
 */
#ifndef ASSAY_HTTP_CORS_REQUEST_H
#define ASSAY_HTTP_CORS_REQUEST_H

#include "core/http/request.h"

/* cors_headers(r): add them to the response that is about to start, if its route has any. */
void cors_headers(struct request *r);

/* cors_preflight(r): true: ${r} is a preflight, and its response headers are set. */
bool cors_preflight(struct request *r);

/* cors_origin(r): the Origin header; p NULL: none. */
struct str cors_origin(struct request *r);

#endif
