#include "core/master/systemd.h"

#include "core/master/listeners.h"
#include "core/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static bool muted;

void systemd_mute(bool mute)
{
    muted = mute;
}

bool systemd_is_muted(void)
{
    return muted;
}

void systemd_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (muted || path == NULL || (path[0] != '/' && path[0] != '@') ||
        strlen(path) >= sizeof(sa.sun_path))
        return;
    memcpy(sa.sun_path, path, strlen(path));
    if (path[0] == '@')
        sa.sun_path[0] = '\0';
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sa, len) < 0)
        log_warn("systemd: cannot send %s: %s", state, strerror(errno));
    if (fd >= 0)
        close(fd);
}

void systemd_reloading(uint64_t now_ms)
{
    char state[64];
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "000", now_ms);
    systemd_notify(state);
}

/* 0: it is not a number */
static uint64_t number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    errno = 0;
    uint64_t n = text == NULL || text[0] < '0' || text[0] > '9' ? 0 : strtoull(text, &end, 10);
    return n != 0 && errno == 0 && *end == '\0' ? n : 0;
}

uint64_t systemd_watchdog_ms(pid_t pid)
{
    uint64_t whose = number_of("WATCHDOG_PID");
    return whose != 0 && whose != (uint64_t)pid ? 0 : number_of("WATCHDOG_USEC") / 1000;
}

/* ---- socket activation ---- */

#define FIRST_FD 3

static bool is_listening(int fd)
{
    int type = 0, listens = 0;
    socklen_t size = sizeof(type);
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

/* also makes it close-on-exec and non-blocking */
static bool take(int fd, struct inherited_listener *out)
{
    *out = (struct inherited_listener){
        .fds = malloc(sizeof(*out->fds)), .count = 1, .listening = 1, .shared = true};
    if (out->fds == NULL)
        return false;
    out->fds[0] = fd;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    listener_set_options(fd);
    return true;
}

bool systemd_listeners(struct inherited_listener **out, size_t *count)
{
    uint64_t fds = number_of("LISTEN_PID") == (uint64_t)getpid() ? number_of("LISTEN_FDS") : 0;
    bool ok = true;
    *out = NULL;
    *count = 0;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (fds == 0 || fds > INT16_MAX)
        return true;
    *out = calloc(fds, sizeof(**out));
    for (int fd = FIRST_FD; ok && *out != NULL && fd < FIRST_FD + (int)fds; fd++)
        if (is_listening(fd))
            ok = take(fd, &(*out)[(*count)++]);
        else {
            log_warn("LISTEN_FDS: descriptor %d is not a listening stream socket: closed it", fd);
            close(fd);
        }
    return ok && *out != NULL;
}
