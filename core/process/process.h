/*
 * What every child of the master has in common: what it inherits, and the steps between fork and its own work.
 */
#ifndef ASSAY_PROCESS_PROCESS_H
#define ASSAY_PROCESS_PROCESS_H

#include "core/conf/conf.h"
#include "core/shm/scoreboard.h"

#include <signal.h>

/* exit statuses, operating.md */
enum { EXIT_STOPPED = 0, EXIT_CONFIGURATION = 1, EXIT_START = 2, EXIT_GAVE_UP = 3 };

/*
 * The listeners of the configuration, made by the master. Worker slot i serves fd[i] of each; a listener that cannot be multiplied has one
 * descriptor, shared by all.
 */
struct listener {
    int *fds;
    size_t count; /* slots: workers, or 1 where it is shared */
    size_t heard; /* those of them that listen: the first */
    bool shared;
    bool internal;
    bool tls;
    bool bound;     /* a Unix socket: its path is ours to remove */
    bool inherited; /* made before us: by the master that we succeed, or by the service manager */
    char url[160]; /* "http://127.0.0.1:41873", "unix:/run/assay/http.sock" */
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
    struct tls *tls; /* of its generation's listeners; a worker's only */
    const struct listener *listeners;
    size_t listeners_count;
    bool store_known; /* a store was served before: the writer must not make one */
    int writer_fd; /* listening socket of the writer; its path: */
    char writer_path[108];
    struct limiter_stats *limiters; /* workers' */
    struct ratelimit *ratelimit;     /* workers' */
    struct typing_table *typing;           /* workers' */
    struct connection_table *connection_table;             /* workers' */
    unsigned place;                  /* of this process in it */
    struct request_stats *request_stats;         /* workers' and the writer's */
    const pid_t *old_workers; /* workers of the master that we succeeded, which the writer serves on while they drain */
    size_t old_workers_count;
    int notify_fd; /* eventfd: tells the master that a phase changed */
    pid_t master;
};

/* Set by signals: TERM stops, QUIT drains gently (a reload), USR1 reopens logs. */
extern volatile sig_atomic_t process_stopping, process_draining, process_reopen;

/* process_title_init(argc, argv): remember where the title goes; first thing in main. process_title(format, …): what ps shows. */
void process_title_init(int argc, char **argv);
void process_title(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * process_default_signals(): undo what the parent ignores; called early in assayd's main. Across
 * exec an ignored signal stays ignored, and with SIGCHLD ignored the master never learns that a
 * child ended. The mask is set by the master and by process_enter.
 */
void process_default_signals(void);

/*
 * process_enter(p): in the child, right after the fork: its title, signals, log, privileges (dropped to conf->user when root), death with
 * its master. Exits EXIT_START with a sentence where it cannot.
 */
void process_enter(struct process *p);

/*
 * process_leave_no_core(): whatever kills this process or its children, no core file is written: credentials, passwords and keys pass through
 * their memory. Debuggers need to be root's, too. Each process' call; process_enter does it.
 */
void process_leave_no_core(void);

/* process_phase(p, phase): publish it and wake the master. process_beat(p): publish the heartbeat. */
void process_phase(struct process *p, enum phase phase);
void process_beat(struct process *p);

/*
 * process_user(conf, uid, gid): whom to become: false when nobody (not root, or user is
 * empty or root itself); exits EXIT_START when the user does not exist.
 */
bool process_user(const struct conf *conf, uid_t *uid, gid_t *gid);

#endif
