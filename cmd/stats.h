/*
 * assay stats --watch: what the server did between two snapshots of its shared memory.
 *
 * stats_snapshot.c takes snapshots, stats_rates.c computes rates from two of them, stats_text.c and
 * stats_json.c print these, stats_screen.c drives the terminal, cmd_stats.c has the loop.
 *
 * The server is not asked, so this works while it hangs, stops or starts. Its files are mapped
 * read-only, and mapped again after a new server has replaced them.
 */
#ifndef ASSAY_STATS_H
#define ASSAY_STATS_H

#include "cmd/cmd.h"
#include "core/shm/limiter_stats.h"
#include "core/shm/scoreboard.h"
#include "core/shm/request_stats.h"
#include "core/http/route.h"
#include "store/store.h"

/* ---- a snapshot ---- */

struct stats_process {
    enum role role;
    enum phase phase;
    uint32_t index, generation;
    int32_t pid;
    uint64_t up_ms, beat_ms; /* since the start and the last heartbeat */
    uint64_t connections, streams, pending, maintenance;
};

struct stats_limiter {
    char name[LIMITER_NAME_MAX + 1];
    uint64_t of[LIMITER_COUNTS];
};

/* The state at one moment. Counters only grow within one ${life}. ${why}: what is unreadable. */
struct stats_snapshot {
    uint64_t mono_ms, life;
    int64_t wall_ms;
    bool running; /* if not, the members below are empty */
    int32_t master;
    uint32_t generation, restarts, workers_wanted;
    uint64_t started_at_s;
    struct stats_process processes[SCOREBOARD_SLOTS + SCOREBOARD_AUDITORS];
    size_t process_count;
    bool request_stats_known, space_known;
    struct request_stats_totals workers[REQUEST_STATS_WORKERS], routes[ROUTES_MAX + 1];
    struct request_stats_work work;
    struct store_space space;
    struct stats_limiter limiters[LIMITERS_MAX];
    size_t limiter_count;
    char why[512];
};

struct stats; /* the mapped files */

/* stats_new(conf): NULL: out of memory. stats_snapshot_take(s, out): the current state. */
struct stats *stats_new(const struct conf *conf);
void stats_free(struct stats *s);
void stats_snapshot_take(struct stats *s, struct stats_snapshot *out);

/* stats_alive(board): whether the server of the scoreboard runs; the file outlives it. */
bool stats_alive(const struct scoreboard *board);

/* ---- rates between two snapshots ---- */

/* The order of routes and limiters, and the key that selects it. */
enum stats_order { STATS_BUSIEST, STATS_SLOWEST, STATS_REFUSED, STATS_NAMED, STATS_ORDERS };
extern const char stats_order_keys[STATS_ORDERS];

/* Two snapshots and the time between them. */
struct stats_interval {
    const struct stats_snapshot *before, *now;
    double seconds;
    enum stats_order order;
};

/* Responses per second by class of status; 429 is not part of 4xx. Times in us; -1: no response. */
enum answer_class {
    ANSWERED_2XX,
    ANSWERED_3XX,
    ANSWERED_4XX,
    ANSWERED_429,
    ANSWERED_5XX,
    ANSWERED_OTHER,
    ANSWER_CLASSES
};
extern const char *const stats_class_names[ANSWER_CLASSES];
struct stats_answers {
    double all, by[ANSWER_CLASSES], p50, p99;
    uint64_t ever; /* since the start of the server */
};

/* The same for the writer and the auditors; ${batch}: changes per commit. */
struct stats_work {
    double changes, commits, batch, commit_p50, commit_p99, done, failed, page_p50, page_p99;
};

/*
 * stats_interval(before, now, order): if ${before} is from another life of the server, the interval
 * begins at the start of this one.
 */
struct stats_interval stats_interval(const struct stats_snapshot *before,
                                     const struct stats_snapshot *now, enum stats_order order);
struct stats_answers stats_of_route(const struct stats_interval *v, size_t route);
struct stats_answers stats_of_worker(const struct stats_interval *v, uint32_t index);
double stats_of_limiter(const struct stats_interval *v, size_t i, enum limiter_count what);
struct stats_work stats_work(const struct stats_interval *v);

/* STATS_OVER(snapshot, role, member): the sum over all processes of a role. */
uint64_t stats_over(const struct stats_snapshot *l, enum role role, size_t member);
#define STATS_OVER(l, role, member) stats_over((l), (role), offsetof(struct stats_process, member))

/*
 * stats_text(before, now, order, rows, columns, out): lines of text, at most ${rows} of at most
 * ${columns}; 0: no maximum. The largest tables are shortened first.
 * stats_json(before, now, out): a JSON object and a newline.
 */
void stats_text(const struct stats_snapshot *before, const struct stats_snapshot *now,
                enum stats_order order, size_t rows, size_t columns, struct buf *out);
void stats_json(const struct stats_snapshot *before, const struct stats_snapshot *now,
                struct buf *out);

/* ---- the terminal ---- */

/* Why a wait ended: a key, or one of these. */
enum { SCREEN_TIME = 0, SCREEN_RESIZED = -1, SCREEN_STOP = -2 };

/*
 * screen_open(terminal): signals end screen_wait, not the program; on a ${terminal}, switch to
 * an empty screen without echo. screen_close(): restore the terminal; safe to call again.
 * screen_wait(until_ms): wait for that time of the monotonic clock, a key, a new size, or the end:
 * INT, TERM, HUP, QUIT or a closed terminal.
 * screen_size(rows, columns): the size of the terminal.
 */
void screen_open(bool terminal);
void screen_close(void);
int screen_wait(uint64_t until_ms);
void screen_size(size_t *rows, size_t *columns);

/* screen_draw(text): show these lines; false: cannot write. */
bool screen_draw(struct str text);

#endif
