#include "t/kit/wait.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

char *text_va(const char *format, va_list args)
{
    char *out = NULL;
    if (vasprintf(&out, format, args) < 0)
        abort();
    return out;
}

char *text(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *out = text_va(format, args);
    va_end(args);
    return out;
}

pid_t fork_child(void)
{
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(0);
    }
    return pid;
}

bool wait_until(condition_fn *holds, void *arg, int within_ms)
{
    int64_t deadline = now_ms() + within_ms;
    struct timespec pause = {.tv_nsec = 1000000};
    while (!holds(arg)) {
        if (now_ms() > deadline)
            return false;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 16000000)
            pause.tv_nsec *= 2;
    }
    return true;
}
