/*
 * What every child process has: what it inherits from the master, and the steps between fork and
 * its own work.
 */
#ifndef ASSAY_PROCESS_PROCESS_H
#define ASSAY_PROCESS_PROCESS_H

#include "core/conf/conf.h"
#include "core/shm/scoreboard.h"

#include <signal.h>

/* exit statuses; see assayd(8) */
enum {
    EXIT_STOPPED = 0,
    EXIT_CONFIGURATION = 1,
    EXIT_START = 2,
    EXIT_GAVE_UP = 3,
    EXIT_RETRY = 4 /* of the writer: start it again at once, as a follower */
};

/*
 * A listener of the configuration, made by the master. Worker slot i serves fds[i]; a shared
 * listener has one socket, served by all.
 */
struct listener {
    int *fds;
    size_t count;     /* worker slots, or 1 where it is shared */
    size_t listening; /* the first so many sockets listen */
    bool shared;
    bool internal;
    bool tls;
    bool bound;     /* a Unix socket: we remove its file */
    bool inherited; /* from the old master or the service manager */
    char url[160];  /* "http://127.0.0.1:41873", "unix:/run/assay/http.sock" */
    size_t conf_index;
};
#define LISTENERS_MAX (CONF_LISTEN_MAX + 1)

struct connection_table;
struct limiter_stats;
struct ratelimit;
struct request_stats;
struct typing_table;

struct process {
    enum role role;
    unsigned index, generation;
    const struct conf *conf;
    struct scoreboard *scoreboard;
    struct score *score;
    bool store_known; /* a store was served before: the writer must not make one */
    /* the writer's listening socket, and its path */
    int writer_fd;
    char writer_path[108];
    /* workers of the old master, which the writer serves while they drain */
    const pid_t *old_workers;
    size_t old_workers_count;
    /* only in workers */
    struct tls *tls; /* of the listeners of this generation */
    const struct listener *listeners;
    size_t listeners_count;
    struct limiter_stats *limiters;
    struct ratelimit *ratelimit;
    struct connection_table *connection_table;
    unsigned connection_slot; /* of this process in it */
    /* in workers and the writer */
    struct request_stats *request_stats;
    struct typing_table *typing;
    int notify_fd; /* eventfd: wakes the master when a phase changed */
    pid_t master;
};

/* Set by signals: TERM: stop; QUIT: drain (a reload); USR1: reopen the logs. */
extern volatile sig_atomic_t process_stopping, process_draining, process_reopen;

/*
 * process_title_init(argc, argv): the first call in main: stores where the title is.
 * process_title(format, ...): set what ps shows.
 */
void process_title_init(int argc, char **argv);
void process_title(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * process_default_signals(): undo what the parent ignores; an early call of assayd's main. An
 * ignored signal stays ignored across exec, and with SIGCHLD ignored the master never learns that a
 * child ended. The master and process_child_init set the signal mask.
 */
void process_default_signals(void);

/*
 * process_child_init(p): in the child, after the fork: title, signals, log, share of the processor,
 * user (conf->user when root), no core files, death with the master. Exits EXIT_START with a
 * sentence when a step fails.
 */
void process_child_init(struct process *p);

/*
 * process_disable_core_dumps(): this process and its children never write a core file, which would
 * hold credentials, passwords and keys. Also, only root can attach a debugger.
 */
void process_disable_core_dumps(void);

/* process_set_phase(p, phase): publish it and wake the master. process_heartbeat(p): publish it. */
void process_set_phase(struct process *p, enum phase phase);
void process_heartbeat(struct process *p);

/* process_is_crash(number): whether the signal reports an error of the process itself. */
bool process_is_crash(int number);

/*
 * process_user(conf, uid, gid): the user to become. False: none (not root, or user is empty or
 * root). Exits EXIT_START when the user does not exist.
 */
bool process_user(const struct conf *conf, uid_t *uid, gid_t *gid);

#endif
