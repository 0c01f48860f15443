/*
 * Limits of requests with limits.engine: redis: the question to Redis, and the fallback when Redis
 * does not answer.
 */
#include "core/http/limit_internal.h"

#include "core/conn/connection.h"
#include "core/http/http.h"
#include "core/limits/fallback.h"
#include "core/shm/limiter_stats.h"

/* In the request's memory. */
struct redis_charge {
    struct redis_question question; /* the first member: charge_of */
    struct limiter_key keys[LIMITER_WINDOWS_MAX];
    struct ratelimit_window windows[LIMITER_WINDOWS_MAX];
    char limiter[LIMITER_NAME_MAX + 1];
    request_fn *done;
};

/* A request outside the pipeline (library_errors.c) leaves its connection to libh2o. */
static bool in_pipeline(const struct request *r)
{
    return r->wait.conn->request == r;
}

static struct redis_charge *charge_of(const struct redis_question *question)
{
    return (struct redis_charge *)(uintptr_t)question;
}

/* ---- without Redis ---- */

/* Without headers: nothing is known of the counts. */
static enum limit_outcome refuse(struct request_limiter *l, const struct limiter_row *row,
                                 struct request *r)
{
    bool exempt = limiters_exempt(&l->limits, &r->client_ip);
    limiter_stats_count(l->stats, l->loop->process->index, row->counter,
                        exempt         ? COUNT_ADMITTED
                        : row->dry_run ? COUNT_DRY_RUN_REFUSED
                                       : COUNT_REFUSED);
    r->limit.applies = false;
    r->limit.unavailable = !exempt && !row->dry_run;
    return r->limit.unavailable ? LIMIT_REFUSED : LIMIT_ADMITTED;
}

static enum limit_outcome admit(struct request_limiter *l, const struct limiter_row *row,
                                struct request *r)
{
    limiter_stats_count(l->stats, l->loop->process->index, row->counter, COUNT_ADMITTED);
    r->limit.applies = false;
    return LIMIT_ADMITTED;
}

/* This node's table with its part of the limit. */
static enum limit_outcome decide_here(struct request_limiter *l, unsigned limiter,
                                      struct redis_charge *c, struct request *r)
{
    const uint64_t nodes = fallback_nodes(l->loop->conf, &l->loop->process->scoreboard->cluster);
    for (size_t i = 0; i < c->question.count; i++)
        c->windows[i].limit = fallback_limit(c->windows[i].limit, nodes);
    return limit_settle(l, limiter, r, limit_take(l, c->windows, c->question.count, r));
}

static enum limit_outcome fall_back(struct request_limiter *l, unsigned limiter,
                                    struct redis_charge *c, struct request *r)
{
    const struct limiter_row *row = &l->limits.rows[limiter];
    limiter_stats_count(l->stats, l->loop->process->index, row->counter, COUNT_FALLBACK);
    switch ((enum limiter_fallback)row->fallback) {
    case FALLBACK_REFUSE:
        return refuse(l, row, r);
    case FALLBACK_ADMIT:
        return admit(l, row, r);
    default:
        return decide_here(l, limiter, c, r);
    }
}

/* ---- with Redis ---- */

/* The limiter's number may have changed while the request waited. */
static enum limit_outcome conclude(struct request_limiter *l, struct redis_charge *c,
                                   struct request *r, const struct redis_decision *decision)
{
    unsigned limiter = limiters_find(&l->limits, c->limiter);
    r->limit.applies = limiter != LIMITER_NONE;
    if (limiter == LIMITER_NONE) /* a reload removed it */
        return LIMIT_ADMITTED;
    r->limit.limiter = limiter;
    if (decision->outcome == REDIS_AWAY)
        return fall_back(l, limiter, c, r);
    r->limit.state = decision->state;
    r->limit.ahead_ms = decision->now_ms - r->now_ms;
    return limit_settle(l, limiter, r, decision->outcome == REDIS_REFUSED);
}

static void on_decision(struct waiter *w, const struct redis_question *question,
                        const struct redis_decision *decision)
{
    struct request *r = request_of(w);
    struct redis_charge *c = charge_of(question);
    if (in_pipeline(r))
        conn_unwatch(w->conn);
    (void)conclude(r->http->limiter, c, r, decision); /* limit_admits tells it to ${done} */
    c->done(r);
}

enum limit_outcome limit_ask_redis(struct request_limiter *l, unsigned limiter, struct request *r,
                                   request_fn *done)
{
    const struct limiter_row *row = &l->limits.rows[limiter];
    struct redis_charge *c = request_alloc(r, sizeof(*c));
    struct redis_decision decision;
    c->question = (struct redis_question){
        .limiter = c->limiter,
        .windows = c->windows,
        .count = limit_make_windows(l, limiter, r, c->keys, c->windows),
        .lease = row->lease,
    };
    if (c->question.count == 0)
        return LIMIT_ADMITTED;
    memcpy(c->limiter, row->name, sizeof(c->limiter));
    c->done = done;
    if (redis_limits_ask(l->redis, &c->question, &r->wait, on_decision, &decision) != REDIS_WAITS)
        return conclude(l, c, r, &decision);
    if (in_pipeline(r))
        conn_watch(r->wait.conn);
    return LIMIT_WAITS;
}
