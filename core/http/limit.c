#include "core/http/limit_internal.h"

#include "core/http/reply_internal.h"
#include "core/http/route.h"
#include "core/conn/connection.h"
#include "core/shm/limiter_stats.h"
#include "core/base/log.h"
#include "core/text/form.h"
#include "core/http/http.h"

#include <stdlib.h>

/* ---- the limits in force ---- */

static void apply_limits(struct request_limiter *l)
{
    for (size_t i = 0; i < routes_count; i++) {
        unsigned named =
            limiters_of_path(&l->limits, str_of(routes[i].method), str_of(routes[i].path));
        l->route_limiter[i] = (uint8_t)(named != LIMITER_NONE ? named : routes[i].limiter);
    }
    memset(l->windows, 0, sizeof(l->windows));
    for (unsigned i = 1; i < l->limits.count; i++)
        l->salts[i] = ratelimit_salt(l->table, l->limits.rows[i].name);
}

static void update_limits(struct request_limiter *l)
{
    if (limiter_stats_version(l->stats) != l->version &&
        limiter_stats_read(l->stats, &l->limits, &l->version))
        apply_limits(l);
}

struct request_limiter *request_limiter_new(struct loop *loop)
{
    struct request_limiter *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    l->loop = loop;
    l->stats = loop->process->limiters;
    l->table = loop->process->ratelimit;
    l->token = ratelimit_token(l->table);
    l->limits = *loop->conf->limits; /* until shared memory can be read */
    apply_limits(l);
    update_limits(l);
    if (loop->conf->limits_engine == LIMITS_LOCAL || (l->redis = redis_limits_new(loop)) != NULL)
        return l;
    free(l);
    return NULL;
}

const struct limiters *request_limiter_limits(struct request_limiter *l)
{
    update_limits(l);
    return &l->limits;
}

void request_limiter_free(struct request_limiter *l)
{
    if (l != NULL)
        redis_limits_free(l->redis);
    free(l);
}

void request_limiter_flush(struct request_limiter *l)
{
    if (l->redis != NULL)
        redis_limits_flush(l->redis);
}

int request_limiter_wake_ms(const struct request_limiter *l, int most)
{
    return l->redis == NULL ? most : redis_limits_wake_ms(l->redis, most);
}

bool request_limiter_settled(const struct request_limiter *l)
{
    return l->redis == NULL || redis_limits_settled(l->redis);
}

/* ---- the log ---- */

void request_limiter_tick(struct request_limiter *l, int64_t now_ms)
{
    l->token = ratelimit_token(l->table);
    if (l->redis != NULL)
        redis_limits_tick(l->redis);
    for (unsigned i = 1; i < l->limits.count; i++) {
        uint64_t count =
            limiter_stats_suppressed(l->stats, l->limits.rows[i].counter, now_ms / 1000);
        if (count > 0)
            log_info("limiter %s: %llu further refusals were not logged individually",
                     l->limits.rows[i].name, (unsigned long long)count);
    }
}

/* ---- charging ---- */

/*
 * The id of a report in the path; 0: none. The report may not exist, so that a refusal says nothing
 * about which reports do.
 */
static uint64_t report_in_path(const struct request *r)
{
    const struct route *row = r->route != NULL ? r->route : r->other_method;
    uint64_t id = 0;
    if (row == NULL || strstr(row->path, "/reports/{id}") == NULL ||
        !number_parse(r->args[0], INT64_MAX, &id))
        return 0;
    return id;
}

size_t limit_make_windows(const struct request_limiter *l, unsigned limiter,
                          const struct request *r, struct limiter_key *keys,
                          struct ratelimit_window *windows)
{
    static const uint8_t unknown[LIMITER_ULID];
    const struct limiter_row *row = &l->limits.rows[limiter];
    bool visitor = memcmp(r->visitor, unknown, sizeof(unknown)) != 0,
         agent = memcmp(r->agent, unknown, sizeof(unknown)) != 0;
    struct limiter_caller caller = {
        &r->client_ip, r->key, r->token, visitor ? r->visitor : NULL, agent ? r->agent : NULL, 0};
    size_t count = 0;
    for (unsigned i = 0; i < row->windows_count; i++) {
        const struct limiter_window *w = &row->windows[i];
        caller.report = w->by == BY_REPORT ? report_in_path(r) : 0;
        if (!limiter_key_make((enum limiter_by)w->by, l->limits.ipv6_prefix, &caller, &keys[count]))
            continue;
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

static void log_refusal(struct request_limiter *l, unsigned limiter, const struct request *r)
{
    const struct limiter_row *row = &l->limits.rows[limiter];
    const struct ratelimit_state *state = &r->limit.state;
    struct limiter_key keys[LIMITER_WINDOWS_MAX];
    struct ratelimit_window windows[LIMITER_WINDOWS_MAX];
    char text[LIMITER_TEXT_SIZE];
    if (!limiter_stats_may_log(l->stats, row->counter, r->now_ms / 1000))
        return;
    limit_make_windows(l, limiter, r, keys, windows);
    limiter_key_text(&keys[state->window], l->limits.ipv6_prefix, text);
    log_info("limiter %s %s %s: over %u in %u s, resets in %lld s", row->name,
             row->dry_run ? "would refuse" : "refuses", text, state->limit,
             windows[state->window].seconds, (long long)(state->reset - r->now_ms / 1000));
}

/* The cache entry of the request; NULL: the limiter has several windows or counts no id. */
static struct cached_window *cached_window_of(struct request_limiter *l, unsigned limiter,
                                              const struct request *r)
{
    const struct limiter_row *row = &l->limits.rows[limiter];
    enum limiter_by by = (enum limiter_by)row->windows[0].by;
    uint64_t id = row->windows_count != 1 ? 0
                  : by == BY_API_KEY      ? r->key
                  : by == BY_TOKEN        ? r->token
                                          : 0;
    if (id == 0)
        return NULL;
    struct cached_window *k = &l->windows[(id + limiter) % CACHED_WINDOWS];
    if (k->id != id || k->limiter != limiter)
        *k = (struct cached_window){.id = id, .limiter = limiter};
    return k;
}

/* As limit_make_windows, with the prefetched or cached window. */
static size_t find_windows(struct request_limiter *l, unsigned limiter, const struct request *r,
                           struct limiter_key *keys, struct ratelimit_window *windows)
{
    if (r->limit.prefetched.hash != 0 && r->limit.prefetched_version == l->version) {
        windows[0] = r->limit.prefetched;
        return 1;
    }
    struct cached_window *k = cached_window_of(l, limiter, r);
    if (k != NULL && k->hash != 0) {
        windows[0] =
            (struct ratelimit_window){.salt = l->salts[limiter],
                                      .seconds = l->limits.rows[limiter].windows[0].seconds,
                                      .limit = k->limit,
                                      .tag = l->limits.rows[limiter].counter,
                                      .hash = k->hash};
        return 1;
    }
    if (k != NULL && k->unlimited)
        return 0;
    size_t count = limit_make_windows(l, limiter, r, keys, windows);
    if (k != NULL)
        k->unlimited = count == 0;
    if (k != NULL && count == 1) {
        k->limit = windows[0].limit;
        k->hash = windows[0].hash = ratelimit_hash(l->table, &windows[0]);
    }
    return count;
}

void limit_prefetch(struct request *r)
{
    struct request_limiter *l = r->http->limiter;
    update_limits(l);
    unsigned limiter = r->route != NULL ? l->route_limiter[r->route - routes] : LIMITER_NONE;
    const struct limiter_row *row = &l->limits.rows[limiter];
    struct limiter_key key;
    if (row->windows_count != 1 || row->windows[0].by != BY_IP ||
        limit_make_windows(l, limiter, r, &key, &r->limit.prefetched) == 0)
        return;
    ratelimit_prefetch(l->table, &r->limit.prefetched);
    r->limit.prefetched.key = NULL;
    r->limit.prefetched_version = l->version;
}

/* ratelimit_take by the loop's time; again with a fresh time if the clock was set. */
static inline __attribute__((always_inline)) int take(struct request_limiter *l,
                                                      const struct ratelimit_window *windows,
                                                      size_t count, struct request *r)
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

/* Names of keys near their limit, for `assay limits top`. */
static void note_near_limit(struct request_limiter *l, unsigned limiter, const struct request *r)
{
    struct limiter_key keys[LIMITER_WINDOWS_MAX];
    struct ratelimit_window windows[LIMITER_WINDOWS_MAX];
    char text[LIMITER_TEXT_SIZE];
    size_t count = limit_make_windows(l, limiter, r, keys, windows);
    for (size_t i = 0; i < count; i++)
        if ((r->limit.state.near >> i & 1) != 0) {
            limiter_key_text(&keys[i], l->limits.ipv6_prefix, text);
            ratelimit_note(l->table, &windows[i], r->now_ms / 1000, text);
        }
}

static inline __attribute__((always_inline)) enum limit_outcome
settle(struct request_limiter *l, unsigned limiter, struct request *r, bool over)
{
    const struct limiter_row *row = &l->limits.rows[limiter];
    bool exempt = over && l->limits.exempt_count > 0 && limiters_exempt(&l->limits, &r->client_ip);
    if (over && !exempt)
        log_refusal(l, limiter, r);
    limiter_stats_count(l->stats, l->loop->process->index, row->counter,
                        !over || exempt ? COUNT_ADMITTED
                        : row->dry_run  ? COUNT_DRY_RUN_REFUSED
                                        : COUNT_REFUSED);
    r->limit.refused = over && !exempt && !row->dry_run;
    return r->limit.refused ? LIMIT_REFUSED : LIMIT_ADMITTED;
}

enum limit_outcome limit_settle(struct request_limiter *l, unsigned limiter, struct request *r,
                                bool over)
{
    return settle(l, limiter, r, over);
}

bool limit_take(struct request_limiter *l, const struct ratelimit_window *windows, size_t count,
                struct request *r)
{
    return take(l, windows, count, r) != 0;
}

static enum limit_outcome charge(struct request_limiter *l, unsigned limiter, struct request *r)
{
    struct limiter_key keys[LIMITER_WINDOWS_MAX];
    struct ratelimit_window windows[LIMITER_WINDOWS_MAX];
    struct ratelimit_state *state = &r->limit.state;
    size_t count = find_windows(l, limiter, r, keys, windows);
    if (count == 0)
        return LIMIT_ADMITTED;
    r->limit.applies = true;
    r->limit.limiter = limiter;
    bool over = take(l, windows, count, r) != 0;
    if (state->near != 0)
        note_near_limit(l, limiter, r);
    return settle(l, limiter, r, over);
}

/* Without a route: the limiter of another method of the path, or of its prefix. */
static unsigned limiter_of_unrouted(const struct request_limiter *l, struct request *r)
{
    struct str method = {r->h2o->input.method.base, r->h2o->input.method.len}, query,
               args[PATH_ARGS_MAX];
    struct str path = route_path(r->h2o, &query);
    const struct route *other, *row = route_find(method, path, false, args, &other);
    if (row != NULL || other != NULL)
        return l->route_limiter[(row != NULL ? row : other) - routes];
    return limiters_of_path(&l->limits, method, path);
}

enum limit_outcome limit_charge(struct request *r, request_fn *done)
{
    struct request_limiter *l = r->http->limiter;
    if (r->limit.charged)
        return limit_admits(r) ? LIMIT_ADMITTED : LIMIT_REFUSED;
    r->limit.charged = true;
    if (r->wait.conn->internal ||
        h2o_memis(r->h2o->input.method.base, r->h2o->input.method.len, H2O_STRLIT("OPTIONS")))
        return LIMIT_ADMITTED;
    update_limits(l);
    unsigned limiter =
        r->route != NULL ? l->route_limiter[r->route - routes] : limiter_of_unrouted(l, r);
    if (limiter == LIMITER_NONE)
        return LIMIT_ADMITTED;
    return l->redis == NULL ? charge(l, limiter, r) : limit_ask_redis(l, limiter, r, done);
}

enum err limit_error(const struct request *r)
{
    return r->limit.unavailable ? ERR_UNAVAILABLE : ERR_RATE_LIMITED;
}

const char *limit_message(const struct request *r)
{
    return r->limit.unavailable ? "Requests cannot be counted now. Retry in a second."
                                : err_row(ERR_RATE_LIMITED)->message;
}

const char *limit_name(const struct request *r)
{
    const struct limiters *limits = &r->http->limiter->limits;
    return r->limit.applies && r->limit.limiter < limits->count
               ? limits->rows[r->limit.limiter].name
               : NULL;
}

/* ---- headers ---- */

/* Write ${v} in decimal before ${end}; returns its start. */
static char *decimal(char *end, uint64_t v)
{
    static const char pairs[] = "000102030405060708091011121314151617181920212223242526272829303132"
                                "3334353637383940414243444546474849"
                                "505152535455565758596061626364656667686970717273747576777879808182"
                                "8384858687888990919293949596979899";
    for (; v >= 100; v /= 100)
        memcpy(end -= 2, pairs + v % 100 * 2, 2);
    if (v >= 10)
        memcpy(end -= 2, pairs + v * 2, 2);
    else
        *--end = (char)('0' + v);
    return end;
}

static struct str cached_decimal(struct cached_number *n, uint64_t v)
{
    char *end = n->text + sizeof(n->text);
    if (n->number != v || n->from == 0) {
        n->number = v;
        n->from = (size_t)(decimal(end, v) - n->text);
    }
    return (struct str){n->text + n->from, sizeof(n->text) - n->from};
}

unsigned limit_retry_s(const struct request *r)
{
    int64_t wait_ms = r->limit.state.reset * 1000 - (r->now_ms + r->limit.ahead_ms);
    if (!r->limit.refused)
        return r->limit.unavailable ? 1 : 0;
    /* rounded up, so that the retry is in the next window */
    return wait_ms <= 1000 ? 1 : (unsigned)((wait_ms + 999) / 1000);
}

void limit_headers(struct request *r)
{
    static h2o_iovec_t limit = {H2O_STRLIT("x-ratelimit-limit")},
                       remaining = {H2O_STRLIT("x-ratelimit-remaining")},
                       reset = {H2O_STRLIT("x-ratelimit-reset")},
                       after = {H2O_STRLIT("retry-after")};
    const struct ratelimit_state *state = &r->limit.state;
    struct request_limiter *l = r->http->limiter;
    if (r->limit.unavailable)
        reply_push(r, &after, "Retry-After", STR("1"));
    if (!r->limit.applies)
        return;
    /* copies, since the cached texts may change before this response is sent */
    enum { TEXT_SIZE = 24 };
    char *text = request_alloc(r, 4 * TEXT_SIZE), *at;
    struct str known = cached_decimal(&l->limit_text, state->limit);
    memcpy(text, l->limit_text.text, TEXT_SIZE);
    reply_push(r, &limit, "X-RateLimit-Limit", (struct str){text + TEXT_SIZE - known.n, known.n});
    text += TEXT_SIZE;
    at = decimal(text + TEXT_SIZE, state->remaining);
    reply_push(r, &remaining, "X-RateLimit-Remaining",
               (struct str){at, (size_t)(text + TEXT_SIZE - at)});
    text += TEXT_SIZE;
    known = cached_decimal(&l->reset_text, (uint64_t)state->reset);
    memcpy(text, l->reset_text.text, TEXT_SIZE);
    reply_push(r, &reset, "X-RateLimit-Reset", (struct str){text + TEXT_SIZE - known.n, known.n});
    if (!r->limit.refused)
        return;
    text += TEXT_SIZE;
    at = decimal(text + TEXT_SIZE, limit_retry_s(r));
    reply_push(r, &after, "Retry-After", (struct str){at, (size_t)(text + TEXT_SIZE - at)});
}
