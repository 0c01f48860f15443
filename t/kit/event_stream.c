#include "t/kit/event_stream.h"

#include <poll.h>

enum { SEEN_BYTES = 1 << 22 };

static struct event_stream *stream_open(const struct visitor *v, const char *header,
                                        const char *value)
{
    struct event_stream *s = calloc(1, sizeof(*s));
    struct raw *raw = raw_open(server);
    char *more = value == NULL ? "" : text("%s: %s\r\n", header, value);
    raw_text(raw,
             "GET /api/v1/widget/conversation/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
             "%s\r\nAccept: text/event-stream\r\n%s\r\n",
             v->jwt, more);
    s->fd = raw->fd;
    s->seen = calloc(1, SEEN_BYTES);
    return s;
}

struct event_stream *stream_of(const struct visitor *v, const char *last)
{
    return stream_open(v, "Last-Event-ID", last);
}

struct event_stream *stream_from(const struct visitor *v, const char *origin)
{
    return stream_open(v, "Origin", origin);
}

void stream_read(struct event_stream *s, int within_ms)
{
    struct pollfd p = {s->fd, POLLIN, 0};
    if (s->closed || poll(&p, 1, within_ms) <= 0)
        return;
    ssize_t n = read(s->fd, s->seen + s->n, SEEN_BYTES - 1 - s->n);
    if (n <= 0)
        s->closed = true;
    else
        s->n += (size_t)n;
    s->seen[s->n] = '\0';
}

bool stream_arrives(struct event_stream *s, const char *what, int within_ms)
{
    int64_t deadline = now_ms() + within_ms;
    while (strstr(s->seen, what) == NULL && now_ms() < deadline && !s->closed)
        stream_read(s, (int)(deadline - now_ms()));
    return strstr(s->seen, what) != NULL;
}

bool stream_ends(struct event_stream *s, int within_ms)
{
    return stream_arrives(s, "\r\n0\r\n\r\n", within_ms);
}

size_t stream_times(const struct event_stream *s, const char *what)
{
    size_t count = 0;
    for (const char *p = s->seen; (p = strstr(p, what)) != NULL; p += strlen(what))
        count++;
    return count;
}
