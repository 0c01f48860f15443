#include "core/http/limit.h"

#include "core/http/reply.h"
#include "core/http/route.h"
#include "core/conn/acceptor.h"
#include "core/shm/limiter_stats.h"
#include "core/base/log.h"
#include "core/http/http.h"

#include <stdlib.h>

/* a number as text, right-aligned: requests of a window have it in common */
struct number_text {
    uint64_t number;
    size_t from; /* 0: none yet */
    char text[24];
};

/* Whom an id's window was last made for: the same key asks again and again. */
#define KNOWN 256
struct known {
    uint64_t id;
    uint32_t limiter, limit; /* of a limiter with one window, by API key or token */
    uint64_t hash;
    bool unlimited; /* no window counts for it */
};

struct limiting {
    const struct loop *loop;
    struct limiter_stats *board;
    struct ratelimit *table;
    uint64_t token;   /* of ${table}'s clock, from before the loop last read its own */
    uint64_t version; /* of ${limits} on the board */
    struct limiters limits;
    uint64_t salts[LIMITERS_MAX];
    uint8_t of_route[ROUTES_MAX]; /* the limiter of each row of the route table */
    struct number_text limit_text, reset_text;
    struct known known[KNOWN];
};

/* ---- the limits in force ---- */

static void settle_routes(struct limiting *l)
{
    for (size_t i = 0; i < routes_count; i++) {
        unsigned named = limiters_of_path(&l->limits, str_of(routes[i].method), str_of(routes[i].path));
        l->of_route[i] = (uint8_t)(named != LIMITER_NONE ? named : routes[i].limiter);
    }
    memset(l->known, 0, sizeof(l->known));
    for (unsigned i = 1; i < l->limits.count; i++)
        l->salts[i] = ratelimit_salt(l->table, l->limits.rows[i].name);
}

static void follow_board(struct limiting *l)
{
    if (limiter_stats_version(l->board) != l->version && limiter_stats_read(l->board, &l->limits, &l->version))
        settle_routes(l);
}

struct limiting *limiting_new(const struct loop *loop)
{
    struct limiting *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    l->loop = loop;
    l->board = loop->process->limiters;
    l->table = loop->process->ratelimit;
    l->token = ratelimit_token(l->table);
    l->limits = *loop->conf->limits; /* until the board can be read */
    settle_routes(l);
    follow_board(l);
    return l;
}

const struct limiters *limiting_limits(struct limiting *l)
{
    follow_board(l);
    return &l->limits;
}

void limiting_free(struct limiting *l)
{
    free(l);
}

/* ---- the log ---- */

void limiting_tick(struct limiting *l, int64_t now_ms)
{
    l->token = ratelimit_token(l->table);
    for (unsigned i = 1; i < l->limits.count; i++) {
        uint64_t count = limiter_stats_suppressed(l->board, l->limits.rows[i].counter, now_ms / 1000);
        if (count > 0)
            log_info("limiter %s: %llu further refusals were not logged individually", l->limits.rows[i].name, (unsigned long long)count);
    }
}

/* ---- charging ---- */

/* the windows that count for this caller: ${keys} are what ${windows} point at, ${of} their places in the row */
static size_t make_windows(const struct limiting *l, unsigned limiter, const struct request *r, struct limiter_key *keys,
                           struct ratelimit_window *windows)
{
    static const uint8_t unknown[LIMITER_ULID];
    const struct limiter_row *row = &l->limits.rows[limiter];
    bool visitor = memcmp(r->visitor, unknown, sizeof(unknown)) != 0, agent = memcmp(r->agent, unknown, sizeof(unknown)) != 0;
    struct limiter_caller caller = {&r->client_ip, r->key, r->token, visitor ? r->visitor : NULL, agent ? r->agent : NULL};
    size_t count = 0;
    for (unsigned i = 0; i < row->windows_count; i++) {
        const struct limiter_window *w = &row->windows[i];
        limiter_key_make((enum limiter_by)w->by, l->limits.ipv6_prefix, &caller, &keys[count]);
        uint32_t limit = limiters_limit(&l->limits, limiter, i, &keys[count]);
        if (limit == 0)
            continue;
        windows[count] = (struct ratelimit_window){.salt = l->salts[limiter],
                                                   .seconds = w->seconds,
                                                   .limit = limit,
                                                   .tag = row->counter,
                                                   .key = keys[count].bytes,
                                                   .key_size = keys[count].size};
        count++;
    }
    return count;
}

static void log_refusal(struct limiting *l, unsigned limiter, const struct request *r)
{
    const struct limiter_row *row = &l->limits.rows[limiter];
    const struct ratelimit_state *state = &r->limit.state;
    struct limiter_key keys[LIMITER_WINDOWS_MAX];
    struct ratelimit_window windows[LIMITER_WINDOWS_MAX];
    char text[LIMITER_TEXT_SIZE];
    if (!limiter_stats_may_log(l->board, row->counter, r->now_ms / 1000))
        return;
    make_windows(l, limiter, r, keys, windows);
    limiter_key_text(&keys[state->window], l->limits.ipv6_prefix, text);
    log_info("limiter %s %s %s: over %u in %u s, resets in %lld s", row->name, row->dry_run ? "would refuse" : "refuses", text, state->limit,
             windows[state->window].seconds, (long long)(state->reset - r->now_ms / 1000));
}

/* what is known of a key that asked before under a limiter with one window; NULL where its key is no id */
static struct known *known_of(struct limiting *l, unsigned limiter, const struct request *r)
{
    const struct limiter_row *row = &l->limits.rows[limiter];
    enum limiter_by by = (enum limiter_by)row->windows[0].by;
    uint64_t id = row->windows_count != 1 ? 0 : by == BY_API_KEY ? r->key : by == BY_TOKEN ? r->token : 0;
    if (id == 0)
        return NULL;
    struct known *k = &l->known[(id + limiter) % KNOWN];
    if (k->id != id || k->limiter != limiter)
        *k = (struct known){.id = id, .limiter = limiter};
    return k;
}

/* as make_windows, remembering */
static size_t find_windows(struct limiting *l, unsigned limiter, const struct request *r, struct limiter_key *keys,
                           struct ratelimit_window *windows)
{
    if (r->limit.expected.hash != 0 && r->limit.expected_by == l->version) {
        windows[0] = r->limit.expected;
        return 1;
    }
    struct known *k = known_of(l, limiter, r);
    if (k != NULL && k->hash != 0) {
        windows[0] = (struct ratelimit_window){.salt = l->salts[limiter],
                                               .seconds = l->limits.rows[limiter].windows[0].seconds,
                                               .limit = k->limit,
                                               .tag = l->limits.rows[limiter].counter,
                                               .hash = k->hash};
        return 1;
    }
    if (k != NULL && k->unlimited)
        return 0;
    size_t count = make_windows(l, limiter, r, keys, windows);
    if (k != NULL)
        k->unlimited = count == 0;
    if (k != NULL && count == 1) {
        k->limit = windows[0].limit;
        k->hash = windows[0].hash = ratelimit_hash(l->table, &windows[0]);
    }
    return count;
}

void limit_expect(struct request *r)
{
    struct limiting *l = r->http->limiting;
    follow_board(l);
    unsigned limiter = r->route != NULL ? l->of_route[r->route - routes] : LIMITER_NONE;
    const struct limiter_row *row = &l->limits.rows[limiter];
    struct limiter_key key;
    if (row->windows_count != 1 || row->windows[0].by != BY_IP || make_windows(l, limiter, r, &key, &r->limit.expected) == 0)
        return;
    ratelimit_prefetch(l->table, &r->limit.expected);
    r->limit.expected.key = NULL;
    r->limit.expected_by = l->version;
}

/* as ratelimit_take; by the loop's time, which is good enough but where a clock was stepped */
static int take(struct limiting *l, const struct ratelimit_window *windows, size_t count, struct request *r)
{
    struct ratelimit_time time = {l->token, r->now_ms / 1000};
    int over;
    while ((over = ratelimit_take(l->table, windows, count, time, &r->limit.state)) < 0) {
        time.token = ratelimit_token(l->table);
        r->now_ms = clock_wall_ms();
        time.now = r->now_ms / 1000;
    }
    return over;
}

/* keys that came near their limit, in words for `assay limits top` */
static void note(struct limiting *l, unsigned limiter, const struct request *r)
{
    struct limiter_key keys[LIMITER_WINDOWS_MAX];
    struct ratelimit_window windows[LIMITER_WINDOWS_MAX];
    char text[LIMITER_TEXT_SIZE];
    size_t count = make_windows(l, limiter, r, keys, windows);
    for (size_t i = 0; i < count; i++)
        if ((r->limit.state.near >> i & 1) != 0) {
            limiter_key_text(&keys[i], l->limits.ipv6_prefix, text);
            ratelimit_note(l->table, &windows[i], r->now_ms / 1000, text);
        }
}

static bool charge(struct limiting *l, unsigned limiter, struct request *r)
{
    const struct limiter_row *row = &l->limits.rows[limiter];
    struct limiter_key keys[LIMITER_WINDOWS_MAX];
    struct ratelimit_window windows[LIMITER_WINDOWS_MAX];
    struct ratelimit_state *state = &r->limit.state;
    size_t count = find_windows(l, limiter, r, keys, windows);
    if (count == 0)
        return true;
    r->limit.told = true;
    r->limit.limiter = limiter;
    bool over = take(l, windows, count, r) != 0;
    if (state->near != 0)
        note(l, limiter, r);
    bool exempt = over && l->limits.exempt_count > 0 && limiters_exempt(&l->limits, &r->client_ip);
    if (over && !exempt)
        log_refusal(l, limiter, r);
    limiter_stats_count(l->board, l->loop->process->index, row->counter,
                         !over || exempt ? COUNT_ADMITTED
                         : row->dry_run  ? COUNT_DRY_RUN_REFUSED
                                         : COUNT_REFUSED);
    r->limit.refused = over && !exempt && !row->dry_run;
    return !r->limit.refused;
}

/* the limiter of a request without a row: of the path's other methods, or of the surface it would be in */
static unsigned limiter_of_stranger(const struct limiting *l, struct request *r)
{
    struct str method = {r->h2o->input.method.base, r->h2o->input.method.len}, query, args[PATH_ARGS_MAX];
    struct str path = route_path(r->h2o, &query);
    const struct route *other, *row = route_find(method, path, false, args, &other);
    if (row != NULL || other != NULL)
        return l->of_route[(row != NULL ? row : other) - routes];
    return limiters_of_path(&l->limits, method, path);
}

bool limit_charge(struct request *r)
{
    struct limiting *l = r->http->limiting;
    if (r->limit.settled)
        return !r->limit.refused;
    r->limit.settled = true;
    if (r->wait.conn->internal || h2o_memis(r->h2o->input.method.base, r->h2o->input.method.len, H2O_STRLIT("OPTIONS")))
        return true;
    follow_board(l);
    unsigned limiter = r->route != NULL ? l->of_route[r->route - routes] : limiter_of_stranger(l, r);
    return limiter == LIMITER_NONE || charge(l, limiter, r);
}

const char *limit_name(const struct request *r)
{
    const struct limiters *limits = &r->http->limiting->limits;
    return r->limit.told && r->limit.limiter < limits->count ? limits->rows[r->limit.limiter].name : NULL;
}

/* ---- headers ---- */

/* ${v} in decimal, so that it ends where ${end} is; where it starts */
static char *decimal(char *end, uint64_t v)
{
    static const char pairs[] = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
                                "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
    for (; v >= 100; v /= 100)
        memcpy(end -= 2, pairs + v % 100 * 2, 2);
    if (v >= 10)
        memcpy(end -= 2, pairs + v * 2, 2);
    else
        *--end = (char)('0' + v);
    return end;
}

static struct str remembered(struct number_text *n, uint64_t v)
{
    char *end = n->text + sizeof(n->text);
    if (n->number != v || n->from == 0) {
        n->number = v;
        n->from = (size_t)(decimal(end, v) - n->text);
    }
    return (struct str){n->text + n->from, sizeof(n->text) - n->from};
}

void limit_headers(struct request *r)
{
    static h2o_iovec_t limit = {H2O_STRLIT("x-ratelimit-limit")}, remaining = {H2O_STRLIT("x-ratelimit-remaining")},
                       reset = {H2O_STRLIT("x-ratelimit-reset")}, after = {H2O_STRLIT("retry-after")};
    const struct ratelimit_state *state = &r->limit.state;
    struct limiting *l = r->http->limiting;
    if (!r->limit.told)
        return;
    /* one piece of the request's memory for all: what is remembered may be another request's text before this one is sent */
    enum { ROOM = 24 };
    char *text = request_alloc(r, 4 * ROOM), *at;
    struct str known = remembered(&l->limit_text, state->limit);
    memcpy(text, l->limit_text.text, ROOM);
    reply_push(r, &limit, "X-RateLimit-Limit", (struct str){text + ROOM - known.n, known.n});
    text += ROOM;
    at = decimal(text + ROOM, state->remaining);
    reply_push(r, &remaining, "X-RateLimit-Remaining", (struct str){at, (size_t)(text + ROOM - at)});
    text += ROOM;
    known = remembered(&l->reset_text, (uint64_t)state->reset);
    memcpy(text, l->reset_text.text, ROOM);
    reply_push(r, &reset, "X-RateLimit-Reset", (struct str){text + ROOM - known.n, known.n});
    if (!r->limit.refused)
        return;
    /* rounded up: whoever waits that long is in the next window */
    int64_t wait_ms = state->reset * 1000 - r->now_ms;
    text += ROOM;
    at = decimal(text + ROOM, wait_ms <= 1000 ? 1 : ((uint64_t)wait_ms + 999) / 1000);
    reply_push(r, &after, "Retry-After", (struct str){at, (size_t)(text + ROOM - at)});
}
