#include "core/ipc/channel.h"

#include "core/ipc/tls_stream_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define READ_CHUNK (64u << 10)
/* a larger buffer is freed when it is empty */
#define KEEP_BYTES (256u << 10)

void channel_init(struct channel *c, int fd)
{
    *c = (struct channel){.fd = fd};
    if (fd < 0)
        return;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void channel_close(struct channel *c)
{
    if (c->tls != NULL)
        tls_stream_close(c->tls, c->fd);
    if (c->fd >= 0)
        close(c->fd);
    buf_free(&c->in);
    buf_free(&c->out);
    *c = (struct channel){.fd = -1};
}

static bool address_of(const char *path, struct sockaddr_un *sa)
{
    *sa = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(sa->sun_path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(sa->sun_path, path, strlen(path) + 1);
    return true;
}

int channel_connect(const char *path)
{
    struct sockaddr_un sa;
    if (!address_of(path, &sa))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
        int kept = errno;
        close(fd);
        errno = kept;
        return -1;
    }
    return fd;
}

int channel_listen(const char *path)
{
    struct sockaddr_un sa;
    if (!address_of(path, &sa))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    mode_t old = umask(0177);
    unlink(path);
    bool ok = bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(fd, 1024) == 0;
    int kept = errno;
    umask(old);
    if (ok)
        return fd;
    close(fd);
    errno = kept;
    return -1;
}

void channel_put(struct channel *c, enum frame_type type, uint64_t a, uint64_t b,
                 struct str payload)
{
    struct frame_head head = {(uint32_t)payload.n, type, a, b};
    buf_add(&c->out, &head, sizeof(head));
    buf_str(&c->out, payload);
}

void channel_send_now(const struct channel *c, enum frame_type type, uint64_t a)
{
    struct frame_head head = {0, type, a, 0};
    if (c->fd >= 0 && c->tls == NULL && c->out_at == 0 &&
        send(c->fd, &head, sizeof(head), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* the writer then suspects all jobs of this auditor */
}

/* drop the bytes before ${at} */
static void compact(struct buf *b, size_t *at)
{
    if (*at == b->n) {
        if (b->cap > KEEP_BYTES)
            buf_free(b);
        else
            buf_reset(b);
        *at = 0;
    } else if (*at > KEEP_BYTES) {
        memmove(b->p, b->p + *at, b->n - *at);
        b->n -= *at;
        *at = 0;
    }
}

static int flush_plain(struct channel *c)
{
    while (c->out_at < c->out.n) {
        ssize_t n = send(c->fd, c->out.p + c->out_at, c->out.n - c->out_at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 1 : -1;
        c->out_at += (size_t)n;
    }
    return 0;
}

int channel_flush(struct channel *c)
{
    if (c->fd < 0 || !buf_ok(&c->out))
        return -1;
    int left =
        c->tls == NULL ? flush_plain(c) : tls_stream_flush(c->tls, c->fd, &c->out, &c->out_at);
    if (left == 0)
        compact(&c->out, &c->out_at);
    return left;
}

static int read_plain(struct channel *c)
{
    int got = 0;
    for (;;) {
        char *to = buf_reserve(&c->in, READ_CHUNK);
        if (to == NULL)
            return -1;
        ssize_t n = recv(c->fd, to, READ_CHUNK, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? got : -1;
        if (n == 0)
            return -1;
        c->in.n += (size_t)n;
        got = 1;
        if (n < READ_CHUNK || c->in.n > FRAME_MAX_PAYLOAD)
            return got;
    }
}

/* Reads at most the size of the largest frame, so that a flood does not delay other channels. */
int channel_read(struct channel *c)
{
    compact(&c->in, &c->in_at);
    if (c->fd < 0)
        return -1;
    if (c->tls == NULL)
        return read_plain(c);
    size_t most = c->in.n < FRAME_MAX_PAYLOAD ? FRAME_MAX_PAYLOAD - c->in.n + 1 : 1;
    return tls_stream_read(c->tls, c->fd, &c->in, most);
}

int channel_next(struct channel *c, struct frame *out)
{
    size_t have = c->in.n - c->in_at;
    if (have < sizeof(out->head))
        return 0;
    memcpy(&out->head, c->in.p + c->in_at, sizeof(out->head));
    if (out->head.payload > FRAME_MAX_PAYLOAD || out->head.type == 0 ||
        out->head.type >= FRAME_TYPES)
        return -1;
    if (have - sizeof(out->head) < out->head.payload)
        return 0;
    out->payload = (struct str){c->in.p + c->in_at + sizeof(out->head), out->head.payload};
    c->in_at += sizeof(out->head) + out->head.payload;
    return 1;
}
