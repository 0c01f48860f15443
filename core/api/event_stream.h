/*
 * Open event streams (server-sent events) of conversations, on the worker's loop. A stream holds no
 * queue: what it has to tell is read from the store when its client has taken the last part, from
 * the message it was told last. So a slow reader costs one part, which is bounded by bytes, and
 * misses nothing, and a stream that comes back with Last-Event-ID goes on without a gap. Worker
 * processes only.
 */
#ifndef ASSAY_API_EVENT_STREAM_H
#define ASSAY_API_EVENT_STREAM_H

#include "core/http/handler.h"

struct streams;

struct streams *streams_new(void);
void streams_free(struct streams *s);

/* streams_open(s): how many are open. */
uint32_t streams_open(const struct streams *s);

/*
 * stream_open(r, last): begin to stream the request's conversation behind the message ${last}. It
 * is the reply.
 */
void stream_open(struct request *r, const struct ulid *last);

/*
 * streams_event(h, e): the change feed's; wakes the streams it is about: all of them when the feed
 * begins anew.
 */
void streams_event(struct http *h, const struct store_event *e);

/*
 * streams_tick(h): heartbeats, typing, tokens that end; once a turn of the loop. streams_wait_ms(h,
 * most): how long the loop may sleep.
 * streams_drain(h): tell all to come again, and end.
 */
void streams_tick(struct http *h);
int streams_wait_ms(const struct http *h, int most);
void streams_drain(struct http *h);

#endif
