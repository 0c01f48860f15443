/*
 * Decisions of Redis on requests, for the pipeline. On a worker's loop, one per worker.
 *
 * A question is one request and the windows that it must fit. Redis charges it to all of them or to
 * none. With a lease, this worker takes several requests ahead (lease.h) and answers further ones
 * of the same caller itself.
 */
#ifndef ASSAY_LIMITS_REDIS_LIMITS_H
#define ASSAY_LIMITS_REDIS_LIMITS_H

#include "core/async/waiter.h"
#include "ratelimit/ratelimit.h"

struct redis_limits;

/*
 * redis_limits_new(loop): begin to connect to the Redis of the loop's configuration. NULL: it
 * failed, and the log says why; also in a build without Redis.
 */
struct redis_limits *redis_limits_new(struct loop *loop);
void redis_limits_free(struct redis_limits *l);

/* redis_limits_settled(l): it is connected, or the first attempt failed. */
bool redis_limits_settled(const struct redis_limits *l);

/*
 * redis_limits_flush(l): send what was asked in this turn; once a turn, at its end.
 * redis_limits_tick(l): end overdue decisions, connect again; once a turn.
 * redis_limits_wake_ms(l, most): how long the loop may sleep, at most ${most}.
 */
void redis_limits_flush(struct redis_limits *l);
void redis_limits_tick(struct redis_limits *l);
int redis_limits_wake_ms(const struct redis_limits *l, int most);

struct redis_question {
    const char *limiter;
    const struct ratelimit_window *windows; /* with their keys */
    size_t count;
    uint32_t lease; /* how many to take ahead; 0 or 1: none. All windows have the same key */
};

enum redis_outcome {
    REDIS_ADMITTED,
    REDIS_REFUSED,
    REDIS_AWAY, /* Redis does not answer; nothing else is known */
    REDIS_WAITS /* the callback gets another one */
};

struct redis_decision {
    enum redis_outcome outcome;
    struct ratelimit_state state; /* if admitted or refused; near is 0 */
    int64_t now_ms;               /* Redis' clock, in ms since the epoch */
};

/*
 * redis_limits_ask(l, question, w, done, out): *out is the decision, unless its outcome is
 * REDIS_WAITS; then ${done} gets it on the loop, unless ${w} is cancelled first. ${question} and
 * what it points at live as long as ${w} waits.
 */
typedef void redis_done_fn(struct waiter *w, const struct redis_question *question,
                           const struct redis_decision *decision);
enum redis_outcome redis_limits_ask(struct redis_limits *l, const struct redis_question *question,
                                    struct waiter *w, redis_done_fn *done,
                                    struct redis_decision *out) __attribute__((warn_unused_result));

#endif
