#include "t/kit/harness_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

enum { SEND_MS = 20000 };

struct raw *raw_open(const struct server *s)
{
    struct raw *raw = calloc(1, sizeof(*raw));
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(s->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (!raw)
        abort();
    raw->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(raw->fd, 0);
    ck_assert_msg(!connect(raw->fd, (struct sockaddr *)&to, sizeof(to)), "connect: %s",
                  strerror(errno));
    setsockopt(raw->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return raw;
}

/* Read what is there, waiting at most until the deadline; false when nothing came. */
static bool raw_fill(struct raw *raw, int64_t deadline)
{
    char chunk[65536];
    struct pollfd p = {.fd = raw->fd, .events = POLLIN};
    int64_t left = deadline - now_ms();
    if (raw->closed || poll(&p, 1, left > 0 ? (int)left : 0) <= 0)
        return false;
    ssize_t got = recv(raw->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got <= 0) {
        raw->closed = true;
        return false;
    }
    struct bytes in = {raw->in, raw->in_size};
    bytes_add(&in, chunk, (size_t)got);
    raw->in = in.data;
    raw->in_size = in.size;
    return true;
}

void raw_send(struct raw *raw, const void *bytes, size_t size)
{
    const char *data = bytes;
    struct bytes sent = {raw->sent, raw->sent ? strlen(raw->sent) : 0};
    char *shown = bytes_shown(data, size);
    bytes_add(&sent, shown, strlen(shown));
    raw->sent = sent.data;
    free(shown);
    for (int64_t deadline = now_ms() + SEND_MS; size > 0 && now_ms() < deadline;) {
        ssize_t put = send(raw->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        struct pollfd p = {.fd = raw->fd, .events = POLLOUT};
        if (put < 0 && errno != EAGAIN && errno != EINTR)
            return;
        if (put < 0)
            poll(&p, 1, 100);
        data += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
}

void raw_text(struct raw *raw, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *out = text_va(format, args);
    va_end(args);
    raw_send(raw, out, strlen(out));
    free(out);
}

void raw_get(struct raw *raw, const char *key, const char *path)
{
    raw_text(raw, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", path, key);
}

void raw_post(struct raw *raw, const char *key, const char *headers, const char *form)
{
    raw_text(raw,
             "POST /api/v1/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s"
             "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s",
             key, headers, strlen(form), form);
}

static void raw_take(struct raw *raw, size_t size)
{
    memmove(raw->in, raw->in + size, raw->in_size - size);
    raw->in_size -= size;
    raw->in[raw->in_size] = '\0';
}

/* Wait until ${count} bytes are there. */
static bool raw_need(struct raw *raw, size_t count, int64_t deadline)
{
    while (raw->in_size < count)
        if (!raw_fill(raw, deadline))
            return raw->in_size >= count;
    return true;
}

/* The size of what precedes and includes ${mark}; 0 when it does not come. */
static size_t raw_upto(struct raw *raw, const char *mark, int64_t deadline)
{
    for (;;) {
        char *found = raw->in_size ? memmem(raw->in, raw->in_size, mark, strlen(mark)) : NULL;
        if (found)
            return (size_t)(found - raw->in) + strlen(mark);
        if (!raw_fill(raw, deadline))
            return 0;
    }
}

static const char *raw_chunked(struct raw *raw, struct bytes *body, int64_t deadline)
{
    for (;;) {
        size_t line = raw_upto(raw, "\r\n", deadline);
        if (!line)
            return "a chunk did not come";
        char *end;
        size_t size = strtoul(raw->in, &end, 16);
        if (end == raw->in || *end != '\r')
            return "a broken chunk";
        raw_take(raw, line);
        if (!raw_need(raw, size + 2, deadline) || memcmp(raw->in + size, "\r\n", 2) != 0)
            return "a chunk came in part";
        bytes_add(body, raw->in, size);
        raw_take(raw, size + 2);
        if (!size)
            return NULL;
    }
}

static const char *raw_body(struct raw *raw, const struct response *r, bool head,
                            struct bytes *body, int64_t deadline)
{
    const char *coding = header(r, "Transfer-Encoding"), *length = header(r, "Content-Length");
    if (head || r->status < 200 || r->status == 204 || r->status == 304)
        return NULL;
    if (coding && length)
        return "both Content-Length and Transfer-Encoding";
    if (coding)
        return raw_chunked(raw, body, deadline);
    size_t size = length ? strtoul(length, NULL, 10) : 0;
    if (!length)
        while (!raw->closed && raw_fill(raw, deadline))
            size = raw->in_size;
    if (!length)
        size = raw->in_size;
    if (!raw_need(raw, size, deadline))
        return "the body came in part";
    if (size)
        bytes_add(body, raw->in, size);
    if (size)
        raw_take(raw, size);
    return NULL;
}

struct response *raw_response(struct raw *raw, bool head, int within_ms)
{
    int64_t deadline = now_ms() + within_ms;
    struct response *r = calloc(1, sizeof(*r));
    struct bytes body = {0};
    if (!r)
        abort();
    bytes_add(&body, "", 0);
    r->request = raw->sent ? raw->sent : text("%s", "");
    raw->sent = NULL;
    size_t size = raw_upto(raw, "\r\n\r\n", deadline);
    if (!size) {
        r->failure = raw->closed ? "closed" : "no response in time";
        r->body = raw->in_size ? bytes_shown(raw->in, raw->in_size) : NULL;
        r->body_size = r->body ? strlen(r->body) : 0;
        free(body.data);
        return r;
    }
    r->head = text("%.*s", (int)size, raw->in);
    raw_take(raw, size);
    response_head(r, r->head);
    r->failure = raw_body(raw, r, head, &body, deadline);
    r->body = body.data;
    r->body_size = body.size;
    if (r->failure)
        r->status = 0;
    response_json(r);
    return r;
}

bool raw_closed(struct raw *raw, int within_ms)
{
    int64_t deadline = now_ms() + within_ms;
    while (!raw->closed && now_ms() <= deadline)
        raw_fill(raw, deadline);
    return raw->closed;
}

void raw_close(struct raw *raw)
{
    if (!raw)
        return;
    close(raw->fd);
    free(raw->in);
    free(raw->sent);
    free(raw);
}
