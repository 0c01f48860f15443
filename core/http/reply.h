/* Responses. A handler sends exactly one per request, at once or from a continuation. */
#ifndef ASSAY_HTTP_REPLY_H
#define ASSAY_HTTP_REPLY_H

#include "core/http/err.h"
#include "store/bytes.h"

#include <h2o.h>

struct request;

/*
 * reply_header(r, name, value): add a response header; ${name} is a lower-case literal, ${value}
 * lives as long as the request.
 */
void reply_header(struct request *r, const char *name, struct str value);

/*
 * reply_parts(r, status, type, parts, count): send the bytes of ${parts}, which are copied before
 * it returns, so LMDB values may be among them. It adds gzip, Content-Length and X-Request-Id, and
 * handles HEAD.
 * reply_json: the same as application/json.
 */
void reply_parts(struct request *r, int status, const char *type, const struct str *parts,
                 size_t count);
void reply_json(struct request *r, int status, const struct str *parts, size_t count);

/*
 * reply_cached(r, status, type, cache, entry): a body of ${cache}, compressed for those who accept
 * it; the request holds a reference until it is sent.
 */
struct response_cache;
struct cached_report;
void reply_cached(struct request *r, int status, const char *type, struct response_cache *cache,
                  struct cached_report *entry);

/* reply_fixed(r, type, body, gzip): 200 with static bytes; ${gzip}: the same bytes compressed. */
void reply_fixed(struct request *r, const char *type, struct str body, struct str gzip);

/* reply_empty(r, status): no body (204, 304). */
void reply_empty(struct request *r, int status);

/* reply_redirect(r, location): 303; the browser GETs ${location}, a path or URL. */
void reply_redirect(struct request *r, struct str location);

/*
 * reply_chunked(r, status, length, more): JSON of ${length} bytes, made in chunks as fast as the
 * client takes it. ${more} appends the next REPLY_CHUNK bytes, or a little more to complete an
 * item. If it returns false, the connection ends, and the client sees an incomplete response.
 */
#define REPLY_CHUNK (32u << 10)
typedef bool reply_more_fn(struct request *r, struct buf *out);
void reply_chunked(struct request *r, int status, size_t length, reply_more_fn *more);

/*
 * reply_begin(r, status, type, length, generator): the head of a response whose body ${generator}
 * sends; ${length}: bytes of the body, or SIZE_MAX. The limiter must have been charged before.
 * reply_send(r, body, count, state): the next part of that body.
 */
void reply_begin(struct request *r, int status, const char *type, size_t length,
                 h2o_generator_t *generator);
void reply_send(struct request *r, h2o_iovec_t *body, size_t count, h2o_send_state_t state);

/* reply_error(r, err, format, …): an error body; NULL: the default message of ${err}. */
void reply_error(struct request *r, enum err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/*
 * reply_store_error(r, status): the error for a refused store operation of the event loop.
 * reply_store_failure(r, status, why): for one of a query thread; ${why}: its store_why.
 */
void reply_store_error(struct request *r, enum store_status status);
void reply_store_failure(struct request *r, enum store_status status, const char *why);
/* reply_retry(r, message): 503 with Retry-After of a second. */
void reply_retry(struct request *r, const char *message);
/* reply_stale(r): the same for a credential, of a node that is behind the log of its cluster. */
void reply_stale(struct request *r);
/* reply_invalid(r, field, message): 422 with a message for one field. */
void reply_invalid(struct request *r, const char *field, const char *message);

#endif
