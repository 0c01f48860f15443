#include "core/limits/redis_limits.h"

#include "core/limits/lease.h"
#include "core/limits/primary.h"

#include <stdlib.h>
#include <string.h>

/* A request that waits for Redis. */
struct redis_ask {
    struct pending pending;
    struct redis_limits *limits;
    struct redis_ask *next;
    const struct redis_question *question; /* gone with its waiter */
    redis_done_fn *done;
};

struct redis_limits {
    struct loop *loop;
    struct primary *primary;
    struct leases *leases;
    struct redis_ask *free_asks;
};

static struct redis_ask *ask_new(struct redis_limits *l, const struct redis_question *question,
                                 redis_done_fn *done)
{
    struct redis_ask *ask = l->free_asks;
    if (ask == NULL && (ask = malloc(sizeof(*ask))) == NULL)
        return NULL;
    l->free_asks = ask == l->free_asks ? ask->next : l->free_asks;
    *ask = (struct redis_ask){.limits = l, .question = question, .done = done};
    return ask;
}

static void ask_free(struct redis_ask *ask)
{
    ask->next = ask->limits->free_asks;
    ask->limits->free_asks = ask;
}

static void wait(struct redis_ask *ask, struct waiter *w)
{
    ask->pending.waiter = w;
    waiter_begin(w, &ask->pending);
}

/* Answers the request of ${ask}, if it was not cancelled, and frees ${ask}. */
static void end_ask(struct redis_ask *ask, const struct redis_decision *decision)
{
    struct waiter *w = ask->pending.waiter;
    struct loop *loop = ask->limits->loop;
    redis_done_fn *done = ask->done;
    const struct redis_question *question = ask->question;
    ask_free(ask);
    if (w == NULL)
        return;
    waiter_end(w);
    done(w, question, decision);
    store_read_end(loop->store);
}

/* ---- one by one ---- */

static void on_exact(void *arg, const struct decision_answer *answer)
{
    struct redis_ask *ask = arg;
    const struct redis_question *q = ask->question;
    struct redis_decision decision = {.outcome = REDIS_AWAY};
    if (answer != NULL && ask->pending.waiter != NULL) {
        decision.outcome = answer->granted > 0 ? REDIS_ADMITTED : REDIS_REFUSED;
        decision.now_ms = answer->now_ms;
        ratelimit_report(q->windows, answer->used, answer->ends, q->count, answer->granted,
                         &decision.state);
    }
    end_ask(ask, &decision);
}

static enum redis_outcome ask_one(struct redis_limits *l, const struct redis_question *q,
                                  struct waiter *w, redis_done_fn *done)
{
    struct redis_ask *ask = ask_new(l, q, done);
    if (ask == NULL)
        return REDIS_AWAY;
    if (!primary_decide(l->primary, q->limiter, q->windows, q->count, 1, on_exact, ask)) {
        ask_free(ask);
        return REDIS_AWAY;
    }
    wait(ask, w);
    return REDIS_WAITS;
}

/* ---- leases ---- */

static void fill_from_lease(const struct lease *lease, enum redis_outcome outcome, uint64_t now_ms,
                            struct redis_decision *out)
{
    *out = (struct redis_decision){outcome, lease->state, lease->ahead_ms + (int64_t)now_ms};
    out->state.remaining += lease->left;
}

static void queue_ask(struct lease *lease, struct redis_ask *ask)
{
    ask->next = NULL;
    if (lease->first == NULL)
        lease->first = ask;
    else
        lease->last->next = ask;
    lease->last = ask;
    lease->waiting++;
}

static struct redis_ask *next_ask(struct lease *lease)
{
    struct redis_ask *ask = lease->first;
    if (ask == NULL)
        return NULL;
    lease->first = ask->next;
    lease->waiting--;
    return ask;
}

static void on_block(void *arg, const struct decision_answer *answer);

/* Ask for a block. False: Redis is away. */
static bool ask_block(struct redis_limits *l, struct lease *lease, const struct redis_question *q)
{
    uint32_t wanted = lease->waiting > q->lease ? lease->waiting : q->lease;
    memcpy(lease->windows, q->windows, q->count * sizeof(*q->windows));
    lease->count = q->count;
    lease->left = 0;
    lease->asked_ms = l->loop->now_ms;
    lease->limits = l;
    lease->asking =
        primary_decide(l->primary, q->limiter, q->windows, q->count, wanted, on_block, lease);
    return lease->asking;
}

static void end_all(struct lease *lease, const struct redis_decision *decision)
{
    for (uint32_t n = lease->waiting; n > 0; n--)
        end_ask(next_ask(lease), decision);
}

/*
 * Waiting requests get the block first, even if the window has ended, because Redis charged them
 * before. If the block is too small, the rest asks again.
 */
static void serve(struct redis_limits *l, struct lease *lease)
{
    struct redis_decision decision = {.outcome = REDIS_AWAY};
    struct redis_ask *ask;
    while (lease->left > 0 && (ask = next_ask(lease)) != NULL) {
        if (ask->pending.waiter != NULL) {
            lease->left--;
            fill_from_lease(lease, REDIS_ADMITTED, l->loop->now_ms, &decision);
        }
        end_ask(ask, &decision);
    }
    while (lease->first != NULL && lease->first->pending.waiter == NULL)
        end_ask(next_ask(lease), NULL);
    if (lease->first == NULL || lease->asking || ask_block(l, lease, lease->first->question))
        return;
    end_all(lease, &(struct redis_decision){.outcome = REDIS_AWAY});
}

static void on_block(void *arg, const struct decision_answer *answer)
{
    struct lease *lease = arg;
    struct redis_limits *l = lease->limits;
    struct redis_decision decision = {.outcome = REDIS_AWAY};
    lease->asking = false;
    if (answer != NULL) {
        lease_granted(lease, answer);
        fill_from_lease(lease, REDIS_REFUSED, l->loop->now_ms, &decision);
    }
    if (answer != NULL && answer->granted > 0)
        serve(l, lease);
    else
        end_all(lease, &decision);
}

static enum redis_outcome ask_lease(struct redis_limits *l, struct lease *lease,
                                    const struct redis_question *q, struct waiter *w,
                                    redis_done_fn *done, struct redis_decision *out)
{
    if (lease_take(lease, l->loop->now_ms)) {
        fill_from_lease(lease, REDIS_ADMITTED, l->loop->now_ms, out);
        return REDIS_ADMITTED;
    }
    if (!lease->asking && !ask_block(l, lease, q))
        return REDIS_AWAY;
    struct redis_ask *ask = ask_new(l, q, done);
    if (ask == NULL)
        return REDIS_AWAY;
    queue_ask(lease, ask);
    wait(ask, w);
    return REDIS_WAITS;
}

enum redis_outcome redis_limits_ask(struct redis_limits *l, const struct redis_question *q,
                                    struct waiter *w, redis_done_fn *done,
                                    struct redis_decision *out)
{
    char key[REDIS_KEY_SIZE];
    struct lease *lease = NULL;
    if (q->lease > 1) {
        redis_keys_of(primary_keys(l->primary), q->limiter, &q->windows[0], key);
        lease = leases_get(l->leases, key);
    }
    out->outcome = lease != NULL ? ask_lease(l, lease, q, w, done, out) : ask_one(l, q, w, done);
    return out->outcome;
}

/* ---- once a turn ---- */

void redis_limits_flush(struct redis_limits *l)
{
    primary_flush(l->primary);
}

void redis_limits_tick(struct redis_limits *l)
{
    primary_tick(l->primary);
    leases_sweep(l->leases, l->loop->now_ms);
}

int redis_limits_wake_ms(const struct redis_limits *l, int most)
{
    return primary_wake_ms(l->primary, most);
}

bool redis_limits_settled(const struct redis_limits *l)
{
    return primary_settled(l->primary);
}

struct redis_limits *redis_limits_new(struct loop *loop)
{
    struct redis_limits *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    l->loop = loop;
    l->primary = primary_new(loop);
    l->leases = leases_new();
    if (l->primary != NULL && l->leases != NULL)
        return l;
    redis_limits_free(l);
    return NULL;
}

void redis_limits_free(struct redis_limits *l)
{
    if (l == NULL)
        return;
    primary_free(l->primary); /* ends what waits */
    leases_free(l->leases);
    while (l->free_asks != NULL) {
        struct redis_ask *ask = l->free_asks;
        l->free_asks = ask->next;
        free(ask);
    }
    free(l);
}
