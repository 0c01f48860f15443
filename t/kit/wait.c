#include "t/kit/wait.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

char *text(const char *format, ...)
{
    va_list args;
    char *out = NULL;
    va_start(args, format);
    int size = vasprintf(&out, format, args);
    va_end(args);
    if (size < 0)
        abort();
    return out;
}

bool wait_until(condition_fn *holds, void *arg, int within_ms)
{
    int64_t deadline = now_ms() + within_ms;
    const struct timespec pause = {.tv_nsec = 5000000};
    while (!holds(arg)) {
        if (now_ms() > deadline)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}
