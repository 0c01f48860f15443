#include "limit.h"

#include "route.h"
#include "../doors.h"
#include "../limiters_board.h"
#include "../log.h"
#include "../worker.h"

#include <stdlib.h>

struct limiting {
    struct worker *worker;
    struct limiters_board *board;
    struct ratelimit *table;
    uint64_t token; /* of ${table}'s clock, from before the loop last read its own */
    uint64_t version; /* of ${limits} on the board */
    struct limiters limits;
    uint64_t salts[LIMITERS_MAX];
    uint8_t of_route[ROUTES_MAX]; /* the limiter of each row of the route table */
    int64_t reset;                /* as text in ${reset_text}: requests of a window have it in common */
    char reset_text[20];
    size_t reset_size;
};

/* ---- the limits in force ---- */

static void settle_routes(struct limiting *l)
{
    for (size_t i = 0; i < routes_count; i++) {
        unsigned named = limiters_of_path(&l->limits, str_of(routes[i].method), str_of(routes[i].path));
        l->of_route[i] = (uint8_t)(named != LIMITER_NONE ? named : routes[i].limiter);
    }
    for (unsigned i = 1; i < l->limits.count; i++)
        l->salts[i] = ratelimit_salt(l->table, l->limits.rows[i].name);
}

static void follow_board(struct limiting *l)
{
    if (limiters_board_version(l->board) != l->version && limiters_board_read(l->board, &l->limits, &l->version))
        settle_routes(l);
}

struct limiting *limiting_new(struct worker *w)
{
    struct limiting *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    l->worker = w;
    l->board = w->process->limiters;
    l->table = w->process->ratelimit;
    l->token = ratelimit_token(l->table);
    l->limits = *w->conf->limits; /* until the board can be read */
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
        uint64_t count = limiters_board_left_out(l->board, l->limits.rows[i].counter, now_ms / 1000);
        if (count > 0)
            log_info("limiter %s: %llu more refusals were not logged one by one", l->limits.rows[i].name, (unsigned long long)count);
    }
}

static void log_refusal(struct limiting *l, unsigned limiter, const struct limiter_key *key, const struct ratelimit_state *state,
                        uint32_t seconds, int64_t now)
{
    const struct limiter_row *row = &l->limits.rows[limiter];
    char text[LIMITER_TEXT_SIZE];
    if (!limiters_board_may_log(l->board, row->counter, now))
        return;
    limiter_key_text(key, l->limits.ipv6_prefix, text);
    log_info("limiter %s %s %s: over %u in %u s, for %lld s more", row->name, row->dry_run ? "would refuse" : "refuses", text, state->limit,
             seconds, (long long)(state->reset - now));
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
        windows[count] = (struct ratelimit_window){
            .salt = l->salts[limiter], .seconds = w->seconds, .limit = limit, .key = keys[count].bytes, .key_size = keys[count].size};
        count++;
    }
    return count;
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
static void note(struct limiting *l, const struct limiter_key *keys, const struct ratelimit_window *windows, size_t count,
                 const struct request *r)
{
    char text[LIMITER_TEXT_SIZE];
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
    size_t count = make_windows(l, limiter, r, keys, windows);
    if (count == 0)
        return true;
    r->limit.told = true;
    bool over = take(l, windows, count, r) != 0;
    if (state->near != 0)
        note(l, keys, windows, count, r);
    bool exempt = over && l->limits.exempt_count > 0 && limiters_exempt(&l->limits, &r->client_ip);
    if (over && !exempt)
        log_refusal(l, limiter, &keys[state->window], state, windows[state->window].seconds, r->now_ms / 1000);
    limiters_board_count(l->board, l->worker->process->index, row->counter,
                         !over || exempt ? COUNT_ADMITTED : row->dry_run ? COUNT_DRY_RUN_REFUSED : COUNT_REFUSED);
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
    struct limiting *l = r->worker->limiting;
    if (r->limit.settled)
        return !r->limit.refused;
    r->limit.settled = true;
    if (r->conn->internal || h2o_memis(r->h2o->input.method.base, r->h2o->input.method.len, H2O_STRLIT("OPTIONS")))
        return true;
    follow_board(l);
    unsigned limiter = r->route != NULL ? l->of_route[r->route - routes] : limiter_of_stranger(l, r);
    return limiter == LIMITER_NONE || charge(l, limiter, r);
}

/* ---- headers ---- */

static size_t decimal(char *to, uint64_t v)
{
    char digits[20];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    for (size_t i = 0; i < n; i++)
        to[i] = digits[n - 1 - i];
    return n;
}

static void add(struct request *r, h2o_iovec_t *name, const char *as_written, const char *value, size_t n)
{
    h2o_headers_t *headers = &r->h2o->res.headers;
    h2o_vector_reserve(&r->h2o->pool, headers, headers->size + 1);
    headers->entries[headers->size++] = (h2o_header_t){.name = name, .orig_name = as_written, .value = {(char *)value, n}};
}

void limit_headers(struct request *r)
{
    static h2o_iovec_t limit = {H2O_STRLIT("x-ratelimit-limit")}, remaining = {H2O_STRLIT("x-ratelimit-remaining")},
                       reset = {H2O_STRLIT("x-ratelimit-reset")}, after = {H2O_STRLIT("retry-after")};
    const struct ratelimit_state *state = &r->limit.state;
    struct limiting *l = r->worker->limiting;
    if (!r->limit.told)
        return;
    if (l->reset != state->reset) {
        l->reset = state->reset;
        l->reset_size = decimal(l->reset_text, (uint64_t)state->reset);
    }
    char *text = request_alloc(r, 64), *at = text;
    size_t n = decimal(at, state->limit);
    add(r, &limit, "X-RateLimit-Limit", at, n);
    n = decimal(at += n, state->remaining);
    add(r, &remaining, "X-RateLimit-Remaining", at, n);
    memcpy(at += n, l->reset_text, l->reset_size);
    add(r, &reset, "X-RateLimit-Reset", at, l->reset_size);
    if (!r->limit.refused)
        return;
    /* rounded up: whoever waits that long is in the next window */
    int64_t wait_ms = state->reset * 1000 - r->now_ms;
    n = decimal(at += l->reset_size, wait_ms <= 1000 ? 1 : ((uint64_t)wait_ms + 999) / 1000);
    add(r, &after, "Retry-After", at, n);
}
