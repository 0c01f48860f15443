/*
 * The first commands on a connection to Redis: the login, the role, the maxmemory-policy, the key
 * file of other nodes, and the script.
 */
#ifndef ASSAY_LIMITS_HANDSHAKE_H
#define ASSAY_LIMITS_HANDSHAKE_H

#include "core/limits/decision.h"

struct redis_connection;
struct redisReply;

struct redis_handshake {
    const char *user;                    /* "": default */
    char password[SECRET_FILE_PASSWORD]; /* "": none */
    const struct redis_keys *keys;
    size_t step; /* whose reply is next */
    char sha[DECISION_SHA + 1];
    char why[256];
};

/* redis_handshake_put(h, c): sends all commands. */
void redis_handshake_put(struct redis_handshake *h, struct redis_connection *c);

/* redis_handshake_check(h, reply): the next reply. NULL, or why this Redis cannot be used. */
const char *redis_handshake_check(struct redis_handshake *h, const struct redisReply *reply);

/* redis_handshake_done(h): all replies were good. */
bool redis_handshake_done(const struct redis_handshake *h);

#endif
