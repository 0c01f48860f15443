#include "core/master/upgrade_old.h"

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
#include <sys/wait.h>
#include <unistd.h>

/* for the change of writers; less than a worker waits for an answer (WRITER_ANSWER_MS) */
#define TAKE_MS 15000
#define LEAVE_MS 2000 /* to end when neither master serves any more */

/* for scripts that start an upgrade, which do not read the log (packaging/debian/assay.postinst) */
static void notify_failure(void)
{
    systemd_notify("STATUS=upgrade failed: the old binary continues, see the log");
}

/* ---- starting the new master ---- */

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
    setenv(UPGRADE_ENVIRONMENT, channel, 1);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    if (systemd_watchdog_ms(getppid()) != 0)
        setenv("WATCHDOG_PID", pid, 1);
    execv(o->program, (char *const *)(uintptr_t)argv);
    log_error("upgrade: %s: %s", o->program, strerror(errno));
    _exit(127);
}

void upgrade_old_close(struct new_master *n)
{
    upgrade_close_fd(&n->fd);
    upgrade_close_fd(&n->child_fd);
    inherited_state_drop(&n->passed);
}

/* also takes back the descriptors that were not received: no process left behind gets them */
static void revoke_channel(struct new_master *n)
{
    if (n->child_fd >= 0)
        upgrade_channel_revoke_fds(n->child_fd);
    upgrade_old_close(n);
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

/* ---- handing over, or going on ---- */

static void stop_writer_and_auditors(struct master *m)
{
    m->upgrade.new_master.state = NEW_MASTER_PREPARED;
    m->upgrade.new_master.deadline_ms = clock_mono_ms() + TAKE_MS;
    for (struct child *c = m->children.list; c != NULL; c = c->next)
        if (c->process.role != ROLE_WORKER && !c->stopping)
            child_signal(c, SIGTERM);
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
    upgrade_send(m->upgrade.new_master.fd, MESSAGE_TAKE, workers, count);
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
    upgrade_send(n->fd, MESSAGE_GO, NULL, 0);
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

static void watch(struct master *m)
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

/* no process accepts connections: end soon, so that the service manager starts another */
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
                  "one continues",
                  WTERMSIG(status));
    else
        log_error("upgrade failed: the new binary ended with status %d before it served: this "
                  "one continues",
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

void upgrade_old_tick(struct master *m)
{
    struct new_master *n = &m->upgrade.new_master;
    if (n->state != NEW_MASTER_NONE && n->pid > 0)
        watch(m);
    if (n->requested && n->state == NEW_MASTER_NONE && may_begin(m))
        begin(m);
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

bool upgrade_waits_for_new(struct master *m)
{
    struct new_master *n = &m->upgrade.new_master;
    if (n->state != NEW_MASTER_SERVING || n->pid == 0)
        return false;
    if (m->children.list == NULL)
        upgrade_old_close(n);
    return clock_mono_ms() < m->shutdown.deadline_ms + LEAVE_MS;
}

void upgrade_old_end(struct new_master *n)
{
    if (n->state == NEW_MASTER_NONE || n->state == NEW_MASTER_SERVING || n->pid <= 0)
        return;
    kill(n->pid, SIGKILL);
    /* who waits for the end of this process must have waited for it too */
    int tries = LEAVE_MS / 10;
    while (tries-- > 0 && waitpid(n->pid, NULL, WNOHANG) == 0)
        poll(NULL, 0, 10);
    revoke_channel(n);
}
