/*
 * Rate limiting of requests: which limiter counts a request, its headers, and the refusal.
 *
 * A request is charged once: in its step of the pipeline or, if it is answered before that (404,
 * 401, 413), when the response starts, then by its address. So every response of a limited route
 * has the headers, and handlers do not deal with limiters.
 *
 * limits.engine: local decides at once in shared memory; redis asks Redis, and the request waits
 * (limit_redis.c). Each limit of the server is charged here, so each uses the engine.
 */
#ifndef ASSAY_HTTP_LIMIT_H
#define ASSAY_HTTP_LIMIT_H

#include "core/http/err.h"
#include "core/http/request.h"

struct loop;
struct request_limiter;

/* request_limiter_new(loop): this worker's copy of the limits in force; NULL: it failed. */
struct request_limiter *request_limiter_new(struct loop *loop);
void request_limiter_free(struct request_limiter *l);

/* request_limiter_limits(l): the limits in force; borrowed for this turn of the loop. */
const struct limiters *request_limiter_limits(struct request_limiter *l);

/*
 * request_limiter_tick(l, now_ms): log how many refusals were not logged; once a turn.
 * request_limiter_flush(l): send questions to Redis; at the end of a turn.
 * request_limiter_wake_ms(l, most): how long the loop may sleep, at most ${most}.
 * request_limiter_settled(l): Redis was reached, or the attempt failed.
 */
void request_limiter_tick(struct request_limiter *l, int64_t now_ms);
void request_limiter_flush(struct request_limiter *l);
int request_limiter_wake_ms(const struct request_limiter *l, int most);
bool request_limiter_settled(const struct request_limiter *l);

/*
 * limit_prefetch(r): call it once route and address are known. If the limiter counts by address
 * alone, the processor fetches the counter while the pipeline goes on.
 */
void limit_prefetch(struct request *r);

/*
 * limit_charge(r, done): charge the request, unless that was done. The address stands in for a
 * credential or agent that is unknown. LIMIT_REFUSED: reply limit_error and limit_message.
 * LIMIT_WAITS: ${done} is called when it is decided; limit_admits then says how.
 */
enum limit_outcome { LIMIT_ADMITTED, LIMIT_REFUSED, LIMIT_WAITS };
enum limit_outcome limit_charge(struct request *r, request_fn *done)
    __attribute__((warn_unused_result));

/* limit_admits(r): the request was charged and not refused, or no limiter applies. */
static inline bool limit_admits(const struct request *r)
{
    return !r->limit.refused && !r->limit.unavailable;
}

/*
 * limit_error(r): ERR_RATE_LIMITED, or ERR_UNAVAILABLE if it cannot be counted now.
 * limit_message(r): its text for callers.
 */
enum err limit_error(const struct request *r);
const char *limit_message(const struct request *r);

/* limit_name(r): the limiter that was charged, or NULL. */
const char *limit_name(const struct request *r);

/* limit_retry_s(r): seconds until a retry makes sense; 0: the request was not refused. */
unsigned limit_retry_s(const struct request *r);

/* limit_headers(r): add X-RateLimit-… (and Retry-After) if a limiter was charged. */
void limit_headers(struct request *r);

#endif
