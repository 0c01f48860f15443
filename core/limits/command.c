#include "core/limits/command.h"

#include "core/limits/address.h"
#include "core/limits/decision.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_S 2 /* for each answer */

struct redis_command {
    const struct conf *conf;
    redisContext *redis;
    struct redis_keys keys;
    char address[REDIS_HOST_SIZE + 16];
};

static bool refuse(char why[REDIS_COMMAND_WHY], const char *address, const char *reason)
{
    snprintf(why, REDIS_COMMAND_WHY, "%s: %s", address, reason);
    return false;
}

/* ---- one connection ---- */

static redisContext *connect_to(const char *address, char why[REDIS_COMMAND_WHY])
{
    const struct timeval wait = {.tv_sec = WAIT_S};
    char host[REDIS_HOST_SIZE];
    redisContext *c;
    if (strncmp(address, "unix:", 5) == 0)
        c = redisConnectUnixWithTimeout(address + 5, wait);
    else {
        const char *port = redis_address_split(address, host);
        c = redisConnectWithTimeout(host, atoi(port), wait);
    }
    if (c == NULL || c->err != 0) {
        refuse(why, address, c == NULL ? strerror(ENOMEM) : c->errstr);
        if (c != NULL)
            redisFree(c);
        return NULL;
    }
    redisSetTimeout(c, wait);
    return c;
}

/* The reply, which the caller frees. NULL and a reason: no reply, or an error. */
static redisReply *say(redisContext *c, const char *address, int argc, const char *const *argv,
                       char why[REDIS_COMMAND_WHY])
{
    redisReply *reply = redisCommandArgv(c, argc, (const char **)(uintptr_t)argv, NULL);
    if (reply == NULL)
        refuse(why, address, c->errstr);
    else if (reply->type == REDIS_REPLY_ERROR) {
        refuse(why, address, reply->str);
        freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}

static bool log_in(redisContext *c, const char *address, const char *user, const char *file,
                   char why[REDIS_COMMAND_WHY])
{
    char password[SECRET_FILE_PASSWORD], reason[256];
    if (file[0] == '\0')
        return true;
    if (!secret_file_password(file, password, reason, sizeof(reason)))
        return refuse(why, file, reason);
    const char *const words[] = {"AUTH", user[0] == '\0' ? "default" : user, password};
    redisReply *reply = say(c, address, 3, words, why);
    explicit_bzero(password, sizeof(password));
    freeReplyObject(reply);
    return reply != NULL;
}

/* ---- the primary ---- */

static bool read_address(const redisReply *reply, char *out, size_t size)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
        return false;
    redis_address_join(reply->element[0]->str, reply->element[1]->str, out, size);
    return true;
}

static bool ask_sentinel(struct redis_command *c, const char *sentinel, char why[REDIS_COMMAND_WHY])
{
    redisContext *s = connect_to(sentinel, why);
    if (s == NULL)
        return false;
    const char *const words[] = {"SENTINEL", "get-master-addr-by-name",
                                 c->conf->redis_sentinel_name};
    redisReply *reply = log_in(s, sentinel, "", c->conf->redis_sentinel_password_file, why)
                            ? say(s, sentinel, 3, words, why)
                            : NULL;
    bool known = reply != NULL && read_address(reply, c->address, sizeof(c->address));
    if (reply != NULL && !known)
        refuse(why, sentinel, "it does not know limits.redis.sentinel_name");
    freeReplyObject(reply);
    redisFree(s);
    return known;
}

static bool find_address(struct redis_command *c, char why[REDIS_COMMAND_WHY])
{
    const struct conf_addresses *sentinels = &c->conf->redis_sentinels;
    snprintf(c->address, sizeof(c->address), "%s", c->conf->redis_address);
    for (size_t i = 0; i < sentinels->count; i++)
        if (ask_sentinel(c, sentinels->items[i], why))
            return true;
    return sentinels->count == 0;
}

/* Checks that the workers use the same key file. With another one, no count would be found. */
static bool check_keys(struct redis_command *c, char why[REDIS_COMMAND_WHY])
{
    char key[REDIS_KEY_SIZE], reason[128];
    redis_keys_check(&c->keys, key);
    redisReply *reply = say(c->redis, c->address, 2, (const char *const[]){"GET", key}, why);
    if (reply == NULL)
        return false;
    bool same = reply->type == REDIS_REPLY_NIL || strcmp(reply->str, c->keys.fingerprint) == 0;
    freeReplyObject(reply);
    snprintf(reason, sizeof(reason), "the nodes use another %s than this one", c->keys.option);
    return same || refuse(why, c->address, reason);
}

struct redis_command *redis_command_open(const struct conf *conf, char why[REDIS_COMMAND_WHY])
{
    struct redis_command *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        refuse(why, conf->redis_address, strerror(errno));
        return NULL;
    }
    c->conf = conf;
    if (redis_keys_read(conf, &c->keys, why, REDIS_COMMAND_WHY) && find_address(c, why) &&
        (c->redis = connect_to(c->address, why)) != NULL &&
        log_in(c->redis, c->address, conf->redis_user, conf->redis_password_file, why) &&
        check_keys(c, why))
        return c;
    redis_command_close(c);
    return NULL;
}

void redis_command_close(struct redis_command *c)
{
    if (c == NULL)
        return;
    if (c->redis != NULL)
        redisFree(c->redis);
    explicit_bzero(c, sizeof(*c));
    free(c);
}

const char *redis_command_address(const struct redis_command *c)
{
    return c->address;
}

/* ---- counts ---- */

static bool read_clock(struct redis_command *c, int64_t *now_s, char why[REDIS_COMMAND_WHY])
{
    redisReply *reply = say(c->redis, c->address, 1, (const char *const[]){"TIME"}, why);
    bool good = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
    *now_s = good ? atoll(reply->element[0]->str) : 0;
    freeReplyObject(reply);
    return good;
}

bool redis_command_used(struct redis_command *c, const char *limiter,
                        const struct ratelimit_window *window, uint32_t *used, int64_t *ends_s,
                        char why[REDIS_COMMAND_WHY])
{
    char key[REDIS_KEY_SIZE];
    int64_t now_s;
    redis_keys_of(&c->keys, limiter, window, key);
    if (!read_clock(c, &now_s, why))
        return false;
    redisReply *reply = say(c->redis, c->address, 2, (const char *const[]){"GET", key}, why);
    if (reply == NULL)
        return false;
    *used = reply->type == REDIS_REPLY_STRING
                ? decision_used(reply->str, reply->len, window->seconds, now_s)
                : 0;
    *ends_s = (now_s / window->seconds + 1) * window->seconds;
    freeReplyObject(reply);
    return true;
}

bool redis_command_reset(struct redis_command *c, const char *limiter,
                         const struct ratelimit_window *window, bool *had,
                         char why[REDIS_COMMAND_WHY])
{
    char key[REDIS_KEY_SIZE];
    redis_keys_of(&c->keys, limiter, window, key);
    redisReply *reply = say(c->redis, c->address, 2, (const char *const[]){"DEL", key}, why);
    if (reply == NULL)
        return false;
    *had = reply->type == REDIS_REPLY_INTEGER && reply->integer > 0;
    freeReplyObject(reply);
    return true;
}
