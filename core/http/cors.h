/*
 * Origins (RFC 6454): how an agent's are written down, and which of them a request's matches. Pure
 * functions; cors_request.c applies them.
 */
#ifndef ASSAY_HTTP_CORS_H
#define ASSAY_HTTP_CORS_H

#include "store/bytes.h"

#define CORS_ORIGIN_MAX 512

/*
 * cors_origin_normal(text, out): ${text} as a browser would send it: "*", or scheme://host[:port],
 * http or https, in lower case, without the scheme's own port. False when it is no such thing (a
 * path, user info, other schemes).
 */
bool cors_origin_normal(struct str text, char out[CORS_ORIGIN_MAX]);

/*
 * cors_allowed(origins, origin): whether ${origin}, as it was sent (p NULL: none was), is one of
 * ${origins}, one a line. "*" lets all in, none included; an empty list nobody.
 */
bool cors_allowed(struct str origins, struct str origin);

#endif
