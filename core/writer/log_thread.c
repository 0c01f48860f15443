#include "core/writer/log_thread_internal.h"

#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/cluster/verification.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define END_MS 2000
#define TICK_MS 50
#define NO_LOG "the database has no log: run `assay cluster init` once"
#define NO_LOG_FOR_STORE "the database has no log, but this store follows a log: check cluster.log"

/* ---- shared state ---- */

void log_tell(int fd)
{
    const uint64_t one = 1;
    if (write(fd, &one, sizeof(one)) < 0)
        return; /* it is readable already */
}

void log_heard(int fd)
{
    uint64_t count;
    if (read(fd, &count, sizeof(count)) < 0)
        return; /* nobody told */
}

bool log_is_ending(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    bool ending = t->ending;
    pthread_mutex_unlock(&t->lock);
    return ending;
}

/* Done by this thread, because the loop of a leader waits for its append. */
static void log_reason(const char *why)
{
    if (why[0] != '\0')
        log_warn("the cluster: %s", why);
    else
        log_info("the cluster: the store fits the log, and the log answers");
}

void log_publish(struct log_thread *t, enum log_state state, const char *why)
{
    pthread_mutex_lock(&t->lock);
    bool new_reason = strcmp(t->view.why, why) != 0, changed = new_reason || t->view.state != state;
    t->view.state = state;
    snprintf(t->view.why, sizeof(t->view.why), "%s", why);
    pthread_mutex_unlock(&t->lock);
    if (changed)
        log_tell(t->event_fd);
    if (new_reason)
        log_reason(why);
}

void log_publish_away(struct log_thread *t)
{
    char why[POSITION_WHY];
    snprintf(why, sizeof(why), "the log cannot be reached: %s", t->log->engine->why(t->log));
    log_publish(t, log_state_of(t), why);
}

enum log_state log_state_of(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    enum log_state state = t->view.state;
    pthread_mutex_unlock(&t->lock);
    return state;
}

void log_begin_call(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    t->answers = t->answers || t->asked;
    t->asked = false;
    pthread_mutex_unlock(&t->lock);
    t->began_us = clock_mono_us();
}

void log_confirm(struct log_thread *t, const struct cluster_log_head *head)
{
    pthread_mutex_lock(&t->lock);
    const struct cluster_log_head *seen = &t->view.head;
    bool changed = t->answers || seen->epoch != head->epoch ||
                   (seen->lease_ms > 0) != (head->lease_ms > 0) || seen->verify != head->verify ||
                   strcmp(seen->leader_address, head->leader_address) != 0;
    t->view.head = *head;
    t->view.confirmed_us = t->began_us;
    t->answers = false;
    pthread_mutex_unlock(&t->lock);
    if (changed)
        log_tell(t->event_fd);
}

static void wait_until_asked(struct log_thread *t, uint64_t ms, bool asked)
{
    const uint64_t until = clock_mono_ms() + ms;
    pthread_mutex_lock(&t->lock);
    while (!t->ending && !(asked && (t->append == APPEND_ASKED || t->asked)) &&
           thread_wait(&t->changed, &t->lock, until))
        ;
    pthread_mutex_unlock(&t->lock);
}

void log_rest(struct log_thread *t, uint64_t ms)
{
    wait_until_asked(t, ms, true);
}

void log_pause(struct log_thread *t, uint64_t ms)
{
    wait_until_asked(t, ms, false);
}

enum cluster_log_status log_look(struct log_thread *t, uint32_t last_format)
{
    bool changed;
    enum cluster_log_status status = log_look_at_nodes(t, last_format, &changed);
    if (changed)
        log_tell(t->event_fd);
    return status;
}

enum cluster_log_status log_read_head(struct log_thread *t, bool note, struct cluster_log_head *out)
{
    log_begin_call(t);
    const int64_t began_ms = clock_wall_ms();
    enum cluster_log_status status =
        note ? log_note(t, out) : t->log->engine->position(t->log, NULL, out);
    if (status == CLUSTER_LOG_OK)
        log_compare_clocks(t, out, began_ms);
    return status;
}

/* ---- the thread ---- */

/* ${status} is not CLUSTER_LOG_OK: publishes why, and waits. */
static void fail(struct log_thread *t, enum cluster_log_status status)
{
    if (status == CLUSTER_LOG_NONE)
        log_publish(t, log_state_of(t), t->place.known ? NO_LOG_FOR_STORE : NO_LOG);
    else
        log_publish_away(t);
    log_pause(t, LOG_RETRY_MS);
}

static void *run(void *arg)
{
    struct log_thread *t = arg;
    pthread_setname_np(pthread_self(), "log");
    while (!log_is_ending(t)) {
        enum log_state state = log_state_of(t);
        enum cluster_log_status status = CLUSTER_LOG_OK;
        if (state == LOG_LOST)
            log_pause(t, LOG_IDLE_MS);
        else
            status = state == LOG_LEADS ? log_lead(t) : log_follow(t);
        if (status != CLUSTER_LOG_OK)
            fail(t, status);
    }
    log_end_lead(t);
    pthread_mutex_lock(&t->lock);
    t->ended = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

struct log_thread *log_thread_new(struct cluster_log *log, const struct cluster_log_node *node,
                                  const struct store_position *position, bool empty)
{
    struct log_thread *t = log == NULL ? NULL : calloc(1, sizeof(*t));
    if (t == NULL) {
        log_error("the log thread cannot start: %s", strerror(ENOMEM));
        return NULL;
    }
    t->log = log;
    t->node = *node;
    t->counts_ms = INT64_MAX;
    t->place.known = position != NULL;
    t->place.empty = empty;
    if (position != NULL)
        t->place.position = *position;
    pthread_mutex_init(&t->lock, NULL);
    thread_condition(&t->changed);
    t->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = t->event_fd < 0 || t->wake_fd < 0 ? errno : thread_start(&t->id, run, t);
    if (error == 0)
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
    log_tell(t->wake_fd);
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
    log_heard(t->event_fd);
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
    t->refused = status;
    t->handover = APPLIED;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

bool log_thread_append(struct log_thread *t, const struct cluster_log_entry *what,
                       log_tick_fn *tick, void *arg, struct store_position *out)
{
    bool good = true;
    pthread_mutex_lock(&t->lock);
    struct cluster_log_entry *e = &t->entry;
    *e = (struct cluster_log_entry){.sequence = t->place.position.sequence + 1,
                                    .epoch = t->view.epoch,
                                    .at_ms = what->at_ms,
                                    .format = what->format,
                                    .rows = what->rows,
                                    .mark = store_rows_are_none(what->rows)};
    memcpy(e->before, t->place.position.chain, sizeof(e->before));
    good = t->view.state == LOG_LEADS &&
           chain_next(e->before, e->sequence, e->epoch, e->format, e->rows, e->chain);
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

void log_thread_hash(struct log_thread *t, uint64_t sequence, const uint8_t hash[STORE_HASH_BYTES],
                     uint64_t took_ms)
{
    pthread_mutex_lock(&t->lock);
    t->node.hash_sequence = sequence;
    memcpy(t->node.hash, hash, sizeof(t->node.hash));
    t->judges = true;
    t->late_ms = clock_mono_ms() + verification_wait_ms(took_ms);
    pthread_mutex_unlock(&t->lock);
}

void log_thread_trims(struct log_thread *t, uint64_t keep_ms, uint64_t away_ms)
{
    pthread_mutex_lock(&t->lock);
    t->keep_ms = (int64_t)keep_ms;
    t->away_ms = (int64_t)away_ms;
    pthread_mutex_unlock(&t->lock);
}

void log_thread_counts(struct log_thread *t, int64_t away_ms)
{
    pthread_mutex_lock(&t->lock);
    t->counts_ms = away_ms;
    pthread_mutex_unlock(&t->lock);
}

void log_thread_wake(struct log_thread *t)
{
    log_tell(t->wake_fd);
}

void log_thread_confirm(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    t->asked = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    log_tell(t->wake_fd);
}
