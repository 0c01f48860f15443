#include "core/master/upgrade_channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS_MAX 250 /* in a message; the kernel takes 253 */

struct message {
    char bytes[1 + SCOREBOARD_SLOTS * sizeof(pid_t)];
    _Alignas(struct cmsghdr) char more[CMSG_SPACE(
        FDS_MAX * sizeof(int))]; /* descriptors, or the sender, which is less */
    struct iovec part;
    struct msghdr head;
};

static void compose(struct message *m, enum upgrade_message_type word, const pid_t *numbers,
                    size_t count)
{
    memset(m, 0, sizeof(*m));
    m->bytes[0] = (char)word;
    if (count > 0)
        memcpy(m->bytes + 1, numbers, count * sizeof(*numbers));
    m->part = (struct iovec){m->bytes, 1 + count * sizeof(*numbers)};
    m->head = (struct msghdr){.msg_iov = &m->part, .msg_iovlen = 1};
}

static bool send_off(int fd, const struct message *m)
{
    return sendmsg(fd, &m->head, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)m->part.iov_len;
}

/* its first byte is the word; 0: the other is gone, -1 with errno */
static ssize_t receive(int fd, struct message *m, size_t room, int flags,
                       struct upgrade_message *out)
{
    memset(m, 0, sizeof(*m));
    m->part = (struct iovec){m->bytes, sizeof(m->bytes)};
    m->head = (struct msghdr){
        .msg_iov = &m->part, .msg_iovlen = 1, .msg_control = m->more, .msg_controllen = room};
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
    int kept = errno;
    close(pair[0]);
    close(pair[1]);
    pair[0] = pair[1] = -1;
    errno = kept;
    return -1;
}

bool upgrade_channel_send(int fd, enum upgrade_message_type word, const pid_t *numbers,
                          size_t count)
{
    struct message m;
    compose(&m, word, numbers, count);
    return send_off(fd, &m);
}

int upgrade_channel_receive(int fd, struct upgrade_message *out)
{
    struct message m;
    /* room for the sender and for no descriptor: what is sent in spite of that is closed by the kernel */
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

/* ---- descriptors: ASK says from which on, GIVEN how many there are in all ---- */

bool upgrade_channel_give(int fd, const int *fds, size_t count, const struct upgrade_message *heard)
{
    struct message m;
    pid_t total = (pid_t)count;
    size_t from = heard->count == 0 || heard->numbers[0] < 0 ? count : (size_t)heard->numbers[0];
    if (from >= count) {
        errno = EPROTO;
        return false;
    }
    size_t n = count - from < FDS_MAX ? count - from : FDS_MAX;
    compose(&m, MESSAGE_GIVEN, &total, 1);
    m.head.msg_control = m.more;
    m.head.msg_controllen = CMSG_SPACE(n * sizeof(*fds));
    struct cmsghdr *more = CMSG_FIRSTHDR(&m.head);
    *more = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(*fds))};
    memcpy(CMSG_DATA(more), fds + from, n * sizeof(*fds));
    return send_off(fd, &m);
}

void upgrade_channel_push(int fd, const int *fds, size_t count)
{
    struct upgrade_message from = {.count = 1};
    for (size_t i = 0; i < count; i += FDS_MAX) {
        from.numbers[0] = (pid_t)i;
        if (!upgrade_channel_give(fd, fds, count, &from))
            return; /* the pair is full: these are asked for */
    }
}

/* those of one message, behind the ones there are; 0: not all are there, -1: none came, with errno */
static int take_some(int fd, int **fds, size_t *count, int flags)
{
    struct message m;
    struct upgrade_message heard;
    ssize_t got;
    do
        got = receive(fd, &m, CMSG_SPACE(FDS_MAX * sizeof(int)), flags, &heard);
    while (got < 0 && errno == EINTR);
    const struct cmsghdr *more = got <= 0 ? NULL : CMSG_FIRSTHDR(&m.head);
    bool whole = more != NULL && more->cmsg_level == SOL_SOCKET && more->cmsg_type == SCM_RIGHTS &&
                 more->cmsg_len > CMSG_LEN(0) && m.bytes[0] == MESSAGE_GIVEN && heard.count == 1 &&
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
    return *count >= (size_t)heard.numbers[0];
}

static void drop(int **fds, size_t *count)
{
    while (*count > 0)
        close((*fds)[--*count]);
    free(*fds);
    *fds = NULL;
}

int upgrade_channel_get(int fd, int **fds, size_t *count)
{
    int all = 0;
    *fds = NULL;
    *count = 0;
    while (all == 0) {
        all = take_some(fd, fds, count, MSG_DONTWAIT);
        if (all < 0 && errno == EAGAIN)
            all = upgrade_channel_send(fd, MESSAGE_ASK, &(pid_t){(pid_t)*count}, 1)
                      ? take_some(fd, fds, count, 0)
                      : -1;
    }
    if (all > 0)
        return 0;
    int kept = errno;
    drop(fds, count);
    errno = kept;
    return -1;
}

void upgrade_channel_drain(int fd)
{
    int *fds = NULL;
    size_t count = 0;
    while (take_some(fd, &fds, &count, MSG_DONTWAIT) >= 0)
        ;
    drop(&fds, &count);
    shutdown(fd, SHUT_RDWR);
}
