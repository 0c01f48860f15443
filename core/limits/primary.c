#include "core/limits/primary.h"

#include "core/base/log.h"
#include "core/limits/connection.h"
#include "core/limits/handshake.h"
#include "core/limits/sentinel.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

/* A decision without an answer yet. */
struct op {
    struct op *next;
    uint64_t sent_ms;      /* of the flush; 0: it is not sent */
    primary_done_fn *done; /* NULL: its time is over */
    void *arg;
    size_t count; /* of its windows */
};

enum state { SEARCHING, HANDSHAKE, READY };

struct primary {
    struct loop *loop;
    const struct conf *conf;
    struct redis_keys keys;
    struct redis_handshake handshake;
    struct sentinels *sentinels; /* NULL: none are configured */
    enum state state;
    struct redis_connection *connection; /* NULL: none */
    char address[SENTINEL_ADDRESS_SIZE]; /* of ${connection} */
    uint64_t since_ms, retry_at_ms;      /* HANDSHAKE since; SEARCHING until */
    uint64_t away_ms;                    /* since when it has not answered; 0: it answers */
    uint64_t flushed_ms;                 /* the end of the last turn, by a clock read then */
    bool settled;
    char logged[512];        /* the last reason in the log */
    struct op *first, *last; /* in order */
    struct op *due, *unsent; /* the first decision in time; the first that is not sent */
    struct op *free_ops;
};

/* ---- away and back ---- */

static void log_away(struct primary *p, const char *why)
{
    char text[sizeof(p->logged)];
    snprintf(text, sizeof(text), "%s%s%s", p->address, p->address[0] == '\0' ? "" : ": ", why);
    p->settled = true;
    if (p->away_ms != 0 && strcmp(p->logged, text) == 0)
        return;
    memcpy(p->logged, text, sizeof(text));
    log_warn("limits: Redis is not used: %s; each limiter uses its fallback until Redis answers",
             text);
}

static void set_away(struct primary *p, const char *why)
{
    log_away(p, why);
    if (p->away_ms == 0)
        p->away_ms = p->loop->now_ms;
    score_set(p->loop->process->score->redis_away_ms, p->away_ms);
}

static void set_ready(struct primary *p)
{
    p->state = READY;
    p->settled = true;
    if (p->logged[0] != '\0')
        log_info("limits: Redis at %s is used again, after %llu ms", p->address,
                 (unsigned long long)(p->loop->now_ms - p->away_ms));
    p->logged[0] = '\0';
    p->away_ms = 0;
    score_set(p->loop->process->score->redis_away_ms, 0);
}

/* ---- decisions ---- */

static void op_free(struct primary *p, struct op *op)
{
    op->next = p->free_ops;
    p->free_ops = op;
}

static struct op *op_new(struct primary *p)
{
    struct op *op = p->free_ops;
    if (op == NULL)
        return malloc(sizeof(*op));
    p->free_ops = op->next;
    return op;
}

static struct op *take_first(struct primary *p)
{
    struct op *op = p->first;
    p->first = op->next;
    if (p->due == op)
        p->due = op->next;
    if (p->unsent == op) /* a server that sends more replies than commands */
        p->unsent = op->next;
    return op;
}

/* End all decisions without an answer. */
static void drop_ops(struct primary *p)
{
    struct op *op = p->first;
    p->first = p->due = p->unsent = NULL;
    while (op != NULL) {
        struct op ended = *op;
        op_free(p, op);
        op = ended.next;
        if (ended.done != NULL)
            ended.done(ended.arg, NULL);
    }
}

/* The connection is of no use. */
static void fail(struct primary *p, const char *why)
{
    set_away(p, why);
    redis_connection_close(p->connection);
    p->connection = NULL;
    p->state = SEARCHING;
    p->retry_at_ms = p->loop->now_ms + PRIMARY_RETRY_MS;
    drop_ops(p);
}

/* The answer of a decision that the fallback made is still due. */
static bool is_overdue(const struct primary *p)
{
    return p->first != p->due;
}

bool primary_decide(struct primary *p, const char *limiter, const struct ratelimit_window *windows,
                    size_t count, uint32_t wanted, primary_done_fn *done, void *arg)
{
    struct op *op = p->state != READY || is_overdue(p) ? NULL : op_new(p);
    struct decision_command command;
    if (op == NULL)
        return false;
    decision_make(&p->keys, p->handshake.sha, limiter, windows, count, wanted, &command);
    redis_connection_put(p->connection, command.argc, command.argv, command.lengths);
    *op = (struct op){.done = done, .arg = arg, .count = count};
    if (p->first == NULL)
        p->first = op;
    else
        p->last->next = op;
    p->last = op;
    if (p->due == NULL)
        p->due = op;
    if (p->unsent == NULL)
        p->unsent = op;
    return true;
}

static bool is_over(const struct primary *p, const struct op *op, uint64_t ms)
{
    return op != NULL && op->sent_ms != 0 && op->sent_ms + ms <= p->flushed_ms;
}

/*
 * Ends decisions that were overdue when this turn began; what Redis had answered by then is read.
 * If the socket has not accepted a command, the connection is closed, so that Redis does not charge
 * a decision that the fallback made.
 */
static void end_overdue(struct primary *p)
{
    if (is_over(p, p->due, p->conf->redis_timeout_ms) && !redis_connection_is_sent(p->connection))
        fail(p, "it does not read within limits.redis.timeout");
    while (is_over(p, p->due, p->conf->redis_timeout_ms)) {
        struct op *op = p->due;
        primary_done_fn *done = op->done;
        op->done = NULL;
        p->due = op->next;
        set_away(p, "it does not answer within limits.redis.timeout");
        done(op->arg, NULL);
    }
}

static void on_decision(struct primary *p, const redisReply *reply)
{
    struct decision_answer answer;
    if (p->first == NULL || !decision_read(reply, p->first->count, &answer)) {
        fail(p, reply->type == REDIS_REPLY_ERROR ? reply->str
                                                 : "its answer is not that of the script");
        return;
    }
    struct op *op = take_first(p);
    primary_done_fn *done = op->done;
    void *arg = op->arg;
    op_free(p, op);
    if (p->away_ms != 0 && !is_overdue(p))
        set_ready(p);
    if (done != NULL)
        done(arg, &answer);
}

/* ---- the connection ---- */

static void on_reply(void *arg, const struct redisReply *reply)
{
    struct primary *p = arg;
    if (p->state == READY) {
        on_decision(p, reply);
        return;
    }
    const char *why = redis_handshake_check(&p->handshake, reply);
    if (why != NULL)
        fail(p, why);
    else if (redis_handshake_done(&p->handshake))
        set_ready(p);
}

static void on_ended(void *arg, const char *why)
{
    struct primary *p = arg;
    p->connection = NULL; /* freed by the caller */
    fail(p, why);
}

static void connect_to(struct primary *p, const char *address)
{
    static const struct redis_connection_events events = {on_reply, on_ended};
    snprintf(p->address, sizeof(p->address), "%s", address);
    p->connection = redis_connection_open(p->loop, address, &events, p);
    if (p->connection == NULL) {
        fail(p, "cannot connect");
        return;
    }
    p->state = HANDSHAKE;
    p->since_ms = p->loop->now_ms;
    redis_handshake_put(&p->handshake, p->connection);
}

static void on_primary_named(void *arg, const char *address, const char *why)
{
    struct primary *p = arg;
    if (address == NULL && p->state == SEARCHING) {
        p->address[0] = '\0';
        fail(p, why);
    } else if (address == NULL)
        log_debug("limits: %s", why);
    else if (p->state == SEARCHING)
        connect_to(p, address);
    else if (strcmp(p->address, address) != 0) {
        fail(p, "the sentinels name another primary");
        connect_to(p, address);
    }
}

static void search(struct primary *p)
{
    p->retry_at_ms = p->loop->now_ms + PRIMARY_RETRY_MS;
    if (p->sentinels != NULL)
        sentinels_ask(p->sentinels);
    else
        connect_to(p, p->conf->redis_address);
}

/* ---- once a turn ---- */

void primary_tick(struct primary *p)
{
    uint64_t now = p->loop->now_ms;
    p->settled = p->settled || now >= p->away_ms + PRIMARY_ANSWER_MS;
    end_overdue(p);
    if ((p->state == HANDSHAKE && now >= p->since_ms + PRIMARY_ANSWER_MS) ||
        is_over(p, p->first, p->conf->redis_timeout_ms + PRIMARY_ANSWER_MS))
        fail(p, "it does not answer");
    if (p->sentinels != NULL)
        sentinels_tick(p->sentinels);
    if (p->state == SEARCHING && now >= p->retry_at_ms)
        search(p);
}

/* The timeout of a decision starts here, after the rest of the turn. */
void primary_flush(struct primary *p)
{
    p->flushed_ms = clock_mono_ms();
    for (; p->unsent != NULL; p->unsent = p->unsent->next)
        p->unsent->sent_ms = p->flushed_ms;
    if (p->connection != NULL)
        redis_connection_flush(p->connection);
}

int primary_wake_ms(const struct primary *p, int most)
{
    uint64_t now = p->flushed_ms, at = p->due != NULL ? p->due->sent_ms + p->conf->redis_timeout_ms
                                       : p->state == SEARCHING ? p->retry_at_ms
                                                               : now + (uint64_t)most;
    return at <= now ? 0 : at - now < (uint64_t)most ? (int)(at - now) : most;
}

bool primary_settled(const struct primary *p)
{
    return p->settled;
}

const struct redis_keys *primary_keys(const struct primary *p)
{
    return &p->keys;
}

/* ---- start and end ---- */

/* ${path} "": no password. False: ${why} says why, with the path. */
static bool read_password(const char *path, char out[SECRET_FILE_PASSWORD], char *why, size_t size)
{
    char reason[256];
    if (path[0] == '\0' || secret_file_password(path, out, reason, sizeof(reason)))
        return true;
    snprintf(why, size, "%s: %s", path, reason);
    return false;
}

static bool read_secrets(struct primary *p, char sentinel_password[SECRET_FILE_PASSWORD])
{
    const struct conf *conf = p->conf;
    char why[512];
    bool good =
        redis_keys_read(conf, &p->keys, why, sizeof(why)) &&
        read_password(conf->redis_password_file, p->handshake.password, why, sizeof(why)) &&
        read_password(conf->redis_sentinel_password_file, sentinel_password, why, sizeof(why));
    if (!good)
        log_error("the worker cannot start: %s", why);
    return good;
}

struct primary *primary_new(struct loop *loop)
{
    char sentinel_password[SECRET_FILE_PASSWORD] = "";
    struct primary *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->loop = loop;
    p->conf = loop->conf;
    p->handshake.user = p->conf->redis_user;
    p->handshake.keys = &p->keys;
    bool good = read_secrets(p, sentinel_password);
    if (good && p->conf->redis_sentinels.count > 0)
        good = (p->sentinels = sentinels_new(loop, sentinel_password, on_primary_named, p)) != NULL;
    explicit_bzero(sentinel_password, sizeof(sentinel_password));
    if (!good) {
        primary_free(p);
        return NULL;
    }
    p->away_ms = loop->now_ms;
    score_set(loop->process->score->redis_away_ms, p->away_ms);
    search(p);
    return p;
}

static void free_ops(struct op *op)
{
    while (op != NULL) {
        struct op *next = op->next;
        free(op);
        op = next;
    }
}

void primary_free(struct primary *p)
{
    if (p == NULL)
        return;
    p->state = SEARCHING;
    drop_ops(p);
    redis_connection_close(p->connection);
    sentinels_free(p->sentinels);
    free_ops(p->free_ops);
    explicit_bzero(p, sizeof(*p));
    free(p);
}
