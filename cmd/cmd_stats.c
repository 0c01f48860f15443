#include "cmd/stats.h"

#include "core/conf/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WATCH_MS 1000
#define WATCH_LEAST_MS 100
#define FIRST_MS 250 /* between the first two snapshots */

const struct cmd_option cmd_stats_options[] = {
    {"--watch", NULL,
     "show a live screen of workers, routes, writer, store, auditors and limiters; without a "
     "terminal, print it repeatedly"},
    {"--interval", "TIME", "time between updates of --watch, such as 2s or 500ms; default 1s"},
    {.name = NULL},
};

static void show_process(struct records *records, const struct score *score, uint64_t now_ms)
{
    uint64_t started = score_get(score->started_ms), heartbeat = score_get(score->heartbeat_ms),
             busy = score_get(score->busy_since_ms);
    records_text(records, "process", str_of(role_name((enum role)score_get(score->role))));
    records_number(records, "index", score_get(score->index));
    records_number(records, "pid", (uint64_t)score_get(score->pid));
    records_number(records, "generation", score_get(score->generation));
    records_text(records, "phase", str_of(phase_name((enum phase)score_get(score->phase))));
    records_number(records, "up_s", (now_ms - started) / 1000);
    records_number(records, "heartbeat_ms_ago",
                   heartbeat == 0 || heartbeat > now_ms ? 0 : now_ms - heartbeat);
    records_number(records, "busy_ms", busy == 0 || busy > now_ms ? 0 : now_ms - busy);
    records_number(records, "connections", score_get(score->connections));
    records_number(records, "streams", score_get(score->streams));
    records_number(records, "done", score_get(score->requests));
    records_number(records, "batches", score_get(score->batches));
    records_number(records, "pending", score_get(score->pending));
    records_number(records, "maintenance", score_get(score->maintenance_left));
    records_number(records, "turn_max_us", score_get(score->longest_us));
    records_number(records, "turn_max_cpu_us", score_get(score->longest_cpu_us));
    records_end_row(records);
}

static void show_cluster(const struct scoreboard *board)
{
    struct cluster_view view;
    cluster_score_read(&board->cluster, &view);
    if (view.role == CLUSTER_NONE)
        return;
    const char *role = cluster_role_name(cluster_view_role(&view, clock_mono_us()));
    printf("cluster: %s, epoch %llu, has %llu of %llu entries", role,
           (unsigned long long)view.epoch, (unsigned long long)view.applied,
           (unsigned long long)view.head);
    if (view.confirmed_us == 0)
        puts(", has not read the head of the log");
    else
        printf(", read the head of the log %.1f s ago\n",
               (double)(clock_mono_us() - view.confirmed_us) / 1e6);
}

static void show(const struct scoreboard *board, bool json)
{
    struct records records;
    uint64_t now_ms = clock_mono_ms();
    const struct score *score;
    records_start(&records, json);
    for (size_t i = 0; (score = scoreboard_at(board, i)) != NULL; i++)
        if (score_get(score->pid) != 0)
            show_process(&records, score, now_ms);
    if (!json) {
        printf("assayd %d, configuration generation %u, %u processes replaced\n",
               score_get(board->master_pid), score_get(board->generation),
               score_get(board->restarts));
        show_cluster(board);
        puts("");
    }
    records_finish(&records);
    if (!json)
        puts(
            "\n"
            "done         requests of a worker, changes of the writer, pages of an auditor\n"
            "batches      commits of the writer, failed pages of an auditor\n"
            "streams      connections that are event streams\n"
            "pending      waiting requests of a worker, queued pages of the writer, pages that an\n"
            "             auditor is grading\n"
            "maintenance  records that the writer still has to update or purge in the background\n"
            "turn_max     longest turn of a worker's event loop, or longest background\n"
            "             transaction of the writer: us of wall time (for a worker to within\n"
            "             1 ms), cpu_us of CPU time");
    fflush(stdout);
}

static int show_once(struct cmd *cmd)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/scoreboard", cmd->conf->run_dir);
    const struct scoreboard *board = scoreboard_open(path);
    if (board == NULL && errno == EPROTO)
        return cmd_refuse("%s was written by another version; use the assay of the running server",
                          path);
    if (board == NULL)
        return cmd_refuse("cannot read %s: %s; is the server running?", path, strerror(errno));
    int status = CMD_DONE;
    if (stats_alive(board))
        show(board, cmd->json);
    else
        status = cmd_refuse("no server runs with run_dir %s", cmd->conf->run_dir);
    scoreboard_close(board);
    return status;
}

/* ---- --watch ---- */

struct watch {
    struct stats *stats;
    struct stats_snapshot *before, *now;
    enum stats_order order;
    bool json, terminal;
    struct buf out;
};

static bool print(struct watch *w)
{
    size_t rows = 0, columns = 0;
    buf_reset(&w->out);
    if (w->json) {
        stats_json(w->before, w->now, &w->out);
    } else {
        if (w->terminal)
            screen_size(&rows, &columns);
        stats_text(w->before, w->now, w->order, rows, columns, &w->out);
    }
    if (w->terminal)
        return screen_draw(buf_view(&w->out));
    fwrite(w->out.p, 1, w->out.n, stdout);
    if (!w->json)
        putchar('\n');
    if (fflush(stdout) == 0)
        return true;
    if (errno == EPIPE) /* the reader has left: the normal end */
        clearerr(stdout);
    return false;
}

static void take_snapshot(struct watch *w)
{
    struct stats_snapshot *spare = w->before;
    w->before = w->now;
    w->now = spare;
    stats_snapshot_take(w->stats, w->now);
}

/* False: the key ends the program. */
static bool take_key(struct watch *w, int key)
{
    for (int i = 0; i < STATS_ORDERS; i++)
        if (key == stats_order_keys[i])
            w->order = (enum stats_order)i;
    return key != 'q' && key != 'Q';
}

/* A key or a new size draws the same snapshots again; after the interval comes the next one. */
static void watch(struct watch *w, uint64_t interval_ms)
{
    uint64_t next_ms = clock_mono_ms() + (interval_ms < FIRST_MS ? interval_ms : FIRST_MS);
    stats_snapshot_take(w->stats, w->now);
    for (bool on = true, shown = false; on;) {
        int what = screen_wait(next_ms);
        on = what != SCREEN_STOP && (what <= 0 || take_key(w, what));
        if (on && what == SCREEN_TIME) {
            take_snapshot(w);
            next_ms = clock_mono_ms() + interval_ms;
            shown = true;
        }
        on = on && (!shown || print(w));
    }
}

static int show_live(struct cmd *cmd, uint64_t interval_ms)
{
    struct watch w = {.stats = stats_new(cmd->conf),
                      .before = calloc(1, sizeof(*w.before)),
                      .now = calloc(1, sizeof(*w.now)),
                      .json = cmd->json,
                      .terminal = !cmd->json && isatty(STDOUT_FILENO) != 0};
    int status = CMD_DONE;
    if (w.stats == NULL || w.before == NULL || w.now == NULL) {
        status = cmd_refuse("out of memory");
    } else {
        screen_open(w.terminal);
        watch(&w, interval_ms);
        screen_close();
    }
    buf_free(&w.out);
    free(w.before);
    free(w.now);
    stats_free(w.stats);
    return status;
}

int cmd_stats(struct cmd *cmd)
{
    const char *interval = cmd_value(cmd, "--interval");
    uint64_t interval_ms = WATCH_MS;
    if (interval != NULL && !cmd_has(cmd, "--watch"))
        return cmd_misuse(cmd, "--interval needs --watch");
    if (interval != NULL &&
        (!value_duration(interval, &interval_ms) || interval_ms < WATCH_LEAST_MS))
        return cmd_misuse(cmd,
                          "--interval: \"%s\" is not a time of at least %dms, such as 2s or 500ms",
                          interval, WATCH_LEAST_MS);
    return cmd_has(cmd, "--watch") ? show_live(cmd, interval_ms) : show_once(cmd);
}
