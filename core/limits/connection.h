/*
 * A connection to Redis or to a sentinel, on the event loop of a worker: commands go out in one
 * write for each turn of the loop, replies come back in the same order. Host names are resolved in
 * libh2o's thread.
 */
#ifndef ASSAY_LIMITS_CONNECTION_H
#define ASSAY_LIMITS_CONNECTION_H

#include "core/loop/loop.h"

struct redis_connection;
struct redisReply;

/*
 * Both are called on the loop. ${reply} is borrowed. ended: the connection failed or was lost, and
 * is freed after the call; ${why} is borrowed. Both may call redis_connection_close.
 */
struct redis_connection_events {
    void (*reply)(void *arg, const struct redisReply *reply);
    void (*ended)(void *arg, const char *why);
};

/*
 * redis_connection_open(loop, address, events, arg): begin to connect to host:port, [ipv6]:port or
 * unix:/path. Commands may be put at once. NULL: it failed at once. ${events} is not called before
 * this returns.
 * redis_connection_close(c): no further call of ${events}; NULL is allowed.
 */
struct redis_connection *redis_connection_open(struct loop *loop, const char *address,
                                               const struct redis_connection_events *events,
                                               void *arg);
void redis_connection_close(struct redis_connection *c);

/* redis_connection_put(c, argc, argv, lengths): a command; its reply follows. NULL: zero-ended. */
void redis_connection_put(struct redis_connection *c, int argc, const char *const *argv,
                          const size_t *lengths);

/*
 * redis_connection_flush(c): send what was put; once a turn. redis_connection_is_sent(c): the
 * socket has all that was put.
 */
void redis_connection_flush(struct redis_connection *c);
bool redis_connection_is_sent(const struct redis_connection *c);

#endif
