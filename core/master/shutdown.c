#include "core/master/shutdown.h"

#include "core/shm/scoreboard.h"

#include <stdarg.h>
#include <stdio.h>

void shutdown_set_reason(struct shutdown *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->reason, sizeof(s->reason), format, args);
    va_end(args);
}

void shutdown_begin(struct shutdown *s, int exit_status, uint64_t drain_ms)
{
    s->stopping = true;
    s->exit_status = exit_status;
    s->deadline_ms = clock_mono_ms() + drain_ms;
}
