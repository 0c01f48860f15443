#include "core/master/children.h"

#include "core/audit/auditor.h"
#include "core/base/log.h"
#include "core/master/systemd.h"
#include "core/shm/connection_table.h"
#include "core/worker/worker.h"
#include "core/writer/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STUCK_MS 10000      /* after the last heartbeat, a child is killed */
#define ASLEEP_MS 5000      /* after the last watch, the master was stopped */
#define SYNC_ALARM_MS 10000 /* of the writer in fsync, an alarm is logged */
#define SHORT_LIFE_MS 5000  /* a child that lived less restarts with a delay */
#define DELAY_MIN_MS 100
#ifndef DELAY_MAX_MS /* t/kit/small_assayd's is shorter */
#define DELAY_MAX_MS 5000
#endif
#define GIVE_UP_DEATHS 12 /* short lives in a row, of one slot */
#define DRAIN_GRACE_MS 1000

/* ---- slots ---- */

static void add_slots(struct child_slot *slots, enum role role, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        slots[i] = (struct child_slot){.role = role, .index = i};
}

/* move the child of the same role and index from the old slots */
static void keep_child(struct children *c, struct child_slot *slot)
{
    for (size_t i = 0; i < c->slots_count; i++)
        if (c->slots[i].role == slot->role && c->slots[i].index == slot->index) {
            *slot = c->slots[i];
            c->slots[i] = (struct child_slot){0};
        }
}

static void drain(struct child *child)
{
    if (child != NULL && !child->draining)
        child_signal(child, SIGQUIT);
}

int children_set_slots(struct children *c)
{
    const struct conf *conf = generations_conf(c->generations);
    size_t count = 1 + conf->auditors + conf->workers;
    struct child_slot *slots = calloc(count, sizeof(*slots));
    if (slots == NULL)
        return -1;
    add_slots(slots, ROLE_WRITER, 1);
    add_slots(slots + 1, ROLE_AUDITOR, conf->auditors);
    add_slots(slots + 1 + conf->auditors, ROLE_WORKER, conf->workers);
    for (size_t i = 0; i < count; i++)
        keep_child(c, &slots[i]);
    for (size_t i = 0; i < c->slots_count; i++) {
        drain(c->slots[i].child);
        drain(c->slots[i].predecessor);
    }
    free(c->slots);
    c->slots = slots;
    c->slots_count = count;
    return 0;
}

/* A writer that waits for the disk is ready: changes queue in its socket. */
static bool is_ready(const struct child *child)
{
    uint64_t phase = child == NULL ? PHASE_STARTING : score_get(child->score->phase);
    return phase == PHASE_READY || (phase == PHASE_SYNCING && child->process.role == ROLE_WRITER);
}

bool children_ready(const struct children *c, enum role role)
{
    for (size_t i = 0; i < c->slots_count; i++)
        if (c->slots[i].role == role && !is_ready(c->slots[i].child))
            return false;
    return true;
}

bool children_have(const struct children *c, enum role role)
{
    for (const struct child *child = c->list; child != NULL; child = child->next)
        if (child->process.role == role)
            return true;
    return false;
}

/* ---- start ---- */

static int run_child(struct process *p)
{
    process_child_init(p);
    switch (p->role) {
    case ROLE_WRITER:
        return writer_run(p);
    case ROLE_AUDITOR:
        return auditor_run(p);
    default:
        return worker_run(p);
    }
}

static struct child *child_new(struct children *c, const struct child_slot *slot)
{
    const struct generation *g = c->generations->newest;
    struct scoreboard *sb = c->inherited.scoreboard;
    struct child *child = calloc(1, sizeof(*child));
    uint64_t now = clock_mono_ms();
    if (child == NULL)
        return NULL;
    child->score = scoreboard_claim(sb, slot->role, slot->index, g->number, now);
    if (child->score == NULL) {
        free(child);
        return NULL;
    }
    score_set(child->score->slots, *c->listener_slots);
    child->started_ms = now;
    child->process = c->inherited;
    child->process.role = slot->role;
    child->process.index = slot->index;
    child->process.generation = g->number;
    child->process.conf = g->conf;
    child->process.tls = &c->generations->newest->tls;
    child->process.score = child->score;
    child->process.connection_slot = (unsigned)(child->score - sb->slot);
    child->process.store_known = c->store_known;
    child->process.old_workers = c->upgrade->old_master.workers;
    child->process.old_workers_count = c->upgrade->old_master.workers_count;
    child->next = c->list;
    c->list = child;
    if (slot->role == ROLE_WORKER)
        connection_table_open_slot(child->process.connection_table, child->process.connection_slot);
    return child;
}

static void child_free(struct children *c, struct child *child)
{
    struct child **at = &c->list;
    if (child->process.role == ROLE_WORKER)
        connection_table_close_slot(child->process.connection_table,
                                    child->process.connection_slot);
    scoreboard_release(c->inherited.scoreboard, child->score);
    while (*at != child)
        at = &(*at)->next;
    *at = child->next;
    free(child);
}

static _Noreturn void become_child(struct children *c, struct child *child)
{
    enum role role = child->process.role;
    if (role != ROLE_WORKER)
        score_set(child->score->slots, 0);
    c->close_unused(c->arg, role);
    int status = run_child(&child->process);
    if (role == ROLE_AUDITOR)
        _exit(status); /* its sandbox does not allow what exit handlers do */
    exit(status);
}

static struct child *fork_child(struct children *c, const struct child_slot *slot)
{
    struct tls *tls = &c->generations->newest->tls;
    struct child *child = child_new(c, slot);
    if (child == NULL)
        return NULL;
    fflush(NULL);
    if (slot->role == ROLE_WORKER && !tls_inherit(tls, true))
        log_error("a worker cannot inherit the keys of TLS: %s", strerror(errno));
    child->pid = fork();
    if (child->pid != 0 && !tls_inherit(tls, false))
        log_error("other processes inherit the keys of TLS: %s", strerror(errno));
    if (child->pid < 0) {
        log_error("fork: %s", strerror(errno));
        child_free(c, child);
        return NULL;
    }
    if (child->pid == 0)
        become_child(c, child);
    c->generations->newest->children++;
    return child;
}

/* the store must exist before anybody reads it */
static bool may_start(const struct children *c, const struct child_slot *slot)
{
    return !upgrade_blocks_role(c->upgrade, slot->role) &&
           (slot->role == ROLE_WRITER || c->store_known || children_ready(c, ROLE_WRITER));
}

void children_start(struct children *c)
{
    uint64_t now = clock_mono_ms();
    for (size_t i = 0; i < c->slots_count; i++) {
        struct child_slot *s = &c->slots[i];
        if (s->child == NULL && now >= s->start_at_ms && may_start(c, s))
            s->child = fork_child(c, s);
    }
}

/* ---- signals ---- */

void child_signal(struct child *child, int number)
{
    child->signalled_ms = clock_mono_ms();
    if (number == SIGQUIT)
        child->draining = true;
    else
        child->stopping = true;
    kill(child->pid, number);
}

void children_signal(struct children *c, int number)
{
    for (struct child *child = c->list; child != NULL; child = child->next)
        kill(child->pid, number);
}

/* ---- deaths ---- */

/* what a damaged page does to a process inside LMDB */
static void log_death(const struct child *child, int status)
{
    const struct process *p = &child->process;
    const char *role = role_name(p->role);
    if (!WIFSIGNALED(status)) {
        log_warn("%s %u (pid %d) ended with status %d", role, p->index, child->pid,
                 WEXITSTATUS(status));
        return;
    }
    int number = WTERMSIG(status);
    if (process_is_crash(number) && p->role != ROLE_AUDITOR)
        log_error("%s %u (pid %d) was killed by signal %d (%s): if this repeats, the store may be "
                  "damaged: stop the server and run assay check",
                  role, p->index, child->pid, number, strsignal(number));
    else
        log_warn("%s %u (pid %d) was killed by signal %d (%s)", role, p->index, child->pid, number,
                 strsignal(number));
}

/* does a worker of the old generation still serve, since its successor has not come up? */
static bool has_predecessors(const struct children *c)
{
    for (size_t i = 0; i < c->slots_count; i++)
        if (c->slots[i].role == ROLE_WORKER && c->slots[i].predecessor != NULL)
            return true;
    return false;
}

/* the first restart is immediate */
static uint64_t restart_delay_ms(unsigned short_lives)
{
    uint64_t delay = 0;
    for (unsigned i = 1; i < short_lives; i++)
        delay = delay == 0 ? DELAY_MIN_MS : delay * 2 < DELAY_MAX_MS ? delay * 2 : DELAY_MAX_MS;
    return delay;
}

/* Without a writer (a dead disk) or auditors, the server still serves what it has. */
static void give_up_if_hopeless(struct children *c, const struct child_slot *s, bool expected,
                                int status)
{
    const char *role = role_name(s->role);
    bool cannot_start =
        (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_START && !c->store_known) ||
        (upgrade_is_trial(c->upgrade) && !expected);
    bool keeps_dying =
        s->role == ROLE_WORKER && !has_predecessors(c) && s->short_lives >= GIVE_UP_DEATHS;
    if (!cannot_start && !keeps_dying)
        return;
    if (cannot_start)
        log_error("cannot start: the %s failed, see its lines above", role);
    else
        log_error("giving up: the %s keeps dying", role);
    shutdown_set_reason(c->shutdown, "the %s %s", role,
                        cannot_start ? "cannot start" : "keeps dying");
    systemd_notify("STOPPING=1");
    shutdown_begin(c->shutdown, cannot_start ? EXIT_START : EXIT_GAVE_UP,
                   generations_conf(c->generations)->drain_timeout_ms);
}

static void slot_emptied(struct children *c, struct child_slot *s, const struct child *child,
                         int status)
{
    uint64_t now = clock_mono_ms();
    s->child = NULL;
    if (c->shutdown->stopping || c->shutdown->replaced)
        return;
    if (s->predecessor != NULL)
        log_error("%s %u of generation %u did not start: its predecessor continues, and the start "
                  "is retried",
                  role_name(s->role), s->index, child->process.generation);
    /* an auditor ends when its writer has ended, a writer when it loses the lead */
    const int ends_well = child->process.role == ROLE_AUDITOR  ? EXIT_STOPPED
                          : child->process.role == ROLE_WRITER ? EXIT_RETRY
                                                               : -1;
    bool expected = child->stopping || (WIFEXITED(status) && WEXITSTATUS(status) == ends_well);
    if (!expected) {
        log_death(child, status);
        score_add(c->inherited.scoreboard->restarts, 1);
        s->short_lives = now - child->started_ms < SHORT_LIFE_MS ? s->short_lives + 1 : 0;
    }
    s->start_at_ms = now + restart_delay_ms(s->short_lives);
    give_up_if_hopeless(c, s, expected, status);
}

/* the listener slots that it served are free for another worker */
static void free_listener_slots(struct scoreboard *sb, pid_t pid)
{
    for (size_t i = 0; i < SCOREBOARD_LISTENER_SLOTS; i++) {
        int32_t served_by = pid;
        if (atomic_load(&sb->listener[i].pid) != pid)
            continue;
        score_set(sb->listener[i].unserved_since_ms, clock_mono_ms());
        atomic_compare_exchange_strong(&sb->listener[i].pid, &served_by, 0);
    }
}

void children_reaped(struct children *c, pid_t pid, int status)
{
    struct child *child = c->list;
    while (child != NULL && child->pid != pid)
        child = child->next;
    if (child == NULL)
        return;
    unsigned generation = child->process.generation;
    free_listener_slots(c->inherited.scoreboard, pid);
    for (size_t i = 0; i < c->slots_count; i++) {
        if (c->slots[i].child == child)
            slot_emptied(c, &c->slots[i], child, status);
        else if (c->slots[i].predecessor == child)
            c->slots[i].predecessor = NULL;
    }
    child_free(c, child);
    generations_release(c->generations, generation);
}

/* ---- watching ---- */

static bool is_syncing(const struct child *child)
{
    return child->process.role == ROLE_WRITER && score_get(child->score->phase) == PHASE_SYNCING;
}

static bool is_silent(const struct child *child, uint64_t now, uint64_t for_ms)
{
    uint64_t beat = score_get(child->score->heartbeat_ms);
    return !is_syncing(child) && now > beat && now - beat > for_ms &&
           now - child->started_ms > for_ms;
}

static void alarm_if_slow(struct child *child, uint64_t now)
{
    uint64_t busy = score_get(child->score->busy_since_ms);
    bool slow = is_syncing(child) && busy != 0 && now > busy && now - busy > SYNC_ALARM_MS;
    if (slow && !child->alarmed)
        log_error("the disk has kept the writer waiting for over %d s: no change is answered until "
                  "the disk responds",
                  SYNC_ALARM_MS / 1000);
    child->alarmed = slow || (child->alarmed && is_syncing(child));
}

static void note_sleep(struct children *c, uint64_t now)
{
    if (c->watched_ms != 0 && now - c->watched_ms > ASLEEP_MS)
        c->woken_ms = now;
    c->watched_ms = now;
}

void children_watch(struct children *c)
{
    uint64_t now = clock_mono_ms();
    note_sleep(c, now);
    uint64_t drain_ms = generations_conf(c->generations)->drain_timeout_ms + DRAIN_GRACE_MS;
    for (struct child *child = c->list; child != NULL; child = child->next) {
        const struct process *p = &child->process;
        if (child->draining && now - child->signalled_ms > drain_ms) {
            log_warn("%s %u (pid %d) did not drain in time: killed", role_name(p->role), p->index,
                     child->pid);
            kill(child->pid, SIGKILL);
        } else if (is_silent(child, now, STUCK_MS) && now - c->woken_ms > STUCK_MS) {
            log_error("%s %u (pid %d) made no progress for over %d s: killed and replaced",
                      role_name(p->role), p->index, child->pid, STUCK_MS / 1000);
            kill(child->pid, SIGKILL);
        } else
            alarm_if_slow(child, now);
    }
}

bool children_alive(const struct children *c, uint64_t within_ms)
{
    uint64_t now = clock_mono_ms();
    for (const struct child *child = c->list; child != NULL; child = child->next)
        if (child->process.role != ROLE_AUDITOR && is_silent(child, now, within_ms))
            return false;
    return true;
}

/* ---- a reload ---- */

/*
 * A child that failed and waits for its next start does not count, so that a corrected
 * configuration can be loaded. A successor that just came up counts until its predecessor is
 * retired: after a reload nobody would retire it.
 */
bool children_in_transition(const struct children *c)
{
    for (size_t i = 0; i < c->slots_count; i++)
        if (c->slots[i].child != NULL &&
            (!is_ready(c->slots[i].child) || c->slots[i].predecessor != NULL))
            return true;
    return false;
}

void children_retire(struct children *c)
{
    for (size_t i = 0; i < c->slots_count; i++) {
        struct child_slot *s = &c->slots[i];
        if (s->predecessor != NULL && is_ready(s->child)) {
            child_signal(s->predecessor, SIGQUIT);
            s->predecessor = NULL;
        }
    }
}

void children_replace(struct children *c)
{
    for (size_t i = 0; i < c->slots_count; i++) {
        struct child_slot *s = &c->slots[i];
        s->short_lives = 0;
        s->start_at_ms = 0;
        if (s->child == NULL || s->child->process.generation == c->generations->newest->number)
            continue;
        if (s->role == ROLE_WORKER) {
            s->predecessor = s->child;
            s->child = NULL;
        } else
            child_signal(s->child, SIGTERM);
    }
}

bool children_settled(const struct children *c)
{
    for (size_t i = 0; i < c->slots_count; i++) {
        const struct child *child = c->slots[i].role == ROLE_WORKER ? c->slots[i].child : NULL;
        if (child != NULL && child->process.generation != c->generations->newest->number)
            return false;
    }
    return children_ready(c, ROLE_WORKER);
}

unsigned children_used_slots(const struct children *c)
{
    unsigned most = 0;
    for (const struct child *child = c->list; child != NULL; child = child->next) {
        unsigned slots = score_get(child->score->slots);
        most = slots > most ? slots : most;
    }
    return most;
}

void children_free(struct children *c)
{
    free(c->slots);
}
