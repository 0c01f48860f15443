/*
 * Leases: blocks of a window's budget that this worker took ahead from Redis, so that most requests
 * of a busy caller need no round trip. Redis has counted a block as used, so all nodes together
 * never admit more than the limit. What is unspent when the window ends is lost. Until then
 * other workers cannot use it: a caller may be refused early by at most the unspent blocks.
 *
 * A lease ends before its window does by Redis' clock: its time runs from the moment when it was
 * asked for, and is shortened by a thousandth, more than clocks of two hosts drift apart, and by 2
 * ms. Pure but for memory; one table for each worker.
 */
#ifndef ASSAY_LIMITS_LEASE_H
#define ASSAY_LIMITS_LEASE_H

#include "core/limits/decision.h"

#define LEASES_MAX 65536 /* beyond it, requests of further callers ask one by one */

struct redis_ask;
struct redis_limits;

struct lease {
    struct lease *next;
    char key[REDIS_KEY_SIZE]; /* of the first window's count */
    struct ratelimit_window windows[RATELIMIT_WINDOWS_MAX];
    size_t count;
    uint32_t left;                  /* requests that may be admitted */
    uint64_t until_ms;              /* by CLOCK_MONOTONIC */
    uint64_t asked_ms;              /* when ${asking} began */
    struct ratelimit_state state;   /* after the whole block */
    int64_t ahead_ms;               /* Redis' clock minus CLOCK_MONOTONIC */
    bool asking;                    /* a block was asked for; ${left} is 0 */
    struct redis_limits *limits;    /* if ${asking} */
    struct redis_ask *first, *last; /* requests that wait for it */
    uint32_t waiting;
};

struct leases;
struct leases *leases_new(void); /* NULL: memory is short */
void leases_free(struct leases *leases);

/* leases_get(leases, key): the lease, a new one if necessary; NULL: too many, or no memory. */
struct lease *leases_get(struct leases *leases, const char *key);

/* leases_sweep(leases, now_ms): frees some that have ended; once a turn. */
void leases_sweep(struct leases *leases, uint64_t now_ms);

/* lease_granted(lease, answer): Redis answered; sets left, until_ms, state and ahead_ms. */
void lease_granted(struct lease *lease, const struct decision_answer *answer);

/* lease_take(lease, now_ms): admit one request at ${now_ms}; false: nothing is left. */
bool lease_take(struct lease *lease, uint64_t now_ms);

#endif
