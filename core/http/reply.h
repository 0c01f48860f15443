/*
 * What the pipeline needs of reply.c beside request.h.
 */
#ifndef ASSAY_HTTP_REPLY_H
#define ASSAY_HTTP_REPLY_H

#include "accept.h"
#include "request.h"

/* error_body(out, err, message): the contract's error, api.md §2. */
void error_body(struct buf *out, enum err err, const char *message);

#endif
