/*
 * One decision of Redis: the script, the command that calls it, and its answer. Pure.
 *
 * The script reads Redis' clock and the counts of all windows of a limiter, grants as many of the
 * wanted requests as fit all of them, and charges that number to all. A count is 8 bytes: end of
 * the window and number of requests. It expires with the window. If Redis' clock was set back, a
 * count whose window starts at most 2 s ahead is used, a later one is not (as in ratelimit.h).
 */
#ifndef ASSAY_LIMITS_DECISION_H
#define ASSAY_LIMITS_DECISION_H

#include "core/limits/redis_keys.h"

struct redisReply;

extern const char decision_script[];

#define DECISION_SHA 40 /* digits of the script's name */
/* EVALSHA, script, number of keys; keys; wanted; seconds and limit of each window */
#define DECISION_ARGS (4 + 3 * RATELIMIT_WINDOWS_MAX)

struct decision_answer {
    uint32_t granted;
    int64_t now_ms;                                                    /* Redis' clock */
    uint32_t used[RATELIMIT_WINDOWS_MAX], ends[RATELIMIT_WINDOWS_MAX]; /* used: before the grant */
};

/* The command's arguments, and the memory of those that are not constant. */
struct decision_command {
    const char *argv[DECISION_ARGS];
    size_t lengths[DECISION_ARGS];
    int argc;
    char keys[RATELIMIT_WINDOWS_MAX][REDIS_KEY_SIZE];
    char numbers[1 + 2 * RATELIMIT_WINDOWS_MAX][12];
};

/*
 * decision_make(keys, sha, limiter, windows, count, wanted, out): the command that asks for
 * ${wanted} requests. With more than one, at most a quarter of what is left is granted, so that one
 * worker does not take the end of a budget that others still need.
 */
void decision_make(const struct redis_keys *keys, const char sha[DECISION_SHA + 1],
                   const char *limiter, const struct ratelimit_window *windows, size_t count,
                   uint32_t wanted, struct decision_command *out);

/* decision_read(reply, count, out): false: not an answer of the script for ${count} windows. */
bool decision_read(const struct redisReply *reply, size_t count, struct decision_answer *out);

/*
 * decision_used(value, size, seconds, now_s): the requests of a count as stored, in the window of
 * ${now_s}; 0: it is of an earlier one, or damaged.
 */
uint32_t decision_used(const char *value, size_t size, uint32_t seconds, int64_t now_s);

#endif
