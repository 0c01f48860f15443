/* For tests of the widget: a visitor's event stream, read as it arrives. */
#ifndef ASSAY_T_EVENT_STREAM_H
#define ASSAY_T_EVENT_STREAM_H

#include "t/kit/widget.h"

struct event_stream {
    int fd;
    char *seen; /* all that arrived, with the head of the response; ends with 0 */
    size_t n;
    bool closed;
};

/*
 * stream_of(v, last): opens the stream of the conversation of ${v}, after the event ${last} (NULL:
 * none). stream_from(v, origin): as a page of ${origin} does.
 */
struct event_stream *stream_of(const struct visitor *v, const char *last);
struct event_stream *stream_from(const struct visitor *v, const char *origin);

/*
 * stream_read(s, within_ms): reads once. stream_arrives(s, what, within_ms): reads until ${what}
 * has arrived. stream_ends: until the response has ended. stream_times: how often ${what} arrived.
 */
void stream_read(struct event_stream *s, int within_ms);
bool stream_arrives(struct event_stream *s, const char *what, int within_ms);
bool stream_ends(struct event_stream *s, int within_ms);
size_t stream_times(const struct event_stream *s, const char *what);

#define expect_event(stream, what, ms)                                                             \
    ck_assert_msg(stream_arrives((stream), (what), (ms)), "%s did not arrive:\n%s", (what),        \
                  (stream)->seen)

#endif
