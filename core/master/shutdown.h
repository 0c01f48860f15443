/* How and why the server ends. */
#ifndef ASSAY_MASTER_SHUTDOWN_H
#define ASSAY_MASTER_SHUTDOWN_H

#include <stdbool.h>
#include <stdint.h>

struct shutdown {
    bool stopping;
    bool replaced; /* a new master is the server; this one only drains */
    int exit_status;
    uint64_t deadline_ms; /* of the drain */
    char reason[64];      /* for the log's last line */
};

/*
 * shutdown_set_reason(s, format, ...): replaces an earlier one.
 * shutdown_begin(s, exit_status, drain_ms): stop, and let what was begun take that long.
 */
void shutdown_set_reason(struct shutdown *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void shutdown_begin(struct shutdown *s, int exit_status, uint64_t drain_ms);

#endif
