#include "cmd/stats.h"

/* A counter that decreased belongs to another server. */
static uint64_t growth(uint64_t before, uint64_t now)
{
    return now < before ? now : now - before;
}

/* A counter's growth per second. */
static double rate_of(const struct stats_interval *v, uint64_t before, uint64_t now)
{
    return (double)growth(before, now) / v->seconds;
}

static struct request_stats_times times_between(const struct request_stats_times *before,
                                                const struct request_stats_times *now)
{
    struct request_stats_times t = {.sum = growth(before->sum, now->sum)};
    for (size_t i = 0; i <= REQUEST_STATS_BOUNDS; i++)
        t.count[i] = growth(before->count[i], now->count[i]);
    return t;
}

/*
 * The quantile in microseconds, interpolated in histogram buckets like Prometheus does; -1: no
 * times.
 */
static double quantile_of(const struct request_stats_times *times, double q)
{
    uint64_t total = 0, below = 0;
    for (size_t i = 0; i <= REQUEST_STATS_BOUNDS; i++)
        total += times->count[i];
    double rank = q * (double)total;
    for (size_t i = 0; i < REQUEST_STATS_BOUNDS && total > 0; i++) {
        double low = i == 0 ? 0 : (double)request_stats_bounds[i - 1],
               high = (double)request_stats_bounds[i];
        if (times->count[i] > 0 && (double)(below + times->count[i]) >= rank)
            return low + (high - low) * (rank - (double)below) / (double)times->count[i];
        below += times->count[i];
    }
    return total > 0 ? (double)request_stats_bounds[REQUEST_STATS_BOUNDS - 1] : -1;
}

const char *const stats_class_names[ANSWER_CLASSES] = {"2xx", "3xx", "4xx", "429", "5xx", "other"};

static enum answer_class class_of(int status)
{
    static const enum answer_class by_hundred[] = {ANSWERED_OTHER, ANSWERED_OTHER, ANSWERED_2XX,
                                                   ANSWERED_3XX,   ANSWERED_4XX,   ANSWERED_5XX};
    return status == 429      ? ANSWERED_429
           : status / 100 < 6 ? by_hundred[status / 100]
                              : ANSWERED_OTHER;
}

static struct stats_answers answers_between(const struct stats_interval *v,
                                            const struct request_stats_totals *before,
                                            const struct request_stats_totals *now)
{
    struct stats_answers a = {.all = 0};
    for (size_t i = 0; i < REQUEST_STATS_STATUSES; i++) {
        double some = rate_of(v, before->by_status[i], now->by_status[i]);
        a.all += some;
        a.by[class_of(request_stats_status(i))] += some;
        a.ever += now->by_status[i];
    }
    struct request_stats_times t = times_between(&before->times, &now->times);
    a.p50 = quantile_of(&t, 0.5);
    a.p99 = quantile_of(&t, 0.99);
    return a;
}

struct stats_answers stats_of_route(const struct stats_interval *v, size_t route)
{
    return answers_between(v, &v->before->routes[route], &v->now->routes[route]);
}

struct stats_answers stats_of_worker(const struct stats_interval *v, uint32_t index)
{
    size_t row = index % REQUEST_STATS_WORKERS;
    return answers_between(v, &v->before->workers[row], &v->now->workers[row]);
}

/* Rows move when the limits change: if the name differs, the rate is 0. */
double stats_of_limiter(const struct stats_interval *v, size_t i, enum limiter_count what)
{
    const struct stats_limiter *before = &v->before->limiters[i], *now = &v->now->limiters[i];
    return rate_of(v, strcmp(before->name, now->name) == 0 ? before->of[what] : now->of[what],
                   now->of[what]);
}

struct stats_work stats_work(const struct stats_interval *v)
{
    const struct request_stats_work *before = &v->before->work, *now = &v->now->work;
    struct request_stats_times commits = times_between(&before->commits, &now->commits),
                               pages = times_between(&before->pages, &now->pages);
    uint64_t count = 0;
    for (size_t i = 0; i <= REQUEST_STATS_BOUNDS; i++)
        count += commits.count[i];
    return (struct stats_work){
        .changes = rate_of(v, before->changes, now->changes),
        .commits = (double)count / v->seconds,
        .batch = count == 0 ? 0 : (double)growth(before->changes, now->changes) / (double)count,
        .commit_p50 = quantile_of(&commits, 0.5),
        .commit_p99 = quantile_of(&commits, 0.99),
        .done = rate_of(v, before->done, now->done),
        .failed = rate_of(v, before->failed, now->failed),
        .page_p50 = quantile_of(&pages, 0.5),
        .page_p99 = quantile_of(&pages, 0.99)};
}

uint64_t stats_over(const struct stats_snapshot *l, enum role role, size_t member)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < l->process_count; i++)
        if (l->processes[i].role == role)
            sum += *(const uint64_t *)(const void *)((const char *)&l->processes[i] + member);
    return sum;
}

struct stats_interval stats_interval(const struct stats_snapshot *before,
                                     const struct stats_snapshot *now, enum stats_order order)
{
    static const struct stats_snapshot nothing;
    bool same = before->running && before->life == now->life && now->mono_ms > before->mono_ms;
    uint64_t ms = now->mono_ms - before->mono_ms;
    uint64_t up_s = now->wall_ms / 1000 > (int64_t)now->started_at_s
                        ? (uint64_t)now->wall_ms / 1000 - now->started_at_s
                        : 1;
    return (struct stats_interval){.before = same ? before : &nothing,
                                   .now = now,
                                   .seconds = same ? (double)ms / 1000 : (double)up_s,
                                   .order = order};
}
