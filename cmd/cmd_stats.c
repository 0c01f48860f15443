#include "cmd.h"
#include "scoreboard.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WATCH_MS 1000

const struct cmd_option cmd_stats_options[] = {{"--watch", NULL, "show it anew every second, until Ctrl-C"}, {.name = NULL}};

static void show_process(struct records *records, const struct score *score, uint64_t now_ms)
{
    uint64_t started = score_get(score->started_ms), heartbeat = score_get(score->heartbeat_ms), busy = score_get(score->busy_since_ms);
    records_text(records, "process", str_of(role_name((enum role)score_get(score->role))));
    records_number(records, "index", score_get(score->index));
    records_number(records, "pid", (uint64_t)score_get(score->pid));
    records_number(records, "generation", score_get(score->generation));
    records_text(records, "phase", str_of(phase_name((enum phase)score_get(score->phase))));
    records_number(records, "up_s", (now_ms - started) / 1000);
    records_number(records, "heartbeat_ms_ago", heartbeat == 0 || heartbeat > now_ms ? 0 : now_ms - heartbeat);
    records_number(records, "busy_ms", busy == 0 || busy > now_ms ? 0 : now_ms - busy);
    records_number(records, "connections", score_get(score->connections));
    records_number(records, "done", score_get(score->requests));
    records_number(records, "batches", score_get(score->batches));
    records_number(records, "pending", score_get(score->pending));
    records_number(records, "upkeep", score_get(score->upkeep));
    records_number(records, "stretch_us", score_get(score->stretch_us));
    records_number(records, "stretch_cpu_us", score_get(score->stretch_cpu_us));
    records_end_row(records);
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
    if (!json)
        printf("assayd %d, generation %u, %u children replaced\n\n", score_get(board->master_pid), score_get(board->generation),
               score_get(board->restarts));
    records_finish(&records);
    if (!json)
        puts("\ndone: requests of a worker, changes of the writer, pages of an auditor; batches: the writer's commits, an auditor's failed "
             "pages;\n"
             "pending: a worker's held requests, the writer's jobs, an auditor's running pages;\n"
             "upkeep: records that the writer has left to rate, render, purge or merge in the background;\n"
             "stretch: microseconds, by the clock and of the processor, that the longest list held its worker's loop without a break, and\n"
             "that the longest slice of work in the background held the writer.\n"
             "A writer that is starting after an update counts reports brought to its version, and those still to do.");
    fflush(stdout);
}

/* Whether the server that wrote the board is there: the file outlives it. */
static bool alive(const struct scoreboard *board)
{
    pid_t master = score_get(board->master_pid);
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d", master);
    return master > 0 && access(path, F_OK) == 0;
}

int cmd_stats(struct cmd *cmd)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/scoreboard", cmd->conf->run_dir);
    const struct scoreboard *board = scoreboard_open(path);
    if (board == NULL)
        return cmd_refuse("%s cannot be read: %s; is the server running?", path, strerror(errno));
    bool watch = cmd_has(cmd, "--watch"), terminal = isatty(STDOUT_FILENO) != 0;
    int status = CMD_DONE;
    do {
        if (!alive(board)) {
            status = cmd_refuse("no server runs on run_dir %s", cmd->conf->run_dir);
            break;
        }
        if (watch && terminal && !cmd->json)
            fputs("\033[H\033[2J", stdout);
        show(board, cmd->json);
        if (watch)
            nanosleep(&(struct timespec){.tv_sec = WATCH_MS / 1000, .tv_nsec = WATCH_MS % 1000 * 1000000L}, NULL);
    } while (watch && ferror(stdout) == 0);
    scoreboard_close(board);
    return status;
}
