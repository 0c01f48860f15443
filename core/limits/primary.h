/*
 * The Redis that counts: finds it, keeps a connection to it, and sends decisions. On a worker's
 * loop, one per worker.
 *
 * After connecting, the worker checks that Redis is a primary, that its maxmemory-policy is
 * noeviction, and that the nodes that used it before have the same key file. Redis answers
 * decisions in the order in which they were sent. A decision without an answer within
 * limits.redis.timeout after the flush fails. Its late answer is dropped, and no decision is sent
 * before that answer. A decision that the socket did not accept in that time is never sent. After
 * PRIMARY_ANSWER_MS without an answer, and after an error, the worker connects again; with
 * sentinels, to the address that they name then.
 */
#ifndef ASSAY_LIMITS_PRIMARY_H
#define ASSAY_LIMITS_PRIMARY_H

#include "core/limits/decision.h"
#include "core/loop/loop.h"

#define PRIMARY_ANSWER_MS 1000 /* then the connection is closed */
#define PRIMARY_RETRY_MS 200   /* between two attempts to connect */

struct primary;

/* primary_new(loop): begin to connect. NULL: it failed, and the log says why. */
struct primary *primary_new(struct loop *loop);
void primary_free(struct primary *p);

/*
 * primary_settled(p): it is connected, or the first attempt failed, or PRIMARY_ANSWER_MS have
 * passed.
 */
bool primary_settled(const struct primary *p);

/*
 * primary_flush(p): send what was asked in this turn; the last of a turn. primary_tick(p): end
 * decisions that were overdue before this turn, and connect again; once a turn, after the events.
 * primary_wake_ms(p, most): how long the loop may sleep after a flush.
 */
void primary_flush(struct primary *p);
void primary_tick(struct primary *p);
int primary_wake_ms(const struct primary *p, int most);

/*
 * primary_decide(p, limiter, windows, count, wanted, done, arg): ask for ${wanted} requests.
 * ${done} is called once on the loop, after this returned; ${answer} NULL: Redis did not answer.
 * False: Redis is away; ${done} is not called.
 */
typedef void primary_done_fn(void *arg, const struct decision_answer *answer);
bool primary_decide(struct primary *p, const char *limiter, const struct ratelimit_window *windows,
                    size_t count, uint32_t wanted, primary_done_fn *done, void *arg)
    __attribute__((warn_unused_result));

/* primary_keys(p): borrowed. */
const struct redis_keys *primary_keys(const struct primary *p);

#endif
