/*
 * The request pipeline: client address → head checks → route → credential → limiter → body → fields
 * → handler. Each step is a row of the table in pipeline.c. It passes the request on, replies, or
 * waits until a continuation calls pipeline_resume.
 */
#ifndef ASSAY_HTTP_PIPELINE_H
#define ASSAY_HTTP_PIPELINE_H

#include "core/http/http.h"
#include "core/http/request.h"

/* pipeline_register(h, host): handle all paths of ${host}, and the errors of libh2o itself. */
void pipeline_register(struct http *h, h2o_hostconf_t *host);

/* pipeline_max_body(conf): the largest body of all routes, in bytes. */
size_t pipeline_max_body(const struct conf *conf);

/* pipeline_resume(r): go on after a step that waited. */
void pipeline_resume(struct request *r);

#endif
