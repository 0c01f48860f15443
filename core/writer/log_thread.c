#include "core/writer/log_thread.h"

#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/shm/scoreboard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RETRY_MS 250      /* after a failure */
#define BUSY_POLL_MS 10   /* for a second after an entry */
#define IDLE_POLL_MS 1000 /* NOTIFY wakes the thread earlier */
#define END_MS 2000
#define TICK_MS 50

enum handover { NOTHING, OFFERED, TAKEN, APPLIED };
enum append_state { APPEND_NONE, APPEND_ASKED, APPEND_DONE, APPEND_FAILED };

struct log_thread {
    struct cluster_log *log;
    pthread_t id;
    bool runs;
    int event_fd, wake_fd;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    bool ending, ended;
    bool asked; /* for a confirmation of the head */
    struct log_view view;
    struct cluster_log_node node;
    struct log_place place;     /* of the store */
    char refusal[POSITION_WHY]; /* why the loop did not apply a batch; "": it did */
    enum handover handover;
    struct log_batch batch; /* the thread's until OFFERED and after APPLIED */
    enum append_state append;
    struct cluster_log_entry entry; /* its rows are the loop's */
    /* of the thread alone */
    uint64_t renew_ms, note_ms, busy_ms;
    uint64_t began_us;         /* when the last call of the engine began */
    bool answers;              /* that call answers who asked */
    char reason[POSITION_WHY]; /* why the store does not fit the log; "": it does */
};

/* ---- shared state ---- */

static void tell(int fd)
{
    const uint64_t one = 1;
    if (write(fd, &one, sizeof(one)) < 0)
        return; /* it is readable already */
}

static void heard(int fd)
{
    uint64_t count;
    if (read(fd, &count, sizeof(count)) < 0)
        return; /* nobody told */
}

static bool is_ending(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    bool ending = t->ending;
    pthread_mutex_unlock(&t->lock);
    return ending;
}

static void publish(struct log_thread *t, enum log_state state, const char *why)
{
    pthread_mutex_lock(&t->lock);
    bool changed = t->view.state != state || strcmp(t->view.why, why) != 0;
    t->view.state = state;
    snprintf(t->view.why, sizeof(t->view.why), "%s", why);
    pthread_mutex_unlock(&t->lock);
    if (changed)
        tell(t->event_fd);
}

static enum log_state state_of(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    enum log_state state = t->view.state;
    pthread_mutex_unlock(&t->lock);
    return state;
}

/* Before a call that reads the head: it tells what is in the log now or later. */
static void begin_call(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    t->answers = t->answers || t->asked;
    t->asked = false;
    pthread_mutex_unlock(&t->lock);
    t->began_us = clock_mono_us();
}

static void confirm(struct log_thread *t, const struct cluster_log_head *head)
{
    pthread_mutex_lock(&t->lock);
    const struct cluster_log_head *seen = &t->view.head;
    bool changed = t->answers || seen->epoch != head->epoch ||
                   (seen->lease_ms > 0) != (head->lease_ms > 0) ||
                   strcmp(seen->leader_address, head->leader_address) != 0;
    t->view.head = *head;
    t->view.confirmed_us = t->began_us;
    t->answers = false;
    pthread_mutex_unlock(&t->lock);
    if (changed)
        tell(t->event_fd);
}

/* Until ${ms} pass, the loop asks for an append, the end, or of a leader a confirmation. */
static void rest(struct log_thread *t, uint64_t ms)
{
    const uint64_t until = clock_mono_ms() + ms;
    pthread_mutex_lock(&t->lock);
    while (!t->ending && t->append != APPEND_ASKED && !(t->asked && t->view.state == LOG_LEADS) &&
           thread_wait(&t->changed, &t->lock, until))
        ;
    pthread_mutex_unlock(&t->lock);
}

/* ---- following ---- */

static bool add_entry(void *arg, const struct cluster_log_entry *e)
{
    struct log_thread *t = arg;
    const struct store_position *before =
        t->batch.count == 0 ? &t->place.position : log_batch_end(&t->batch);
    return position_continues(before, e, t->reason) && log_batch_add(&t->batch, e, before);
}

/* Have the loop apply the batch. */
static void hand_over(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    t->handover = OFFERED;
    tell(t->event_fd);
    while (t->handover != APPLIED && !t->ending)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

/* The entries after the position of the store. */
static enum cluster_log_status catch_up(struct log_thread *t)
{
    struct log_batch *b = &t->batch;
    const uint64_t before = t->place.position.sequence;
    log_batch_reset(b);
    enum cluster_log_status status = t->log->engine->read(t->log, before, add_entry, t);
    if (b->count > 0)
        hand_over(t);
    t->busy_ms = clock_mono_ms();
    if (t->place.position.sequence == before) /* it was not applied, or is not there */
        rest(t, IDLE_POLL_MS);
    return status == CLUSTER_LOG_NONE ? CLUSTER_LOG_OK : status;
}

static bool is_free(const struct log_thread *t, const struct cluster_log_head *head)
{
    return head->lease_ms <= 0 || memcmp(head->leader, t->node.id, NODE_BYTES) == 0;
}

/* At the head: lead if nobody does. */
static enum cluster_log_status try_lead(struct log_thread *t)
{
    struct cluster_log_head head;
    begin_call(t);
    enum cluster_log_status status =
        t->log->engine->lead(t->log, t->node.id, 0, CLUSTER_LOG_LEASE_MS, &head);
    if (status == CLUSTER_LOG_LED)
        return CLUSTER_LOG_OK;
    if (status != CLUSTER_LOG_OK)
        return status;
    confirm(t, &head);
    if (head.sequence != t->place.position.sequence) /* the last leader has appended since */
        return CLUSTER_LOG_OK;
    t->renew_ms = clock_mono_ms() + CLUSTER_LOG_RENEW_MS;
    pthread_mutex_lock(&t->lock);
    t->view.epoch = head.epoch;
    pthread_mutex_unlock(&t->lock);
    publish(t, LOG_LEADS, "");
    return CLUSTER_LOG_OK;
}

static void wait_for_entries(struct log_thread *t, const struct cluster_log_head *head)
{
    uint64_t now = clock_mono_ms(), most = IDLE_POLL_MS;
    if (now - t->busy_ms < 1000)
        most = BUSY_POLL_MS;
    if (head->lease_ms < (int64_t)most)
        most = (uint64_t)(head->lease_ms > 0 ? head->lease_ms : 0) + 1;
    t->log->engine->wait(t->log, t->wake_fd, (unsigned)most);
    heard(t->wake_fd);
}

static enum cluster_log_status read_head(struct log_thread *t, struct cluster_log_head *out)
{
    struct cluster_log_node node;
    const uint64_t now = clock_mono_ms();
    bool note = now >= t->note_ms;
    pthread_mutex_lock(&t->lock);
    node = t->node;
    node.sequence = t->place.position.sequence;
    pthread_mutex_unlock(&t->lock);
    begin_call(t);
    enum cluster_log_status status = t->log->engine->position(t->log, note ? &node : NULL, out);
    if (note && status == CLUSTER_LOG_OK)
        t->note_ms = now + CLUSTER_LOG_RENEW_MS;
    return status;
}

static enum cluster_log_status follow(struct log_thread *t)
{
    struct cluster_log_head head;
    enum cluster_log_status status = read_head(t, &head);
    if (status == CLUSTER_LOG_OK)
        status = position_compare(t->log, &t->place, &head, t->reason);
    if (status != CLUSTER_LOG_OK)
        return status;
    if (t->reason[0] == '\0') {
        confirm(t, &head);
        publish(t, LOG_FOLLOWS, t->refusal);
        if (head.sequence > t->place.position.sequence)
            status = catch_up(t);
        else if (is_free(t, &head))
            status = try_lead(t);
        else
            wait_for_entries(t, &head);
    }
    if (t->reason[0] != '\0') {
        publish(t, LOG_CONNECTS, t->reason);
        rest(t, IDLE_POLL_MS);
    }
    return status;
}

/* ---- leading ---- */

static enum cluster_log_status renew(struct log_thread *t, struct cluster_log_head *head)
{
    begin_call(t);
    enum cluster_log_status status =
        t->log->engine->lead(t->log, t->node.id, t->view.epoch, CLUSTER_LOG_LEASE_MS, head);
    if (status == CLUSTER_LOG_OK) {
        confirm(t, head);
        t->renew_ms = clock_mono_ms() + CLUSTER_LOG_RENEW_MS;
    }
    return status;
}

static struct store_position after_entry(const struct log_thread *t)
{
    struct store_position p = t->place.position;
    p.sequence = t->entry.sequence;
    memcpy(p.chain, t->entry.chain, sizeof(p.chain));
    return p;
}

/*
 * Append the entry until the log tells whether it has it. True: it has. False: it does not, since
 * another node led meanwhile, or the thread ends and does not know.
 */
static bool append_entry(struct log_thread *t)
{
    struct cluster_log_head head;
    const struct store_position after = after_entry(t);
    t->began_us = clock_mono_us();
    enum cluster_log_status status = t->log->engine->append(t->log, &t->entry);
    while (status != CLUSTER_LOG_OK) {
        if (status == CLUSTER_LOG_AWAY || status == CLUSTER_LOG_UNKNOWN ||
            status == CLUSTER_LOG_REFUSED)
            publish(t, LOG_LEADS, t->log->engine->why(t->log));
        if (is_ending(t))
            return false;
        status = renew(t, &head);
        if (status == CLUSTER_LOG_LED)
            return false;
        if (status == CLUSTER_LOG_OK) {
            if (position_is(&head, &after))
                break;
            if (!position_is(&head, &t->place.position))
                return false;
            status = t->log->engine->append(t->log, &t->entry);
        }
        if (status != CLUSTER_LOG_OK)
            usleep(RETRY_MS * 1000);
    }
    publish(t, LOG_LEADS, "");
    return true;
}

static void end_append(struct log_thread *t, bool good)
{
    pthread_mutex_lock(&t->lock);
    t->append = good ? APPEND_DONE : APPEND_FAILED;
    if (good) {
        t->place.position = after_entry(t);
        t->view.head.sequence = t->entry.sequence;
        t->view.confirmed_us = t->began_us;
        t->renew_ms = clock_mono_ms() + CLUSTER_LOG_RENEW_MS;
    }
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (!good)
        publish(t, LOG_LOST, "another node may lead");
}

static enum cluster_log_status keep_lead(struct log_thread *t)
{
    struct cluster_log_head head;
    enum cluster_log_status status = renew(t, &head);
    if (status == CLUSTER_LOG_LED ||
        (status == CLUSTER_LOG_OK && !position_is(&head, &t->place.position))) {
        publish(t, LOG_LOST, "another node leads");
        return CLUSTER_LOG_OK;
    }
    if (status == CLUSTER_LOG_OK)
        status = read_head(t, &head); /* and note the node */
    if (status == CLUSTER_LOG_OK)
        publish(t, LOG_LEADS, "");
    return status;
}

static enum cluster_log_status lead(struct log_thread *t)
{
    const uint64_t now = clock_mono_ms();
    if (now >= t->note_ms)
        return keep_lead(t);
    rest(t, now < t->renew_ms ? t->renew_ms - now : 0);
    pthread_mutex_lock(&t->lock);
    bool append = t->append == APPEND_ASKED && !t->ending, asked = t->asked;
    pthread_mutex_unlock(&t->lock);
    if (!append)
        return clock_mono_ms() < t->renew_ms && !asked ? CLUSTER_LOG_OK : keep_lead(t);
    end_append(t, append_entry(t));
    return CLUSTER_LOG_OK;
}

/* ---- the thread ---- */

/* ${status} is not CLUSTER_LOG_OK: say why, and wait. */
static void fail(struct log_thread *t, enum cluster_log_status status)
{
    char why[512];
    if (status == CLUSTER_LOG_NONE)
        snprintf(why, sizeof(why), "the database has no log: run `assay cluster init` once");
    else
        snprintf(why, sizeof(why), "the log cannot be reached: %s", t->log->engine->why(t->log));
    publish(t, state_of(t), why);
    rest(t, RETRY_MS);
}

/* So that another node need not wait for the end of the lease. */
static void give_up_lead(struct log_thread *t)
{
    struct cluster_log_head head;
    if (state_of(t) == LOG_LEADS &&
        t->log->engine->lead(t->log, t->node.id, t->view.epoch, 0, &head) != CLUSTER_LOG_OK)
        log_info("the cluster: the lead ends with its lease: %s", t->log->engine->why(t->log));
}

static void *run(void *arg)
{
    struct log_thread *t = arg;
    pthread_setname_np(pthread_self(), "log");
    while (!is_ending(t)) {
        enum log_state state = state_of(t);
        enum cluster_log_status status = CLUSTER_LOG_OK;
        if (state == LOG_LOST)
            rest(t, IDLE_POLL_MS);
        else
            status = state == LOG_LEADS ? lead(t) : follow(t);
        if (status != CLUSTER_LOG_OK)
            fail(t, status);
    }
    give_up_lead(t);
    pthread_mutex_lock(&t->lock);
    t->ended = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

struct log_thread *log_thread_new(const char *source, const struct cluster_log_node *node,
                                  const struct store_position *position, bool empty)
{
    struct log_thread *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return NULL;
    t->node = *node;
    t->place.known = position != NULL;
    t->place.empty = empty;
    if (position != NULL)
        t->place.position = *position;
    pthread_mutex_init(&t->lock, NULL);
    thread_condition(&t->changed);
    t->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    t->log = cluster_log_new(source, t->node.name);
    int error = t->event_fd < 0 || t->wake_fd < 0 || t->log == NULL ? errno : 0;
    if (error == 0)
        error = thread_start(&t->id, run, t);
    t->runs = error == 0;
    if (t->runs)
        return t;
    log_error("the log thread cannot start: %s", strerror(error));
    log_thread_free(t);
    return NULL;
}

bool log_thread_end(struct log_thread *t)
{
    const uint64_t until = clock_mono_ms() + END_MS;
    pthread_mutex_lock(&t->lock);
    t->ending = true;
    pthread_cond_broadcast(&t->changed);
    tell(t->wake_fd);
    while (!t->ended && thread_wait(&t->changed, &t->lock, until))
        ;
    bool ended = t->ended;
    pthread_mutex_unlock(&t->lock);
    if (ended)
        pthread_join(t->id, NULL);
    return ended;
}

void log_thread_free(struct log_thread *t)
{
    if (t == NULL)
        return;
    if (t->log != NULL)
        t->log->engine->free(t->log);
    log_batch_free(&t->batch);
    if (t->event_fd >= 0)
        close(t->event_fd);
    if (t->wake_fd >= 0)
        close(t->wake_fd);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- the loop ---- */

int log_thread_fd(const struct log_thread *t)
{
    return t->event_fd;
}

void log_thread_look(struct log_thread *t, struct log_view *out)
{
    heard(t->event_fd);
    pthread_mutex_lock(&t->lock);
    *out = t->view;
    out->position = t->place.position;
    pthread_mutex_unlock(&t->lock);
}

const struct log_batch *log_thread_take(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    bool offered = t->handover == OFFERED;
    if (offered)
        t->handover = TAKEN;
    pthread_mutex_unlock(&t->lock);
    return offered ? &t->batch : NULL;
}

void log_thread_applied(struct log_thread *t, enum store_status status, const char *why)
{
    pthread_mutex_lock(&t->lock);
    if (status == STORE_OK) {
        t->place.position = *log_batch_end(&t->batch);
        t->place.known = true;
    }
    snprintf(t->refusal, sizeof(t->refusal), "%s", status == STORE_OK ? "" : why);
    t->handover = APPLIED;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

bool log_thread_append(struct log_thread *t, struct str rows, int64_t at_ms, log_tick_fn *tick,
                       void *arg, struct store_position *out)
{
    bool good = true;
    pthread_mutex_lock(&t->lock);
    struct cluster_log_entry *e = &t->entry;
    *e = (struct cluster_log_entry){.sequence = t->place.position.sequence + 1,
                                    .epoch = t->view.epoch,
                                    .at_ms = at_ms,
                                    .format = ROWS_FORMAT,
                                    .rows = rows};
    good = t->view.state == LOG_LEADS &&
           chain_next(t->place.position.chain, e->sequence, e->epoch, e->format, rows, e->chain);
    t->append = good ? APPEND_ASKED : APPEND_FAILED;
    pthread_cond_broadcast(&t->changed);
    while (t->append == APPEND_ASKED && good)
        if (!thread_wait(&t->changed, &t->lock, clock_mono_ms() + TICK_MS))
            good = tick(arg);
    good = t->append == APPEND_DONE;
    t->append = APPEND_NONE;
    *out = t->place.position;
    pthread_mutex_unlock(&t->lock);
    return good;
}

void log_thread_note(struct log_thread *t, uint64_t free_bytes)
{
    pthread_mutex_lock(&t->lock);
    t->node.free_bytes = free_bytes;
    pthread_mutex_unlock(&t->lock);
}

void log_thread_wake(struct log_thread *t)
{
    tell(t->wake_fd);
}

void log_thread_confirm(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    t->asked = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    tell(t->wake_fd);
}
