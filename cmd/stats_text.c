#include "cmd/stats.h"

#include <inttypes.h>
#include <stdlib.h>

const char stats_order_keys[STATS_ORDERS] = {
    [STATS_BUSIEST] = 'r', [STATS_SLOWEST] = 't', [STATS_REFUSED] = 'e', [STATS_NAMED] = 'n'};
static const char *const order_names[STATS_ORDERS] = {"requests", "time", "errors", "name"};

/* ---- numbers, at most seven columns wide ---- */

#define CELL 24

static const char *rate_text(double n, char out[CELL])
{
    if (n == 0)
        return "-";
    snprintf(out, CELL,
             n < 10    ? "%.1f"
             : n < 1e5 ? "%.0f"
             : n < 1e7 ? "%.0fk"
                       : "%.0fM",
             n < 1e5   ? n
             : n < 1e7 ? n / 1e3
                       : n / 1e6);
    return out;
}

static const char *time_text(double us, char out[CELL])
{
    if (us < 0)
        return "-";
    if (us < 1000)
        snprintf(out, CELL, "%.0f us", us);
    else if (us < 1e6)
        snprintf(out, CELL, us < 1e5 ? "%.1f ms" : "%.0f ms", us / 1e3);
    else
        snprintf(out, CELL,
                 us < (double)request_stats_bounds[REQUEST_STATS_BOUNDS - 1] ? "%.1f s" : ">%.0f s",
                 us / 1e6);
    return out;
}

static const char *age_text(uint64_t ms, char out[CELL])
{
    uint64_t s = ms / 1000;
    if (s < 1)
        snprintf(out, CELL, "%" PRIu64 "ms", ms);
    else if (s < 3600)
        snprintf(out, CELL, s < 60 ? "%" PRIu64 "s" : "%" PRIu64 "m%02" PRIu64, s < 60 ? s : s / 60,
                 s % 60);
    else
        snprintf(out, CELL, s < 86400 * 3 ? "%" PRIu64 "h%02" PRIu64 : "%" PRIu64 "d",
                 s < 86400 * 3 ? s / 3600 : s / 86400, s / 60 % 60);
    return out;
}

static const char *bytes_text(uint64_t bytes, char out[CELL])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    size_t unit = 0;
    for (; n >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        n /= 1024;
    snprintf(out, CELL, unit == 0 ? "%.0f %s" : "%.1f %s", n, units[unit]);
    return out;
}

/* ---- tables ---- */

#define ROWS_MAX (SCOREBOARD_SLOTS + SCOREBOARD_AUDITORS)

struct table {
    const char *heading;
    void (*row)(const struct stats_interval *v, size_t i, struct buf *out);
    size_t count, shown;
    size_t rows[ROWS_MAX];   /* indexes, in order of weight */
    double weight[ROWS_MAX]; /* by index; the largest comes first */
};

static void put_answers(const struct stats_answers *a, const enum answer_class *classes,
                        size_t count, struct buf *out)
{
    char cell[CELL];
    buf_printf(out, "%7s ", rate_text(a->all, cell));
    buf_printf(out, "%8s ", time_text(a->p50, cell));
    buf_printf(out, "%8s", time_text(a->p99, cell));
    for (size_t i = 0; i < count; i++)
        buf_printf(out, " %6s", rate_text(a->by[classes[i]], cell));
}

static const enum answer_class all_classes[] = {ANSWERED_2XX, ANSWERED_3XX, ANSWERED_4XX,
                                                ANSWERED_429, ANSWERED_5XX};
#define ALL_CLASSES (sizeof(all_classes) / sizeof(all_classes[0]))

#define PROCESS_HEADING                                                                            \
    "PROCESS        PID PHASE       BEAT  CONNS STREAMS PENDING   REQ/S      P50      P99    2XX " \
    " "                                                                                            \
    "  3XX    4XX    429    5XX     UP GEN\n"

static void process_row(const struct stats_interval *v, size_t i, struct buf *out)
{
    const struct stats_process *p = &v->now->processes[i];
    char name[CELL], cell[CELL], up[CELL];
    snprintf(name, sizeof(name), p->role == ROLE_WRITER ? "%s" : "%s %" PRIu32, role_name(p->role),
             p->index);
    buf_printf(out, "%-10s %7d %-8s %7s ", name, p->pid, phase_name(p->phase),
               age_text(p->beat_ms, cell));
    if (p->role == ROLE_WORKER) {
        struct stats_answers a = stats_of_worker(v, p->index);
        buf_printf(out, "%6" PRIu64 " %7" PRIu64 " %7" PRIu64 " ", p->connections, p->streams,
                   p->pending);
        put_answers(&a, all_classes, ALL_CLASSES, out);
    } else {
        buf_printf(out, "%6s %7s %7" PRIu64 " %7s %8s %8s %6s %6s %6s %6s %6s", "", "", p->pending,
                   "", "", "", "", "", "", "", "");
    }
    buf_printf(out, " %6s %3" PRIu32 "\n", age_text(p->up_ms, up), p->generation);
}

#define ROUTE_HEADING                                                                              \
    "  REQ/S      P50      P99    2XX    3XX    4XX    429    5XX      TOTAL ROUTE\n"

static void route_row(const struct stats_interval *v, size_t i, struct buf *out)
{
    struct stats_answers a = stats_of_route(v, i);
    put_answers(&a, all_classes, ALL_CLASSES, out);
    buf_printf(out, " %10" PRIu64 " %s %s\n", a.ever, i == routes_count ? "(no" : routes[i].method,
               i == routes_count ? "route)" : routes[i].path);
}

#define LIMITER_HEADING "ADMITTED/S REFUSED/S  DRY/S   ADMITTED    REFUSED LIMITER\n"

static void limiter_row(const struct stats_interval *v, size_t i, struct buf *out)
{
    const struct stats_limiter *l = &v->now->limiters[i];
    char cells[LIMITER_COUNTS][CELL];
    const char *rates[LIMITER_COUNTS];
    for (unsigned k = 0; k < LIMITER_COUNTS; k++)
        rates[k] = rate_text(stats_of_limiter(v, i, (enum limiter_count)k), cells[k]);
    buf_printf(out, "%10s %9s %6s %10" PRIu64 " %10" PRIu64 " %s\n", rates[COUNT_ADMITTED],
               rates[COUNT_REFUSED], rates[COUNT_DRY_RUN_REFUSED], l->of[COUNT_ADMITTED],
               l->of[COUNT_REFUSED], l->name);
}

static void add_row(struct table *t, size_t i, double weight)
{
    t->weight[i] = weight;
    t->rows[t->count++] = i;
}

static const double *weights;

static int compare_weights(const void *a, const void *b)
{
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    if (weights[i] != weights[j])
        return weights[i] < weights[j] ? 1 : -1;
    return i < j ? -1 : i > j;
}

static void sort_rows(struct table *t)
{
    weights = t->weight;
    qsort(t->rows, t->count, sizeof(t->rows[0]), compare_weights);
}

/* writer, workers, auditors, each by index */
static void add_processes(const struct stats_interval *v, struct table *t)
{
    for (size_t i = 0; i < v->now->process_count; i++) {
        const struct stats_process *p = &v->now->processes[i];
        double role = p->role == ROLE_WRITER ? 3 : p->role == ROLE_WORKER ? 2 : 1;
        add_row(t, i, role * 1e6 - p->index - p->generation * 1e-6);
    }
    sort_rows(t);
}

static double route_weight(const struct stats_interval *v, size_t i, const struct stats_answers *a)
{
    switch (v->order) {
    case STATS_SLOWEST:
        return a->p99;
    case STATS_REFUSED:
        return a->by[ANSWERED_5XX] + a->by[ANSWERED_4XX] + a->by[ANSWERED_429];
    case STATS_NAMED:
        return -(double)i;
    default:
        return a->all;
    }
}

/* routes that were ever requested */
static void add_routes(const struct stats_interval *v, struct table *t)
{
    for (size_t i = 0; i <= routes_count; i++) {
        struct stats_answers a = stats_of_route(v, i);
        if (a.ever > 0)
            add_row(t, i, route_weight(v, i, &a));
    }
    sort_rows(t);
}

static void add_limiters(const struct stats_interval *v, struct table *t)
{
    for (size_t i = 0; i < v->now->limiter_count; i++) {
        const struct stats_limiter *l = &v->now->limiters[i];
        double refused = (double)(l->of[COUNT_REFUSED] + l->of[COUNT_DRY_RUN_REFUSED]);
        add_row(t, i,
                v->order == STATS_NAMED     ? 0
                : v->order == STATS_REFUSED ? refused
                                            : (double)l->of[COUNT_ADMITTED]);
    }
    sort_rows(t);
}

/* ---- the summary ---- */

static void put_summary(const struct stats_interval *v, struct buf *out)
{
    char a[CELL], b[CELL], c[CELL], d[CELL], e[CELL];
    struct stats_work w = stats_work(v);
    const struct stats_snapshot *now = v->now;
    uint64_t up_ms = (uint64_t)now->wall_ms - now->started_at_s * 1000;
    buf_printf(out,
               "assayd %d  up %s  generation %" PRIu32 "  %" PRIu32 " processes replaced  %" PRIu64
               " connections  %" PRIu64 " streams  by %s (keys %c %c %c %c q)\n",
               now->master, age_text(up_ms, a), now->generation, now->restarts,
               STATS_OVER(now, ROLE_WORKER, connections), STATS_OVER(now, ROLE_WORKER, streams),
               order_names[v->order], stats_order_keys[0], stats_order_keys[1], stats_order_keys[2],
               stats_order_keys[3]);
    buf_printf(
        out,
        "writer    %s changes/s  %s commits/s  batch %s  commit p50 %s p99 %s  maintenance %" PRIu64
        "\n",
        rate_text(w.changes, a), rate_text(w.commits, b), rate_text(w.batch, c),
        time_text(w.commit_p50, d), time_text(w.commit_p99, e),
        STATS_OVER(now, ROLE_WRITER, maintenance));
    if (now->space_known)
        buf_printf(
            out,
            "store     %s of %s used (%.1f %%)  index %s  readers %u of %u  transaction %" PRIu64
            "\n",
            bytes_text(now->space.used_bytes, a), bytes_text(now->space.map_bytes, b),
            100.0 * (double)now->space.used_bytes / (double)now->space.map_bytes,
            bytes_text(now->space.index_bytes, c), now->space.readers, now->space.max_readers,
            now->space.last_transaction);
    buf_printf(out,
               "auditors  queue %" PRIu64 "  running %" PRIu64
               "  done/s %s  failed/s %s  page p50 %s p99 %s\n",
               STATS_OVER(now, ROLE_WRITER, pending), STATS_OVER(now, ROLE_AUDITOR, pending),
               rate_text(w.done, a), rate_text(w.failed, b), time_text(w.page_p50, c),
               time_text(w.page_p99, d));
    if (now->why[0] != '\0')
        buf_printf(out, "%s\n", now->why);
}

/* ---- the whole text ---- */

/* Share the rows among the tables, one each in turn. A first row also needs a heading and a gap. */
static void share_rows(struct table *tables, size_t count, size_t rows)
{
    bool given = true;
    for (size_t i = 0; i < count; i++)
        tables[i].shown = 0;
    while (given) {
        given = false;
        for (size_t i = 0; i < count; i++) {
            size_t cost = tables[i].shown == 0 ? 3 : 1;
            if (tables[i].shown == tables[i].count || rows < cost)
                continue;
            rows -= cost;
            tables[i].shown++;
            given = true;
        }
    }
}

static size_t lines_of(const struct buf *text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text->n; i++)
        lines += text->p[i] == '\n';
    return lines;
}

/* Cut the text to ${rows} and ${columns}. Continuation bytes of UTF-8 take no column. */
static void put_clipped(const struct buf *text, size_t rows, size_t columns, struct buf *out)
{
    size_t column = 0, lines = 0;
    for (size_t i = 0; i < text->n && (rows == 0 || lines < rows); i++) {
        char c = text->p[i];
        bool goes_on = ((unsigned char)c & 0xc0) == 0x80;
        column += !goes_on;
        if (c == '\n' || columns == 0 || column <= columns)
            buf_add(out, &c, 1);
        column = c == '\n' ? 0 : column;
        lines += c == '\n';
    }
}

void stats_text(const struct stats_snapshot *before, const struct stats_snapshot *now,
                enum stats_order order, size_t rows, size_t columns, struct buf *out)
{
    static struct table tables[3];
    struct stats_interval v = stats_interval(before, now, order);
    struct buf text = {.p = NULL};
    tables[0] = (struct table){.heading = PROCESS_HEADING, .row = process_row};
    tables[1] = (struct table){.heading = ROUTE_HEADING, .row = route_row};
    tables[2] = (struct table){.heading = LIMITER_HEADING, .row = limiter_row};
    if (now->running) {
        put_summary(&v, &text);
        add_processes(&v, &tables[0]);
        add_routes(&v, &tables[1]);
        add_limiters(&v, &tables[2]);
    } else {
        buf_printf(&text, "%s\n",
                   now->why[0] != '\0' ? now->why : "No server runs; waiting for it to start.");
    }
    size_t head = lines_of(&text);
    share_rows(tables, 3, rows == 0 ? SIZE_MAX : rows > head ? rows - head : 0);
    for (size_t i = 0; i < 3; i++) {
        struct table *t = &tables[i];
        if (t->shown > 0)
            buf_printf(&text, "\n%s", t->heading);
        for (size_t k = 0; k < t->shown; k++)
            t->row(&v, t->rows[k], &text);
    }
    put_clipped(&text, rows, columns, out);
    buf_free(&text);
}
