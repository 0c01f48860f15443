/* What the parts of run_decide share. */
#ifndef ASSAY_BENCH_DECIDE_INTERNAL_H
#define ASSAY_BENCH_DECIDE_INTERNAL_H

#include "ratelimit/ratelimit.h"

#define NOW 1800000000
#define PAIRS_MAX 99

extern struct ratelimit *rl;
extern uint64_t token; /* of the clock of the table */
extern unsigned pairs;

/* A key: the 16 bytes of an address. */
struct key {
    uint64_t network, host;
};

/* Nanoseconds of a decision and of its peer, for each pair. */
struct pairs {
    double ours[PAIRS_MAX], peer[PAIRS_MAX];
};

double now_ns(void);

/* row(what, peer, p, target): prints a row. A ratio above ${target} fails the program. */
void row(const char *what, const char *peer, struct pairs *p, double target);

/* bench_hot_key(dir): the part "hot". */
void bench_hot_key(const char *dir);

#endif
