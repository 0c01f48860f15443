/*
 * Errors for people: a request that prefers HTML gets a page instead of JSON. core/web makes it
 * (core/web/error_page.c); status and headers are those of the JSON error (reply.c).
 */
#ifndef ASSAY_HTTP_ERROR_HTML_H
#define ASSAY_HTTP_ERROR_HTML_H

#include "core/http/err.h"
#include "store/bytes.h"

struct request;

/*
 * Append the document for ${err} to ${out} and add the headers of a page to the response.
 * ${message}: a sentence for the person; ${retry_after_s}: when to try again, 0: nothing is said.
 * False: there is no page; the caller sends JSON.
 */
typedef bool error_page_fn(struct request *r, enum err err, const char *message,
                           unsigned retry_after_s, struct buf *out);
extern error_page_fn *const error_page;

/*
 * error_may_be_page(r): Accept decides between page and JSON. Not so for the API, under /api/ and
 * /v1/, and for routes and listeners of operators, which answer JSON.
 * error_is_page(r): an error of this request is a page, since Accept prefers HTML (accept.h).
 */
bool error_may_be_page(struct request *r);
bool error_is_page(struct request *r);

#endif
