#include "metrics.h"

#include "limit.h"
#include "../limiters_board.h"
#include "../../ratelimit/ratelimit.h"

/* ---- limits ---- */

static void limiter_counts(struct worker *w, const struct metric *m, struct buf *out, enum limiter_count what)
{
    const struct limiters *limits = limiting_limits(w->limiting);
    for (unsigned i = 1; i < limits->count; i++)
        metrics_sample(out, m, "limiter", limits->rows[i].name, limiters_board_total(w->process->limiters, limits->rows[i].counter, what));
}

static void admitted(struct worker *w, const struct metric *m, struct buf *out)
{
    limiter_counts(w, m, out, COUNT_ADMITTED);
}

static void refused(struct worker *w, const struct metric *m, struct buf *out)
{
    limiter_counts(w, m, out, COUNT_REFUSED);
}

static void dry_run_refused(struct worker *w, const struct metric *m, struct buf *out)
{
    limiter_counts(w, m, out, COUNT_DRY_RUN_REFUSED);
}

/* the table tells limiters apart by the numbers of their counters */
static void limiter_tags(struct worker *w, const struct metric *m, struct buf *out, const uint64_t by_tag[RATELIMIT_TAGS])
{
    const struct limiters *limits = limiting_limits(w->limiting);
    for (unsigned i = 1; i < limits->count; i++)
        metrics_sample(out, m, "limiter", limits->rows[i].name, by_tag[limits->rows[i].counter]);
}

static struct ratelimit_usage usage(struct worker *w)
{
    struct ratelimit_usage usage;
    ratelimit_usage(w->process->ratelimit, clock_wall_ms() / 1000, &usage);
    return usage;
}

static void slots(struct worker *w, const struct metric *m, struct buf *out)
{
    metrics_sample(out, m, NULL, NULL, usage(w).slots);
}

static void slots_used(struct worker *w, const struct metric *m, struct buf *out)
{
    struct ratelimit_usage all = usage(w);
    limiter_tags(w, m, out, all.used_by);
}

static void evicted_alive(struct worker *w, const struct metric *m, struct buf *out)
{
    struct ratelimit_usage all = usage(w);
    limiter_tags(w, m, out, all.evicted_by);
}

/* Columns: name, type, help, what writes its samples. */
const struct metric metrics[] = {
    {"assay_limiter_admitted_total", "counter", "Requests that a limiter counted and let through.", admitted},
    {"assay_limiter_refused_total", "counter", "Requests that a limiter refused with 429.", refused},
    {"assay_limiter_dry_run_refused_total", "counter", "Requests that a limiter in dry run would have refused.", dry_run_refused},
    {"assay_limiter_slots", "gauge", "Keys that the table of all limiters has room for.", slots},
    {"assay_limiter_slots_used", "gauge", "Keys in it whose window goes on; an estimate where the table is large.", slots_used},
    {"assay_limiter_evicted_alive_total", "counter",
     "Keys that lost their count to another while their window went on: the table is too small.", evicted_alive},
};
const size_t metrics_count = sizeof(metrics) / sizeof(metrics[0]);

void metrics_sample(struct buf *out, const struct metric *m, const char *label, const char *value, uint64_t number)
{
    buf_adds(out, m->name);
    if (label != NULL)
        buf_printf(out, "{%s=\"%s\"}", label, value);
    buf_adds(out, " ");
    buf_u64(out, number);
    buf_adds(out, "\n");
}

void metrics_write(struct worker *w, struct buf *out)
{
    for (size_t i = 0; i < metrics_count; i++) {
        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[i].name, metrics[i].help, metrics[i].name, metrics[i].type);
        metrics[i].write(w, &metrics[i], out);
    }
}
