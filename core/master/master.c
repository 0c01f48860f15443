/* The life of the server: bind, map, fork, watch, stop. README.md has the parts. */
#include "core/master/master.h"

#include "core/base/log.h"
#include "core/ipc/channel.h"
#include "core/master/announce.h"
#include "core/master/reload.h"
#include "core/master/systemd.h"
#include "core/master/upgrade.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 250
#define KILL_MS 5000 /* after the deadline of a stop, for the writer and the auditors */

/* ---- start ---- */

/* signals are read from a descriptor, except those of a crash */
static int block_signals(struct master *m)
{
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
        return directory_refuse("cannot start", "signalfd", strerror(errno));
    return 0;
}

static void log_unused(const struct inherited_listener *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].fds != NULL)
            log_warn("LISTEN_FDS: descriptor %d matches no address of listen or internal_listen: "
                     "closed it",
                     list[i].fds[0]);
}

/* new ones, or those of the old master, or those of the service manager */
static int open_listeners(struct master *m)
{
    const struct old_master *old = &m->upgrade.old_master;
    struct inherited_listener *systemd;
    size_t count;
    char why[512] = "listen: out of memory";
    bool ok = systemd_listeners(&systemd, &count);
    if (ok && old->state != OLD_MASTER_NONE)
        ok = listeners_open(&m->listeners, master_conf(m), old->listeners, old->listeners_count,
                            why, sizeof(why)) == 0;
    else if (ok)
        ok = listeners_open(&m->listeners, master_conf(m), systemd, count, why, sizeof(why)) == 0;
    if (!ok)
        log_error("%s", why);
    else
        log_unused(systemd, count);
    inherited_listeners_free(systemd, count, false);
    return ok ? 0 : -1;
}

static int open_writer_socket(struct master *m)
{
    const struct conf *conf = master_conf(m);
    struct process *inherited = &m->children.inherited;
    char path[4200];
    snprintf(path, sizeof(path), "%s/writer.sock", conf->run_dir);
    if (strlen(path) >= sizeof(inherited->writer_path))
        return directory_refuse("run_dir", conf->run_dir,
                                "the path is too long for a socket in it (94 bytes at most)");
    strcpy(inherited->writer_path, path);
    if (m->upgrade.old_master.state != OLD_MASTER_NONE)
        return 0; /* inherited */
    m->writer_fd = channel_listen(path);
    if (m->writer_fd < 0 || directory_give(conf, path) != 0)
        return directory_refuse("run_dir", path, strerror(errno));
    return 0;
}

static void publish_start(struct master *m)
{
    const struct old_master *old = &m->upgrade.old_master;
    unsigned workers = master_conf(m)->workers;
    m->reuseport.scoreboard = m->shared.scoreboard;
    m->reuseport.slots = workers > old->slots ? workers : old->slots;
    reload_publish(m);
    score_set(m->shared.scoreboard->listener_slots, m->reuseport.slots);
    score_set(m->shared.scoreboard->accept_paused, old->state != OLD_MASTER_NONE);
}

/* in a child: close what its role does not use */
static void close_unused(void *arg, enum role role)
{
    struct master *m = arg;
    upgrade_close(m);
    close(m->signal_fd);
    directories_close(&m->directories);
    if (role != ROLE_WRITER)
        close(m->writer_fd);
    if (role != ROLE_WORKER)
        listeners_close(&m->listeners);
    shared_memory_limit(&m->shared, role);
}

static int prepare_children(struct master *m)
{
    struct children *c = &m->children;
    struct process *p = &c->inherited;
    c->generations = &m->generations;
    c->upgrade = &m->upgrade;
    c->shutdown = &m->shutdown;
    c->listener_slots = &m->reuseport.slots;
    c->close_unused = close_unused;
    c->arg = m;
    p->scoreboard = m->shared.scoreboard;
    p->limiters = m->shared.limiters;
    p->ratelimit = m->shared.ratelimit;
    p->typing = m->shared.typing;
    p->connection_table = m->shared.connection_table;
    p->request_stats = m->shared.request_stats;
    p->listeners = m->listeners.list;
    p->listeners_count = m->listeners.count;
    p->writer_fd = m->writer_fd;
    p->notify_fd = m->notify_fd;
    p->master = getpid();
    return children_set_slots(c);
}

static int start(struct master *m)
{
    struct conf *conf = m->options->conf;
    if (!generations_add(&m->generations, conf) || block_signals(m) != 0 || upgrade_inherit(m) != 0)
        return -1;
    if (directories_make(conf) != 0 || directories_lock(&m->directories, conf) != 0)
        return -1;
    if (open_listeners(m) != 0 || directories_make_secrets(conf) != 0)
        return -1;
    if (reload_fit_descriptors(m, conf) != 0 || open_writer_socket(m) != 0)
        return -1;
    if (shared_memory_make(&m->shared, conf, &m->upgrade) != 0)
        return -1;
    publish_start(m);
    return prepare_children(m);
}

/* ---- stop ---- */

static void stop(struct master *m, bool at_once)
{
    at_once = at_once || m->shutdown.stopping; /* a second signal does not wait */
    systemd_notify("STOPPING=1");
    shutdown_begin(&m->shutdown, m->shutdown.exit_status,
                   at_once ? 0 : master_conf(m)->drain_timeout_ms);
    for (struct child *c = m->children.list; c != NULL; c = c->next)
        if (at_once)
            kill(c->pid, SIGKILL);
        else if (c->process.role == ROLE_WORKER && !c->stopping)
            child_signal(c, SIGTERM);
    m->extend_at_ms = clock_mono_ms() + ANNOUNCE_DELAY_MS;
}

/* workers first, since they need the others to answer requests; then the auditors and the writer */
static void continue_stop(struct master *m)
{
    uint64_t now = clock_mono_ms(), deadline = m->shutdown.deadline_ms;
    bool late = now > deadline;
    for (struct child *c = m->children.list; c != NULL; c = c->next)
        if (c->process.role == ROLE_WORKER && !late) {
            if (!c->stopping)
                child_signal(c, SIGTERM);
            return;
        }
    if (!late && upgrade_old_master_drains(m))
        return;
    for (struct child *c = m->children.list; c != NULL; c = c->next)
        if (late && (c->process.role == ROLE_WORKER || now > deadline + KILL_MS))
            kill(c->pid, SIGKILL);
        else if (!c->stopping)
            child_signal(c, SIGTERM);
}

/* not the files of another master that is the server */
static void remove_files(struct master *m)
{
    bool is_server = !m->shutdown.replaced && !upgrade_is_trial(&m->upgrade);
    if (!m->shutdown.replaced)
        listeners_unlink(&m->listeners, is_server);
    if (!is_server || m->directories.run_lock < 0)
        return;
    directories_remove_pid(master_conf(m));
    if (m->children.inherited.writer_path[0] != '\0')
        unlink(m->children.inherited.writer_path);
}

static void end(struct master *m)
{
    announce_end(m);
    if (m->generations.newest != NULL)
        remove_files(m);
    upgrade_end(m);
    listeners_close(&m->listeners);
    generations_free(&m->generations);
    shared_memory_free(&m->shared);
    children_free(&m->children);
    directories_close(&m->directories);
    int fds[] = {m->signal_fd, m->notify_fd, m->writer_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* ---- signals ---- */

static void replace_workers(struct master *m)
{
    m->children.inherited.ratelimit = m->shared.ratelimit;
    for (struct child *c = m->children.list; c != NULL; c = c->next)
        if (c->process.role == ROLE_WORKER) {
            c->stopping = true; /* an expected death */
            kill(c->pid, SIGKILL);
        }
}

static void reap(struct master *m)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (!upgrade_reaped(m, pid, status))
            children_reaped(&m->children, pid, status);
    if (!m->shutdown.stopping && shared_memory_replace_cut_table(&m->shared, master_conf(m)))
        replace_workers(m);
}

static void on_signal(struct master *m, int number, pid_t from)
{
    switch (number) {
    case SIGTERM:
    case SIGQUIT:
        announce_signal(m, number, from);
        upgrade_forward_signal(m, SIGTERM);
        if (!upgrade_defer_stop(m, m->upgrade.new_master.stop_pending))
            stop(m, false);
        break;
    case SIGINT:
        announce_signal(m, SIGINT, from);
        upgrade_forward_signal(m, SIGINT);
        upgrade_defer_stop(m, true);
        stop(m, true);
        break;
    case SIGHUP:
        m->reload_pending = !upgrade_forward_signal(m, SIGHUP);
        break;
    case SIGUSR2:
        upgrade_request(m);
        break;
    case SIGUSR1:
        upgrade_forward_signal(m, SIGUSR1);
        children_signal(&m->children, SIGUSR1);
        break;
    }
}

static void read_signals(struct master *m)
{
    struct signalfd_siginfo info;
    bool died = false;
    while (read(m->signal_fd, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo == SIGCHLD)
            died = true;
        else
            on_signal(m, (int)info.ssi_signo, (pid_t)info.ssi_pid);
    if (died)
        reap(m);
}

/* ---- the loop ---- */

static void wait_for_event(struct master *m)
{
    struct pollfd fds[] = {
        {m->signal_fd, POLLIN, 0}, {m->notify_fd, POLLIN, 0}, {upgrade_fd(m), POLLIN, 0}};
    uint64_t count;
    poll(fds, sizeof(fds) / sizeof(fds[0]), TICK_MS);
    if ((fds[1].revents & POLLIN) != 0 && read(m->notify_fd, &count, sizeof(count)) < 0)
        log_debug("eventfd: %s", strerror(errno));
}

static bool is_over(struct master *m)
{
    return (m->shutdown.stopping || m->shutdown.replaced) && m->children.list == NULL &&
           !upgrade_delays_exit(m);
}

/* what the server does while it serves */
static void serve(struct master *m)
{
    children_retire(&m->children);
    announce_ready(m);
    announce_reloaded(m);
    if (!upgrade_in_progress(&m->upgrade) && reuseport_is_changing(&m->reuseport) &&
        children_settled(&m->children))
        reuseport_tick(&m->reuseport, master_conf(m)->workers, children_used_slots(&m->children));
    if (m->reload_pending)
        reload(m);
    if (upgrade_take_deferred_stop(m))
        stop(m, false);
}

static void turn(struct master *m)
{
    if (!m->shutdown.stopping && !m->shutdown.replaced)
        children_start(&m->children);
    wait_for_event(m);
    read_signals(m);
    announce_alive(m);
    upgrade_tick(m);
    announce_delay(m);
    if (m->shutdown.stopping) {
        continue_stop(m);
        return;
    }
    children_watch(&m->children);
    if (!m->shutdown.replaced)
        serve(m);
}

int master_run(const struct master_options *options)
{
    struct master m = {.options = options,
                       .writer_fd = -1,
                       .notify_fd = -1,
                       .signal_fd = -1,
                       .directories = {.data_lock = -1, .run_lock = -1},
                       .upgrade.new_master = {.fd = -1, .child_fd = -1},
                       .upgrade.old_master.fd = -1,
                       .started_ms = clock_mono_ms()};
    m.reuseport.listeners = &m.listeners;
    process_title("assayd: master");
    process_disable_core_dumps();
    log_open("master", options->conf->log_level, options->conf->log_format);
    if (start(&m) != 0) {
        shutdown_set_reason(&m.shutdown, "it could not start");
        m.shutdown.exit_status = EXIT_START;
        end(&m);
        return EXIT_START;
    }
    announce_start(&m);
    m.extend_at_ms = clock_mono_ms() + ANNOUNCE_DELAY_MS;
    while (!is_over(&m))
        turn(&m);
    end(&m);
    return m.shutdown.exit_status;
}
