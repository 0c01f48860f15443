#include "core/limits/sentinel.h"

#include "core/limits/address.h"
#include "core/limits/connection.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_EVERY_MS 1000
#define ANSWER_MS 500 /* then the next sentinel is asked */

struct sentinels {
    struct loop *loop;
    const struct conf *conf;
    sentinel_answer_fn *on_answer;
    void *arg;
    struct redis_connection *connection; /* to conf->redis_sentinels.items[at]; NULL: none */
    size_t at;
    size_t failed; /* consecutive failures since the last answer */
    bool waits;    /* for an answer */
    bool login;    /* the next reply is that of AUTH */
    uint64_t asked_ms;
    char *password; /* "": none */
};

static const char *address_of(const struct sentinels *s)
{
    return s->conf->redis_sentinels.items[s->at];
}

/* Asks the next sentinel. After the last one, reports that no sentinel knows a primary. */
static void give_up(struct sentinels *s, const char *reason)
{
    char why[512];
    snprintf(why, sizeof(why), "the sentinel at %s: %s", address_of(s), reason);
    redis_connection_close(s->connection);
    s->connection = NULL;
    s->waits = false;
    s->at = (s->at + 1) % s->conf->redis_sentinels.count;
    if (++s->failed < s->conf->redis_sentinels.count) {
        sentinels_ask(s);
        return;
    }
    s->failed = 0;
    s->on_answer(s->arg, NULL, why);
}

static void on_address(struct sentinels *s, const redisReply *reply)
{
    char address[SENTINEL_ADDRESS_SIZE];
    if (reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_STRING) {
        give_up(s, "its answer is not an address");
        return;
    }
    redis_address_join(reply->element[0]->str, reply->element[1]->str, address, sizeof(address));
    s->waits = false;
    s->failed = 0;
    s->on_answer(s->arg, address, NULL);
}

static void on_reply(void *arg, const struct redisReply *reply)
{
    struct sentinels *s = arg;
    if (reply->type == REDIS_REPLY_ERROR)
        give_up(s, reply->str);
    else if (s->login)
        s->login = false;
    else if (reply->type == REDIS_REPLY_ARRAY)
        on_address(s, reply);
    else
        give_up(s, "it does not know limits.redis.sentinel_name");
}

static void on_ended(void *arg, const char *why)
{
    struct sentinels *s = arg;
    s->connection = NULL; /* freed by the caller */
    give_up(s, why);
}

static void open_connection(struct sentinels *s)
{
    static const struct redis_connection_events events = {on_reply, on_ended};
    s->connection = redis_connection_open(s->loop, address_of(s), &events, s);
    s->login = s->connection != NULL && s->password[0] != '\0';
    if (s->login)
        redis_connection_put(s->connection, 2, (const char *const[]){"AUTH", s->password}, NULL);
}

void sentinels_ask(struct sentinels *s)
{
    if (s->waits)
        return;
    s->asked_ms = s->loop->now_ms;
    if (s->connection == NULL)
        open_connection(s);
    if (s->connection == NULL) {
        give_up(s, "cannot connect");
        return;
    }
    redis_connection_put(
        s->connection, 3,
        (const char *const[]){"SENTINEL", "get-master-addr-by-name", s->conf->redis_sentinel_name},
        NULL);
    redis_connection_flush(s->connection);
    s->waits = true;
}

void sentinels_tick(struct sentinels *s)
{
    if (s->waits && s->loop->now_ms >= s->asked_ms + ANSWER_MS)
        give_up(s, "it does not answer");
    else if (s->loop->now_ms >= s->asked_ms + ASK_EVERY_MS)
        sentinels_ask(s);
}

struct sentinels *sentinels_new(struct loop *loop, const char *password,
                                sentinel_answer_fn *on_answer, void *arg)
{
    struct sentinels *s = calloc(1, sizeof(*s));
    if (s == NULL || (s->password = strdup(password)) == NULL) {
        free(s);
        return NULL;
    }
    s->loop = loop;
    s->conf = loop->conf;
    s->on_answer = on_answer;
    s->arg = arg;
    return s;
}

void sentinels_free(struct sentinels *s)
{
    if (s == NULL)
        return;
    redis_connection_close(s->connection);
    explicit_bzero(s->password, strlen(s->password));
    free(s->password);
    free(s);
}
