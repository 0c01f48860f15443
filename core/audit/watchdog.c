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

#define TICK_US 500000 /* CPU time */
/* 1,024 pages at most per auditor, with two connections each and some spare */
#define SOCKETS_MAX 4096

static struct {
    volatile int socket; /* -1: unused */
    volatile bool *cut;
    uint64_t received;
} watched[SOCKETS_MAX];

static volatile unsigned call_count;   /* calls so far */
static volatile unsigned current_call; /* number of the current call; 0: none */
static unsigned call_at_last_tick;
static unsigned ticks;         /* for which that call has lasted */
static int closed_socket = -1; /* a socket whose peer is closed */

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

/* Cut the connection that received the most: those that nobody reads are full. */
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
    /* the descriptor stays libcurl's, which reads end of file */
    dup2(closed_socket, watched[busiest].socket);
    watched[busiest].socket = -1;
}

/* Called after each TICK_US of CPU time. Makes system calls only. */
static void on_tick(int number)
{
    int kept = errno;
    (void)number;
    if (syscall(SYS_gettid) != getpid()) /* a resolver thread: the table may be changing */
        return;
    ticks = current_call != 0 && current_call == call_at_last_tick ? ticks + 1 : 0;
    call_at_last_tick = current_call;
    if (ticks == 1)
        note_received();
    else if (ticks > 1)
        cut_busiest();
    errno = kept;
}

bool watchdog_start(void)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, TICK_US}, {0, TICK_US}};
    int ends[2];
    if (closed_socket < 0) {
        for (unsigned i = 0; i < SOCKETS_MAX; i++)
            watched[i].socket = -1;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
            return false;
        close(ends[1]);
        closed_socket = ends[0];
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
    call_count = call_count + 1 == 0 ? 1 : call_count + 1;
    current_call = call_count;
}

void watchdog_leave(void)
{
    current_call = 0;
}

void watchdog_progress(void)
{
    if (current_call != 0)
        watchdog_enter();
}

void watchdog_add(int socket, volatile bool *cut)
{
    for (unsigned i = 0; i < SOCKETS_MAX; i++) /* a reused descriptor was closed */
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
