/*
 * What the pipeline needs of reply.c beside request.h.
 */
#ifndef ASSAY_HTTP_REPLY_H
#define ASSAY_HTTP_REPLY_H

#include "core/http/accept.h"
#include "core/http/request.h"

/* error_body(out, err, message): the contract's error, api.md §2. */
void error_body(struct buf *out, enum err err, const char *message);

/*
 * reply_push(r, name, written, value): a response header without a search for its name. ${name}
 * lives for ever; ${written} is how it is sent, or NULL; ${value} lives as long as the request.
 */
static inline void reply_push(struct request *r, h2o_iovec_t *name, const char *written,
                              struct str value)
{
    h2o_headers_t *headers = &r->h2o->res.headers;
    if (headers->size == headers->capacity)
        h2o_vector_reserve(&r->h2o->pool, headers, headers->size + 1);
    headers->entries[headers->size++] = (h2o_header_t){
        .name = name, .orig_name = written, .value = {(char *)(uintptr_t)value.p, value.n}};
}

/* reply_token(r, name, value): the same, of a name that the library knows. */
static inline void reply_token(struct request *r, const h2o_token_t *name, struct str value)
{
    reply_push(r, (h2o_iovec_t *)(uintptr_t)&name->buf, NULL, value);
}

/* reply_safety_headers(r): what every answer tells browsers. */
void reply_safety_headers(struct request *r);

/*
 * reply_begin(r, status, type, length, generator): the head of an answer whose body ${generator}
 * sends: of ${length} bytes, or SIZE_MAX: not known. Once the limiter was asked.
 */
void reply_begin(struct request *r, int status, const char *type, size_t length,
                 h2o_generator_t *generator);

/*
 * reply_send(r, body, count, state): what follows. All of it goes this way, so that the loop knows.
 */
void reply_send(struct request *r, h2o_iovec_t *body, size_t count, h2o_send_state_t state);

#endif
