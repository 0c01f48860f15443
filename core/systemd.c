#include "systemd.h"

#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void systemd_tell(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(sa.sun_path))
        return;
    memcpy(sa.sun_path, path, strlen(path));
    if (path[0] == '@')
        sa.sun_path[0] = '\0';
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sa, len) < 0)
        log_warn("systemd was not told %s: %s", state, strerror(errno));
    if (fd >= 0)
        close(fd);
}

void systemd_reloading(uint64_t now_ms)
{
    char state[64];
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "000", now_ms);
    systemd_tell(state);
}

/* a number of the environment; 0 where it is none */
static uint64_t number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    errno = 0;
    uint64_t n = text == NULL || text[0] < '0' || text[0] > '9' ? 0 : strtoull(text, &end, 10);
    return n != 0 && errno == 0 && *end == '\0' ? n : 0;
}

uint64_t systemd_watchdog_ms(void)
{
    uint64_t whose = number_of("WATCHDOG_PID");
    return whose != 0 && whose != (uint64_t)getpid() ? 0 : number_of("WATCHDOG_USEC") / 1000;
}
