/* What the programs of the benchmarks share: the addresses of the pages, so that a server and the bare store are given the same ones. */
#ifndef ASSAY_BENCH_H
#define ASSAY_BENCH_H

#include <stdint.h>

/*
 * bench_page(n): the ${n}-th page's number, of eight digits. They are scattered, as addresses come in life: in order, an index of URLs would only ever grow
 * at its end. No number comes twice within 100 million.
 */
static inline unsigned bench_page(unsigned n)
{
    return (unsigned)((uint64_t)n * 61803399 % 100000000);
}

#endif
