/*
 * Rate limiting of requests: which limiter counts a request, its headers, and the refusal.
 *
 * A request is charged once: in its step of the pipeline or, if it is answered before that (404,
 * 401, 413), when the response starts, then by its address. So every response of a limited route
 * has the headers, and handlers do not deal with limiters.
 */
#ifndef ASSAY_HTTP_LIMIT_H
#define ASSAY_HTTP_LIMIT_H

#include "core/http/request.h"

struct loop;
struct request_limiter;

/* request_limiter_new(loop): this worker's copy of the limits in force; NULL with errno. */
struct request_limiter *request_limiter_new(const struct loop *loop);
void request_limiter_free(struct request_limiter *l);

/* request_limiter_limits(l): the limits in force; borrowed for this turn of the loop. */
const struct limiters *request_limiter_limits(struct request_limiter *l);

/* request_limiter_tick(l, now_ms): log how many refusals were not logged; once a turn. */
void request_limiter_tick(struct request_limiter *l, int64_t now_ms);

/*
 * limit_prefetch(r): call it once route and address are known. If the limiter counts by address
 * alone, the processor fetches the counter while the pipeline goes on.
 */
void limit_prefetch(struct request *r);

/*
 * limit_charge(r): charge the request, unless that was done. The address stands in for a credential
 * or agent that is unknown. False: refused; reply ERR_RATE_LIMITED.
 */
bool limit_charge(struct request *r) __attribute__((warn_unused_result));

/* limit_name(r): the limiter that was charged, or NULL. */
const char *limit_name(const struct request *r);

/* limit_retry_s(r): seconds until the limiter admits a request again; 0: it did not refuse. */
unsigned limit_retry_s(const struct request *r);

/* limit_headers(r): add X-RateLimit-… (and Retry-After) if a limiter was charged. */
void limit_headers(struct request *r);

#endif
