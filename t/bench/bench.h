/* What the programs of the benchmarks share: the addresses of the pages, so that a server and the bare store are given the same ones; and clocks. */
#ifndef ASSAY_BENCH_H
#define ASSAY_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * bench_page(n): the ${n}-th page's number, of eight digits. They are scattered, as addresses come in life: in order, an index of URLs would only ever grow
 * at its end. No number comes twice within 100 million.
 */
static inline unsigned bench_page(unsigned n)
{
    return (unsigned)((uint64_t)n * 61803399 % 100000000);
}

/* bench_clock_ms(clock): milliseconds. bench_is_late(until): a store_list_query's pause, when CLOCK_MONOTONIC has come to that double. */
static inline double bench_clock_ms(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static inline bool bench_is_late(void *until)
{
    return bench_clock_ms(CLOCK_MONOTONIC) >= *(const double *)until;
}

#endif
