#include "core/limits/handshake.h"

#include "core/limits/connection.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* ---- questions ---- */

static void put_login(struct redis_handshake *h, struct redis_connection *c)
{
    const char *user = h->user[0] == '\0' ? "default" : h->user;
    redis_connection_put(c, 3, (const char *const[]){"AUTH", user, h->password}, NULL);
}

static void put_role(struct redis_handshake *h, struct redis_connection *c)
{
    (void)h;
    redis_connection_put(c, 1, (const char *const[]){"ROLE"}, NULL);
}

static void put_memory(struct redis_handshake *h, struct redis_connection *c)
{
    (void)h;
    redis_connection_put(c, 2, (const char *const[]){"INFO", "memory"}, NULL);
}

static void put_fingerprint(struct redis_handshake *h, struct redis_connection *c)
{
    char key[REDIS_KEY_SIZE];
    redis_keys_check(h->keys, key);
    redis_connection_put(c, 4, (const char *const[]){"SET", key, h->keys->fingerprint, "NX"}, NULL);
}

static void get_fingerprint(struct redis_handshake *h, struct redis_connection *c)
{
    char key[REDIS_KEY_SIZE];
    redis_keys_check(h->keys, key);
    redis_connection_put(c, 2, (const char *const[]){"GET", key}, NULL);
}

static void put_script(struct redis_handshake *h, struct redis_connection *c)
{
    (void)h;
    redis_connection_put(c, 3, (const char *const[]){"SCRIPT", "LOAD", decision_script}, NULL);
}

/* ---- replies ---- */

static const char *check_nothing(struct redis_handshake *h, const redisReply *reply)
{
    (void)h;
    (void)reply;
    return NULL;
}

static const char *check_role(struct redis_handshake *h, const redisReply *reply)
{
    (void)h;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
        reply->element[0]->type == REDIS_REPLY_STRING &&
        strcmp(reply->element[0]->str, "master") == 0)
        return NULL;
    return "it is a replica; give the address of the primary, or the sentinels";
}

static const char *check_memory(struct redis_handshake *h, const redisReply *reply)
{
    static const char name[] = "maxmemory_policy:";
    const char *at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, name) : NULL;
    if (at == NULL)
        return "INFO memory does not show maxmemory_policy";
    at += strlen(name);
    if (strncmp(at, "noeviction", strlen("noeviction")) == 0)
        return NULL;
    snprintf(h->why, sizeof(h->why),
             "its maxmemory-policy is %.*s, which loses counts; set it to noeviction",
             (int)strcspn(at, "\r\n"), at);
    return h->why;
}

static const char *check_fingerprint(struct redis_handshake *h, const redisReply *reply)
{
    char key[REDIS_KEY_SIZE];
    if (reply->type == REDIS_REPLY_STRING && strcmp(reply->str, h->keys->fingerprint) == 0)
        return NULL;
    redis_keys_check(h->keys, key);
    snprintf(h->why, sizeof(h->why),
             "another node used it with another %s; give all nodes the same file. If all have the "
             "new one, delete the key %s in Redis",
             h->keys->option, key);
    return h->why;
}

static const char *check_script(struct redis_handshake *h, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_STRING || reply->len != DECISION_SHA)
        return "it does not load the script";
    memcpy(h->sha, reply->str, DECISION_SHA + 1);
    return NULL;
}

/* In order. The login is left out without a password. */
static const struct {
    const char *command; /* for errors */
    void (*put)(struct redis_handshake *h, struct redis_connection *c);
    const char *(*check)(struct redis_handshake *h, const redisReply *reply);
} steps[] = {
    {"AUTH", put_login, check_nothing},          {"ROLE", put_role, check_role},
    {"INFO", put_memory, check_memory},          {"SET", put_fingerprint, check_nothing},
    {"GET", get_fingerprint, check_fingerprint}, {"SCRIPT LOAD", put_script, check_script},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

void redis_handshake_put(struct redis_handshake *h, struct redis_connection *c)
{
    h->step = h->password[0] == '\0' ? 1 : 0;
    for (size_t i = h->step; i < STEPS; i++)
        steps[i].put(h, c);
    redis_connection_flush(c);
}

const char *redis_handshake_check(struct redis_handshake *h, const struct redisReply *reply)
{
    size_t step = h->step++;
    if (step >= STEPS)
        return "it sent more replies than it got commands";
    if (reply->type != REDIS_REPLY_ERROR)
        return steps[step].check(h, reply);
    snprintf(h->why, sizeof(h->why), "%s: %s", steps[step].command, reply->str);
    return h->why;
}

bool redis_handshake_done(const struct redis_handshake *h)
{
    return h->step == STEPS;
}
