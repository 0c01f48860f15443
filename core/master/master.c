#include "core/master/master_internal.h"

#include "core/master/announce.h"
#include "core/ipc/channel.h"
#include "core/base/data_lock.h"
#include "core/master/descriptor_limits.h"
#include "core/base/log.h"
#include "core/auth/signing_keys.h"
#include "core/master/reuseport.h"
#include "core/master/systemd.h"
#include "core/shm/request_stats.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_EVERY_MS 250
#define DRAINING_GENERATIONS 3
#define CONNECTIONS_MIN                                                                                \
    65536 /* so far a reload may raise max_connections; its table takes 4 MiB at most */
#define TELL_TIME_MS                                                                               \
    5000 /* between two words to the service manager that a start, or a stop, takes its time */

static int refuse(const char *what, const char *path, const char *reason)
{
    log_error("%s %s: %s", what, path, reason);
    return -1;
}

/* ---- what is made before the first fork ---- */

static int make_dir(const struct conf *conf, const char *what, const char *path, mode_t mode)
{
    uid_t uid;
    gid_t gid;
    struct stat st;
    bool made = mkdir(path, mode) == 0;
    if (!made && errno != EEXIST)
        return refuse(what, path, strerror(errno));
    if (made && process_user(conf, &uid, &gid) && chown(path, uid, gid) != 0)
        return refuse(what, path, strerror(errno));
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return refuse(what, path, "is not a directory");
    return 0;
}

static void refuse_locked(const char *what, const char *path)
{
    char who[HOLDER_TEXT];
    data_holder(path, who);
    log_error(
        "%s %s: it is in use by %s: stop that assayd or assay, or set %s to another directory",
        what, path, who, what);
}

/* the lock outlives us and must be the user's: the command line takes it as data_dir's owner */
static int lock_dir(const struct conf *conf, const char *what, const char *path)
{
    uid_t uid;
    gid_t gid;
    int fd = data_lock(path);
    for (int tries = 0; fd < 0 && errno == EWOULDBLOCK && tries < 50;
         tries++) { /* a command has it for a moment only */
        poll(NULL, 0, 20);
        fd = data_lock(path);
    }
    if (fd < 0 && errno == EWOULDBLOCK)
        refuse_locked(what, path);
    else if (fd < 0)
        refuse(what, path, strerror(errno));
    else if (process_user(conf, &uid, &gid) && fchown(fd, uid, gid) != 0)
        log_warn("%s %s: its lock cannot be given to user \"%s\": %s", what, path, conf->user,
                 strerror(errno));
    return fd;
}

static int give_file(struct master *m, const char *path)
{
    uid_t uid;
    gid_t gid;
    return process_user(master_conf(m), &uid, &gid) ? lchown(path, uid, gid) : 0;
}

static void say_made(const char *dir, enum ratelimit_made made)
{
    if (made == RATELIMIT_KEPT)
        log_info("limits: the counts in %s are kept", dir);
    else if (made == RATELIMIT_REMADE)
        log_warn("limits: the counts in %s were of another limits.slots or not whole; counting "
                 "begins anew",
                 dir);
    else
        log_info("limits: counting begins in %s", dir);
}

/* the table of those that we succeed is ours too, of whatever size; one of another version stays theirs, and we begin our own beside it */
static int open_counts(struct master *m, enum ratelimit_made *made)
{
    const struct conf *conf = master_conf(m);
    int error = m->old_master.state == OLD_MASTER_NONE
                    ? ENOENT
                    : ratelimit_attach(conf->run_dir, true, &m->ratelimit);
    *made = RATELIMIT_KEPT;
    return error == ENOENT ? ratelimit_open(conf->run_dir, conf->limits_slots, made, &m->ratelimit)
                           : error;
}

/* ${inherit}: from those that we succeed, if there are any */
static int open_table(struct master *m, bool inherit)
{
    const struct conf *conf = master_conf(m);
    enum ratelimit_made made;
    char path[4200];
    int error = inherit ? open_counts(m, &made)
                        : ratelimit_open(conf->run_dir, conf->limits_slots, &made, &m->ratelimit);
    if (error == 0)
        error = ratelimit_path(conf->run_dir, path, sizeof(path));
    if (error == 0 && give_file(m, path) != 0)
        error = errno;
    if (error != 0)
        return refuse("limits: the table in run_dir", conf->run_dir, strerror(error));
    say_made(conf->run_dir, made);
    return 0;
}

/* the limiters' board, and the table of their counts; commands open both as the server's user */
static int make_limits(struct master *m)
{
    char path[4200];
    upgrade_path(m, "limiters", path, sizeof(path));
    m->limiters = limiter_stats_create(path, master_conf(m)->limits);
    if (m->limiters == NULL || give_file(m, path) != 0)
        return refuse("run_dir", path, strerror(errno));
    return open_table(m, true);
}

/* A worker that has not touched yet what was cut off would go on in the old table, apart from the others: all of them are replaced. */
static void mend_table(struct master *m)
{
    struct ratelimit *cut = m->ratelimit;
    if (m->stopping || ratelimit_whole(cut))
        return;
    log_error("limits: somebody cut the table in %s short, which kills workers; it is made anew, "
              "and every worker replaced",
              master_conf(m)->run_dir);
    if (open_table(m, false) != 0 && m->ratelimit == cut)
        return; /* tried again with the next death */
    ratelimit_close(cut);
    for (struct child *c = m->children; c != NULL; c = c->next)
        if (c->process.role == ROLE_WORKER) {
            c->stopping = true; /* no crash of its own */
            kill(c->pid, SIGKILL);
        }
}

static int make_run_files(struct master *m)
{
    const struct conf *conf = master_conf(m);
    char path[4200];
    upgrade_path(m, "scoreboard", path, sizeof(path));
    m->scoreboard = scoreboard_create(path);
    if (m->scoreboard == NULL || give_file(m, path) != 0)
        return refuse("run_dir", path, strerror(errno));
    score_set(m->scoreboard->generation, m->generation->number);
    score_set(m->scoreboard->workers, conf->workers);
    score_set(m->scoreboard->auditors, conf->auditors);
    m->slots = conf->workers > m->old_master.slots ? conf->workers : m->old_master.slots;
    score_set(m->scoreboard->listener_slots, m->slots);
    score_set(m->scoreboard->accept_paused, m->old_master.state != OLD_MASTER_NONE);
    snprintf(path, sizeof(path), "%s/writer.sock", conf->run_dir);
    if (strlen(path) >= sizeof(m->writer_path))
        return refuse("run_dir", conf->run_dir,
                      "the path is too long for a socket in it (94 bytes at most)");
    strcpy(m->writer_path, path);
    if (m->old_master.state == OLD_MASTER_NONE) {
        m->writer_fd = channel_listen(path);
        if (m->writer_fd < 0 || give_file(m, path) != 0)
            return refuse("run_dir", path, strerror(errno));
    }
    upgrade_path(m, "traffic", path, sizeof(path));
    m->request_stats = request_stats_create(path);
    if (m->request_stats == NULL || give_file(m, path) != 0)
        return refuse("run_dir", path, strerror(errno));
    m->typing = typing_table_new();
    m->connection_table = connection_table_new(
        conf->max_connections > CONNECTIONS_MIN ? conf->max_connections : CONNECTIONS_MIN, conf->workers);
    if (m->typing == NULL || m->connection_table == NULL)
        return refuse("cannot start", "shared memory", strerror(errno));
    return make_limits(m);
}

/* before the first fork, so that every worker finds the same secrets; a file of the operator's own must be there already */
static int make_secrets(const struct conf *conf)
{
    char path[SECRETS_PATH], why[SECRETS_PATH + 256];
    uid_t uid;
    gid_t gid;
    signing_keys_path(conf, path);
    bool own = conf->jwt_secrets_file[0] == '\0', there = access(path, F_OK) == 0;
    if (own && !there && signing_keys_make(path, clock_wall_ms(), why, sizeof(why)) != 0) {
        log_error("%s", why);
        return -1;
    }
    if (own && !there && process_user(conf, &uid, &gid) && chown(path, uid, gid) != 0)
        return refuse("data_dir", path, strerror(errno));
    struct signing_keys *secrets = signing_keys_open(path, why, sizeof(why));
    if (secrets == NULL)
        log_error("%s", why);
    signing_keys_free(secrets);
    return secrets == NULL ? -1 : 0;
}

/* ${conf}: of the generation that begins; of the slots there are more than workers while others drain */
static int fit_descriptors(const struct master *m, struct conf *conf)
{
    size_t acceptor = 0;
    for (size_t i = 0; i < m->listeners_count; i++)
        acceptor += m->listeners[i].count;
    return descriptors_fit(conf, acceptor);
}

/* those that we succeed hold them already, and we with them */
static int lock_dirs(struct master *m)
{
    const struct conf *conf = master_conf(m);
    if (m->data_lock < 0)
        m->data_lock = lock_dir(conf, "data_dir", conf->data_dir);
    if (m->run_lock < 0 && m->data_lock >= 0)
        m->run_lock = lock_dir(conf, "run_dir", conf->run_dir);
    return m->data_lock >= 0 && m->run_lock >= 0 ? 0 : -1;
}

/* made anew, or those of the master before us, or the service manager's */
static int make_listeners(struct master *m)
{
    struct listen_given *given;
    size_t count;
    char why[512] = "listen: out of memory";
    bool ok = systemd_listeners(&given, &count);
    if (ok && m->old_master.state != OLD_MASTER_NONE)
        ok = listen_open(master_conf(m), m->old_master.given, m->old_master.given_count,
                         m->listeners, &m->listeners_count, why, sizeof(why)) == 0;
    else if (ok)
        ok = listen_open(master_conf(m), given, count, m->listeners, &m->listeners_count, why,
                         sizeof(why)) == 0;
    if (!ok)
        log_error("%s", why);
    for (size_t i = 0; ok && i < count; i++)
        if (given[i].fds != NULL)
            log_warn("LISTEN_FDS: descriptor %d is of no address of listen or internal_listen: it "
                     "is closed",
                     given[i].fds[0]);
    listen_drop(given, count, false);
    return ok ? 0 : -1;
}

static int prepare(struct master *m)
{
    const struct conf *conf = master_conf(m);
    sigset_t set;
    sigfillset(&set);
    sigdelset(&set, SIGSEGV);
    sigdelset(&set, SIGABRT);
    sigdelset(&set, SIGBUS);
    sigdelset(&set, SIGFPE);
    sigdelset(&set, SIGILL);
    sigprocmask(SIG_SETMASK, &set, NULL);
    m->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    m->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->signal_fd < 0 || m->notify_fd < 0)
        return refuse("cannot start", "signalfd", strerror(errno));
    if (upgrade_inherit(m) != 0)
        return -1;
    if (make_dir(conf, "data_dir", conf->data_dir, 0700) != 0 ||
        make_dir(conf, "run_dir", conf->run_dir, 0755) != 0)
        return -1;
    if (lock_dirs(m) != 0 || make_listeners(m) != 0 || make_secrets(conf) != 0)
        return -1;
    if (fit_descriptors(m, master_conf(m)) != 0)
        return -1;
    return make_run_files(m);
}

/* whose pid to signal, for those who have no service manager to ask; run_dir is another's, who may have put a link there */
static void write_pid(const struct master *m)
{
    char path[4200], next[4300];
    snprintf(path, sizeof(path), "%s/assayd.pid", master_conf(m)->run_dir);
    snprintf(next, sizeof(next), "%s.new", path);
    unlink(next);
    int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok = out != NULL && fprintf(out, "%d\n", (int)getpid()) > 0;
    if (out != NULL && fclose(out) != 0)
        ok = false;
    if (out == NULL && fd >= 0)
        close(fd);
    if (!ok || rename(next, path) != 0)
        log_warn("%s: %s", path, strerror(errno));
}

static void say_ready(struct master *m)
{
    bool all = children_ready(m, ROLE_WRITER) && children_ready(m, ROLE_AUDITOR) &&
               children_ready(m, ROLE_WORKER);
    if (m->ready_said || upgrade_is_going_on(m) || !all)
        return;
    m->ready_said = m->store_known = true;
    write_pid(m);
    for (size_t i = 0; i < m->listeners_count; i++)
        printf("ready %s workers=%u auditors=%u\n", m->listeners[i].url, master_conf(m)->workers,
               master_conf(m)->auditors);
    fflush(stdout);
    systemd_tell("READY=1");
}

/* a reload is over when everybody of the new generation serves */
static void say_reloaded(struct master *m)
{
    if (!m->reloading || children_changing(m))
        return;
    m->reloading = false;
    systemd_tell("READY=1");
}

/*
 * The service manager's watchdog is fed while nobody has stopped moving; whoever does is replaced long before it would act, unless the master is
 * stuck too. A master that takes over feeds it at once: nobody knows when the one before it last did.
 */
static void feed_watchdog(struct master *m)
{
    uint64_t now = clock_mono_ms(), every = systemd_watchdog_ms(getpid());
    if (every == 0 || systemd_hushed() || now < m->watchdog_at_ms || !children_move(m, every))
        return;
    m->watchdog_at_ms = now + every / 2;
    systemd_tell("WATCHDOG=1");
}

/*
 * A start takes as long as opening a large store takes, and a stop as long as timeouts.drain lets it: the service manager must not end
 * either while it goes on.
 */
static void ask_for_time(struct master *m)
{
    uint64_t now = clock_mono_ms();
    bool goes_on =
        m->stopping ? now < m->stop_at_ms : !m->ready_said && children_move(m, 2 * TELL_TIME_MS);
    if (!goes_on || now < m->time_at_ms)
        return;
    m->time_at_ms = now + TELL_TIME_MS;
    systemd_tell("EXTEND_TIMEOUT_USEC=60000000");
}

/* ---- signals ---- */

static struct conf *read_again(struct master *m)
{
    struct conf *conf = NULL;
    char *said = NULL;
    size_t size = 0;
    FILE *mistakes = open_memstream(&said, &size);
    if (mistakes == NULL)
        return NULL;
    const struct master_options *o = m->options;
    int wrong = conf_load(o->conf_path, o->conf_required, o->sets, o->set_count, mistakes, &conf);
    if (wrong == 0)
        wrong = conf_reload_refusals(master_conf(m), conf, mistakes);
    if (wrong == 0 &&
        !connection_table_reserve(m->connection_table, conf->max_connections, conf->workers)) {
        fprintf(mistakes, "max_connections: raising it from %u to %u needs a restart\n",
                master_conf(m)->max_connections, conf->max_connections);
        wrong = 1;
    }
    fclose(mistakes);
    if (wrong != 0) {
        for (char *line = strtok(said, "\n"); line != NULL; line = strtok(NULL, "\n"))
            log_error("reload refused: %s", line);
        conf_free(conf);
        conf = NULL;
    }
    free(said);
    return conf;
}

static void reload(struct master *m)
{
    if (!m->ready_said || upgrade_is_going_on(m) || children_changing(m) ||
        children_draining(m) >= DRAINING_GENERATIONS) {
        m->hup_waits = true;
        return;
    }
    m->hup_waits = false;
    struct conf *conf = read_again(m);
    bool bound = conf != NULL && reuseport_bind(m, conf->workers) == 0;
    if (conf != NULL && !bound)
        log_error("reload refused: workers: no sockets for %u of them: %s", conf->workers,
                  strerror(errno));
    bound = bound && fit_descriptors(m, conf) == 0;
    if (!bound || generation_new(m, conf) == NULL) {
        log_error(
            "reload refused: no change of the configuration is applied, and the old one goes on");
        reuseport_unbind(m);
        conf_free(conf);
        return;
    }
    listen_apply(m->listeners, m->listeners_count, conf);
    reuseport_change(m);
    if (children_make(m) != 0) {
        log_error("reload failed: out of memory");
        return;
    }
    log_open("master", conf->log_level, conf->log_format);
    limiter_stats_publish(m->limiters, conf->limits);
    score_set(m->scoreboard->generation, m->generation->number);
    score_set(m->scoreboard->workers, conf->workers);
    score_set(m->scoreboard->auditors, conf->auditors);
    children_succeed(m);
    m->reloading = true;
    systemd_reloading(clock_mono_ms());
    log_info("reloading: generation %u", m->generation->number);
}

static void stop(struct master *m, bool at_once)
{
    bool again = m->stopping;
    m->stopping = true;
    systemd_tell("STOPPING=1");
    for (struct child *c = m->children; c != NULL; c = c->next)
        if (at_once || again)
            kill(c->pid, SIGKILL);
        else if (c->process.role == ROLE_WORKER && !c->stopping)
            child_tell(c, SIGTERM);
    m->stop_at_ms = clock_mono_ms() + (at_once || again ? 0 : master_conf(m)->drain_timeout_ms);
    m->time_at_ms = clock_mono_ms() + TELL_TIME_MS;
}

static void on_signals(struct master *m)
{
    struct signalfd_siginfo info;
    bool died = false;
    while (read(m->signal_fd, &info, sizeof(info)) == sizeof(info))
        switch (info.ssi_signo) {
        case SIGCHLD:
            died = true;
            break;
        case SIGTERM:
        case SIGQUIT:
            announce_signal(m, (int)info.ssi_signo, (pid_t)info.ssi_pid);
            upgrade_pass_on(m, SIGTERM);
            if (!upgrade_stop_waits(m, m->new_master.stop_waits))
                stop(m, false);
            break;
        case SIGINT:
            announce_signal(m, SIGINT, (pid_t)info.ssi_pid);
            upgrade_pass_on(m, SIGINT);
            upgrade_stop_waits(m, true);
            stop(m, true);
            break;
        case SIGHUP:
            m->hup_waits = !upgrade_pass_on(m, SIGHUP);
            break;
        case SIGUSR2:
            upgrade_want(m);
            break;
        case SIGUSR1:
            upgrade_pass_on(m, SIGUSR1);
            for (struct child *c = m->children; c != NULL; c = c->next)
                kill(c->pid, SIGUSR1);
            break;
        }
    if (died) {
        children_reap(m);
        mend_table(m);
    }
}

/* workers first, since they need the others to answer, as an elder's do; then auditors and the writer */
static void stop_rest(struct master *m)
{
    bool late = clock_mono_ms() > m->stop_at_ms;
    for (struct child *c = m->children; c != NULL; c = c->next)
        if (c->process.role == ROLE_WORKER && !late) {
            if (!c->stopping)
                child_tell(c, SIGTERM);
            return;
        }
    if (!late && upgrade_elder_drains(m))
        return;
    for (struct child *c = m->children; c != NULL; c = c->next)
        if (late && (c->process.role == ROLE_WORKER || clock_mono_ms() > m->stop_at_ms + 5000))
            kill(c->pid, SIGKILL);
        else if (!c->stopping)
            child_tell(c, SIGTERM);
}

static void wait_for_something(struct master *m)
{
    struct pollfd fds[] = {
        {m->signal_fd, POLLIN, 0}, {m->notify_fd, POLLIN, 0}, {upgrade_fd(m), POLLIN, 0}};
    uint64_t count;
    poll(fds, sizeof(fds) / sizeof(fds[0]), LOOK_EVERY_MS);
    if ((fds[1].revents & POLLIN) != 0 && read(m->notify_fd, &count, sizeof(count)) < 0)
        log_debug("eventfd: %s", strerror(errno));
}

/* what only the server may take away: not one that has left it to its heir, nor an heir that never was it */
static void remove_files(struct master *m)
{
    char path[4200];
    bool owns = !m->left && !upgrade_is_trial(m);
    listen_remove(m->listeners, m->left ? 0 : m->listeners_count, owns);
    if (!owns || m->run_lock < 0)
        return;
    snprintf(path, sizeof(path), "%s/assayd.pid", master_conf(m)->run_dir);
    unlink(path);
    if (m->writer_path[0] != '\0')
        unlink(m->writer_path);
}

static void tidy(struct master *m)
{
    if (m->generation != NULL)
        remove_files(m);
    upgrade_end(m);
    listen_close(m->listeners, m->listeners_count);
    while (m->generation != NULL) {
        struct generation *g = m->generation;
        m->generation = g->next;
        generation_free(g);
    }
    scoreboard_close(m->scoreboard);
    limiter_stats_close(m->limiters);
    ratelimit_close(m->ratelimit);
    typing_table_free(m->typing);
    connection_table_free(m->connection_table);
    request_stats_close(m->request_stats);
    free(m->child_slots);
    int fds[] = {m->signal_fd, m->notify_fd, m->data_lock, m->run_lock, m->writer_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* The life of the server: bind → map → fork → reap → stop. */
int master_run(const struct master_options *options)
{
    struct master m = {.options = options,
                       .writer_fd = -1,
                       .notify_fd = -1,
                       .signal_fd = -1,
                       .data_lock = -1,
                       .run_lock = -1};
    process_title("assayd: master");
    process_disable_core_dumps();
    log_open("master", options->conf->log_level, options->conf->log_format);
    m.new_master.fd = m.new_master.far = m.old_master.fd = -1;
    m.started_ms = clock_mono_ms();
    if (generation_new(&m, options->conf) == NULL || prepare(&m) != 0 || children_make(&m) != 0) {
        snprintf(m.why, sizeof(m.why), "it could not start");
        announce_end(&m, EXIT_START);
        tidy(&m);
        return EXIT_START;
    }
    announce_start(&m);
    m.time_at_ms = clock_mono_ms() + TELL_TIME_MS;
    while (!(m.stopping || m.left) || m.children != NULL || upgrade_keeps(&m)) {
        if (!m.stopping && !m.left)
            children_fill(&m);
        wait_for_something(&m);
        on_signals(&m);
        feed_watchdog(&m);
        upgrade_tick(&m);
        if (m.stopping) {
            ask_for_time(&m);
            stop_rest(&m);
            continue;
        }
        ask_for_time(&m);
        children_watch(&m);
        if (m.left)
            continue;
        children_relieve(&m);
        say_ready(&m);
        say_reloaded(&m);
        if (!upgrade_is_going_on(&m))
            reuseport_tick(&m);
        if (m.hup_waits)
            reload(&m);
        if (upgrade_stops_now(&m))
            stop(&m, false);
    }
    announce_end(&m, m.exit_status);
    tidy(&m);
    return m.exit_status;
}
