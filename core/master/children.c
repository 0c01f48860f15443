#include "core/master/master_internal.h"

#include "core/audit/auditor.h"
#include "core/base/log.h"
#include "core/worker/worker.h"
#include "core/writer/writer.h"
#include "core/master/systemd.h"
#include "core/shm/request_stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STUCK_MS 10000      /* a heartbeat older than this: killed and replaced */
#define SYNC_ALARM_MS 10000 /* the writer inside fsync this long: an alarm, once */
#define SHORT_LIFE_MS 5000  /* a child that died younger comes back with a delay */
#define DELAY_MIN_MS 100
#ifndef DELAY_MAX_MS /* t/kit/small_assayd's is shorter */
#define DELAY_MAX_MS 5000
#endif
#define GIVE_UP_DEATHS 12 /* short lives in a row, of one seat */

/* ---- generations, seats, children ---- */

/* takes over ${conf}; NULL, with the reasons logged, where it cannot be used: then it is still the caller's */
struct generation *generation_new(struct master *m, struct conf *conf)
{
    char *said = NULL;
    size_t size = 0;
    FILE *mistakes = open_memstream(&said, &size);
    struct generation *g = calloc(1, sizeof(*g));
    bool ok = mistakes != NULL && g != NULL && tls_load(conf, &g->tls, mistakes) == 0;
    if (mistakes != NULL)
        fclose(mistakes);
    for (char *line = said == NULL ? NULL : strtok(said, "\n"); line != NULL;
         line = strtok(NULL, "\n"))
        if (ok)
            log_warn("%s", line);
        else
            log_error("%s%s", m->generation == NULL ? "" : "reload refused: ", line);
    if (mistakes == NULL || g == NULL)
        log_error("configuration: out of memory");
    free(said);
    if (!ok) {
        free(g);
        return NULL;
    }
    g->conf = conf;
    g->number = m->generation == NULL ? 0 : m->generation->number + 1;
    g->next = m->generation;
    m->generation = g;
    return g;
}

void generation_free(struct generation *g)
{
    tls_free(&g->tls);
    conf_free(g->conf);
    free(g);
}

/* a configuration nobody runs any more is freed */
static void drop_unused(struct master *m)
{
    struct generation **at = &m->generation->next;
    while (*at != NULL) {
        struct generation *g = *at;
        if (g->children > 0) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        generation_free(g);
    }
}

int children_make(struct master *m)
{
    const struct conf *conf = master_conf(m);
    size_t count = 1 + conf->auditors + conf->workers, at = 0;
    struct child_slot *child_slots = calloc(count, sizeof(*child_slots));
    if (child_slots == NULL)
        return -1;
    child_slots[at++] = (struct child_slot){.role = ROLE_WRITER};
    for (unsigned i = 0; i < conf->auditors; i++)
        child_slots[at++] = (struct child_slot){.role = ROLE_AUDITOR, .index = i};
    for (unsigned i = 0; i < conf->workers; i++)
        child_slots[at++] = (struct child_slot){.role = ROLE_WORKER, .index = i};
    /* whoever sits keeps the seat of the same name; the others have none and are told to go */
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < m->child_slots_count; k++)
            if (m->child_slots[k].role == child_slots[i].role &&
                m->child_slots[k].index == child_slots[i].index) {
                child_slots[i] = m->child_slots[k];
                m->child_slots[k] = (struct child_slot){0};
            }
    for (size_t k = 0; k < m->child_slots_count; k++) {
        struct child *left[] = {m->child_slots[k].child, m->child_slots[k].old};
        for (size_t i = 0; i < 2; i++)
            if (left[i] != NULL && !left[i]->draining) {
                left[i]->draining = true;
                left[i]->told_ms = clock_mono_ms();
                kill(left[i]->pid, SIGQUIT);
            }
    }
    free(m->child_slots);
    m->child_slots = child_slots;
    m->child_slots_count = count;
    return 0;
}

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

/* in the child: nothing of the master's that it does not need stays open */
static void close_masters(struct master *m, enum role role, struct score *score)
{
    upgrade_close(m);
    close(m->signal_fd);
    close(m->data_lock);
    close(m->run_lock);
    if (role != ROLE_WRITER)
        close(m->writer_fd);
    if (role != ROLE_WORKER) {
        listen_close(m->listeners, m->listeners_count);
        score_set(score->slots, 0);
        limiter_stats_close(m->limiters);
        ratelimit_close(m->ratelimit);
        typing_table_free(m->typing);
        connection_table_free(m->connection_table);
    }
    if (role == ROLE_AUDITOR)
        request_stats_close(m->request_stats);
}

static struct child *fork_child(struct master *m, const struct child_slot *slot)
{
    struct child *c = calloc(1, sizeof(*c));
    uint64_t now = clock_mono_ms();
    if (c == NULL)
        return NULL;
    c->score = scoreboard_claim(m->scoreboard, slot->role, slot->index, m->generation->number, now);
    if (c->score == NULL) {
        free(c);
        return NULL;
    }
    score_set(c->score->slots, m->slots);
    c->born_ms = now;
    c->process = (struct process){.role = slot->role,
                                  .index = slot->index,
                                  .generation = m->generation->number,
                                  .conf = master_conf(m),
                                  .scoreboard = m->scoreboard,
                                  .score = c->score,
                                  .tls = &m->generation->tls,
                                  .store_known = m->store_known,
                                  .limiters = m->limiters,
                                  .ratelimit = m->ratelimit,
                                  .typing = m->typing,
                                  .connection_table = m->connection_table,
                                  .connection_slot = (unsigned)(c->score - m->scoreboard->slot),
                                  .request_stats = m->request_stats,
                                  .listeners = m->listeners,
                                  .listeners_count = m->listeners_count,
                                  .writer_fd = m->writer_fd,
                                  .old_workers = m->old_master.workers,
                                  .old_workers_count = m->old_master.workers_count,
                                  .notify_fd = m->notify_fd,
                                  .master = getpid()};
    strcpy(c->process.writer_path, m->writer_path);
    c->next = m->children;
    m->children = c;
    fflush(NULL);
    if (slot->role == ROLE_WORKER)
        connection_table_open_slot(m->connection_table, c->process.connection_slot);
    if (slot->role == ROLE_WORKER && !tls_lend(&m->generation->tls, true))
        log_error("keys cannot be lent to a worker: %s", strerror(errno));
    c->pid = fork();
    if (c->pid != 0 && !tls_lend(&m->generation->tls, false))
        log_error("keys cannot be taken back: %s", strerror(errno));
    if (c->pid < 0) {
        log_error("fork: %s", strerror(errno));
        m->children = c->next;
        if (slot->role == ROLE_WORKER)
            connection_table_close_slot(m->connection_table, c->process.connection_slot);
        scoreboard_release(m->scoreboard, c->score);
        free(c);
        return NULL;
    }
    if (c->pid == 0) {
        close_masters(m, slot->role, c->score);
        int status = run_child(&c->process);
        if (slot->role == ROLE_AUDITOR)
            _exit(
                status); /* it has nothing to flush, and its sandbox is no place for exit handlers */
        exit(status);
    }
    m->generation->children++;
    return c;
}

void child_tell(struct child *c, int number)
{
    c->told_ms = clock_mono_ms();
    if (number == SIGQUIT)
        c->draining = true;
    else
        c->stopping = true;
    kill(c->pid, number);
}

/* A writer that waits for the disk takes what comes all the same. */
static bool is_ready(const struct child *c)
{
    uint64_t phase = c == NULL ? PHASE_STARTING : score_get(c->score->phase);
    return phase == PHASE_READY || (phase == PHASE_SYNCING && c->process.role == ROLE_WRITER);
}

bool children_ready(const struct master *m, enum role role)
{
    for (size_t i = 0; i < m->child_slots_count; i++)
        if (m->child_slots[i].role == role && !is_ready(m->child_slots[i].child))
            return false;
    return true;
}

/* the store must be there before anybody reads it */
static bool may_fill(const struct master *m, const struct child_slot *slot)
{
    return slot->role == ROLE_WRITER || m->store_known || children_ready(m, ROLE_WRITER);
}

void children_fill(struct master *m)
{
    uint64_t now = clock_mono_ms();
    for (size_t i = 0; i < m->child_slots_count; i++) {
        struct child_slot *s = &m->child_slots[i];
        if (s->child == NULL && now >= s->fill_at_ms && may_fill(m, s) &&
            !upgrade_holds(m, s->role))
            s->child = fork_child(m, s);
    }
}

/* a worker of the new generation serves: the old one of its seat may go */
void children_relieve(struct master *m)
{
    for (size_t i = 0; i < m->child_slots_count; i++) {
        struct child_slot *s = &m->child_slots[i];
        if (s->old != NULL && is_ready(s->child)) {
            child_tell(s->old, SIGQUIT);
            s->old = NULL;
        }
    }
}

/* ---- deaths ---- */

/* what a damaged page does to a process inside LMDB */
static bool is_crash(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGABRT || number == SIGFPE ||
           number == SIGILL;
}

static void describe_death(const struct child *c, int status)
{
    const char *role = role_name(c->process.role);
    if (WIFSIGNALED(status) && is_crash(WTERMSIG(status)) && c->process.role != ROLE_AUDITOR)
        log_error("%s %u (pid %d) was killed by signal %d (%s): where that goes on, the store may "
                  "be damaged: stop the server and "
                  "run assay check",
                  role, c->process.index, c->pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WIFSIGNALED(status))
        log_warn("%s %u (pid %d) was killed by signal %d (%s)", role, c->process.index, c->pid,
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        log_warn("%s %u (pid %d) ended with status %d", role, c->process.index, c->pid,
                 WEXITSTATUS(status));
}

/* somebody of the generation before goes on, since its successor has not come up */
static bool is_half_succeeded(const struct master *m)
{
    for (size_t i = 0; i < m->child_slots_count; i++)
        if (m->child_slots[i].role == ROLE_WORKER && m->child_slots[i].old != NULL)
            return true;
    return false;
}

static void slot_emptied(struct master *m, struct child_slot *s, const struct child *c, int status)
{
    uint64_t now = clock_mono_ms(), delay = 0;
    s->child = NULL; /* an old one goes on serving until there is a new one */
    if (m->stopping || m->left)
        return;
    if (s->old != NULL)
        log_error("%s %u of generation %u did not start: the one of the generation before goes on, "
                  "and it is tried again",
                  role_name(s->role), s->index, c->process.generation);
    /* an auditor ends of itself when its writer is gone */
    bool expected = c->stopping || (c->process.role == ROLE_AUDITOR && WIFEXITED(status) &&
                                    WEXITSTATUS(status) == EXIT_STOPPED);
    if (!expected) {
        describe_death(c, status);
        score_add(m->scoreboard->restarts, 1);
        s->short_lives = now - c->born_ms < SHORT_LIFE_MS ? s->short_lives + 1 : 0;
    }
    /* the first comes back at once */
    for (unsigned i = 1; i < s->short_lives; i++)
        delay = delay == 0 ? DELAY_MIN_MS : delay * 2 < DELAY_MAX_MS ? delay * 2 : DELAY_MAX_MS;
    s->fill_at_ms = now + delay;
    bool cannot_start =
        (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_START && !m->store_known) ||
        (upgrade_is_trial(m) && !expected);
    /* without auditors or a writer (a dead disk) the server still serves what it has */
    if (cannot_start ||
        (s->role == ROLE_WORKER && !is_half_succeeded(m) && s->short_lives >= GIVE_UP_DEATHS)) {
        log_error(cannot_start ? "cannot start: the %s said why" : "giving up: the %s keeps dying",
                  role_name(c->process.role));
        m->exit_status = cannot_start ? EXIT_START : EXIT_GAVE_UP;
        snprintf(m->why, sizeof(m->why), "the %s %s", role_name(c->process.role),
                 cannot_start ? "cannot start" : "keeps dying");
        m->stopping = true;
        systemd_tell("STOPPING=1");
        m->stop_at_ms = now + master_conf(m)->drain_timeout_ms;
    }
}

static void unserve(struct master *m, pid_t pid)
{
    for (size_t i = 0; i < SCOREBOARD_LISTENER_SLOTS; i++) {
        int32_t served_by = pid;
        if (atomic_load(&m->scoreboard->listener[i].pid) != pid)
            continue;
        score_set(m->scoreboard->listener[i].unserved_since_ms, clock_mono_ms());
        atomic_compare_exchange_strong(&m->scoreboard->listener[i].pid, &served_by, 0);
    }
}

static void bury(struct master *m, struct child *c, int status)
{
    unserve(m, c->pid);
    for (size_t i = 0; i < m->child_slots_count; i++) {
        if (m->child_slots[i].child == c)
            slot_emptied(m, &m->child_slots[i], c, status);
        else if (m->child_slots[i].old == c)
            m->child_slots[i].old = NULL;
    }
    for (struct generation *g = m->generation; g != NULL; g = g->next)
        if (g->number == c->process.generation)
            g->children--;
    if (c->process.role == ROLE_WORKER)
        connection_table_close_slot(m->connection_table, c->process.connection_slot);
    scoreboard_release(m->scoreboard, c->score);
    struct child **at = &m->children;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c);
}

void children_reap(struct master *m)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (struct child *c = upgrade_buried(m, pid, status) ? NULL : m->children; c != NULL;
             c = c->next)
            if (c->pid == pid) {
                bury(m, c, status);
                break;
            }
    drop_unused(m);
}

/* ---- what goes on too long ---- */

static void watch_one(struct master *m, struct child *c, uint64_t now)
{
    uint64_t beat = score_get(c->score->heartbeat_ms), busy = score_get(c->score->busy_since_ms);
    bool syncing = c->process.role == ROLE_WRITER && score_get(c->score->phase) == PHASE_SYNCING;
    if (c->draining && now - c->told_ms > master_conf(m)->drain_timeout_ms + 1000u) {
        log_warn("%s %u (pid %d) did not drain in time: killed", role_name(c->process.role),
                 c->process.index, c->pid);
        kill(c->pid, SIGKILL);
    } else if (syncing && busy != 0 && now > busy && now - busy > SYNC_ALARM_MS) {
        if (!c->alarmed)
            log_error("the disk has kept the writer waiting for over %d s: no write is answered "
                      "until it does its work",
                      SYNC_ALARM_MS / 1000);
        c->alarmed = true;
    } else if (!syncing && now > beat && now - beat > STUCK_MS && now - c->born_ms > STUCK_MS) {
        log_error("%s %u (pid %d) has not moved for over %d s: killed, to be replaced",
                  role_name(c->process.role), c->process.index, c->pid, STUCK_MS / 1000);
        kill(c->pid, SIGKILL);
    } else
        c->alarmed = c->alarmed && syncing;
}

void children_watch(struct master *m)
{
    uint64_t now = clock_mono_ms();
    for (struct child *c = m->children; c != NULL; c = c->next)
        watch_one(m, c, now);
}

bool children_move(const struct master *m, uint64_t within_ms)
{
    uint64_t now = clock_mono_ms();
    for (const struct child *c = m->children; c != NULL; c = c->next) {
        uint64_t beat = score_get(c->score->heartbeat_ms);
        bool syncing =
            c->process.role == ROLE_WRITER && score_get(c->score->phase) == PHASE_SYNCING;
        if (c->process.role != ROLE_AUDITOR && !syncing && now > beat && now - beat > within_ms &&
            now - c->born_ms > within_ms)
            return false;
    }
    return true;
}

/* ---- a reload ---- */

unsigned children_draining(const struct master *m)
{
    unsigned count = 0;
    for (const struct generation *g = m->generation->next; g != NULL; g = g->next)
        count += g->children > 0;
    return count;
}

/*
 * Somebody of the newest generation is just starting, or has come up since the one before was to be told to go, who would never be told once the seat
 * has its next. One that failed and waits for its next try does not count, so that a mended configuration gets in.
 */
bool children_changing(const struct master *m)
{
    for (size_t i = 0; i < m->child_slots_count; i++)
        if (m->child_slots[i].child != NULL &&
            (!is_ready(m->child_slots[i].child) || m->child_slots[i].old != NULL))
            return true;
    return false;
}

/* the new generation sits down; writer and auditors change places one after the other, workers side by side */
void children_succeed(struct master *m)
{
    for (size_t i = 0; i < m->child_slots_count; i++) {
        struct child_slot *s = &m->child_slots[i];
        s->short_lives = 0;
        s->fill_at_ms = 0;
        if (s->child == NULL || s->child->process.generation == m->generation->number)
            continue;
        if (s->role == ROLE_WORKER) {
            s->old = s->child;
            s->child = NULL;
        } else
            child_tell(s->child, SIGTERM);
    }
}
