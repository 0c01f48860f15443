/* The log thread of a follower: entries from the log to the loop. */
#include "core/writer/log_thread_internal.h"

#define BUSY_POLL_MS 10 /* for a second after an entry */

/* A batch ends with an entry without rows, so that the loop takes a snapshot after it. */
static bool add_entry(void *arg, const struct cluster_log_entry *e)
{
    struct log_thread *t = arg;
    const struct store_position *before =
        t->batch.count == 0 ? &t->place.position : log_batch_end(&t->batch);
    return position_continues(before, e, t->reason) && log_batch_add(&t->batch, e, before) &&
           !store_rows_are_none(e->rows);
}

/* Hands the batch to the loop and waits until it is applied. */
static void hand_over(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    t->handover = OFFERED;
    log_tell(t->event_fd);
    while (t->handover != APPLIED && !t->ending)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

/* Reads the entries after the position of the store. */
static enum cluster_log_status read_batch(struct log_thread *t)
{
    struct log_batch *b = &t->batch;
    log_batch_reset(b);
    enum cluster_log_status status =
        t->log->engine->read(t->log, t->place.position.sequence, add_entry, t);
    if (status == CLUSTER_LOG_NONE) {
        position_continues(&t->place.position, NULL, t->reason);
        return CLUSTER_LOG_OK;
    }
    if (b->count > 0) /* later entries are read again */
        t->reason[0] = '\0';
    return status;
}

static void catch_up(struct log_thread *t)
{
    const uint64_t before = t->place.position.sequence;
    if (t->batch.count > 0)
        hand_over(t);
    t->busy_ms = clock_mono_ms();
    if (t->place.position.sequence == before) /* it was not applied */
        log_pause(t, LOG_IDLE_MS);
}

static void wait_for_entries(struct log_thread *t, const struct cluster_log_head *head)
{
    uint64_t most = LOG_IDLE_MS;
    if (clock_mono_ms() - t->busy_ms < 1000)
        most = BUSY_POLL_MS;
    if (head->lease_ms < (int64_t)most)
        most = (uint64_t)head->lease_ms + 1;
    t->log->engine->wait(t->log, t->wake_fd, (unsigned)most);
    log_heard(t->wake_fd);
}

static bool is_free(const struct log_thread *t, const struct cluster_log_head *head)
{
    return head->lease_ms <= 0 || memcmp(head->leader, t->node.id, NODE_BYTES) == 0;
}

/* The store fits the log. */
static enum cluster_log_status follow_to(struct log_thread *t, const struct cluster_log_head *head)
{
    log_confirm(t, head);
    log_publish(t, LOG_FOLLOWS, t->refusal);
    if (head->sequence > t->place.position.sequence)
        catch_up(t);
    else if (is_free(t, head))
        return log_begin_lead(t);
    if (position_is(head, &t->place.position) && !is_free(t, head))
        wait_for_entries(t, head);
    return CLUSTER_LOG_OK;
}

/* A store without a position gets the one before the first entry. */
static enum cluster_log_status compare(struct log_thread *t, struct cluster_log *l,
                                       const struct cluster_log_head *head)
{
    struct log_place place = t->place;
    enum cluster_log_status status = position_compare(l, &place, head, t->reason);
    pthread_mutex_lock(&t->lock);
    t->place = place;
    pthread_mutex_unlock(&t->lock);
    return status;
}

static bool fits(const struct log_thread *t)
{
    return t->reason[0] == '\0';
}

/* The next entry does not continue the store. Finds why, if the position is the reason. */
static enum cluster_log_status find_reason(struct log_thread *t,
                                           const struct cluster_log_head *head)
{
    char next[POSITION_WHY];
    memcpy(next, t->reason, sizeof(next));
    enum cluster_log_status status = compare(t, t->log, head);
    if (status == CLUSTER_LOG_OK && fits(t))
        memcpy(t->reason, next, sizeof(next));
    return status;
}

/* Whether the store fits the log, and the next entry continues the store. */
static enum cluster_log_status check(struct log_thread *t, const struct cluster_log_head *head)
{
    enum cluster_log_status status = CLUSTER_LOG_OK;
    if (t->differs_at != 0)
        log_say_stopped(t);
    else
        status = compare(t, NULL, head);
    if (status != CLUSTER_LOG_OK || !fits(t) || head->sequence <= t->place.position.sequence)
        return status;
    status = read_batch(t);
    return status == CLUSTER_LOG_OK && !fits(t) ? find_reason(t, head) : status;
}

/*
 * This node cannot apply an entry although it has space. On a full disk, commits fail in many ways.
 */
static bool is_damaged(struct log_thread *t)
{
    pthread_mutex_lock(&t->lock);
    bool full = t->refused == STORE_FULL || t->node.free_bytes == 0;
    bool damaged = t->refused != STORE_OK && !full;
    pthread_mutex_unlock(&t->lock);
    return damaged;
}

static enum cluster_log_status note(struct log_thread *t, const struct cluster_log_head *head)
{
    struct cluster_log_head noted;
    enum cluster_log_status status =
        is_damaged(t) ? log_note_stopped(t, t->refusal, 0) : log_note(t, &noted);
    return status == CLUSTER_LOG_OK ? log_look(t, head->format) : status;
}

/* Other nodes count this node, and may stop it. */
static enum cluster_log_status take_part(struct log_thread *t, const struct cluster_log_head *head)
{
    enum cluster_log_status status = CLUSTER_LOG_OK;
    if (is_damaged(t) || clock_mono_ms() >= t->note_ms)
        status = note(t, head);
    if (status == CLUSTER_LOG_OK && fits(t))
        status = log_judge(t, head);
    if (status == CLUSTER_LOG_OK && t->differs_at != 0)
        log_say_stopped(t);
    return status;
}

static enum cluster_log_status stay_stopped(struct log_thread *t,
                                            const struct cluster_log_head *head)
{
    log_publish(t, LOG_CONNECTS, t->reason);
    enum cluster_log_status status = log_note_stopped(t, t->reason, t->differs_at);
    if (status == CLUSTER_LOG_OK)
        status = log_look(t, head->format);
    if (status == CLUSTER_LOG_OK)
        log_pause(t, LOG_STOPPED_MS);
    return status;
}

enum cluster_log_status log_follow(struct log_thread *t)
{
    struct cluster_log_head head;
    enum cluster_log_status status = log_read_head(t, false, &head);
    if (status == CLUSTER_LOG_OK)
        status = check(t, &head);
    if (status == CLUSTER_LOG_OK && fits(t))
        status = take_part(t, &head);
    if (status != CLUSTER_LOG_OK)
        return status;
    return fits(t) ? follow_to(t, &head) : stay_stopped(t, &head);
}
