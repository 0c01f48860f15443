/*
 * assay stats --watch: what the server did between two looks at its shared memory. stats_look.c looks, stats_between.c reckons what happened
 * between two looks, stats_show.c makes text of it and stats_json.c JSON, stats_screen.c is the terminal, cmd_stats.c the loop. Nothing here speaks to the server, so it works on one that hangs, stops or
 * starts; files are mapped read-only and mapped anew when a new server has made them anew.
 */
#ifndef ASSAY_STATS_H
#define ASSAY_STATS_H

#include "cmd/cmd.h"
#include "core/shm/limiter_stats.h"
#include "core/shm/scoreboard.h"
#include "core/shm/request_stats.h"
#include "core/http/route.h"
#include "store/store.h"

/* ---- a look ---- */

struct stats_process {
    enum role role;
    enum phase phase;
    uint32_t index, generation;
    int32_t pid;
    uint64_t up_ms, beat_ms; /* ago */
    uint64_t connections, streams, pending, upkeep;
};

struct stats_limiter {
    char name[LIMITER_NAME_MAX + 1];
    uint64_t of[LIMITER_COUNTS];
};

/* Numbers as they stood at one moment; counters go up as long as ${life} stays. What could not be looked at is zero, and ${why} says of what. */
struct stats_look {
    uint64_t mono_ms, life;
    int64_t wall_ms;
    bool running; /* else there is nothing below */
    int32_t master;
    uint32_t generation, restarts, workers_wanted;
    uint64_t started_at_s;
    struct stats_process processes[SCOREBOARD_SLOTS + SCOREBOARD_AUDITORS];
    size_t process_count;
    bool request_stats_known, room_known;
    struct request_stats_answered workers[REQUEST_STATS_WORKERS], routes[ROUTES_MAX + 1];
    struct request_stats_work work;
    struct store_space room;
    struct stats_limiter limiters[LIMITERS_MAX];
    size_t limiter_count;
    char why[512];
};

struct stats; /* the mapped files */

/* stats_new(conf): NULL without memory. stats_free(NULL) does nothing. stats_look(s, out): as things are. */
struct stats *stats_new(const struct conf *conf);
void stats_free(struct stats *s);
void stats_look(struct stats *s, struct stats_look *out);

/* stats_alive(board): whether the server that wrote the board is there: the file outlives it. */
bool stats_alive(const struct scoreboard *board);

/* ---- what two looks say ---- */

/* How the routes and limiters of a screen are ordered: a row of a table, by the key that chooses it. */
enum stats_order { STATS_BUSIEST, STATS_SLOWEST, STATS_REFUSED, STATS_NAMED, STATS_ORDERS };
extern const char stats_order_keys[STATS_ORDERS];

/* Two looks, and how many seconds lie between them. */
struct stats_view {
    const struct stats_look *before, *now;
    double seconds;
    enum stats_order order;
};

/* What was answered between the looks, a second: all, and by class, 429 apart from the other 4xx. Times in microseconds, -1: none. */
enum answer_class { ANSWERED_2XX, ANSWERED_3XX, ANSWERED_4XX, ANSWERED_429, ANSWERED_5XX, ANSWERED_OTHER, ANSWER_CLASSES };
extern const char *const stats_class_names[ANSWER_CLASSES];
struct stats_answers {
    double all, by[ANSWER_CLASSES], p50, p99;
    uint64_t ever;
};

/* The same of the writer and the auditors; ${batch} is changes a commit. */
struct stats_work {
    double changes, commits, batch, commit_p50, commit_p99, done, failed, page_p50, page_p99;
};

/* stats_view(before, now, order): ${before} of another server's life: since the start of this one. stats_rate(v, before, now): of a counter. */
struct stats_view stats_view(const struct stats_look *before, const struct stats_look *now, enum stats_order order);
double stats_rate(const struct stats_view *v, uint64_t before, uint64_t now);
struct stats_answers stats_of_route(const struct stats_view *v, size_t route);
struct stats_answers stats_of_worker(const struct stats_view *v, uint32_t index);
double stats_of_limiter(const struct stats_view *v, size_t i, enum limiter_count what);
struct stats_work stats_work(const struct stats_view *v);

/* STATS_OVER(look, role, member): the sum over a role's processes. */
uint64_t stats_over(const struct stats_look *l, enum role role, size_t member);
#define STATS_OVER(l, role, member) stats_over((l), (role), offsetof(struct stats_process, member))

/* stats_quantile(times, q): the time in microseconds that a share of ${q} did not exceed, as Prometheus reckons it from buckets; -1: none was timed. */
double stats_quantile(const struct request_stats_times *times, double q);

/*
 * stats_text(before, now, order, rows, columns, out): lines for people, each ending in a newline; no more than ${rows}, none longer than
 * ${columns}: tables give way, the largest first. 0: as many as there are. stats_json(…): an object and a newline.
 */
void stats_text(const struct stats_look *before, const struct stats_look *now, enum stats_order order, size_t rows, size_t columns, struct buf *out);
void stats_json(const struct stats_look *before, const struct stats_look *now, struct buf *out);

/* ---- the terminal ---- */

/* What ended a wait: a key, or one of these. */
enum { SCREEN_TIME = 0, SCREEN_RESIZED = -1, SCREEN_STOP = -2 };

/*
 * screen_open(terminal): from here on signals end screen_wait instead of the program, and, on a ${terminal}, there is an empty screen without
 * echo. screen_close(): the terminal as it was; more than once does nothing. screen_wait(until_ms): until the monotonic clock says so, a key, a
 * new size or a request to stop: INT, TERM, HUP, QUIT, a terminal that is gone. screen_size: of the terminal now.
 */
void screen_open(bool terminal);
void screen_close(void);
int screen_wait(uint64_t until_ms);
void screen_size(size_t *rows, size_t *columns);

/* screen_draw(text): the screen becomes these lines; false where it cannot be written. */
bool screen_draw(struct str text);

#endif
