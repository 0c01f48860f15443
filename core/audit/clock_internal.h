/* The clock of deadlines within the room. */
#ifndef ASSAY_CLOCK_INTERNAL_H
#define ASSAY_CLOCK_INTERNAL_H

#include <stdint.h>
#include <time.h>

static inline int64_t monotonic_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#endif
