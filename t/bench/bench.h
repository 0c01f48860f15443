/*
 * What the programs of the benchmarks share: the addresses of the pages, so that a server and the
 * bare store are given the same ones; and clocks.
 */
#ifndef ASSAY_BENCH_H
#define ASSAY_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * bench_page(n): the ${n}-th page's number, of eight digits. They are scattered, as addresses come
 * in life: in order, an index of URLs would only ever grow at its end. No number comes twice within
 * 100 million.
 */
static inline unsigned bench_page(unsigned n)
{
    return (unsigned)((uint64_t)n * 61803399 % 100000000);
}

/* bench_clock_ms(clock): milliseconds. */
static inline double bench_clock_ms(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/*
 * A list, measured: milliseconds by the clock (0) and of the processor (1). bench_begin(m): it
 * begins. bench_asked(m): its query's pause, which never says true, and notes the longest time
 * between two such questions. bench_end(m): it has ended.
 */
struct bench_measure {
    double began[2], asked[2], longest[2], all[2];
};

static inline void bench_now(double now[2])
{
    now[0] = bench_clock_ms(CLOCK_MONOTONIC);
    now[1] = bench_clock_ms(CLOCK_PROCESS_CPUTIME_ID);
}

static inline void bench_begin(struct bench_measure *m)
{
    *m = (struct bench_measure){.longest = {0}};
    bench_now(m->began);
    bench_now(m->asked);
}

static inline bool bench_asked(void *measure)
{
    struct bench_measure *m = measure;
    double now[2];
    bench_now(now);
    for (int i = 0; i < 2; i++) {
        double took = now[i] - m->asked[i];
        m->longest[i] = took > m->longest[i] ? took : m->longest[i];
        m->asked[i] = now[i];
    }
    return false;
}

static inline void bench_end(struct bench_measure *m)
{
    bench_asked(m);
    for (int i = 0; i < 2; i++)
        m->all[i] = m->asked[i] - m->began[i];
}

#endif
