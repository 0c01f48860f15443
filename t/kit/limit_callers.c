#include "t/kit/limit_callers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define PATH "/api/v1/reports"
enum { ANSWER_MS = 20000 };

struct caller {
    pthread_t thread;
    const struct server *server;
    struct tally seen;
    const char *failure;
};

static struct caller callers[CALLERS];
static bool may_die;
static atomic_bool ends;
static atomic_long last_reset, windows_begun, refused_since;

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
    refused_since += r->status == 429;
    c->seen.carried += w->reset * 1000 <= sent_ms;
    note_window(w->reset);
}

/* Over one connection. */
static struct response *ask_kept(const struct caller *c, struct raw **raw)
{
    if (*raw == NULL)
        *raw = raw_open(c->server);
    raw_get(*raw, c->server->key, PATH);
    return raw_response(*raw, false, ANSWER_MS);
}

static void *call(void *arg)
{
    struct caller *c = arg;
    struct raw *raw = NULL;
    while (!ends && c->failure == NULL) {
        int64_t sent_ms = wall_ms();
        struct response *r =
            may_die ? http(c->server, .path = PATH, .may_fail = true) : ask_kept(c, &raw);
        if (r->status != 200 && r->status != 429 && r->status != 503 &&
            (r->status != 0 || !may_die))
            c->failure = text("%s", response_text(r));
        note(c, r, sent_ms);
        response_free(r);
    }
    if (raw != NULL)
        raw_close(raw);
    return NULL;
}

void callers_start(struct server *const *servers, size_t count, bool die)
{
    ends = false;
    may_die = die;
    last_reset = windows_begun = refused_since = 0;
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.server = servers[i % count]};
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

static bool was_refused(void *arg)
{
    (void)arg;
    return refused_since > 0;
}

void callers_wait_refused(void)
{
    refused_since = 0;
    ck_assert_msg(wait_until(was_refused, NULL, 60000), "no request is refused");
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
