/*
 * The steps of the pipeline, each a row of the table in pipeline.c: step_route.c finds out what is
 * asked, and from where; step_credential.c by whom; step_body.c reads what was sent.
 */
#ifndef ASSAY_HTTP_STEPS_H
#define ASSAY_HTTP_STEPS_H

#include "core/http/reply.h"
#include "core/http/request.h"
#include "core/http/route.h"

enum step {
    STEP_NEXT,
    STEP_DONE, /* replied */
    STEP_WAIT, /* a continuation calls pipeline_resume */
};

typedef enum step step_fn(struct request *r);

step_fn step_find_client, step_check_head, step_find_route, step_check_accept, step_find_credential,
    step_judge_credential, step_lead_back, step_check_body, step_read_large, step_check_signature,
    step_inflate_body, step_parse_fields, step_find_agent;

/* step_bearer(r, token): the credential of Authorization: Bearer, borrowed; false without one. */
bool step_bearer(struct request *r, struct str *token);

/* step_max_body(route, conf): the largest body the route takes, bytes. */
size_t step_max_body(const struct route *route, const struct conf *conf);

/*
 * library_answers_register(w, host): the contract's errors on what the library answers by itself
 * (library_errors.c).
 */
void library_answers_register(struct http *h, h2o_hostconf_t *host);

static inline struct str view(h2o_iovec_t v)
{
    return (struct str){v.base, v.len};
}

#endif
