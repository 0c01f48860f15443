#include "core/master/shared_memory.h"

#include "core/base/log.h"
#include "core/master/directories.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS_MIN 65536 /* a reload may raise max_connections to this; at most 4 MiB */
#define SCOREBOARD "scoreboard"
#define LIMITERS "limiters"
#define REQUEST_STATS "traffic"

static const char *const files[] = {SCOREBOARD, LIMITERS, REQUEST_STATS};
#define FILES (sizeof(files) / sizeof(files[0]))

static void path_of(const struct conf *conf, const char *name, const char *suffix, char out[4200])
{
    snprintf(out, 4200, "%s/%s%s", conf->run_dir, name, suffix);
}

/* ---- the limiter's table ---- */

static void log_table(const char *dir, enum ratelimit_made made)
{
    if (made == RATELIMIT_KEPT)
        log_info("limits: the counts in %s are kept", dir);
    else if (made == RATELIMIT_REMADE)
        log_warn("limits: the counts in %s are damaged or of another limits.slots: all counts are "
                 "reset",
                 dir);
    else
        log_info("limits: created the table of counts in %s", dir);
}

/* the old master's table, of whatever size; one of another version stays its own */
static int attach_table(struct shared_memory *s, const struct conf *conf, enum ratelimit_made *made)
{
    int error = ratelimit_attach(conf->run_dir, true, &s->ratelimit);
    *made = RATELIMIT_KEPT;
    if (error != ENOENT)
        return error;
    return ratelimit_open(conf->run_dir, conf->limits_slots, made, &s->ratelimit);
}

static int open_table(struct shared_memory *s, const struct conf *conf, bool attach)
{
    enum ratelimit_made made;
    char path[4200];
    int error = attach ? attach_table(s, conf, &made)
                       : ratelimit_open(conf->run_dir, conf->limits_slots, &made, &s->ratelimit);
    if (error == 0)
        error = ratelimit_path(conf->run_dir, path, sizeof(path));
    if (error == 0 && directory_give(conf, path) != 0)
        error = errno;
    if (error != 0)
        return directory_refuse("limits: the table in run_dir", conf->run_dir, strerror(error));
    log_table(conf->run_dir, made);
    return 0;
}

bool shared_memory_replace_cut_table(struct shared_memory *s, const struct conf *conf)
{
    struct ratelimit *cut = s->ratelimit;
    if (ratelimit_whole(cut))
        return false;
    log_error(
        "limits: another process cut the table in %s short, which kills workers: making a new "
        "table and replacing every worker",
        conf->run_dir);
    if (open_table(s, conf, false) != 0 && s->ratelimit == cut)
        return false; /* tried again after the next death */
    ratelimit_close(cut);
    return true;
}

/* ---- all ---- */

static int make_scoreboard(struct shared_memory *s, const struct conf *conf, const char *suffix)
{
    char path[4200];
    path_of(conf, SCOREBOARD, suffix, path);
    s->scoreboard = scoreboard_create(path);
    if (s->scoreboard == NULL || directory_give(conf, path) != 0)
        return directory_refuse("run_dir", path, strerror(errno));
    return 0;
}

static int make_stats(struct shared_memory *s, const struct conf *conf, const char *suffix)
{
    char path[4200];
    path_of(conf, REQUEST_STATS, suffix, path);
    s->request_stats = request_stats_create(path);
    if (s->request_stats == NULL || directory_give(conf, path) != 0)
        return directory_refuse("run_dir", path, strerror(errno));
    path_of(conf, LIMITERS, suffix, path);
    s->limiters = limiter_stats_create(path, conf->limits);
    if (s->limiters == NULL || directory_give(conf, path) != 0)
        return directory_refuse("run_dir", path, strerror(errno));
    return 0;
}

int shared_memory_make(struct shared_memory *s, const struct conf *conf,
                       const struct upgrade *upgrade)
{
    const char *suffix = upgrade_suffix(upgrade);
    unsigned connections =
        conf->max_connections > CONNECTIONS_MIN ? conf->max_connections : CONNECTIONS_MIN;
    if (make_scoreboard(s, conf, suffix) != 0 || make_stats(s, conf, suffix) != 0)
        return -1;
    s->typing = typing_table_new();
    s->connection_table = connection_table_new(connections, conf->workers);
    if (s->typing == NULL || s->connection_table == NULL)
        return directory_refuse("cannot start", "shared memory", strerror(errno));
    return open_table(s, conf, upgrade->old_master.state != OLD_MASTER_NONE);
}

void shared_memory_limit(struct shared_memory *s, enum role role)
{
    if (role == ROLE_WORKER)
        return;
    limiter_stats_close(s->limiters);
    ratelimit_close(s->ratelimit);
    connection_table_free(s->connection_table);
    if (role == ROLE_AUDITOR) {
        typing_table_free(s->typing);
        request_stats_close(s->request_stats);
    }
}

void shared_memory_install(const struct conf *conf)
{
    char from[4200], to[4200];
    for (size_t i = 0; i < FILES; i++) {
        path_of(conf, files[i], UPGRADE_NEXT, from);
        path_of(conf, files[i], "", to);
        if (rename(from, to) != 0)
            log_error("run_dir %s: %s", to, strerror(errno));
    }
}

void shared_memory_remove_next(const struct conf *conf)
{
    char path[4200];
    for (size_t i = 0; i < FILES; i++) {
        path_of(conf, files[i], UPGRADE_NEXT, path);
        unlink(path);
    }
}

void shared_memory_free(struct shared_memory *s)
{
    scoreboard_close(s->scoreboard);
    limiter_stats_close(s->limiters);
    ratelimit_close(s->ratelimit);
    typing_table_free(s->typing);
    connection_table_free(s->connection_table);
    request_stats_close(s->request_stats);
}
