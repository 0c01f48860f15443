/*
 * A build without hiredis. The configuration refuses limits.engine: redis, so a correct program
 * calls none of these functions.
 */
#include "core/limits/redis_limits.h"

#include "core/base/log.h"
#include "core/limits/command.h"

#include <stdio.h>

struct redis_limits *redis_limits_new(struct loop *loop)
{
    (void)loop;
    log_error("the worker cannot start: this program is built without Redis");
    return NULL;
}

void redis_limits_free(struct redis_limits *l)
{
    (void)l;
}

bool redis_limits_settled(const struct redis_limits *l)
{
    (void)l;
    return true;
}

void redis_limits_flush(struct redis_limits *l)
{
    (void)l;
}

void redis_limits_tick(struct redis_limits *l)
{
    (void)l;
}

int redis_limits_wake_ms(const struct redis_limits *l, int most)
{
    (void)l;
    return most;
}

enum redis_outcome redis_limits_ask(struct redis_limits *l, const struct redis_question *question,
                                    struct waiter *w, redis_done_fn *done,
                                    struct redis_decision *out)
{
    (void)l;
    (void)question;
    (void)w;
    (void)done;
    return out->outcome = REDIS_AWAY;
}

struct redis_command *redis_command_open(const struct conf *conf, char why[REDIS_COMMAND_WHY])
{
    snprintf(why, REDIS_COMMAND_WHY, "%s: this program is built without Redis",
             conf->redis_address);
    return NULL;
}

void redis_command_close(struct redis_command *c)
{
    (void)c;
}

const char *redis_command_address(const struct redis_command *c)
{
    (void)c;
    return "";
}

bool redis_command_used(struct redis_command *c, const char *limiter,
                        const struct ratelimit_window *window, uint32_t *used, int64_t *ends_s,
                        char why[REDIS_COMMAND_WHY])
{
    (void)c, (void)limiter, (void)window, (void)used, (void)ends_s, (void)why;
    return false;
}

bool redis_command_reset(struct redis_command *c, const char *limiter,
                         const struct ratelimit_window *window, bool *had,
                         char why[REDIS_COMMAND_WHY])
{
    (void)c, (void)limiter, (void)window, (void)had, (void)why;
    return false;
}
