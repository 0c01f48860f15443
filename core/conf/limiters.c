#include "core/conf/limiters.h"

#include <stdlib.h>

/*
 * The built-in limiters: name, windows (limit, seconds, key), and paths in addition to those of the
 * route table, so that requests for unknown paths below them are counted, too.
 */
static const struct limiter_row built_in[LIMITERS_BUILT_IN] = {
    [LIMITER_WIDGET_INIT] = {"widget-init", .windows_count = 2,
                             .windows = {{1000, 60, BY_IP_AGENT}, {30000, 3600, BY_IP}}},
    [LIMITER_WIDGET_SESSION] = {"widget-session", .windows_count = 1,
                                .windows = {{300, 60, BY_JWT}}},
    [LIMITER_WIDGET_LEADS] = {"widget-leads", .windows_count = 1, .windows = {{30, 60, BY_JWT}}},
    [LIMITER_WIDGET_TYPING] = {"widget-typing", .windows_count = 1, .windows = {{600, 60, BY_IP}}},
    [LIMITER_WIDGET_SATISFACTION] = {"widget-satisfaction", .windows_count = 1,
                                     .windows = {{60, 60, BY_IP}}},
    [LIMITER_WIDGET_COUPON] = {"widget-coupon", .windows_count = 1, .windows = {{120, 60, BY_IP}}},
    [LIMITER_BULK_SYNC] = {"bulk-sync", .windows_count = 1, .windows = {{60, 60, BY_TOKEN}},
                           .routes_count = 2, .routes = {"* /v1/wp/*", "* /api/v1/wp/*"}},
    [LIMITER_API] = {"api", .windows_count = 1, .windows = {{0, 60, BY_API_KEY}}},
    [LIMITER_REPORT_PASSWORD] = {"report-password", .windows_count = 2,
                                 .windows = {{30, 60, BY_REPORT}, {10, 60, BY_IP}}},
};

void limiters_defaults(struct limiters *out)
{
    memset(out, 0, sizeof(*out));
    out->count = LIMITERS_BUILT_IN;
    out->ipv6_prefix = 64;
    memcpy(out->rows, built_in, sizeof(built_in));
}

unsigned limiters_find(const struct limiters *limits, const char *name)
{
    for (unsigned i = 1; i < limits->count; i++)
        if (strcmp(limits->rows[i].name, name) == 0)
            return i;
    return LIMITER_NONE;
}

/* ---- routes ---- */

bool limiters_route_parts(const char *route, struct str *method, struct str *path)
{
    size_t n = strspn(route, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (n == 0 && *route == '*')
        n = 1;
    if (n == 0 || route[n] != ' ' || route[n + 1] != '/')
        return false;
    *method = (struct str){route, n};
    *path = str_of(route + n + 1);
    return strpbrk(path->p, " \t") == NULL && strcspn(path->p, "*") + 1 >= path->n;
}

/* How well ${route} matches; 0: not at all. */
static size_t match_length(const char *route, struct str method, struct str path)
{
    struct str m, p;
    if (!limiters_route_parts(route, &m, &p))
        return 0;
    bool any = *m.p == '*', open = p.p[p.n - 1] == '*';
    if (!any && !str_eq(m, method))
        return 0;
    p.n -= open;
    if (open ? path.n < p.n || memcmp(path.p, p.p, p.n) != 0 : !str_eq(path, p))
        return 0;
    return (p.n * 2 + !open) * 2 + !any;
}

unsigned limiters_of_path(const struct limiters *limits, struct str method, struct str path)
{
    unsigned found = LIMITER_NONE;
    size_t best = 0;
    if (str_eq(method, STR("HEAD")))
        method = STR("GET");
    for (unsigned i = 1; i < limits->count; i++)
        for (unsigned k = 0; k < limits->rows[i].routes_count; k++) {
            size_t fits = match_length(limits->rows[i].routes[k], method, path);
            if (fits > best) {
                best = fits;
                found = i;
            }
        }
    return found;
}

/* ---- order ---- */

static int compare_windows(const void *a, const void *b)
{
    const struct limiter_window *x = a, *y = b;
    return x->by != y->by ? (x->by > y->by) - (x->by < y->by)
                          : (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

static int compare_overrides(const void *a, const void *b)
{
    const struct limiter_override *x = a, *y = b;
    if (x->limiter != y->limiter)
        return (x->limiter > y->limiter) - (x->limiter < y->limiter);
    if (x->window != y->window)
        return (x->window > y->window) - (x->window < y->window);
    return memcmp(&x->key, &y->key, sizeof(x->key));
}

void limiters_sort(struct limiters *limits)
{
    for (unsigned i = 1; i < limits->count; i++)
        qsort(limits->rows[i].windows, limits->rows[i].windows_count, sizeof(struct limiter_window),
              compare_windows);
    qsort(limits->overrides, limits->overrides_count, sizeof(struct limiter_override),
          compare_overrides);
    uint32_t at = 0;
    for (unsigned i = 1; i < limits->count; i++)
        for (unsigned w = 0; w <= LIMITER_WINDOWS_MAX; w++) {
            limits->rows[i].override_from[w] = at;
            while (at < limits->overrides_count && limits->overrides[at].limiter == i &&
                   limits->overrides[at].window == w)
                at++;
        }
}

/* ---- limits ---- */

const char *limiter_fallback_name(enum limiter_fallback fallback)
{
    static const char *const names[] = {
        [FALLBACK_LOCAL] = "local", [FALLBACK_REFUSE] = "refuse", [FALLBACK_ADMIT] = "admit"};
    return fallback <= FALLBACK_ADMIT ? names[fallback] : NULL;
}

bool limiter_one_key(const struct limiter_row *row)
{
    for (uint32_t i = 1; i < row->windows_count; i++)
        if (row->windows[i].by != row->windows[0].by)
            return false;
    return true;
}

bool limiters_exempt(const struct limiters *limits, const struct ip *ip)
{
    for (uint32_t i = 0; i < limits->exempt_count; i++)
        if (cidr_has(&limits->exempt[i], ip))
            return true;
    return false;
}

uint32_t limiters_limit(const struct limiters *limits, unsigned limiter, unsigned window,
                        const struct limiter_key *key)
{
    const struct limiter_row *row = &limits->rows[limiter];
    uint32_t from = row->override_from[window], to = row->override_from[window + 1];
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        int order = memcmp(&limits->overrides[middle].key, key, sizeof(*key));
        if (order == 0)
            return limits->overrides[middle].limit;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return row->windows[window].limit;
}
