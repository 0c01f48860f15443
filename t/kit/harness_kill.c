/* A server of the harness that is killed with all its processes, and starts on the same port. */
#include "t/kit/harness_internal.h"

#include <poll.h>
#include <signal.h>

enum { READY_MS = 30000, END_MS = 30000, TRIES = 50, PROCESSES_MAX = 64 };

static bool has_ended(void *arg)
{
    return !process_alive(*(pid_t *)arg);
}

void server_kill(struct server *s)
{
    pid_t pids[PROCESSES_MAX];
    size_t count = server_children(s, pids, COUNT(pids));
    ck_assert_uint_le(count, COUNT(pids));
    server_signal(s, SIGKILL);
    ck_assert_int_eq(server_wait(s, END_MS), 128 + SIGKILL);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(wait_until(has_ended, &pids[i], END_MS), "a process survives its master");
}

void server_start_again(struct server *s)
{
    char *address = text("listen.0.address=%s", s->address);
    for (int tries = 0; tries < TRIES; tries++) {
        server_spawn(s, "--set", address, NULL);
        if (server_ready(s, READY_MS))
            break;
        /* the kernel gave this port to a client's own end for a moment */
        ck_assert_msg(server_wait(s, END_MS) == 2 &&
                          strstr(server_log(s), "the address is in use by "),
                      "not ready after it has ended before\n%s", server_log(s));
        poll(NULL, 0, 100);
    }
    ck_assert_msg(s->pid > 0, "its port stays in use\n%s", server_log(s));
    free(address);
}
