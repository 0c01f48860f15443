/*
 * A large body of bulk sync. Its signature, gzip and JSON take tens of milliseconds, so a thread
 * (http->body_pool) processes it; the pipeline then uses the results in its usual steps.
 */
#ifndef ASSAY_HTTP_LARGE_BODY_H
#define ASSAY_HTTP_LARGE_BODY_H

#include "core/async/thread_pool.h"
#include "core/auth/request_signature.h"
#include "core/http/inflate.h"
#include "core/http/request.h"
#include "core/text/json_scan.h"

struct large_body {
    struct pool_job job;
    struct buf body, header, token, plain; /* copies: the request may end first */
    const struct field *tree;
    size_t max;
    int64_t now_s;
    bool compressed, is_signed;
    size_t accounted; /* of the memory bound of the worker */
    /* results; ${object} and ${large} as of fields_read_large; the pipeline may take the object */
    enum signature_verdict signature;
    enum inflate_status inflated;
    struct json_fault fault;
    struct json_object *object;
    struct str large;
};

#endif
