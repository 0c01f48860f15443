/*
 * What a worker asks Redis after connecting, before it uses it: the login, the role, the
 * maxmemory-policy, the key file of other nodes; and it loads the script.
 */
#ifndef ASSAY_LIMITS_GREETING_H
#define ASSAY_LIMITS_GREETING_H

#include "core/limits/decision.h"

struct redis_connection;
struct redisReply;

struct redis_greeting {
    const char *user;                    /* "": default */
    char password[SECRET_FILE_PASSWORD]; /* "": none */
    const struct redis_keys *keys;
    size_t step; /* whose reply is next */
    char sha[DECISION_SHA + 1];
    char why[256];
};

/* redis_greeting_put(g, c): send all questions. */
void redis_greeting_put(struct redis_greeting *g, struct redis_connection *c);

/* redis_greeting_check(g, reply): the next reply. NULL, or why this Redis cannot be used. */
const char *redis_greeting_check(struct redis_greeting *g, const struct redisReply *reply);

/* redis_greeting_done(g): all replies were good. */
bool redis_greeting_done(const struct redis_greeting *g);

#endif
