/*
 * What limit.c, which charges requests in shared memory, and limit_redis.c, which asks Redis,
 * share.
 */
#ifndef ASSAY_HTTP_LIMIT_INTERNAL_H
#define ASSAY_HTTP_LIMIT_INTERNAL_H

#include "core/http/limit.h"
#include "core/http/route.h"
#include "core/limits/redis_limits.h"

/* A number as text, right-aligned. The requests of a window share it. */
struct cached_number {
    uint64_t number;
    size_t from; /* its start in ${text}; 0: none yet */
    char text[24];
};

/* The window of a recent API key or token, for limiters with one window. */
#define CACHED_WINDOWS 256
struct cached_window {
    uint64_t id;
    uint32_t limiter, limit;
    uint64_t hash;
    bool unlimited; /* the window does not count it */
};

struct request_limiter {
    const struct loop *loop;
    struct redis_limits *redis; /* NULL: limits.engine is local */
    struct limiter_stats *stats;
    struct ratelimit *table;
    uint64_t token;   /* of the table's clock, taken before the loop read its own */
    uint64_t version; /* of ${limits} in ${stats} */
    struct limiters limits;
    uint64_t salts[LIMITERS_MAX];
    uint8_t route_limiter[ROUTES_MAX]; /* the limiter of each row of the route table */
    struct cached_number limit_text, reset_text;
    struct cached_window windows[CACHED_WINDOWS];
};

/*
 * limit_make_windows(l, limiter, r, keys, windows): the windows that count this request; ${keys}:
 * what they point at. The number of windows.
 */
size_t limit_make_windows(const struct request_limiter *l, unsigned limiter,
                          const struct request *r, struct limiter_key *keys,
                          struct ratelimit_window *windows);

/* limit_take(l, windows, count, r): charge the table of this node; sets r's state. True: over. */
bool limit_take(struct request_limiter *l, const struct ratelimit_window *windows, size_t count,
                struct request *r);

/*
 * limit_settle(l, limiter, r, over): what follows from a decision: exemption, dry run, log and
 * counts.
 */
enum limit_outcome limit_settle(struct request_limiter *l, unsigned limiter, struct request *r,
                                bool over);

/* limit_ask_redis(l, limiter, r, done): limit_charge with Redis. */
enum limit_outcome limit_ask_redis(struct request_limiter *l, unsigned limiter, struct request *r,
                                   request_fn *done);

#endif
