#include "cmd/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of the server, mapped as long as it is not replaced. */
struct mapped_file {
    const char *name;
    ino_t inode;
    const void *map;
    int error; /* why it is not mapped */
};

struct stats {
    const struct conf *conf;
    struct mapped_file board, request_stats, limiters;
    struct limiters limits; /* of the last snapshot */
    uint64_t limits_version;
};

struct stats *stats_new(const struct conf *conf)
{
    struct stats *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->conf = conf;
    s->board.name = "scoreboard";
    s->request_stats.name = "traffic";
    s->limiters.name = "limiters";
    return s;
}

static void unmap(struct stats *s, struct mapped_file *file)
{
    if (file == &s->board)
        scoreboard_close(file->map);
    else if (file == &s->request_stats)
        request_stats_close(file->map);
    else
        limiter_stats_close(file->map);
    file->map = NULL;
}

void stats_free(struct stats *s)
{
    if (s == NULL)
        return;
    unmap(s, &s->board);
    unmap(s, &s->request_stats);
    unmap(s, &s->limiters);
    free(s);
}

static const void *map(struct stats *s, const struct mapped_file *file, const char *path)
{
    if (file == &s->board)
        return scoreboard_open(path);
    if (file == &s->request_stats)
        return request_stats_open(path);
    return limiter_stats_open(path);
}

/* Map a file again if its inode changed: a starting server creates new files. */
static const void *map_current(struct stats *s, struct mapped_file *file)
{
    char path[4200];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", s->conf->run_dir, file->name);
    bool there = stat(path, &st) == 0;
    file->error = there ? 0 : errno;
    if (file->map != NULL && (!there || st.st_ino != file->inode))
        unmap(s, file);
    if (file->map == NULL && there) {
        errno = EPROTO;
        file->map = map(s, file, path);
        file->error = file->map == NULL ? errno : 0;
        file->inode = st.st_ino;
        if (file == &s->limiters)
            s->limits_version = 0; /* each file counts its own versions */
    }
    return file->map;
}

bool stats_alive(const struct scoreboard *board)
{
    pid_t master = score_get(board->master_pid);
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d", master);
    return master > 0 && access(path, F_OK) == 0;
}

/* ---- the parts of a snapshot ---- */

static uint64_t ago(uint64_t then_ms, uint64_t now_ms)
{
    return then_ms == 0 || then_ms > now_ms ? 0 : now_ms - then_ms;
}

static void read_processes(const struct scoreboard *board, struct stats_snapshot *out)
{
    const struct score *score;
    out->master = score_get(board->master_pid);
    out->generation = score_get(board->generation);
    out->restarts = score_get(board->restarts);
    out->workers_wanted = score_get(board->workers);
    out->started_at_s = score_get(board->started_at_s);
    for (size_t i = 0; (score = scoreboard_at(board, i)) != NULL; i++)
        if (score_get(score->pid) != 0)
            out->processes[out->process_count++] = (struct stats_process){
                .role = (enum role)score_get(score->role),
                .phase = (enum phase)score_get(score->phase),
                .index = score_get(score->index),
                .generation = score_get(score->generation),
                .pid = score_get(score->pid),
                .up_ms = ago(score_get(score->started_ms), out->mono_ms),
                .beat_ms = ago(score_get(score->heartbeat_ms), out->mono_ms),
                .connections = score_get(score->connections),
                .streams = score_get(score->streams),
                .pending = score_get(score->pending),
                .maintenance = score_get(score->maintenance_left),
            };
}

static void read_requests(const struct request_stats *stats, struct stats_snapshot *out)
{
    for (unsigned i = 0; i < REQUEST_STATS_WORKERS; i++)
        out->workers[i] = request_stats_worker(stats, i);
    for (size_t i = 0; i <= routes_count; i++)
        out->routes[i] = request_stats_route(stats, i);
    out->work = request_stats_work(stats);
    out->request_stats_known = true;
}

static void read_limiters(struct stats *s, const struct limiter_stats *board,
                          struct stats_snapshot *out)
{
    static struct limiters limits;
    uint64_t version;
    if (s->limits_version != limiter_stats_version(board) &&
        limiter_stats_read(board, &limits, &version)) {
        s->limits = limits;
        s->limits_version = version;
    }
    for (unsigned i = 1; i < s->limits.count; i++) {
        struct stats_limiter *l = &out->limiters[out->limiter_count++];
        snprintf(l->name, sizeof(l->name), "%s", s->limits.rows[i].name);
        for (unsigned k = 0; k < LIMITER_COUNTS; k++)
            l->of[k] = limiter_stats_total(board, s->limits.rows[i].counter, (enum limiter_count)k);
    }
}

/*
 * Open the store only for this snapshot: an open store prevents a restore. Wait until the writer
 * has opened it, because opening creates what is missing.
 */
static void read_store(struct stats *s, const struct scoreboard *board, struct stats_snapshot *out)
{
    struct store *store;
    char why[512];
    const struct store_options options = {.dir = s->conf->data_dir, .mode = STORE_READ};
    if (!scoreboard_writer_ready(board))
        return;
    if (store_open(&options, &store, why, sizeof(why)) != STORE_OK) {
        snprintf(out->why, sizeof(out->why), "cannot read the store: %.400s", why);
        return;
    }
    out->space_known = store_space(store, &out->space) == STORE_OK;
    if (out->space_known && out->space.readers > 0)
        out->space.readers--; /* this command */
    store_read_end(store);
    store_close(store);
}

static void note_unreadable(const struct stats *s, const struct mapped_file *file,
                            struct stats_snapshot *out)
{
    snprintf(out->why, sizeof(out->why), "cannot read %s/%s: %s", s->conf->run_dir, file->name,
             file->error == EPROTO ? "another version wrote it" : strerror(file->error));
}

void stats_snapshot_take(struct stats *s, struct stats_snapshot *out)
{
    *out = (struct stats_snapshot){.mono_ms = clock_mono_ms(), .wall_ms = clock_wall_ms()};
    const struct scoreboard *board = map_current(s, &s->board);
    if (board == NULL || !stats_alive(board)) {
        if (board == NULL && s->board.error != ENOENT)
            note_unreadable(s, &s->board, out);
        return;
    }
    out->running = true;
    out->life = score_get(board->started_at_s) ^ (uint64_t)s->board.inode << 32;
    read_processes(board, out);
    const struct request_stats *stats = map_current(s, &s->request_stats);
    const struct limiter_stats *limiters = map_current(s, &s->limiters);
    read_store(s, board, out);
    if (limiters != NULL)
        read_limiters(s, limiters, out);
    if (stats != NULL)
        read_requests(stats, out);
    else
        note_unreadable(s, &s->request_stats, out);
}
