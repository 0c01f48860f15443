/* What the pipeline needs of reply.c beside reply.h. */
#ifndef ASSAY_HTTP_REPLY_INTERNAL_H
#define ASSAY_HTTP_REPLY_INTERNAL_H

#include "core/http/err.h"
#include "core/http/request.h"

/* error_body(out, err, message): append the JSON of an error. */
void error_body(struct buf *out, enum err err, const char *message);

/*
 * reply_push(r, name, written, value): add a response header without a lookup of its name. ${name}
 * is static; ${written}: its spelling, or NULL; ${value} lives as long as the request.
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

/* reply_token(r, name, value): the same for a name that libh2o knows. */
static inline void reply_token(struct request *r, const h2o_token_t *name, struct str value)
{
    reply_push(r, (h2o_iovec_t *)(uintptr_t)&name->buf, NULL, value);
}

/* reply_security_headers(r): headers for browsers on every response. */
void reply_security_headers(struct request *r);

#endif
