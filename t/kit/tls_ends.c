#include "t/kit/tls_ends.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define TIMEOUT_MS 20000 /* of a test that hangs */

struct channel_tls_key tls_key(unsigned char fill)
{
    struct channel_tls_key key;
    memset(key.bytes, fill, sizeof(key.bytes));
    return key;
}

int tls_listen(char address[64], int buffer)
{
    char why[256];
    struct sockaddr_in sa;
    socklen_t size = sizeof(sa);
    int fd = channel_tls_listen("127.0.0.1:0", why, sizeof(why));
    ck_assert_msg(fd >= 0, "%s", why);
    if (buffer > 0) { /* accepted sockets have the same */
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    }
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sa, &size), 0);
    snprintf(address, 64, "127.0.0.1:%u", ntohs(sa.sin_port));
    return fd;
}

void tls_accept(struct channel_tls_context *context, int listener, struct tls_end *out)
{
    struct pollfd ready = {listener, POLLIN, 0};
    ck_assert_int_eq(poll(&ready, 1, TIMEOUT_MS), 1);
    *out = (struct tls_end){0};
    ck_assert(channel_tls_accept(context, &out->channel, accept(listener, NULL, NULL)));
}

void tls_connect(struct channel_tls_context *context, const char *address, struct tls_end *out)
{
    char why[256];
    *out = (struct tls_end){0};
    bool begun = channel_tls_connect(context, &out->channel, address, why, sizeof(why));
    ck_assert_msg(begun, "%s", why);
}

static void note(struct tls_end *end, int result)
{
    end->ended = end->ended || result < 0;
    if (end->ended && end->why[0] == '\0')
        snprintf(end->why, sizeof(end->why), "%s", channel_tls_why(&end->channel));
}

static void flush(struct tls_end *end)
{
    if (end->ended || (channel_pending(&end->channel) == 0 && !end->blocked))
        return;
    int left = channel_flush(&end->channel);
    end->blocked = left == 1;
    note(end, left);
}

static void read_frames(struct tls_end *end)
{
    struct frame frame;
    int got = channel_read(&end->channel), next;
    while ((next = channel_next(&end->channel, &frame)) == 1) {
        if (end->on_frame != NULL)
            end->on_frame(end, &frame);
        end->frames++;
    }
    note(end, got < 0 ? got : next);
}

bool tls_turn(struct tls_end *const *ends, size_t count, int fd, int timeout_ms)
{
    struct pollfd ready[3] = {{.fd = fd, .events = POLLIN}, {.fd = -1}, {.fd = -1}};
    ck_assert_uint_le(count, 2);
    for (size_t i = 0; i < count; i++) {
        flush(ends[i]);
        ready[i + 1].fd = ends[i]->ended ? -1 : ends[i]->channel.fd;
        ready[i + 1].events = (short)(POLLIN | (ends[i]->blocked ? POLLOUT : 0));
    }
    bool none = ready[0].fd < 0 && ready[1].fd < 0 && ready[2].fd < 0;
    if (none || poll(ready, 3, timeout_ms) <= 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if ((ready[i + 1].revents & POLLOUT) != 0)
            flush(ends[i]);
        if (!ends[i]->ended && (ready[i + 1].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
            read_frames(ends[i]);
    }
    return true;
}

void tls_turn2(struct tls_end *a, struct tls_end *b)
{
    ck_assert_msg(tls_turn((struct tls_end *const[]){a, b}, 2, -1, TIMEOUT_MS),
                  "neither end was ready: \"%s\", \"%s\"", a->why, b->why);
}

void tls_end_close(struct tls_end *end)
{
    channel_close(&end->channel);
}
