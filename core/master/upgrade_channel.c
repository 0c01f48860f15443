#include "core/master/upgrade_channel.h"

#include "core/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS_MAX 250 /* in a message; the kernel takes 253 */

struct packet {
    char bytes[1 + SCOREBOARD_SLOTS * sizeof(pid_t)];
    /* descriptors, or the sender */
    _Alignas(struct cmsghdr) char more[CMSG_SPACE(FDS_MAX * sizeof(int))];
    struct iovec part;
    struct msghdr head;
};

static void compose(struct packet *m, enum upgrade_message_type type, const pid_t *numbers,
                    size_t count)
{
    memset(m, 0, sizeof(*m));
    m->bytes[0] = (char)type;
    if (count > 0)
        memcpy(m->bytes + 1, numbers, count * sizeof(*numbers));
    m->part = (struct iovec){m->bytes, 1 + count * sizeof(*numbers)};
    m->head = (struct msghdr){.msg_iov = &m->part, .msg_iovlen = 1};
}

static bool send_message(int fd, const struct packet *m)
{
    return sendmsg(fd, &m->head, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)m->part.iov_len;
}

/* 0: the other master is gone, -1 with errno */
static ssize_t receive(int fd, struct packet *m, size_t capacity, int flags,
                       struct upgrade_message *out)
{
    memset(m, 0, sizeof(*m));
    m->part = (struct iovec){m->bytes, sizeof(m->bytes)};
    m->head = (struct msghdr){
        .msg_iov = &m->part, .msg_iovlen = 1, .msg_control = m->more, .msg_controllen = capacity};
    ssize_t got = recvmsg(fd, &m->head, flags | MSG_CMSG_CLOEXEC);
    out->count = got < 1 ? 0 : (size_t)(got - 1) / sizeof(out->numbers[0]);
    memcpy(out->numbers, m->bytes + 1, out->count * sizeof(out->numbers[0]));
    out->from = 0;
    return got;
}

int upgrade_channel_pair(int pair[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    if (setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) == 0)
        return 0;
    int error = errno;
    close(pair[0]);
    close(pair[1]);
    pair[0] = pair[1] = -1;
    errno = error;
    return -1;
}

bool upgrade_channel_send(int fd, enum upgrade_message_type type, const pid_t *numbers,
                          size_t count)
{
    struct packet m;
    compose(&m, type, numbers, count);
    return send_message(fd, &m);
}

void upgrade_send(int fd, enum upgrade_message_type type, const pid_t *pids, size_t count)
{
    if (!upgrade_channel_send(fd, type, pids, count))
        log_debug("upgrade: the other master does not listen: %s", strerror(errno));
}

void upgrade_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int upgrade_channel_receive(int fd, struct upgrade_message *out)
{
    struct packet m;
    /* space for the sender alone: the kernel closes descriptors that are sent */
    ssize_t got = receive(fd, &m, CMSG_SPACE(sizeof(struct ucred)), MSG_DONTWAIT, out);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    const struct cmsghdr *more = CMSG_FIRSTHDR(&m.head);
    if (more != NULL && more->cmsg_level == SOL_SOCKET && more->cmsg_type == SCM_CREDENTIALS) {
        struct ucred sender;
        memcpy(&sender, CMSG_DATA(more), sizeof(sender));
        out->from = sender.pid;
    }
    return m.bytes[0];
}

/* ---- descriptors ---- */

bool upgrade_channel_send_fds(int fd, const int *fds, size_t count,
                              const struct upgrade_message *message)
{
    struct packet m;
    pid_t total = (pid_t)count;
    size_t from =
        message->count == 0 || message->numbers[0] < 0 ? count : (size_t)message->numbers[0];
    if (from >= count) {
        errno = EPROTO;
        return false;
    }
    size_t n = count - from < FDS_MAX ? count - from : FDS_MAX;
    compose(&m, MESSAGE_FDS, &total, 1);
    m.head.msg_control = m.more;
    m.head.msg_controllen = CMSG_SPACE(n * sizeof(*fds));
    struct cmsghdr *more = CMSG_FIRSTHDR(&m.head);
    *more = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(*fds))};
    memcpy(CMSG_DATA(more), fds + from, n * sizeof(*fds));
    return send_message(fd, &m);
}

void upgrade_channel_preload_fds(int fd, const int *fds, size_t count)
{
    struct upgrade_message from = {.count = 1};
    for (size_t i = 0; i < count; i += FDS_MAX) {
        from.numbers[0] = (pid_t)i;
        if (!upgrade_channel_send_fds(fd, fds, count, &from))
            return; /* the pair is full: the new master asks for the rest */
    }
}

/* append those of one message. 1: all are there; 0: more follow; -1 with errno */
static int receive_some_fds(int fd, int **fds, size_t *count, int flags)
{
    struct packet m;
    struct upgrade_message message;
    ssize_t got;
    do
        got = receive(fd, &m, CMSG_SPACE(FDS_MAX * sizeof(int)), flags, &message);
    while (got < 0 && errno == EINTR);
    const struct cmsghdr *more = got <= 0 ? NULL : CMSG_FIRSTHDR(&m.head);
    bool whole = more != NULL && more->cmsg_level == SOL_SOCKET && more->cmsg_type == SCM_RIGHTS &&
                 more->cmsg_len > CMSG_LEN(0) && m.bytes[0] == MESSAGE_FDS && message.count == 1 &&
                 (m.head.msg_flags & MSG_CTRUNC) == 0;
    if (!whole) {
        errno = got == 0 || (got < 0 && errno == ECONNRESET) ? EPIPE : got < 0 ? errno : EPROTO;
        return -1;
    }
    size_t n = (more->cmsg_len - CMSG_LEN(0)) / sizeof(**fds);
    int *all = realloc(*fds, (*count + n) * sizeof(*all));
    if (all == NULL)
        return -1;
    memcpy(all + *count, CMSG_DATA(more), n * sizeof(*all));
    *fds = all;
    *count += n;
    return *count >= (size_t)message.numbers[0];
}

static void close_fds(int **fds, size_t *count)
{
    while (*count > 0)
        close((*fds)[--*count]);
    free(*fds);
    *fds = NULL;
}

int upgrade_channel_receive_fds(int fd, int **fds, size_t *count)
{
    int all = 0;
    *fds = NULL;
    *count = 0;
    while (all == 0) {
        all = receive_some_fds(fd, fds, count, MSG_DONTWAIT);
        if (all < 0 && errno == EAGAIN)
            all = upgrade_channel_send(fd, MESSAGE_FDS_WANTED, &(pid_t){(pid_t)*count}, 1)
                      ? receive_some_fds(fd, fds, count, 0)
                      : -1;
    }
    if (all > 0)
        return 0;
    int error = errno;
    close_fds(fds, count);
    errno = error;
    return -1;
}

void upgrade_channel_revoke_fds(int fd)
{
    int *fds = NULL;
    size_t count = 0;
    while (receive_some_fds(fd, &fds, &count, MSG_DONTWAIT) >= 0)
        ;
    close_fds(&fds, &count);
    shutdown(fd, SHUT_RDWR);
}
