#include "cmd/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* One of the server's files: mapped for as long as its name is that file's. */
struct seen {
    const char *name;
    ino_t inode;
    const void *map;
    int error; /* why it is not mapped */
};

struct stats {
    const struct conf *conf;
    struct seen board, request_stats, limiters;
    struct limiters limits; /* in force when they were last looked at */
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

static void unmap(struct stats *s, struct seen *seen)
{
    if (seen == &s->board)
        scoreboard_close(seen->map);
    else if (seen == &s->request_stats)
        request_stats_close(seen->map);
    else
        limiter_stats_close(seen->map);
    seen->map = NULL;
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

static const void *map(struct stats *s, const struct seen *seen, const char *path)
{
    if (seen == &s->board)
        return scoreboard_open(path);
    if (seen == &s->request_stats)
        return request_stats_open(path);
    return limiter_stats_open(path);
}

/* A server that starts makes its files anew: other inodes. One that is mapped keeps its inode's number from being used again. */
static const void *see(struct stats *s, struct seen *seen)
{
    char path[4200];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", s->conf->run_dir, seen->name);
    bool there = stat(path, &st) == 0;
    seen->error = there ? 0 : errno;
    if (seen->map != NULL && (!there || st.st_ino != seen->inode))
        unmap(s, seen);
    if (seen->map == NULL && there) {
        errno = EPROTO;
        seen->map = map(s, seen, path);
        seen->error = seen->map == NULL ? errno : 0;
        seen->inode = st.st_ino;
        s->limits_version = seen == &s->limiters ? 0 : s->limits_version; /* another board counts its own versions */
    }
    return seen->map;
}

bool stats_alive(const struct scoreboard *board)
{
    pid_t master = score_get(board->master_pid);
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d", master);
    return master > 0 && access(path, F_OK) == 0;
}

/* ---- its parts ---- */

static uint64_t ago(uint64_t then_ms, uint64_t now_ms)
{
    return then_ms == 0 || then_ms > now_ms ? 0 : now_ms - then_ms;
}

static void look_at_processes(const struct scoreboard *board, struct stats_look *out)
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
                .upkeep = score_get(score->upkeep),
            };
}

static void look_at_traffic(const struct request_stats *request_stats, struct stats_look *out)
{
    for (unsigned i = 0; i < REQUEST_STATS_WORKERS; i++)
        out->workers[i] = request_stats_worker(request_stats, i);
    for (size_t i = 0; i <= routes_count; i++)
        out->routes[i] = request_stats_route(request_stats, i);
    out->work = request_stats_work(request_stats);
    out->request_stats_known = true;
}

static void look_at_limiters(struct stats *s, const struct limiter_stats *board, struct stats_look *out)
{
    static struct limiters limits;
    uint64_t version;
    if (s->limits_version != limiter_stats_version(board) && limiter_stats_read(board, &limits, &version)) {
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
 * The store is opened for this look alone: who keeps it open stands in the way of a restore. Not before its writer has it open, who makes
 * what is missing.
 */
static void look_at_store(struct stats *s, const struct scoreboard *board, struct stats_look *out)
{
    struct store *store;
    char why[512];
    const struct store_options options = {.dir = s->conf->data_dir, .mode = STORE_READ};
    if (!scoreboard_writer_there(board))
        return;
    if (store_open(&options, &store, why, sizeof(why)) != STORE_OK) {
        snprintf(out->why, sizeof(out->why), "the store cannot be read: %.400s", why);
        return;
    }
    out->room_known = store_space(store, &out->room) == STORE_OK;
    if (out->room_known && out->room.readers > 0)
        out->room.readers--; /* this one */
    store_read_end(store);
    store_close(store);
}

void stats_look(struct stats *s, struct stats_look *out)
{
    *out = (struct stats_look){.mono_ms = clock_mono_ms(), .wall_ms = clock_wall_ms()};
    const struct scoreboard *board = see(s, &s->board);
    if (board == NULL || !stats_alive(board)) {
        if (board == NULL && s->board.error != ENOENT)
            snprintf(out->why, sizeof(out->why), "%s/%s cannot be read: %s", s->conf->run_dir, s->board.name,
                     s->board.error == EPROTO ? "it is another version's" : strerror(s->board.error));
        return;
    }
    out->running = true;
    out->life = score_get(board->started_at_s) ^ (uint64_t)s->board.inode << 32;
    look_at_processes(board, out);
    const struct request_stats *request_stats = see(s, &s->request_stats);
    const struct limiter_stats *limiters = see(s, &s->limiters);
    look_at_store(s, board, out);
    if (limiters != NULL)
        look_at_limiters(s, limiters, out);
    if (request_stats != NULL)
        look_at_traffic(request_stats, out);
    else
        snprintf(out->why, sizeof(out->why), "%s/%s cannot be read: %s", s->conf->run_dir, s->request_stats.name,
                 s->request_stats.error == EPROTO ? "it is another version's" : strerror(s->request_stats.error));
}
