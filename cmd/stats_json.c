#include "cmd/stats.h"

#include "core/text/json_out.h"

#include <inttypes.h>

static void put_name(struct buf *out, const char *name)
{
    buf_printf(out, "%s\"%s\":", out->p[out->n - 1] == '{' ? "" : ",", name);
}

static void put_count(struct buf *out, const char *name, uint64_t n)
{
    put_name(out, name);
    buf_u64(out, n);
}

static void put_number(struct buf *out, const char *name, double n)
{
    put_name(out, name);
    buf_printf(out, "%.3f", n);
}

/* A time in microseconds, as ms; negative: null. */
static void put_time(struct buf *out, const char *name, double us)
{
    put_name(out, name);
    if (us < 0)
        buf_adds(out, "null");
    else
        buf_printf(out, "%.3f", us / 1000);
}

static void put_text(struct buf *out, const char *name, const char *text)
{
    put_name(out, name);
    json_text(out, str_of(text));
}

static void put_answers(struct buf *out, const struct stats_answers *a)
{
    put_number(out, "requests_per_s", a->all);
    for (size_t i = 0; i < ANSWER_CLASSES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%s_per_s", stats_class_names[i]);
        put_number(out, name, a->by[i]);
    }
    put_time(out, "p50_ms", a->p50);
    put_time(out, "p99_ms", a->p99);
    put_count(out, "total", a->ever);
}

static void put_process(const struct stats_interval *v, const struct stats_process *p,
                        struct buf *out)
{
    buf_adds(out, "{");
    put_text(out, "process", role_name(p->role));
    put_count(out, "index", p->index);
    put_count(out, "pid", (uint64_t)p->pid);
    put_count(out, "generation", p->generation);
    put_text(out, "phase", phase_name(p->phase));
    put_count(out, "up_ms", p->up_ms);
    put_count(out, "heartbeat_ms_ago", p->beat_ms);
    put_count(out, "pending", p->pending);
    if (p->role == ROLE_WORKER) {
        struct stats_answers a = stats_of_worker(v, p->index);
        put_count(out, "connections", p->connections);
        put_count(out, "streams", p->streams);
        put_answers(out, &a);
    }
    buf_adds(out, "}");
}

static void put_processes(const struct stats_interval *v, struct buf *out)
{
    put_name(out, "processes");
    buf_adds(out, "[");
    for (size_t i = 0; i < v->now->process_count; i++) {
        buf_adds(out, i == 0 ? "" : ",");
        put_process(v, &v->now->processes[i], out);
    }
    buf_adds(out, "]");
}

static void put_routes(const struct stats_interval *v, struct buf *out)
{
    bool first = true;
    put_name(out, "routes");
    buf_adds(out, "[");
    for (size_t i = 0; i <= routes_count; i++) {
        struct stats_answers a = stats_of_route(v, i);
        if (a.ever == 0)
            continue;
        buf_adds(out, first ? "{" : ",{");
        put_text(out, "method", i == routes_count ? NULL : routes[i].method);
        put_text(out, "route", i == routes_count ? NULL : routes[i].path);
        put_answers(out, &a);
        buf_adds(out, "}");
        first = false;
    }
    buf_adds(out, "]");
}

static void put_limiters(const struct stats_interval *v, struct buf *out)
{
    put_name(out, "limiters");
    buf_adds(out, "[");
    for (size_t i = 0; i < v->now->limiter_count; i++) {
        const struct stats_limiter *l = &v->now->limiters[i];
        buf_adds(out, i == 0 ? "{" : ",{");
        put_text(out, "limiter", l->name);
        put_number(out, "admitted_per_s", stats_of_limiter(v, i, COUNT_ADMITTED));
        put_number(out, "refused_per_s", stats_of_limiter(v, i, COUNT_REFUSED));
        put_number(out, "dry_run_refused_per_s", stats_of_limiter(v, i, COUNT_DRY_RUN_REFUSED));
        put_count(out, "admitted", l->of[COUNT_ADMITTED]);
        put_count(out, "refused", l->of[COUNT_REFUSED]);
        put_count(out, "dry_run_refused", l->of[COUNT_DRY_RUN_REFUSED]);
        buf_adds(out, "}");
    }
    buf_adds(out, "]");
}

static void put_work(const struct stats_interval *v, struct buf *out)
{
    struct stats_work w = stats_work(v);
    put_name(out, "writer");
    buf_adds(out, "{");
    put_number(out, "changes_per_s", w.changes);
    put_number(out, "commits_per_s", w.commits);
    put_number(out, "batch", w.batch);
    put_time(out, "commit_p50_ms", w.commit_p50);
    put_time(out, "commit_p99_ms", w.commit_p99);
    put_count(out, "maintenance", STATS_OVER(v->now, ROLE_WRITER, maintenance));
    buf_adds(out, "}");
    put_name(out, "auditors");
    buf_adds(out, "{");
    put_count(out, "queue", STATS_OVER(v->now, ROLE_WRITER, pending));
    put_count(out, "running", STATS_OVER(v->now, ROLE_AUDITOR, pending));
    put_number(out, "done_per_s", w.done);
    put_number(out, "failed_per_s", w.failed);
    put_time(out, "page_p50_ms", w.page_p50);
    put_time(out, "page_p99_ms", w.page_p99);
    buf_adds(out, "}");
}

static void put_store(const struct stats_snapshot *now, struct buf *out)
{
    put_name(out, "store");
    buf_adds(out, "{");
    put_count(out, "used_bytes", now->space.used_bytes);
    put_count(out, "index_bytes", now->space.index_bytes);
    put_count(out, "map_bytes", now->space.map_bytes);
    put_count(out, "readers", now->space.readers);
    put_count(out, "readers_max", now->space.max_readers);
    put_count(out, "transaction", now->space.last_transaction);
    buf_adds(out, "}");
}

void stats_json(const struct stats_snapshot *before, const struct stats_snapshot *now,
                struct buf *out)
{
    struct stats_interval v = stats_interval(before, now, STATS_NAMED);
    buf_adds(out, "{\"time\":");
    json_time(out, now->wall_ms);
    put_name(out, "running");
    buf_adds(out, now->running ? "true" : "false");
    put_text(out, "problem", now->why[0] == '\0' ? NULL : now->why);
    if (now->running) {
        put_count(out, "pid", (uint64_t)now->master);
        put_count(out, "generation", now->generation);
        put_count(out, "replaced", now->restarts);
        put_number(out, "seconds", v.seconds);
        put_work(&v, out);
        put_processes(&v, out);
        put_routes(&v, out);
        put_limiters(&v, out);
    }
    if (now->space_known)
        put_store(now, out);
    buf_adds(out, "}\n");
}
