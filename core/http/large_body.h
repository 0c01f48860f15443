/*
 * A large body of bulk sync, read in the reader's thread (thread_pool.h): its signature, gzip and JSON
 * take tens of milliseconds where a megabyte of them is made for that. What comes of it is judged
 * by the pipeline where small ones are. Workers.
 */
#ifndef ASSAY_HTTP_LARGE_BODY_H
#define ASSAY_HTTP_LARGE_BODY_H

#include "core/async/thread_pool.h"
#include "core/http/inflate.h"
#include "core/text/json_scan.h"
#include "core/http/request.h"
#include "core/auth/request_signature.h"

struct large_body {
    struct pool_job away;
    /* its own, since the request may be gone before */
    struct buf body, header, token, plain;
    const struct field *tree;
    size_t max;
    int64_t now_s;
    bool compressed, is_signed;
    size_t counted; /* of its worker's bytes */
    /*
     * what came of it; ${json} and ${large}: as fields_read_large; the object is the reading's
     * until it is taken
     */
    enum signature_verdict signature;
    enum inflate_status inflated;
    struct json_fault fault;
    struct json_object *object;
    struct str large;
};

/*
 * large_body_send(r, max, header, token): read ${r}'s body and then resume its pipeline; ${header}:
 * its X-Signature, or none. False: no memory, or a worker's bodies would take too much of it.
 */
bool large_body_send(struct request *r, size_t max, struct str header, struct str token);

#endif
