/*
 * What a handler of a route needs.
 *
 * Before the handler runs, the pipeline (pipeline.c) has done what the route's row says: head
 * checks, method, client address, credential and scope, limiter, media type, size, and the types of
 * the fields. The handler checks the rest, asks the store, and calls exactly one reply_ function,
 * at once or from a continuation. Continuations of a client that is gone are dropped.
 */
#ifndef ASSAY_HTTP_HANDLER_H
#define ASSAY_HTTP_HANDLER_H

#include "core/http/conditions.h"
#include "core/http/continuations.h"
#include "core/http/reply.h"
#include "core/http/request.h"

#endif
