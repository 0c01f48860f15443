/*
 * The one request pipeline: head checks → route → client address → credential → limiter → body
 * rules → fields → handler. Each step is a row of the table in pipeline.c; it lets the request go
 * on, ends it with a reply, or keeps it until a continuation calls pipeline_resume.
 */
#ifndef ASSAY_HTTP_PIPELINE_H
#define ASSAY_HTTP_PIPELINE_H

#include "core/worker/worker.h"
#include "core/http/request.h"

/*
 * pipeline_start(w): what requests of ${w} share: the prefix of their ids, the memo of credentials.
 * False with errno. pipeline_finish(w) frees it.
 */
bool pipeline_start(struct worker *w);
void pipeline_finish(struct worker *w);

/*
 * pipeline_register(w, host): put the pipeline on every path of ${host}, and the contract's errors
 * on what the library answers by itself.
 */
void pipeline_register(struct worker *w, h2o_hostconf_t *host);

/* pipeline_max_body(conf): the largest body any route takes, bytes. */
size_t pipeline_max_body(const struct conf *conf);

/* pipeline_resume(r): go on after the step that kept ${r}. */
void pipeline_resume(struct request *r);

/*
 * pipeline_id(w): an id that no answer had before, 32 hexadecimal digits; borrowed until the next
 * one.
 */
struct str pipeline_id(struct worker *w);

/*
 * pipeline_request_id(w, req): the caller's X-Request-Id where it may be one, or a new one; lives
 * as long as ${req}.
 */
struct str pipeline_request_id(struct worker *w, h2o_req_t *req);

#endif
