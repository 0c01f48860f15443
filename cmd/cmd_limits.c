/*
 * assay limits: reads the limiters and counts from the server's files, even after it stopped. With
 * limits.engine: redis, the counts of single callers are in Redis.
 */
#include "cmd/cmd.h"
#include "cmd/stats.h"
#include "core/limits/command.h"
#include "core/limits/fallback.h"
#include "core/shm/limiter_stats.h"
#include "core/shm/scoreboard.h"
#include "ratelimit/ratelimit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TOP_DEFAULT 20
#define TOP_MAX 10000

struct view {
    const struct conf *conf;
    struct limiters limits;            /* in force; without a server, those of the configuration */
    const struct limiter_stats *board; /* NULL: no server has used run_dir */
    struct ratelimit *table;
    struct redis_command *redis; /* open_redis; NULL: limits.engine is local */
    int64_t now;                 /* seconds */
};

static bool server_runs(const struct conf *conf)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/scoreboard", conf->run_dir);
    const struct scoreboard *scoreboard = scoreboard_open(path);
    bool runs = scoreboard != NULL && stats_alive(scoreboard);
    scoreboard_close(scoreboard);
    return runs;
}

static int open_files(const struct conf *conf, bool write, struct view *v)
{
    char path[4200];
    uint64_t version;
    snprintf(path, sizeof(path), "%s/limiters", conf->run_dir);
    *v = (struct view){
        .conf = conf, .board = limiter_stats_open(path), .now = clock_wall_ms() / 1000};
    v->limits = *conf->limits;
    for (int tries = 0; v->board != NULL && server_runs(conf) && tries < 100; tries++)
        if (limiter_stats_read(v->board, &v->limits, &version))
            break;
    int error = ratelimit_attach(conf->run_dir, write, &v->table);
    if (error == 0)
        return CMD_DONE;
    limiter_stats_close(v->board);
    if (error == ENOENT)
        return cmd_refuse("there are no counts in run_dir %s; start the server, or name its "
                          "configuration with -c",
                          conf->run_dir);
    return cmd_refuse("cannot read the counts in run_dir %s: %s", conf->run_dir,
                      error == EPROTO ? "another version wrote them" : strerror(error));
}

/* For the counts of single callers, which Redis has. ${refused}: what an error begins with. */
static int open_redis(struct view *v, const char *refused)
{
    char why[REDIS_COMMAND_WHY];
    if (v->conf->limits_engine != LIMITS_REDIS ||
        (v->redis = redis_command_open(v->conf, why)) != NULL)
        return CMD_DONE;
    return cmd_refuse("%s: %s", refused, why);
}

static void close_files(struct view *v)
{
    redis_command_close(v->redis);
    ratelimit_close(v->table);
    limiter_stats_close(v->board);
}

/* ---- list ---- */

static uint64_t counted(const struct view *v, const char *name, enum limiter_count what)
{
    int counter = v->board == NULL ? -1 : limiter_stats_counter(v->board, name);
    return counter < 0 ? 0 : limiter_stats_total(v->board, (unsigned)counter, what);
}

static void list_window(struct records *records, const struct view *v,
                        const struct limiter_row *row, unsigned w)
{
    uint32_t overrides = row->override_from[w + 1] - row->override_from[w];
    bool off = row->windows[w].limit == 0 && overrides == 0;
    records_text(records, "limiter", str_of(row->name));
    records_number(records, "limit", row->windows[w].limit);
    records_number(records, "seconds", row->windows[w].seconds);
    records_text(records, "key", str_of(limiter_by_name((enum limiter_by)row->windows[w].by)));
    records_text(records, "mode", str_of(off ? "off" : row->dry_run ? "dry_run" : "on"));
    records_number(records, "overrides", overrides);
    records_number(records, "admitted", counted(v, row->name, COUNT_ADMITTED));
    records_number(records, "refused", counted(v, row->name, COUNT_REFUSED));
    records_number(records, "dry_run_refused", counted(v, row->name, COUNT_DRY_RUN_REFUSED));
    if (v->conf->limits_engine == LIMITS_REDIS) {
        records_text(records, "fallback",
                     str_of(limiter_fallback_name((enum limiter_fallback)row->fallback)));
        records_number(records, "lease", row->lease);
        records_number(records, "by_fallback", counted(v, row->name, COUNT_FALLBACK));
    }
    records_end_row(records);
}

/* What the fallback local does. */
static void print_local(const struct conf *conf, const struct scoreboard *scoreboard)
{
    const uint64_t nodes = fallback_nodes(conf, &scoreboard->cluster);
    if (nodes == 0)
        puts("The fallback local admits one request in a window: this node has not read yet how "
             "many nodes are live.");
    else
        printf("The fallback local divides limits by %" PRIu64 ".\n", nodes);
}

/* How many workers Redis answers. */
static void print_redis(const struct conf *conf)
{
    char path[4200];
    unsigned workers = 0, away = 0;
    const struct score *s;
    snprintf(path, sizeof(path), "%s/scoreboard", conf->run_dir);
    const struct scoreboard *scoreboard = server_runs(conf) ? scoreboard_open(path) : NULL;
    for (size_t i = 0; scoreboard != NULL && (s = scoreboard_at(scoreboard, i)) != NULL; i++)
        if (score_get(s->pid) != 0 && score_get(s->role) == ROLE_WORKER) {
            workers++;
            away += score_get(s->redis_away_ms) != 0;
        }
    if (scoreboard == NULL) {
        puts("\nRedis counts the requests. The server does not run.");
        return;
    }
    printf("\nRedis counts the requests. It answers %u of %u workers%s.\n", workers - away, workers,
           away > 0 ? "; for the others, the fallbacks decide" : "");
    print_local(conf, scoreboard);
    scoreboard_close(scoreboard);
}

int cmd_limits_list(struct cmd *cmd)
{
    struct view v;
    struct records records;
    struct ratelimit_usage usage;
    if (open_files(cmd->conf, false, &v) != CMD_DONE)
        return CMD_REFUSED;
    records_start(&records, cmd->json);
    for (unsigned i = 1; i < v.limits.count; i++)
        for (unsigned w = 0; w < v.limits.rows[i].windows_count; w++)
            list_window(&records, &v, &v.limits.rows[i], w);
    records_finish(&records);
    ratelimit_usage(v.table, v.now, &usage);
    if (!cmd->json && v.conf->limits_engine == LIMITS_REDIS)
        print_redis(v.conf);
    if (!cmd->json)
        printf("\nThe limiter table: about %" PRIu64 " of %" PRIu64 " slots in use, %" PRIu64
               " keys forgotten while active, %.1f MiB.\n",
               usage.used, usage.slots, usage.evicted_alive, (double)usage.bytes / (1 << 20));
    close_files(&v);
    return CMD_DONE;
}

/* ---- top ---- */

struct top {
    const struct view *view;
    struct ratelimit_noted *notes;
    size_t count, capacity;
};

static unsigned limiter_of(const struct view *v, const struct ratelimit_noted *noted)
{
    for (unsigned i = 1; i < v->limits.count; i++)
        if (ratelimit_salt(v->table, v->limits.rows[i].name) == noted->salt)
            return i;
    return LIMITER_NONE;
}

/* The current limit of the key: it may have changed by a reload since it was noted. */
static uint32_t limit_now(const struct view *v, unsigned limiter,
                          const struct ratelimit_noted *noted)
{
    const struct limiter_row *row = &v->limits.rows[limiter];
    struct limiter_key key;
    for (unsigned w = 0; w < row->windows_count; w++)
        if (row->windows[w].seconds == noted->seconds &&
            limiter_key_parse((enum limiter_by)row->windows[w].by, v->limits.ipv6_prefix,
                              noted->text, &key))
            return limiters_limit(&v->limits, limiter, w, &key);
    return noted->limit;
}

static void add_note(void *arg, const struct ratelimit_noted *noted)
{
    struct top *top = arg;
    if (top->count == top->capacity) {
        top->capacity = top->capacity == 0 ? 64 : top->capacity * 2;
        top->notes = realloc(top->notes, top->capacity * sizeof(*top->notes));
        if (top->notes == NULL)
            abort();
    }
    top->notes[top->count] = *noted;
    top->notes[top->count].limit = limit_now(top->view, limiter_of(top->view, noted), noted);
    top->count++;
}

/* By the used share of the limit, largest first. */
static int compare_notes(const void *a, const void *b)
{
    const struct ratelimit_noted *x = a, *y = b;
    uint64_t left = (uint64_t)x->used * y->limit, right = (uint64_t)y->used * x->limit;
    return left != right ? (left < right) - (left > right) : strcmp(x->text, y->text);
}

static void print_top(const struct view *v, struct top *top, uint64_t most, bool json)
{
    struct records records;
    records_start(&records, json);
    for (size_t i = 0; i < top->count && i < most; i++) {
        const struct ratelimit_noted *noted = &top->notes[i];
        unsigned limiter = limiter_of(v, noted);
        records_text(&records, "limiter",
                     str_of(limiter == LIMITER_NONE ? NULL : v->limits.rows[limiter].name));
        records_text(&records, "key", str_of(noted->text));
        records_number(&records, "used", noted->used);
        records_number(&records, "limit", noted->limit);
        records_number(&records, "seconds", noted->seconds);
        records_time(&records, "reset", noted->reset * 1000);
        records_end_row(&records);
    }
    records_finish(&records);
}

int cmd_limits_top(struct cmd *cmd)
{
    uint64_t most = TOP_DEFAULT;
    struct view v;
    struct top top = {.view = &v};
    char *end = NULL;
    if (cmd->words_count > 0 &&
        (most = strtoull(cmd->words[0], &end, 10), *end != '\0' || most == 0 || most > TOP_MAX))
        return cmd_misuse(cmd, "\"%s\" is not a number from 1 to %d", cmd->words[0], TOP_MAX);
    if (open_files(cmd->conf, false, &v) != CMD_DONE)
        return CMD_REFUSED;
    ratelimit_notes(v.table, v.now, add_note, &top);
    qsort(top.notes, top.count, sizeof(*top.notes), compare_notes);
    print_top(&v, &top, most, cmd->json);
    if (v.conf->limits_engine == LIMITS_REDIS)
        cmd_say("Only fallbacks of this node are listed. assay limits show reads one key in "
                "Redis.");
    else if (top.count == 0)
        cmd_say("No key has used more than half of its limit in the current window.");
    free(top.notes);
    close_files(&v);
    return CMD_DONE;
}

/* ---- show and reset ---- */

/* The windows of a limiter that count a key. */
struct target {
    unsigned limiter, count;
    unsigned windows[LIMITER_WINDOWS_MAX];
    struct limiter_key keys[LIMITER_WINDOWS_MAX];
};

static int find_target(const struct view *v, const char *name, const char *text, struct target *t)
{
    *t = (struct target){.limiter = limiters_find(&v->limits, name)};
    if (t->limiter == LIMITER_NONE)
        return cmd_refuse("there is no limiter \"%s\"; assay limits list shows all", name);
    const struct limiter_row *row = &v->limits.rows[t->limiter];
    for (unsigned w = 0; w < row->windows_count; w++)
        if (limiter_key_parse((enum limiter_by)row->windows[w].by, v->limits.ipv6_prefix, text,
                              &t->keys[t->count]))
            t->windows[t->count++] = w;
    if (t->count > 0)
        return CMD_DONE;
    return cmd_refuse(
        "\"%s\" is not a key of %s, which counts by %s%s%s; see KEYS in assay(1)", text, name,
        limiter_by_name((enum limiter_by)row->windows[0].by), row->windows_count > 1 ? " and " : "",
        row->windows_count > 1
            ? limiter_by_name((enum limiter_by)row->windows[row->windows_count - 1].by)
            : "");
}

/* With the highest limit, so that a count above the current limit can be shown, too. */
static struct ratelimit_window window_of(const struct view *v, const struct target *t, unsigned i)
{
    const struct limiter_row *row = &v->limits.rows[t->limiter];
    return (struct ratelimit_window){.salt = ratelimit_salt(v->table, row->name),
                                     .seconds = row->windows[t->windows[i]].seconds,
                                     .limit = RATELIMIT_COUNT_MAX,
                                     .tag = row->counter,
                                     .key = t->keys[i].bytes,
                                     .key_size = t->keys[i].size};
}

/* What the key has used, and the end of the window. */
static int read_count(const struct view *v, const char *limiter,
                      const struct ratelimit_window *window, uint32_t *used, int64_t *reset)
{
    char why[REDIS_COMMAND_WHY];
    struct ratelimit_state state;
    if (v->redis != NULL)
        return redis_command_used(v->redis, limiter, window, used, reset, why)
                   ? CMD_DONE
                   : cmd_refuse("cannot read the count in Redis: %s", why);
    ratelimit_peek(v->table, window, 1, v->now, &state);
    *used = RATELIMIT_COUNT_MAX - state.remaining;
    *reset = state.reset;
    return CMD_DONE;
}

static int show_window(struct records *records, const struct view *v, const struct target *t,
                       unsigned i)
{
    const char *limiter = v->limits.rows[t->limiter].name;
    struct ratelimit_window window = window_of(v, t, i);
    char text[LIMITER_TEXT_SIZE];
    uint32_t limit = limiters_limit(&v->limits, t->limiter, t->windows[i], &t->keys[i]), used;
    int64_t reset;
    if (read_count(v, limiter, &window, &used, &reset) != CMD_DONE)
        return CMD_REFUSED;
    limiter_key_text(&t->keys[i], v->limits.ipv6_prefix, text);
    records_text(records, "limiter", str_of(limiter));
    records_text(records, "key", str_of(text));
    records_number(records, "used", used);
    records_number(records, "limit", limit);
    records_number(records, "remaining", used < limit ? limit - used : 0);
    records_number(records, "seconds", window.seconds);
    records_time(records, "reset", reset * 1000);
    records_end_row(records);
    return CMD_DONE;
}

int cmd_limits_show(struct cmd *cmd)
{
    struct view v;
    struct target t;
    struct records records;
    if (open_files(cmd->conf, false, &v) != CMD_DONE)
        return CMD_REFUSED;
    int status = find_target(&v, cmd->words[0], cmd->words[1], &t);
    if (status == CMD_DONE)
        status = open_redis(&v, "cannot read the counts in Redis");
    records_start(&records, cmd->json);
    for (unsigned i = 0; status == CMD_DONE && i < t.count; i++)
        status = show_window(&records, &v, &t, i);
    records_finish(&records);
    close_files(&v);
    return status;
}

/* With Redis, also what a fallback of this node counted. */
static int reset_window(const struct view *v, const struct target *t, unsigned i, unsigned *had)
{
    struct ratelimit_window window = window_of(v, t, i);
    char why[REDIS_COMMAND_WHY];
    bool in_redis = false;
    *had += ratelimit_reset(v->table, &window, v->now);
    if (v->redis != NULL &&
        !redis_command_reset(v->redis, v->limits.rows[t->limiter].name, &window, &in_redis, why))
        return cmd_refuse("cannot reset the count in Redis: %s", why);
    *had += in_redis;
    return CMD_DONE;
}

int cmd_limits_reset(struct cmd *cmd)
{
    struct view v;
    struct target t;
    if (open_files(cmd->conf, true, &v) != CMD_DONE)
        return CMD_REFUSED;
    int status = find_target(&v, cmd->words[0], cmd->words[1], &t);
    unsigned had = 0;
    if (status == CMD_DONE)
        status = open_redis(&v, "the counts were not reset, because Redis does not answer");
    for (unsigned i = 0; status == CMD_DONE && i < t.count; i++)
        status = reset_window(&v, &t, i, &had);
    if (status == CMD_DONE)
        cmd_say(had > 0 ? "Set the count of %s in limiter %s to zero."
                        : "%s has no count in limiter %s.",
                cmd->words[1], cmd->words[0]);
    close_files(&v);
    return status;
}
