#include "core/http/metrics_internal.h"

#include "core/http/limit.h"
#include "core/http/route.h"
#include "core/shm/connection_table.h"
#include "core/shm/limiter_stats.h"
#include "core/shm/request_stats.h"
#include "config.h"
#include "ratelimit/ratelimit.h"

void metric_line(struct buf *out, const struct metric *m, const char *label, const char *value,
                 uint64_t number)
{
    buf_adds(out, m->name);
    if (label != NULL)
        buf_printf(out, "{%s=\"%s\"}", label, value);
    buf_adds(out, " ");
    buf_u64(out, number);
    buf_adds(out, "\n");
}

/* ---- limits ---- */

static void limiter_counts(struct http *h, const struct metric *m, struct buf *out,
                           enum limiter_count what)
{
    const struct limiters *limits = request_limiter_limits(h->limiter);
    for (unsigned i = 1; i < limits->count; i++)
        metric_line(out, m, "limiter", limits->rows[i].name,
                    limiter_stats_total(h->loop->process->limiters, limits->rows[i].counter, what));
}

static void admitted(struct http *h, const struct metric *m, struct buf *out)
{
    limiter_counts(h, m, out, COUNT_ADMITTED);
}

static void refused(struct http *h, const struct metric *m, struct buf *out)
{
    limiter_counts(h, m, out, COUNT_REFUSED);
}

static void dry_run_refused(struct http *h, const struct metric *m, struct buf *out)
{
    limiter_counts(h, m, out, COUNT_DRY_RUN_REFUSED);
}

static void fallback(struct http *h, const struct metric *m, struct buf *out)
{
    limiter_counts(h, m, out, COUNT_FALLBACK);
}

/* The table knows limiters by the number of their counter. */
static void limiter_tags(struct http *h, const struct metric *m, struct buf *out,
                         const uint64_t by_tag[RATELIMIT_TAGS])
{
    const struct limiters *limits = request_limiter_limits(h->limiter);
    for (unsigned i = 1; i < limits->count; i++)
        metric_line(out, m, "limiter", limits->rows[i].name, by_tag[limits->rows[i].counter]);
}

static struct ratelimit_usage usage(struct http *h)
{
    struct ratelimit_usage usage;
    ratelimit_usage(h->loop->process->ratelimit, clock_wall_ms() / 1000, &usage);
    return usage;
}

static void slots(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, usage(h).slots);
}

static void slots_used(struct http *h, const struct metric *m, struct buf *out)
{
    struct ratelimit_usage all = usage(h);
    limiter_tags(h, m, out, all.used_by);
}

static void evicted_alive(struct http *h, const struct metric *m, struct buf *out)
{
    struct ratelimit_usage all = usage(h);
    limiter_tags(h, m, out, all.evicted_by);
}

/* ---- responses ---- */

#define LABELS_MAX 256

/* paths of the route table need no escaping */
static void route_labels(size_t route, char labels[LABELS_MAX])
{
    bool none = route == routes_count;
    snprintf(labels, LABELS_MAX, "method=\"%s\",route=\"%s\"", none ? "" : routes[route].method,
             none ? "" : routes[route].path);
}

static void responses(struct http *h, const struct metric *m, struct buf *out)
{
    for (size_t route = 0; route <= routes_count; route++)
        for (size_t i = 0; request_stats_status(i) >= 0; i++) {
            char labels[LABELS_MAX], status[16] = "other";
            uint64_t count = request_stats_answers(h->loop->process->request_stats, route, i);
            if (count == 0)
                continue;
            route_labels(route, labels);
            if (request_stats_status(i) > 0)
                snprintf(status, sizeof(status), "%d", request_stats_status(i));
            buf_printf(out, "%s{%s,status=\"%s\"} %llu\n", m->name, labels, status,
                       (unsigned long long)count);
        }
}

void metric_time(struct buf *out, uint64_t us)
{
    buf_printf(out, "%llu.%06u", (unsigned long long)(us / 1000000), (unsigned)(us % 1000000));
}

/* The lines of a histogram. */
static void times(const struct metric *m, struct buf *out, const char *labels,
                  const struct request_stats_times *t)
{
    uint64_t count = 0;
    const char *comma = labels[0] == '\0' ? "" : ",", *open = labels[0] == '\0' ? "" : "{",
               *close = labels[0] == '\0' ? "" : "}";
    for (size_t i = 0; i < REQUEST_STATS_BOUNDS; i++) {
        count += t->count[i];
        buf_printf(out, "%s_bucket{%s%sle=\"", m->name, labels, comma);
        metric_time(out, request_stats_bounds[i]);
        buf_printf(out, "\"} %llu\n", (unsigned long long)count);
    }
    count += t->count[REQUEST_STATS_BOUNDS];
    buf_printf(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n%s_sum%s%s%s ", m->name, labels, comma,
               (unsigned long long)count, m->name, open, labels, close);
    metric_time(out, t->sum);
    buf_printf(out, "\n%s_count%s%s%s %llu\n", m->name, open, labels, close,
               (unsigned long long)count);
}

static void response_times(struct http *h, const struct metric *m, struct buf *out)
{
    for (size_t route = 0; route <= routes_count; route++) {
        char labels[LABELS_MAX];
        struct request_stats_times t =
            request_stats_route_times(h->loop->process->request_stats, route);
        bool any = t.sum > 0;
        for (size_t i = 0; i <= REQUEST_STATS_BOUNDS; i++)
            any = any || t.count[i] > 0;
        route_labels(route, labels);
        if (any)
            times(m, out, labels, &t);
    }
}

/* ---- processes ---- */

/* The sum, or the maximum, of a member over the processes of a role. */
static uint64_t over_role(struct http *h, enum role role, bool largest,
                          uint64_t (*member)(const struct score *s))
{
    uint64_t result = 0, value;
    const struct score *s;
    for (size_t i = 0; (s = scoreboard_at(h->loop->process->scoreboard, i)) != NULL; i++)
        if (score_get(s->pid) != 0 && score_get(s->role) == role &&
            ((value = member(s)) > result || !largest))
            result = largest ? value : result + value;
    return result;
}

static uint64_t one(const struct score *s)
{
    (void)s;
    return 1;
}

static uint64_t open_streams(const struct score *s)
{
    return score_get(s->streams);
}

static uint64_t open_connections(const struct score *s)
{
    return score_get(s->connections);
}

static uint64_t pending(const struct score *s)
{
    return score_get(s->pending);
}

static uint64_t maintenance(const struct score *s)
{
    return score_get(s->maintenance_left);
}

static uint64_t heartbeat_age_ms(const struct score *s)
{
    uint64_t now = clock_mono_ms(), beat = score_get(s->heartbeat_ms);
    return beat != 0 && now > beat ? now - beat : 0;
}

static uint64_t longest_us(const struct score *s)
{
    return score_get(s->longest_us);
}

static const enum role roles[] = {ROLE_WORKER, ROLE_WRITER, ROLE_AUDITOR};

static void processes(struct http *h, const struct metric *m, struct buf *out)
{
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
        metric_line(out, m, "role", role_name(roles[i]), over_role(h, roles[i], false, one));
}

static void heartbeats(struct http *h, const struct metric *m, struct buf *out)
{
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        buf_printf(out, "%s{role=\"%s\"} ", m->name, role_name(roles[i]));
        metric_time(out, over_role(h, roles[i], true, heartbeat_age_ms) * 1000);
        buf_adds(out, "\n");
    }
}

static void longest_turns(struct http *h, const struct metric *m, struct buf *out)
{
    static const enum role loops[] = {ROLE_WORKER, ROLE_WRITER};
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
        buf_printf(out, "%s{role=\"%s\"} ", m->name, role_name(loops[i]));
        metric_time(out, over_role(h, loops[i], true, longest_us));
        buf_adds(out, "\n");
    }
}

static void restarts(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, score_get(h->loop->process->scoreboard->restarts));
}

static void generation(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, score_get(h->loop->process->scoreboard->generation));
}

static void started(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, score_get(h->loop->process->scoreboard->started_at_s));
}

static void build(struct http *h, const struct metric *m, struct buf *out)
{
    (void)h;
    metric_line(out, m, "version", PACKAGE_VERSION, 1);
}

static void connections(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, over_role(h, ROLE_WORKER, false, open_connections));
}

static void connections_max(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, h->loop->conf->max_connections);
}

static void streams(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, over_role(h, ROLE_WORKER, false, open_streams));
}

static void evicted(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(
        out, m, NULL, NULL,
        connection_table_event_count(h->loop->process->connection_table, CONNECTIONS_EVICTED));
}

static void refused_connections(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(
        out, m, NULL, NULL,
        connection_table_event_count(h->loop->process->connection_table, CONNECTIONS_REFUSED));
}

static void ended_early(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(
        out, m, "what", "answer",
        connection_table_event_count(h->loop->process->connection_table, CONNECTIONS_RESPONSE_CUT));
    metric_line(
        out, m, "what", "upload",
        connection_table_event_count(h->loop->process->connection_table, CONNECTIONS_UPLOAD_CUT));
}

static uint64_t is_without_redis(const struct score *s)
{
    return score_get(s->redis_away_ms) != 0;
}

static void without_redis(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, over_role(h, ROLE_WORKER, false, is_without_redis));
}

static void waiting_requests(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, over_role(h, ROLE_WORKER, false, pending));
}

/* ---- writer, store, auditors ---- */

static void changes(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, request_stats_work(h->loop->process->request_stats).changes);
}

static void commit_times(struct http *h, const struct metric *m, struct buf *out)
{
    struct request_stats_work work = request_stats_work(h->loop->process->request_stats);
    times(m, out, "", &work.commits);
}

static void maintenance_left(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, over_role(h, ROLE_WRITER, false, maintenance));
}

static void unindexed(struct http *h, const struct metric *m, struct buf *out)
{
    uint64_t count;
    if (store_answers_unindexed(h->loop->store, &count) != STORE_OK)
        count = 0;
    metric_line(out, m, NULL, NULL, count);
}

static struct store_space space(struct http *h)
{
    struct store_space space;
    if (store_space(h->loop->store, &space) != STORE_OK)
        space = (struct store_space){0};
    return space;
}

static void map_used(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, space(h).used_bytes);
}

static void index_size(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, space(h).index_bytes);
}

static void map_size(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, space(h).map_bytes);
}

static void readers(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, space(h).readers);
}

static void readers_max(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, space(h).max_readers);
}

static void queued(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, over_role(h, ROLE_WRITER, false, pending));
}

static void grading(struct http *h, const struct metric *m, struct buf *out)
{
    metric_line(out, m, NULL, NULL, over_role(h, ROLE_AUDITOR, false, pending));
}

static void graded(struct http *h, const struct metric *m, struct buf *out)
{
    struct request_stats_work work = request_stats_work(h->loop->process->request_stats);
    metric_line(out, m, "outcome", "done", work.done);
    metric_line(out, m, "outcome", "failed", work.failed);
}

static void page_times(struct http *h, const struct metric *m, struct buf *out)
{
    struct request_stats_work work = request_stats_work(h->loop->process->request_stats);
    times(m, out, "", &work.pages);
}

/* Columns: name, type, help, what writes its samples. */
const struct metric metrics[] = {
    {"assay_build_info", "gauge", "The server's version; always 1.", build},
    {"assay_start_time_seconds", "gauge",
     "Start time of the server, in seconds since the Unix epoch.", started},
    {"assay_generation", "gauge",
     "Configurations applied since the start; each reload applies one.", generation},
    {"assay_processes", "gauge", "Live processes by role, including draining ones.", processes},
    {"assay_process_restarts_total", "counter", "Processes replaced after they ended unexpectedly.",
     restarts},
    {"assay_heartbeat_age_seconds", "gauge",
     "Age of the oldest heartbeat among the processes of a role.", heartbeats},
    {"assay_loop_turn_max_seconds", "gauge",
     "Wall time of the longest turn of a live worker's event loop, and of "
     "the writer's longest background transaction.",
     longest_turns},
    {"assay_connections", "gauge",
     "Open connections, including those that wait in the accept queue.", connections},
    {"assay_connections_max", "gauge", "Maximum number of admitted connections, max_connections.",
     connections_max},
    {"assay_http_streams", "gauge", "Open event streams; each uses one connection.", streams},
    {"assay_connections_evicted_total", "counter",
     "Connections closed to admit others when max_connections was reached.", evicted},
    {"assay_connections_refused_total", "counter",
     "Connections refused because their address had max_connections_per_ip, or had most of the "
     "connections in a full accept queue.",
     refused_connections},
    {"assay_connections_cut_off_total", "counter",
     "Connections closed when a worker reached its memory bound: the responses unread for longest, "
     "and the largest unfinished uploads.",
     ended_early},
    {"assay_http_requests_waiting", "gauge", "Requests that wait for the writer or for a grade.",
     waiting_requests},
    {"assay_http_requests_total", "counter",
     "Requests answered, by route and status; the route is empty if no route matched.", responses},
    {"assay_http_request_duration_seconds", "histogram",
     "Time from the request head to the end of the response, without event streams.",
     response_times},
    {"assay_writer_changes_total", "counter",
     "Durable changes, also of the server itself; divided by the number of commits, the batch "
     "size.",
     changes},
    {"assay_writer_commit_duration_seconds", "histogram", "Time of one commit, including the disk.",
     commit_times},
    {"assay_writer_maintenance_records", "gauge",
     "Records left to rate again or purge in the background.", maintenance_left},
    {"assay_answers_unindexed_changes", "gauge",
     "Changes of synced documents that the chat does not find yet, and answer files to build.",
     unindexed},
    {"assay_store_used_bytes", "gauge", "Bytes of data.mdb in use, without its free pages.",
     map_used},
    {"assay_store_index_bytes", "gauge", "Bytes of the segment files of the report indexes.",
     index_size},
    {"assay_store_map_bytes", "gauge", "Maximum size of data.mdb in bytes, store.map_size.",
     map_size},
    {"assay_store_readers", "gauge", "Used slots of the store's reader table.", readers},
    {"assay_store_readers_max", "gauge", "Slots of the store's reader table.", readers_max},
    {"assay_cluster_state", "gauge", "1: the state of this node in its cluster.",
     metrics_cluster_state},
    {"assay_cluster_epoch", "gauge", "Number of the lead, which each new leader raises.",
     metrics_cluster_epoch},
    {"assay_cluster_head", "gauge", "Last entry of the cluster's log that this node knows of.",
     metrics_cluster_head},
    {"assay_cluster_position", "gauge", "Last entry of the log that this node has applied.",
     metrics_cluster_position},
    {"assay_cluster_lag_entries", "gauge",
     "Entries that this node knows of and has not applied yet.", metrics_cluster_lag},
    {"assay_cluster_confirm_age_seconds", "gauge",
     "Time since this node last read the head of the log, or since the server started.",
     metrics_cluster_confirmed},
    {"assay_cluster_lag_seconds", "gauge",
     "Time since this node had all entries of the log, or since the server started; above "
     "cluster.max_lag it answers 503.",
     metrics_cluster_current},
    {"assay_cluster_clock_offset_seconds", "gauge",
     "Clock of this node minus that of PostgreSQL; above 5 either way, a clock is wrong.",
     metrics_cluster_clock},
    {"assay_cluster_appends_total", "counter", "Entries that this node appended to the log.",
     metrics_cluster_appends},
    {"assay_cluster_append_seconds_total", "counter",
     "Time of these appends, including PostgreSQL's standby.", metrics_cluster_append_time},
    {"assay_audit_jobs_queued", "gauge", "Pages that wait for an auditor or are being graded.",
     queued},
    {"assay_audit_pages_running", "gauge", "Pages that auditors are fetching and grading.",
     grading},
    {"assay_audit_pages_total", "counter", "Finished pages: graded or failed.", graded},
    {"assay_audit_page_duration_seconds", "histogram",
     "Time of one page, from its start in an auditor until its results are stored.", page_times},
    {"assay_limiter_admitted_total", "counter", "Requests that a limiter counted and admitted.",
     admitted},
    {"assay_limiter_refused_total", "counter", "Requests that a limiter refused with 429.",
     refused},
    {"assay_limiter_dry_run_refused_total", "counter",
     "Requests that a limiter in dry run would have refused.", dry_run_refused},
    {"assay_limiter_fallback_total", "counter",
     "Requests that the fallback of a limiter decided, because Redis did not answer.", fallback},
    {"assay_limiter_workers_without_redis", "gauge",
     "Workers that Redis does not answer; 0 if limits.engine is local.", without_redis},
    {"assay_limiter_slots", "gauge", "Capacity, in keys, of the table of all limiters.", slots},
    {"assay_limiter_slots_used", "gauge",
     "Keys in the table whose window is open; an estimate for a large table.", slots_used},
    {"assay_limiter_evicted_alive_total", "counter",
     "Keys that were evicted while their window was open: the table is too small.", evicted_alive},
};
const size_t metrics_count = sizeof(metrics) / sizeof(metrics[0]);

void metrics_write(struct http *h, struct buf *out)
{
    for (size_t i = 0; i < metrics_count; i++) {
        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[i].name, metrics[i].help,
                   metrics[i].name, metrics[i].type);
        metrics[i].write(h, &metrics[i], out);
    }
}
