#include "config.h"

#include "core/audit/watchdog_internal.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define SLICE_US 500000 /* of the processor's time */
#define SOCKETS_MAX 4096 /* of the pages that one auditor fetches at most, 1,024, two each and more */

static struct {
    volatile int socket; /* -1: none */
    volatile bool *cut;
    uint64_t received;
} watched[SOCKETS_MAX];

static volatile unsigned calls, inside; /* all so far; the one we are in, 0: none */
static unsigned seen, slices;           /* the call of the last slice, and how many it has lasted */
static int dead = -1;                   /* a socket whose other end is closed */

static uint64_t received(int socket)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof(info);
    return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 ? info.tcpi_bytes_received : 0;
}

static void note_received(void)
{
    for (unsigned i = 0; i < SOCKETS_MAX; i++)
        if (watched[i].socket >= 0)
            watched[i].received = received(watched[i].socket);
}

/* The connection that more came on than on any other: those that nobody reads are full by now. */
static void cut_busiest(void)
{
    unsigned busiest = SOCKETS_MAX;
    uint64_t most = 0;
    for (unsigned i = 0; i < SOCKETS_MAX; i++) {
        uint64_t now = watched[i].socket < 0 ? 0 : received(watched[i].socket);
        uint64_t more = now > watched[i].received ? now - watched[i].received : 0;
        if (more > most) {
            most = more;
            busiest = i;
        }
    }
    if (busiest == SOCKETS_MAX)
        return;
    *watched[busiest].cut = true;
    dup2(dead, watched[busiest].socket); /* the number stays libcurl's, which finds an end there */
    watched[busiest].socket = -1;
}

/* Every slice of the processor's time. Calls nothing but system calls. */
static void on_slice(int number)
{
    int kept = errno;
    (void)number;
    if (syscall(SYS_gettid) != getpid()) /* a resolver's thread: what is watched may be changing under it */
        return;
    slices = inside != 0 && inside == seen ? slices + 1 : 0;
    seen = inside;
    if (slices == 1)
        note_received();
    else if (slices > 1)
        cut_busiest();
    errno = kept;
}

bool watchdog_start(void)
{
    struct sigaction action = {.sa_handler = on_slice, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, SLICE_US}, {0, SLICE_US}};
    int ends[2];
    if (dead < 0) {
        for (unsigned i = 0; i < SOCKETS_MAX; i++)
            watched[i].socket = -1;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
            return false;
        close(ends[1]);
        dead = ends[0];
    }
    sigemptyset(&action.sa_mask);
    return sigaction(SIGPROF, &action, NULL) == 0 && setitimer(ITIMER_PROF, &every, NULL) == 0;
}

void watchdog_stop(void)
{
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {0, 0}}, NULL);
}

void watchdog_enter(void)
{
    calls = calls + 1 == 0 ? 1 : calls + 1;
    inside = calls;
}

void watchdog_leave(void)
{
    inside = 0;
}

void watchdog_step(void)
{
    if (inside != 0)
        watchdog_enter();
}

void watchdog_add(int socket, volatile bool *cut)
{
    for (unsigned i = 0; i < SOCKETS_MAX; i++) /* whose number it was has closed it */
        if (watched[i].socket == socket)
            watched[i].socket = -1;
    for (unsigned i = 0; socket >= 0 && i < SOCKETS_MAX; i++) {
        if (watched[i].socket >= 0)
            continue;
        watched[i].cut = cut;
        watched[i].received = 0;
        watched[i].socket = socket;
        return;
    }
}

void watchdog_remove(const volatile bool *cut)
{
    for (unsigned i = 0; i < SOCKETS_MAX; i++)
        if (watched[i].socket >= 0 && watched[i].cut == cut)
            watched[i].socket = -1;
}
