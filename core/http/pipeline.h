/*
 * The one request pipeline: head checks → route → client address → credential → limiter → body
 * rules → fields → handler. Each step is a row of the table in pipeline.c; it lets the request go
 * on, ends it with a reply, or keeps it until a continuation calls pipeline_resume.
 */
#ifndef ASSAY_HTTP_PIPELINE_H
#define ASSAY_HTTP_PIPELINE_H

#include "core/http/http.h"
#include "core/http/request.h"

/*
 * pipeline_register(h, host): put the pipeline on every path of ${host}, and the contract's errors
 * on what the library answers by itself.
 */
void pipeline_register(struct http *h, h2o_hostconf_t *host);

/* pipeline_max_body(conf): the largest body any route takes, bytes. */
size_t pipeline_max_body(const struct conf *conf);

/* pipeline_resume(r): go on after the step that kept ${r}. */
void pipeline_resume(struct request *r);

/*
 * pipeline_request_id(h, req): the caller's X-Request-Id where it may be one, or a new one; lives
 * as long as ${req}.
 */
struct str pipeline_request_id(struct http *h, h2o_req_t *req);

#endif
