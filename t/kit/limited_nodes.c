#include "t/kit/limited_nodes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

struct redis *redis;
struct server *nodes[NODES];
char *key_file;

static struct server internals[NODES];

/* ---- the nodes ---- */

char *nodes_yaml(const char *options, const char *limiters)
{
    return text("internal_listen: 127.0.0.1:0\nlimits:\n  engine: redis\n"
                "  redis: { key_file: %s, nodes: %d, %s }\n  limiters: { %s }\n",
                key_file, NODES, options, limiters);
}

char *nodes_at_redis(const char *more, const char *limiters)
{
    return nodes_yaml(text("address: \"%s\"%s%s", redis->address, *more ? ", " : "", more),
                      limiters);
}

void nodes_start(const char *lines)
{
    for (size_t i = 0; i < NODES; i++) {
        server_start_with(nodes[i], lines);
        internals[i] = server_internal(nodes[i]);
    }
}

void nodes_stop(void)
{
    for (size_t i = 0; i < NODES; i++)
        server_stop(nodes[i]);
}

void nodes_setup(void)
{
    redis = redis_primary("enable-debug-command local\n");
    for (size_t i = 0; i < NODES; i++)
        nodes[i] = server_new(&(struct server_options){.workers = 2});
    key_file = redis_key_file(nodes[0]->dir);
}

void nodes_teardown(void)
{
    for (size_t i = 0; i < NODES; i++)
        server_discard(nodes[i]);
    redis_stop(redis);
}

long nodes_fallbacks(void)
{
    long sum = 0;
    for (size_t i = 0; i < NODES; i++)
        sum += metric(&internals[i], "assay_limiter_fallback_total{limiter=\"api\"}");
    return sum;
}

bool nodes_connected(void *unused)
{
    (void)unused;
    for (size_t i = 0; i < NODES; i++)
        if (metric(&internals[i], "assay_limiter_workers_without_redis") != 0)
            return false;
    return true;
}

struct response *nodes_ask(size_t node)
{
    return http(nodes[node], .path = "/api/v1/reports");
}

bool nodes_fell_back(void *count)
{
    return nodes_fallbacks() >= *(const long *)count;
}

bool nodes_log(const char *words)
{
    for (size_t i = 0; i < NODES; i++)
        if (strstr(server_log(nodes[i]), words) != NULL)
            return true;
    return false;
}

/* ---- callers ---- */

struct caller {
    pthread_t thread;
    const struct server *server;
    struct tally seen;
    const char *failure;
};

static struct caller callers[CALLERS];
static atomic_bool ends;
static atomic_long last_reset, windows_begun;

static struct window *window_of(struct tally *t, long reset)
{
    size_t i = 0;
    while (i < t->count && t->windows[i].reset != reset)
        i++;
    ck_assert_uint_lt(i, WINDOWS_MAX);
    if (i == t->count)
        t->windows[t->count++] = (struct window){.reset = reset};
    return &t->windows[i];
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void note_window(long reset)
{
    long seen = last_reset;
    while (reset > seen && !atomic_compare_exchange_weak(&last_reset, &seen, reset))
        ;
    windows_begun += reset > seen;
}

static void note(struct caller *c, const struct response *r, int64_t sent_ms)
{
    const char *reset = header(r, "X-RateLimit-Reset");
    c->seen.unavailable += r->status == 503;
    if (reset == NULL) {
        c->seen.without_headers++;
        return;
    }
    struct window *w = window_of(&c->seen, strtol(reset, NULL, 10));
    w->admitted += r->status == 200;
    w->refused += r->status == 429;
    c->seen.carried += w->reset * 1000 <= sent_ms;
    note_window(w->reset);
}

static void *call(void *arg)
{
    struct caller *c = arg;
    struct raw *raw = raw_open(c->server);
    while (!ends && c->failure == NULL) {
        int64_t sent_ms = wall_ms();
        raw_get(raw, c->server->key, "/api/v1/reports");
        struct response *r = raw_response(raw, false, 20000);
        if (r->status != 200 && r->status != 429 && r->status != 503)
            c->failure = response_text(r);
        note(c, r, sent_ms);
        response_free(r);
    }
    raw_close(raw);
    return NULL;
}

void callers_start(void)
{
    ends = false;
    last_reset = windows_begun = 0;
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.server = nodes[i % NODES]};
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
}

struct tally callers_end(void)
{
    struct tally all = {0};
    ends = true;
    for (size_t i = 0; i < CALLERS; i++) {
        const struct caller *c = &callers[i];
        pthread_join(c->thread, NULL);
        ck_assert_msg(c->failure == NULL, "%s", c->failure);
        all.without_headers += c->seen.without_headers;
        all.unavailable += c->seen.unavailable;
        all.carried += c->seen.carried;
        for (size_t k = 0; k < c->seen.count; k++) {
            struct window *w = window_of(&all, c->seen.windows[k].reset);
            w->admitted += c->seen.windows[k].admitted;
            w->refused += c->seen.windows[k].refused;
        }
    }
    return all;
}

long callers_windows(void)
{
    return windows_begun;
}

static bool windows_are(void *arg)
{
    return windows_begun >= *(const long *)arg;
}

void callers_wait(long count)
{
    ck_assert_msg(wait_until(windows_are, &count, 60000), "only %ld windows begin", windows_begun);
}

static bool is_first_or_last(const struct tally *all, const struct window *w)
{
    bool first = true, last = true;
    for (size_t i = 0; i < all->count; i++) {
        first = first && all->windows[i].reset >= w->reset;
        last = last && all->windows[i].reset <= w->reset;
    }
    return first || last;
}

void expect_admitted(const struct tally *all, unsigned least, unsigned most)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct window *w = &all->windows[i];
        ck_assert_msg(w->admitted <= most, "%u of %u are admitted until %ld", w->admitted, most,
                      w->reset);
        ck_assert_msg(is_first_or_last(all, w) || w->admitted >= least,
                      "only %u of %u are admitted until %ld, and %u refused", w->admitted, least,
                      w->reset, w->refused);
    }
}
