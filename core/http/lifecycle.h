/* Start, ticks and end of HTTP in a worker. */
#ifndef ASSAY_HTTP_LIFECYCLE_H
#define ASSAY_HTTP_LIFECYCLE_H

#include "core/http/http.h"

/*
 * http_start(h, loop): set up ${h} except streams and writer, which the caller sets; loop->store is
 * open. It creates the event loop in loop->ctx, with the pipeline on every path. False: it failed,
 * and the log says why.
 * http_finish(h) frees it.
 */
bool http_start(struct http *h, struct loop *loop) __attribute__((warn_unused_result));
void http_finish(struct http *h);

/*
 * http_tick(h): once a turn of the loop. http_flush(h): at its end.
 * http_wake_ms(h, most): how long the loop may sleep, at most ${most}.
 */
void http_tick(struct http *h);
void http_flush(struct http *h);
int http_wake_ms(const struct http *h, int most);

/* http_may_serve(h): requests can be counted; false for a moment after the start. */
bool http_may_serve(const struct http *h);

/* http_ready(h): the writer is reachable and the worker does not drain. */
bool http_ready(const struct http *h);

#endif
