/*
 * The steps of the pipeline, each a row of the table in pipeline.c. step_route.c: head, address and
 * route; step_credential.c: credential and scope; large_body.c: a body that a thread processes;
 * step_body.c: body and fields; step_cluster.c: positions in the log.
 */
#ifndef ASSAY_HTTP_STEPS_INTERNAL_H
#define ASSAY_HTTP_STEPS_INTERNAL_H

#include "core/http/reply.h"
#include "core/http/reply_internal.h"
#include "core/http/route.h"

enum step {
    STEP_NEXT,
    STEP_DONE, /* replied */
    STEP_WAIT, /* a continuation calls pipeline_resume */
};

typedef enum step step_fn(struct request *r);

step_fn step_find_client, step_check_head, step_find_route, step_check_accept, step_check_lag,
    step_await_position, step_await_token, step_find_credential, step_check_credential,
    step_reply_unrouted, step_check_body, step_read_large_body, step_check_signature,
    step_inflate_body, step_parse_fields, step_find_agent;

/* step_max_body(route, conf): the largest body of the route, in bytes. */
size_t step_max_body(const struct route *route, const struct conf *conf);

/* library_errors_register(h, host): see library_errors.c. */
void library_errors_register(struct http *h, h2o_hostconf_t *host);

/* step_refuse(r, err): reply with the default message. */
static inline enum step step_refuse(struct request *r, enum err err)
{
    reply_error(r, err, NULL);
    return STEP_DONE;
}

static inline struct str view(h2o_iovec_t v)
{
    return (struct str){v.base, v.len};
}

#endif
