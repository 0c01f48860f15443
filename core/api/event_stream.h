/*
 * Event streams (server-sent events) of conversations, on the worker's event loop. A stream has no
 * queue: when its client has taken a part, the next part is read from the store, from the last
 * message sent. A slow client therefore costs one part, which is bounded in bytes, and misses
 * nothing; a client that reconnects with Last-Event-ID continues without a gap. Worker processes.
 */
#ifndef ASSAY_API_EVENT_STREAM_H
#define ASSAY_API_EVENT_STREAM_H

#include "core/http/handler.h"

struct streams;

struct streams *streams_new(void);
void streams_free(struct streams *s);

/* streams_count(s): number of open streams. */
uint32_t streams_count(const struct streams *s);

/*
 * stream_open(r, last): reply with a stream of the session's conversation, from after message
 * ${last}.
 */
void stream_open(struct request *r, const struct ulid *last);

/*
 * streams_on_event(h, e): an event of the change feed; wakes the streams concerned, or all streams
 * when the feed starts again.
 */
void streams_on_event(struct http *h, const struct store_event *e);

/*
 * streams_tick(h): send heartbeats and typing, and end streams with invalid tokens; once per turn
 * of the loop.
 * streams_wait_ms(h, most): how long the loop may sleep.
 * streams_drain(h): ask all clients to reconnect, and end their streams.
 */
void streams_tick(struct http *h);
int streams_wait_ms(const struct http *h, int most);
void streams_drain(struct http *h);

#endif
