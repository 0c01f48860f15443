/*
 * Origins (RFC 6454): their normal form, and whether an agent allows one. Pure functions;
 * cors_request.c applies them.
 */
#ifndef ASSAY_HTTP_CORS_H
#define ASSAY_HTTP_CORS_H

#include "store/bytes.h"

#define CORS_ORIGIN_MAX 512

/*
 * cors_origin_normal(text, out): ${text} as a browser sends it: "*", or http(s)://host[:port] in
 * lower case without the default port. False for anything else (a path, user info, other schemes).
 */
bool cors_origin_normal(struct str text, char out[CORS_ORIGIN_MAX]);

/*
 * cors_allowed(origins, origin): ${origin}, as it was sent (p NULL: not sent), is one of the lines
 * in ${origins}. "*" allows all and a missing origin; an empty list allows none.
 */
bool cors_allowed(struct str origins, struct str origin);

#endif
