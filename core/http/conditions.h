/*
 * Conditions and preferences in a request's head. Their parsers: etag.h, idempotency.h, prefer.h.
 */
#ifndef ASSAY_HTTP_CONDITIONS_H
#define ASSAY_HTTP_CONDITIONS_H

#include "store/bytes.h"

struct request;
struct store_change;

/*
 * reply_etag(r, version): for GET. Set the strong ETag of ${version}, a version of a record or
 * list, and Cache-Control: private, no-cache (no-store for visitors; none with ROUTE_PUBLIC or
 * ROUTE_PAGE). True: If-None-Match names it, 304 was sent, and the handler is done.
 */
bool reply_etag(struct request *r, uint64_t version);

/*
 * request_if_match(r, change): set change->match to the versions in If-Match; without the header or
 * with "*", any version matches; an unknown tag matches none.
 */
void request_if_match(struct request *r, struct store_change *change);

/*
 * request_idempotency(r, change): set the digests of Idempotency-Key, bound to credential and path,
 * and of the body in ${change}; without the header, nothing. False: the key is not 1 to 255
 * printable ASCII characters, and 400 was sent.
 */
bool request_idempotency(struct request *r, struct store_change *change);

/*
 * request_prefer(r, wait_ms, async): read `wait=N` (at most 30 s, else ignored) and `respond-async`
 * of Prefer (RFC 7240) into *wait_ms and *async, if sent. Returns the value of Preference-Applied;
 * p NULL: none.
 * request_is_strict(r): Prefer says `handling=strict`.
 */
struct str request_prefer(struct request *r, unsigned *wait_ms, bool *async);
bool request_is_strict(struct request *r);

#endif
