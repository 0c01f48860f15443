#include "core/master/master_internal.h"

#include "core/base/log.h"
#include "core/master/inherited_state.h"
#include "core/master/upgrade_channel.h"
#include "core/master/reuseport.h"
#include "core/master/systemd.h"

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

#define TAKE_MS                                                                                    \
    15000 /* for the writers to change places, while changes wait: less than a worker lets them (WRITER_ANSWER_MS) */
#define LEAVE_MS 2000 /* for what was begun, when neither of the two serves any more */
#define ENVIRONMENT "ASSAY_UPGRADE" /* the descriptor to the elder, and who is the heir */
#define NEXT ".next"                /* behind a name in run_dir: the heir's, until it takes over */

/* files of run_dir that each master makes anew */
static const char *const run_files[] = {"scoreboard", "limiters", "traffic"};
#define RUN_FILES (sizeof(run_files) / sizeof(run_files[0]))

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* whoever has asked for the upgrade need not wait for it, nor read the log (packaging/debian/postinst) */
static void tell_failed(void)
{
    systemd_tell("STATUS=upgrade failed: the binary of before goes on, and the log says why");
}

/* ---- the elder: starting the heir ---- */

/* in the child: the new binary with our arguments, and with no descriptor but ${fd}, where the others are */
static _Noreturn void become_heir(const struct master *m, int fd)
{
    const struct master_options *o = m->options;
    const char **argv = calloc(4 + 2 * o->set_count, sizeof(*argv));
    char named[32], pid[16];
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
    snprintf(named, sizeof(named), "%d %d", fd, (int)getpid());
    setenv(ENVIRONMENT, named, 1);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    if (systemd_watchdog_ms(getppid()) != 0)
        setenv("WATCHDOG_PID", pid, 1);
    execv(o->program, (char *const *)(uintptr_t)argv);
    log_error("upgrade: %s: %s", o->program, strerror(errno));
    _exit(127);
}

static void forget_heir(struct master *m)
{
    shut(&m->new_master.fd);
    shut(&m->new_master.far);
    inherited_state_drop(&m->new_master.passed);
}

/* it is heard no more, and what it did not take it shall not have, nor whom it leaves behind */
static void part_from_heir(struct master *m)
{
    if (m->new_master.far >= 0)
        upgrade_channel_drain(m->new_master.far);
    forget_heir(m);
}

static void begin(struct master *m)
{
    int pair[2];
    m->new_master.wanted = false;
    if (upgrade_channel_pair(pair) != 0) {
        log_error("upgrade refused: %s", strerror(errno));
        tell_failed();
        return;
    }
    m->new_master.fd = pair[0];
    m->new_master.far = pair[1];
    bool written = inherited_state_write(m, &m->new_master.passed) == 0;
    if (written)
        upgrade_channel_push(pair[0], m->new_master.passed.fds, m->new_master.passed.count);
    fflush(NULL);
    pid_t pid = written ? fork() : -1;
    if (pid == 0)
        become_heir(m, pair[1]);
    if (pid < 0) {
        log_error("upgrade refused: %s", strerror(errno));
        tell_failed();
        part_from_heir(m);
        return;
    }
    m->new_master = (struct new_master){.state = NEW_MASTER_STARTS,
                                        .pid = pid,
                                        .fd = pair[0],
                                        .far = pair[1],
                                        .passed = m->new_master.passed};
    m->new_master.deadline_ms = clock_mono_ms() + master_conf(m)->upgrade_timeout_ms;
    log_info("upgrade: %s starts as pid %d", m->options->program, (int)pid);
}

void upgrade_want(struct master *m)
{
    if (m->new_master.state != NEW_MASTER_NONE)
        log_warn("upgrade: one is under way already: this USR2 asks for nothing more");
    else {
        m->new_master.wanted = true;
        systemd_tell("STATUS="); /* what an attempt before this one has left there */
    }
}

/* an heir of whom the elder still waits for its end would have two masters' workers to look after */
static bool may_begin(const struct master *m)
{
    return m->ready_said && !m->stopping && m->old_master.state == OLD_MASTER_NONE &&
           !children_changing(m);
}

/* ---- the elder: handing over, or going on ---- */

static bool is_there(const struct master *m, enum role role)
{
    for (const struct child *c = m->children; c != NULL; c = c->next)
        if (c->process.role == role)
            return true;
    return false;
}

static void yield(struct master *m)
{
    m->new_master.state = NEW_MASTER_PREPARED;
    m->new_master.deadline_ms = clock_mono_ms() + TAKE_MS;
    for (struct child *c = m->children; c != NULL; c = c->next)
        if (c->process.role != ROLE_WORKER && !c->stopping)
            child_tell(c, SIGTERM);
}

static void let_take(struct master *m)
{
    pid_t workers[SCOREBOARD_SLOTS];
    size_t count = 0;
    for (const struct child *c = m->children; c != NULL && count < SCOREBOARD_SLOTS; c = c->next)
        if (c->process.role == ROLE_WORKER)
            workers[count++] = c->pid;
    m->new_master.state = NEW_MASTER_TAKES;
    if (!upgrade_channel_send(m->new_master.fd, MESSAGE_TAKE, workers, count))
        log_debug("upgrade: the new binary does not listen: %s",
                  strerror(errno)); /* its death is heard of */
}

static void hand_over(struct master *m)
{
    char text[32];
    m->new_master.state = NEW_MASTER_SERVES;
    m->left = true;
    snprintf(m->why, sizeof(m->why), "pid %d serves in its place", (int)m->new_master.pid);
    snprintf(text, sizeof(text), "MAINPID=%d", (int)m->new_master.pid);
    systemd_tell(text);
    systemd_hush(true);
    if (!upgrade_channel_send(m->new_master.fd, MESSAGE_GO, NULL, 0))
        log_debug("upgrade: the new binary does not listen: %s", strerror(errno));
    for (struct child *c = m->children; c != NULL; c = c->next)
        if (c->process.role == ROLE_WORKER && !c->draining)
            child_tell(c, SIGQUIT);
    if (m->hup_waits)
        kill(m->new_master.pid, SIGHUP);
    if (m->new_master.stop_waits) {
        kill(m->new_master.pid, SIGTERM);
        m->stopping = true;
        m->stop_at_ms = clock_mono_ms() + master_conf(m)->drain_timeout_ms;
    }
    m->hup_waits = m->new_master.stop_waits = false;
    log_info("upgrade: pid %d serves; this one answers what was begun, and ends",
             (int)m->new_master.pid);
}

static void kill_heir(struct master *m)
{
    m->new_master.deadline_ms = UINT64_MAX;
    kill(m->new_master.pid, SIGKILL);
}

static void give(struct master *m, const struct upgrade_message *heard)
{
    if (upgrade_channel_give(m->new_master.fd, m->new_master.passed.fds, m->new_master.passed.count,
                             heard) ||
        errno == EPIPE) /* its death is heard of */
        return;
    log_error("upgrade: descriptors cannot be given to pid %d: %s", (int)m->new_master.pid,
              strerror(errno));
    kill_heir(m);
}

static void listen_to_heir(struct master *m)
{
    struct upgrade_message heard;
    int word = upgrade_channel_receive(m->new_master.fd, &heard);
    if (word > 0 && heard.from != m->new_master.pid) { /* whose death we would not see */
        log_error("upgrade: pid %d speaks for pid %d, which was started: it must become the new "
                  "binary (exec), not run it",
                  (int)heard.from, (int)m->new_master.pid);
        kill_heir(m);
        part_from_heir(m);
    } else if (word == MESSAGE_ASK && m->new_master.state == NEW_MASTER_STARTS)
        give(m, &heard);
    else if (word == MESSAGE_PREPARED && m->new_master.state == NEW_MASTER_STARTS)
        yield(m);
    else if (word == MESSAGE_SERVES && m->new_master.state == NEW_MASTER_TAKES)
        hand_over(m);
}

static void watch_heir(struct master *m)
{
    listen_to_heir(m);
    if (m->new_master.state == NEW_MASTER_PREPARED && !is_there(m, ROLE_WRITER))
        let_take(m);
    if (m->new_master.state == NEW_MASTER_SERVES || clock_mono_ms() < m->new_master.deadline_ms)
        return;
    if (m->new_master.deadline_ms != UINT64_MAX)
        log_error("upgrade: pid %d does not serve in time (timeouts.upgrade): killed",
                  (int)m->new_master.pid);
    kill_heir(m);
}

static void remove_next(const struct master *m)
{
    char path[4200];
    for (size_t i = 0; i < RUN_FILES; i++) {
        snprintf(path, sizeof(path), "%s/%s%s", master_conf(m)->run_dir, run_files[i], NEXT);
        unlink(path);
    }
}

/* nobody takes connections any more: the sooner we end, the sooner whoever watches over us starts another */
static void follow_heir(struct master *m, int status)
{
    uint64_t left_ms = master_conf(m)->drain_timeout_ms;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STOPPED)
        log_info("upgrade: pid %d was stopped: this one ends too", (int)m->new_master.pid);
    else {
        log_error("upgrade: the new binary (pid %d) ended while this one still drained: this one "
                  "ends too",
                  (int)m->new_master.pid);
        m->exit_status = EXIT_GAVE_UP;
        left_ms = left_ms < LEAVE_MS ? left_ms : LEAVE_MS;
    }
    m->stopping = true;
    m->stop_at_ms = clock_mono_ms() + left_ms;
}

bool upgrade_buried(struct master *m, pid_t pid, int status)
{
    if (m->new_master.state == NEW_MASTER_NONE || m->new_master.pid != pid)
        return false;
    if (m->new_master.state == NEW_MASTER_TAKES)
        listen_to_heir(m); /* it may have served before it died: then it was the server */
    part_from_heir(m);
    if (m->new_master.state == NEW_MASTER_SERVES) {
        if (!m->stopping)
            follow_heir(m, status);
        m->new_master.pid = 0;
        return true;
    }
    if (WIFSIGNALED(status))
        log_error("upgrade failed: the new binary was killed by signal %d before it served: this "
                  "one goes on",
                  WTERMSIG(status));
    else
        log_error("upgrade failed: the new binary ended with status %d before it served: this one "
                  "goes on",
                  WEXITSTATUS(status));
    tell_failed();
    remove_next(m);
    if (m->new_master.state == NEW_MASTER_TAKES)
        reuseport_restore(m);
    m->new_master.state = NEW_MASTER_NONE;
    m->new_master.pid = 0;
    return true;
}

bool upgrade_stop_waits(struct master *m, bool again)
{
    if (m->new_master.state == NEW_MASTER_NONE || m->new_master.state == NEW_MASTER_SERVES)
        return false;
    if (again || m->new_master.state == NEW_MASTER_STARTS) {
        kill_heir(m);
        return false;
    }
    m->new_master.stop_waits = true;
    return true;
}

bool upgrade_stops_now(struct master *m)
{
    bool now = m->new_master.stop_waits && m->new_master.state == NEW_MASTER_NONE &&
               children_ready(m, ROLE_WRITER);
    if (now)
        m->new_master.stop_waits = false;
    return now;
}

bool upgrade_pass_on(struct master *m, int number)
{
    bool serves = m->new_master.state == NEW_MASTER_SERVES;
    if (m->new_master.state != NEW_MASTER_NONE && m->new_master.pid > 0 &&
        (serves || number == SIGUSR1)) /* logs are opened early */
        kill(m->new_master.pid, number);
    return serves;
}

/* ---- the heir: what it inherits ---- */

int upgrade_inherit(struct master *m)
{
    const char *named = getenv(ENVIRONMENT);
    struct passed passed;
    m->old_master.fd = -1;
    if (named == NULL)
        return 0;
    systemd_hush(true);
    m->old_master.state = OLD_MASTER_SERVES;
    m->store_known = true;
    int pid = 0;
    bool ok = sscanf(named, "%d %d", &m->old_master.fd, &pid) == 2 && m->old_master.fd > 2 &&
              fcntl(m->old_master.fd, F_SETFD, FD_CLOEXEC) == 0;
    unsetenv(ENVIRONMENT);
    if (!ok || pid != getpid()) {
        m->old_master.fd = -1;
        return inherited_state_refuse(ok ? "this is not the process that was started: that must "
                                           "become the new binary (exec), not run it"
                                         : ENVIRONMENT
                                          " is in the environment, and no master passed it on");
    }
    if (upgrade_channel_get(m->old_master.fd, &passed.fds, &passed.count) != 0)
        return inherited_state_refuse(errno == EPIPE ? "the old binary gives nothing"
                                                     : strerror(errno));
    if (inherited_state_read(m, &passed) != 0)
        return -1;
    m->generation->number = m->old_master.generation + 1;
    return 0;
}

bool upgrade_is_trial(const struct master *m)
{
    return m->old_master.state != OLD_MASTER_NONE && m->old_master.state != OLD_MASTER_ENDS &&
           m->old_master.fd >= 0;
}

void upgrade_path(const struct master *m, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s%s", master_conf(m)->run_dir, name,
             m->old_master.state == OLD_MASTER_NONE ? "" : NEXT);
}

/* ---- the heir: taking over ---- */

static bool workers_wait(const struct master *m)
{
    unsigned count = 0;
    for (size_t i = 0; i < m->child_slots_count; i++)
        if (m->child_slots[i].role == ROLE_WORKER)
            count += m->child_slots[i].child != NULL &&
                     score_get(m->child_slots[i].child->score->phase) == PHASE_WAITING;
    return count == master_conf(m)->workers;
}

static void old_master_yields(struct master *m, const pid_t *workers, size_t count)
{
    m->old_master.workers = calloc(count + 1, sizeof(*workers));
    if (m->old_master.workers != NULL && count > 0)
        memcpy(m->old_master.workers, workers, count * sizeof(*workers));
    m->old_master.workers_count = m->old_master.workers == NULL ? 0 : count;
    m->old_master.state = OLD_MASTER_YIELDED;
}

/* from here on connections come to us too; the slots that the elder did not have are steered around until workers sit in them */
static void open_doors(struct master *m)
{
    m->slots = m->old_master.slots;
    m->steered = m->old_master.steered;
    m->quiet_from_ms = clock_mono_ms() + listen_handshake_ms();
    reuseport_change(m);
    score_set(m->scoreboard->accept_paused, 0);
    m->old_master.open = true;
}

static void take_over(struct master *m)
{
    char from[4200], to[4200];
    for (size_t i = 0; i < RUN_FILES; i++) {
        upgrade_path(m, run_files[i], from, sizeof(from));
        snprintf(to, sizeof(to), "%s/%s", master_conf(m)->run_dir, run_files[i]);
        if (rename(from, to) != 0)
            log_error("run_dir %s: %s", to, strerror(errno));
    }
    m->old_master.state = OLD_MASTER_ENDS;
    m->old_master.heard =
        m->old_master.fd < 0 || !upgrade_channel_send(m->old_master.fd, MESSAGE_SERVES, NULL, 0);
    listen_drop(m->old_master.given, m->old_master.given_count,
                true); /* those that the new configuration has no more */
    m->old_master.given = NULL;
    m->old_master.given_count = 0;
}

static void listen_to_elder(struct master *m)
{
    struct upgrade_message heard;
    int word = upgrade_channel_receive(m->old_master.fd, &heard);
    if (word == MESSAGE_TAKE && m->old_master.state == OLD_MASTER_YIELDS)
        old_master_yields(m, heard.numbers, heard.count);
    else if (word == MESSAGE_GO)
        m->old_master.heard = true;
    if (word >= 0)
        return;
    if (m->old_master.state != OLD_MASTER_ENDS)
        log_warn("upgrade: the old binary ended before it handed over: this one goes on alone");
    shut(&m->old_master.fd);
    m->old_master.heard = true;
}

static void watch_elder(struct master *m)
{
    if (m->old_master.fd >= 0)
        listen_to_elder(m);
    if (m->old_master.state == OLD_MASTER_SERVES && workers_wait(m)) {
        m->old_master.state = OLD_MASTER_YIELDS;
        if (m->old_master.fd >= 0 &&
            !upgrade_channel_send(m->old_master.fd, MESSAGE_PREPARED, NULL, 0))
            log_debug("upgrade: the old binary does not listen: %s", strerror(errno));
    }
    if (m->old_master.state == OLD_MASTER_YIELDS && m->old_master.fd < 0)
        old_master_yields(m, NULL, 0);
    if (m->old_master.state == OLD_MASTER_YIELDED && !m->old_master.open &&
        children_ready(m, ROLE_WRITER))
        open_doors(m);
    if (m->old_master.state == OLD_MASTER_YIELDED && m->old_master.open &&
        children_ready(m, ROLE_WRITER) && children_ready(m, ROLE_AUDITOR) &&
        children_ready(m, ROLE_WORKER))
        take_over(m);
    if (m->old_master.state == OLD_MASTER_ENDS && m->old_master.heard)
        systemd_hush(false);
    if (m->old_master.state == OLD_MASTER_ENDS && m->old_master.fd < 0)
        m->old_master.state = OLD_MASTER_NONE;
}

/* ---- both ---- */

/* one that stops hears it only to know when it has ended */
static bool old_master_is_heard(const struct master *m)
{
    return m->old_master.state == OLD_MASTER_ENDS ||
           (m->old_master.state != OLD_MASTER_NONE && !m->stopping);
}

/* one that gives up does not wait: nobody takes connections meanwhile */
bool upgrade_elder_drains(const struct master *m)
{
    return m->old_master.state == OLD_MASTER_ENDS && m->old_master.fd >= 0 && m->exit_status == 0;
}

bool upgrade_keeps(struct master *m)
{
    if (!m->stopping)
        return false;
    if (m->new_master.state != NEW_MASTER_SERVES || m->new_master.pid == 0)
        return upgrade_elder_drains(m) && clock_mono_ms() < m->stop_at_ms;
    if (m->children == NULL)
        forget_heir(m);
    return clock_mono_ms() < m->stop_at_ms + LEAVE_MS;
}

void upgrade_tick(struct master *m)
{
    if (m->new_master.state != NEW_MASTER_NONE && m->new_master.pid > 0)
        watch_heir(m);
    if (old_master_is_heard(m))
        watch_elder(m);
    if (m->new_master.wanted && m->new_master.state == NEW_MASTER_NONE && may_begin(m))
        begin(m);
}

bool upgrade_holds(const struct master *m, enum role role)
{
    if (role == ROLE_WORKER) /* the heir's writer serves those of ours that TAKE has named */
        return m->new_master.state == NEW_MASTER_TAKES;
    return m->new_master.state >= NEW_MASTER_PREPARED || m->old_master.state == OLD_MASTER_SERVES ||
           m->old_master.state == OLD_MASTER_YIELDS;
}

bool upgrade_is_going_on(const struct master *m)
{
    return m->new_master.state != NEW_MASTER_NONE ||
           (m->old_master.state != OLD_MASTER_NONE && !m->old_master.heard);
}

int upgrade_fd(const struct master *m)
{
    if (m->new_master.state != NEW_MASTER_NONE)
        return m->new_master.fd;
    return old_master_is_heard(m) ? m->old_master.fd : -1;
}

void upgrade_close(struct master *m)
{
    forget_heir(m);
    if (m->old_master.state != OLD_MASTER_NONE)
        shut(&m->old_master.fd);
    listen_drop(m->old_master.given, m->old_master.given_count, false);
    m->old_master.given = NULL;
    m->old_master.given_count = 0;
}

void upgrade_end(struct master *m)
{
    if (m->new_master.state != NEW_MASTER_NONE && m->new_master.state != NEW_MASTER_SERVES &&
        m->new_master.pid > 0) {
        kill(m->new_master.pid, SIGKILL);
        for (int tries = 0; tries < LEAVE_MS / 10 && waitpid(m->new_master.pid, NULL, WNOHANG) == 0;
             tries++) /* who waits for us has waited for it */
            poll(NULL, 0, 10);
        part_from_heir(m);
    }
    upgrade_close(m);
    free(m->old_master.workers);
}
