/*
 * Counts in Redis for a command line, which may wait: reads and resets what one caller has used.
 * In a build without Redis, redis_command_open fails.
 */
#ifndef ASSAY_LIMITS_COMMAND_H
#define ASSAY_LIMITS_COMMAND_H

#include "core/conf/conf.h"
#include "ratelimit/ratelimit.h"

#define REDIS_COMMAND_WHY 512

struct redis_command;

/*
 * redis_command_open(conf, why): connect to the primary of ${conf}, with sentinels to the one that
 * they name. NULL, and the reason in ${why}.
 */
struct redis_command *redis_command_open(const struct conf *conf, char why[REDIS_COMMAND_WHY]);
void redis_command_close(struct redis_command *c);

/* redis_command_address(c): of the primary; borrowed. */
const char *redis_command_address(const struct redis_command *c);

/*
 * redis_command_used(c, limiter, window, used, ends_s, why): what the window's key has used, and
 * the end of the window, by Redis' clock. redis_command_reset(c, limiter, window, had, why): set it
 * to zero; *had: it was not. False, and the reason in ${why}.
 */
bool redis_command_used(struct redis_command *c, const char *limiter,
                        const struct ratelimit_window *window, uint32_t *used, int64_t *ends_s,
                        char why[REDIS_COMMAND_WHY]) __attribute__((warn_unused_result));
bool redis_command_reset(struct redis_command *c, const char *limiter,
                         const struct ratelimit_window *window, bool *had,
                         char why[REDIS_COMMAND_WHY]) __attribute__((warn_unused_result));

#endif
