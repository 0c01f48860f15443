#include "core/master/upgrade.h"

#include "core/base/log.h"
#include "core/master/inherited_state.h"
#include "core/master/systemd.h"
#include "core/master/upgrade_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAKE_MS 15000 /* to change writers; changes wait less in a worker (WRITER_ANSWER_MS) */
#define LEAVE_MS 2000 /* to end when neither master serves any more */
#define ENVIRONMENT "ASSAY_UPGRADE" /* the channel's descriptor, and the new master's pid */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* for those who asked for the upgrade and do not read the log (packaging/debian/postinst) */
static void notify_failure(void)
{
    systemd_notify("STATUS=upgrade failed: the old binary goes on, see the log");
}

/* ---- the old master: starting the new one ---- */

/* in the child: the new binary with our arguments; ${fd} is the only descriptor that stays open */
static _Noreturn void exec_new_binary(const struct master *m, int fd)
{
    const struct master_options *o = m->options;
    const char **argv = calloc(4 + 2 * o->set_count, sizeof(*argv));
    char channel[32], pid[16];
    size_t n = 0;
    if (argv == NULL)
        _exit(127);
    argv[n++] = o->program;
    if (o->conf_required) {
        argv[n++] = "-c";
        argv[n++] = o->conf_path;
    }
    for (size_t i = 0; i < o->set_count; i++) {
        argv[n++] = "--set";
        argv[n++] = o->sets[i];
    }
    fcntl(fd, F_SETFD, 0);
    snprintf(channel, sizeof(channel), "%d %d", fd, (int)getpid());
    setenv(ENVIRONMENT, channel, 1);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    if (systemd_watchdog_ms(getppid()) != 0)
        setenv("WATCHDOG_PID", pid, 1);
    execv(o->program, (char *const *)(uintptr_t)argv);
    log_error("upgrade: %s: %s", o->program, strerror(errno));
    _exit(127);
}

static void close_channel(struct new_master *n)
{
    close_fd(&n->fd);
    close_fd(&n->child_fd);
    inherited_state_drop(&n->passed);
}

/* and take back the descriptors that it, or a process that it left behind, has not received */
static void revoke_channel(struct new_master *n)
{
    if (n->child_fd >= 0)
        upgrade_channel_revoke_fds(n->child_fd);
    close_channel(n);
}

static void refuse_upgrade(int error)
{
    log_error("upgrade refused: %s", strerror(error));
    notify_failure();
}

static void begin(struct master *m)
{
    struct new_master *n = &m->upgrade.new_master;
    int pair[2];
    n->requested = false;
    if (upgrade_channel_pair(pair) != 0) {
        refuse_upgrade(errno);
        return;
    }
    n->fd = pair[0];
    n->child_fd = pair[1];
    bool written = inherited_state_write(m, &n->passed) == 0;
    if (written)
        upgrade_channel_preload_fds(pair[0], n->passed.fds, n->passed.count);
    fflush(NULL);
    pid_t pid = written ? fork() : -1;
    if (pid == 0)
        exec_new_binary(m, pair[1]);
    if (pid < 0) {
        refuse_upgrade(errno);
        revoke_channel(n);
        return;
    }
    *n = (struct new_master){.state = NEW_MASTER_STARTING,
                             .pid = pid,
                             .fd = pair[0],
                             .child_fd = pair[1],
                             .passed = n->passed,
                             .deadline_ms = clock_mono_ms() + master_conf(m)->upgrade_timeout_ms};
    log_info("upgrade: %s starts as pid %d", m->options->program, (int)pid);
}

void upgrade_request(struct master *m)
{
    if (m->upgrade.new_master.state != NEW_MASTER_NONE) {
        log_warn("upgrade: one is in progress: this USR2 is ignored");
        return;
    }
    m->upgrade.new_master.requested = true;
    systemd_notify("STATUS="); /* clears that of an earlier attempt */
}

/* not while our own old master drains: its workers and ours would both need the new writer */
static bool may_begin(const struct master *m)
{
    return m->ready && !m->shutdown.stopping && m->upgrade.old_master.state == OLD_MASTER_NONE &&
           !children_in_transition(&m->children);
}

/* ---- the old master: handing over, or going on ---- */

static void stop_writer_and_auditors(struct master *m)
{
    m->upgrade.new_master.state = NEW_MASTER_PREPARED;
    m->upgrade.new_master.deadline_ms = clock_mono_ms() + TAKE_MS;
    for (struct child *c = m->children.list; c != NULL; c = c->next)
        if (c->process.role != ROLE_WORKER && !c->stopping)
            child_signal(c, SIGTERM);
}

/* a failure is only logged: the death of the new master is handled in upgrade_reaped */
static void send_message(int fd, enum upgrade_message_type type, const pid_t *pids, size_t count)
{
    if (!upgrade_channel_send(fd, type, pids, count))
        log_debug("upgrade: the other master does not listen: %s", strerror(errno));
}

static void send_take(struct master *m)
{
    pid_t workers[SCOREBOARD_SLOTS];
    size_t count = 0;
    const struct child *c = m->children.list;
    for (; c != NULL && count < SCOREBOARD_SLOTS; c = c->next)
        if (c->process.role == ROLE_WORKER)
            workers[count++] = c->pid;
    m->upgrade.new_master.state = NEW_MASTER_TAKING_OVER;
    send_message(m->upgrade.new_master.fd, MESSAGE_TAKE, workers, count);
}

static void hand_over(struct master *m)
{
    struct new_master *n = &m->upgrade.new_master;
    char text[32];
    n->state = NEW_MASTER_SERVING;
    m->shutdown.replaced = true;
    shutdown_set_reason(&m->shutdown, "pid %d serves in its place", (int)n->pid);
    snprintf(text, sizeof(text), "MAINPID=%d", (int)n->pid);
    systemd_notify(text);
    systemd_mute(true);
    send_message(n->fd, MESSAGE_GO, NULL, 0);
    for (struct child *c = m->children.list; c != NULL; c = c->next)
        if (c->process.role == ROLE_WORKER && !c->draining)
            child_signal(c, SIGQUIT);
    if (m->reload_pending)
        kill(n->pid, SIGHUP);
    if (n->stop_pending) {
        kill(n->pid, SIGTERM);
        shutdown_begin(&m->shutdown, m->shutdown.exit_status, master_conf(m)->drain_timeout_ms);
    }
    m->reload_pending = n->stop_pending = false;
    log_info("upgrade: pid %d serves; this master drains its workers and ends", (int)n->pid);
}

static void kill_new_master(struct new_master *n)
{
    n->deadline_ms = UINT64_MAX;
    kill(n->pid, SIGKILL);
}

static void send_fds(struct new_master *n, const struct upgrade_message *wanted)
{
    if (upgrade_channel_send_fds(n->fd, n->passed.fds, n->passed.count, wanted) || errno == EPIPE)
        return;
    log_error("upgrade: cannot pass descriptors to pid %d: %s", (int)n->pid, strerror(errno));
    kill_new_master(n);
}

static void receive_from_new_master(struct master *m)
{
    struct new_master *n = &m->upgrade.new_master;
    struct upgrade_message message;
    int type = upgrade_channel_receive(n->fd, &message);
    if (type > 0 && message.from != n->pid) { /* its death would go unnoticed */
        log_error("upgrade: pid %d answers for pid %d, which was started: a wrapper must exec the "
                  "new binary",
                  (int)message.from, (int)n->pid);
        kill_new_master(n);
        revoke_channel(n);
    } else if (type == MESSAGE_FDS_WANTED && n->state == NEW_MASTER_STARTING)
        send_fds(n, &message);
    else if (type == MESSAGE_PREPARED && n->state == NEW_MASTER_STARTING)
        stop_writer_and_auditors(m);
    else if (type == MESSAGE_SERVES && n->state == NEW_MASTER_TAKING_OVER)
        hand_over(m);
}

static void watch_new_master(struct master *m)
{
    struct new_master *n = &m->upgrade.new_master;
    receive_from_new_master(m);
    if (n->state == NEW_MASTER_PREPARED && !children_have(&m->children, ROLE_WRITER))
        send_take(m);
    if (n->state == NEW_MASTER_SERVING || clock_mono_ms() < n->deadline_ms)
        return;
    if (n->deadline_ms != UINT64_MAX)
        log_error("upgrade: pid %d does not serve in time (timeouts.upgrade): killed", (int)n->pid);
    kill_new_master(n);
}

/* nobody accepts connections any more: end soon, so that the service manager starts another */
static void stop_after_new_master(struct master *m, int status)
{
    int pid = (int)m->upgrade.new_master.pid, exit_status = m->shutdown.exit_status;
    uint64_t drain_ms = master_conf(m)->drain_timeout_ms;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STOPPED)
        log_info("upgrade: pid %d was stopped: this master ends too", pid);
    else {
        log_error("upgrade: the new binary (pid %d) ended while this one still drained: this one "
                  "ends too",
                  pid);
        exit_status = EXIT_GAVE_UP;
        drain_ms = drain_ms < LEAVE_MS ? drain_ms : LEAVE_MS;
    }
    shutdown_begin(&m->shutdown, exit_status, drain_ms);
}

static void log_failure(int status)
{
    if (WIFSIGNALED(status))
        log_error("upgrade failed: the new binary was killed by signal %d before it served: this "
                  "one goes on",
                  WTERMSIG(status));
    else
        log_error("upgrade failed: the new binary ended with status %d before it served: this "
                  "one goes on",
                  WEXITSTATUS(status));
}

bool upgrade_reaped(struct master *m, pid_t pid, int status)
{
    struct new_master *n = &m->upgrade.new_master;
    if (n->state == NEW_MASTER_NONE || n->pid != pid)
        return false;
    if (n->state == NEW_MASTER_TAKING_OVER)
        receive_from_new_master(m); /* it may have sent SERVES before it died */
    revoke_channel(n);
    if (n->state == NEW_MASTER_SERVING) {
        if (!m->shutdown.stopping)
            stop_after_new_master(m, status);
        n->pid = 0;
        return true;
    }
    log_failure(status);
    notify_failure();
    shared_memory_remove_next(master_conf(m));
    if (n->state == NEW_MASTER_TAKING_OVER)
        reuseport_restore(&m->reuseport);
    n->state = NEW_MASTER_NONE;
    n->pid = 0;
    return true;
}

bool upgrade_defer_stop(struct master *m, bool again)
{
    struct new_master *n = &m->upgrade.new_master;
    if (n->state == NEW_MASTER_NONE || n->state == NEW_MASTER_SERVING)
        return false;
    if (again || n->state == NEW_MASTER_STARTING) {
        kill_new_master(n);
        return false;
    }
    n->stop_pending = true;
    return true;
}

bool upgrade_take_deferred_stop(struct master *m)
{
    struct new_master *n = &m->upgrade.new_master;
    bool now =
        n->stop_pending && n->state == NEW_MASTER_NONE && children_ready(&m->children, ROLE_WRITER);
    if (now)
        n->stop_pending = false;
    return now;
}

bool upgrade_forward_signal(struct master *m, int number)
{
    const struct new_master *n = &m->upgrade.new_master;
    bool serves = n->state == NEW_MASTER_SERVING;
    if (n->state != NEW_MASTER_NONE && n->pid > 0 && (serves || number == SIGUSR1))
        kill(n->pid, number);
    return serves;
}

/* ---- the new master: what it inherits ---- */

int upgrade_inherit(struct master *m)
{
    const char *channel = getenv(ENVIRONMENT);
    struct old_master *old = &m->upgrade.old_master;
    struct passed_fds passed;
    old->fd = -1;
    if (channel == NULL)
        return 0;
    systemd_mute(true);
    old->state = OLD_MASTER_SERVING;
    m->children.store_known = true;
    int pid = 0;
    bool ok = sscanf(channel, "%d %d", &old->fd, &pid) == 2 && old->fd > 2 &&
              fcntl(old->fd, F_SETFD, FD_CLOEXEC) == 0;
    unsetenv(ENVIRONMENT);
    if (!ok || pid != getpid()) {
        old->fd = -1;
        return inherited_state_refuse(
            ok ? "this is not the process that was started: a wrapper must exec the new binary"
               : ENVIRONMENT " is in the environment, and no master set it");
    }
    if (upgrade_channel_receive_fds(old->fd, &passed.fds, &passed.count) != 0)
        return inherited_state_refuse(errno == EPIPE ? "the old binary passes no descriptors"
                                                     : strerror(errno));
    if (inherited_state_read(m, &passed) != 0)
        return -1;
    m->generations.newest->number = old->generation + 1;
    return 0;
}

/* ---- the new master: taking over ---- */

static bool all_workers_wait(const struct master *m)
{
    unsigned count = 0;
    for (size_t i = 0; i < m->children.slots_count; i++) {
        const struct child_slot *s = &m->children.slots[i];
        count += s->role == ROLE_WORKER && s->child != NULL &&
                 score_get(s->child->score->phase) == PHASE_WAITING;
    }
    return count == master_conf(m)->workers;
}

static void on_take(struct old_master *old, const pid_t *workers, size_t count)
{
    old->workers = calloc(count + 1, sizeof(*workers));
    if (old->workers != NULL && count > 0)
        memcpy(old->workers, workers, count * sizeof(*workers));
    old->workers_count = old->workers == NULL ? 0 : count;
    old->state = OLD_MASTER_HANDED_OVER;
}

/* new slots get no connections until workers serve them */
static void start_accepting(struct master *m)
{
    struct old_master *old = &m->upgrade.old_master;
    reuseport_take_over(&m->reuseport, old->slots, old->steered);
    reuseport_change(&m->reuseport, master_conf(m)->workers);
    score_set(m->shared.scoreboard->accept_paused, 0);
    old->accepting = true;
}

static void free_listeners(struct old_master *old, bool unlink)
{
    inherited_listeners_free(old->listeners, old->listeners_count, unlink);
    old->listeners = NULL;
    old->listeners_count = 0;
}

static void take_over(struct master *m)
{
    struct old_master *old = &m->upgrade.old_master;
    shared_memory_install(master_conf(m));
    old->state = OLD_MASTER_DRAINING;
    old->confirmed = old->fd < 0 || !upgrade_channel_send(old->fd, MESSAGE_SERVES, NULL, 0);
    free_listeners(old, true); /* those that the new configuration does not have */
}

static void receive_from_old_master(struct old_master *old)
{
    struct upgrade_message message;
    int type = upgrade_channel_receive(old->fd, &message);
    if (type == MESSAGE_TAKE && old->state == OLD_MASTER_HANDING_OVER)
        on_take(old, message.numbers, message.count);
    else if (type == MESSAGE_GO)
        old->confirmed = true;
    if (type >= 0)
        return;
    if (old->state != OLD_MASTER_DRAINING)
        log_warn("upgrade: the old binary ended before it handed over: this one goes on alone");
    close_fd(&old->fd);
    old->confirmed = true;
}

static void watch_old_master(struct master *m)
{
    struct old_master *old = &m->upgrade.old_master;
    const struct children *c = &m->children;
    if (old->fd >= 0)
        receive_from_old_master(old);
    if (old->state == OLD_MASTER_SERVING && all_workers_wait(m)) {
        old->state = OLD_MASTER_HANDING_OVER;
        if (old->fd >= 0)
            send_message(old->fd, MESSAGE_PREPARED, NULL, 0);
    }
    if (old->state == OLD_MASTER_HANDING_OVER && old->fd < 0)
        on_take(old, NULL, 0);
    if (old->state == OLD_MASTER_HANDED_OVER && !old->accepting && children_ready(c, ROLE_WRITER))
        start_accepting(m);
    if (old->state == OLD_MASTER_HANDED_OVER && old->accepting && children_ready(c, ROLE_WRITER) &&
        children_ready(c, ROLE_AUDITOR) && children_ready(c, ROLE_WORKER))
        take_over(m);
    if (old->state == OLD_MASTER_DRAINING && old->confirmed)
        systemd_mute(false);
    if (old->state == OLD_MASTER_DRAINING && old->fd < 0)
        old->state = OLD_MASTER_NONE;
}

/* ---- both ---- */

/* a new master that stops reads the channel only to learn that the old one has ended */
static bool reads_old_master(const struct master *m)
{
    const struct old_master *old = &m->upgrade.old_master;
    return old->state == OLD_MASTER_DRAINING ||
           (old->state != OLD_MASTER_NONE && !m->shutdown.stopping);
}

/* not when it gives up: nobody accepts connections until it has ended */
bool upgrade_old_master_drains(const struct master *m)
{
    const struct old_master *old = &m->upgrade.old_master;
    return old->state == OLD_MASTER_DRAINING && old->fd >= 0 && m->shutdown.exit_status == 0;
}

bool upgrade_delays_exit(struct master *m)
{
    struct new_master *n = &m->upgrade.new_master;
    if (!m->shutdown.stopping)
        return false;
    if (n->state != NEW_MASTER_SERVING || n->pid == 0)
        return upgrade_old_master_drains(m) && clock_mono_ms() < m->shutdown.deadline_ms;
    if (m->children.list == NULL)
        close_channel(n);
    return clock_mono_ms() < m->shutdown.deadline_ms + LEAVE_MS;
}

void upgrade_tick(struct master *m)
{
    struct new_master *n = &m->upgrade.new_master;
    if (n->state != NEW_MASTER_NONE && n->pid > 0)
        watch_new_master(m);
    if (reads_old_master(m))
        watch_old_master(m);
    if (n->requested && n->state == NEW_MASTER_NONE && may_begin(m))
        begin(m);
}

int upgrade_fd(const struct master *m)
{
    if (m->upgrade.new_master.state != NEW_MASTER_NONE)
        return m->upgrade.new_master.fd;
    return reads_old_master(m) ? m->upgrade.old_master.fd : -1;
}

void upgrade_close(struct master *m)
{
    close_channel(&m->upgrade.new_master);
    if (m->upgrade.old_master.state != OLD_MASTER_NONE)
        close_fd(&m->upgrade.old_master.fd);
    free_listeners(&m->upgrade.old_master, false);
}

void upgrade_end(struct master *m)
{
    struct new_master *n = &m->upgrade.new_master;
    if (n->state != NEW_MASTER_NONE && n->state != NEW_MASTER_SERVING && n->pid > 0) {
        kill(n->pid, SIGKILL);
        /* who waits for the end of this process must have waited for it too */
        int tries = LEAVE_MS / 10;
        while (tries-- > 0 && waitpid(n->pid, NULL, WNOHANG) == 0)
            poll(NULL, 0, 10);
        revoke_channel(n);
    }
    upgrade_close(m);
    free(m->upgrade.old_master.workers);
}
