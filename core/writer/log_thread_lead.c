/* The log thread of the leader: appends entries and renews the lead. */
#include "core/writer/log_thread_internal.h"

#include "core/base/log.h"
#include "core/cluster/formats.h"

enum outcome { IN_LOG, NOT_IN_LOG, LEAD_LOST };

static enum cluster_log_status renew(struct log_thread *t, unsigned lease_ms,
                                     struct cluster_log_head *head)
{
    return t->log->engine->lead(t->log, t->node.id, t->view.epoch, lease_ms, head);
}

/* Fails a requested append. */
static void lose(struct log_thread *t, const char *why)
{
    log_publish(t, LOG_LOST, why); /* no append is requested from here on */
    pthread_mutex_lock(&t->lock);
    if (t->append == APPEND_ASKED)
        t->append = APPEND_FAILED;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

enum cluster_log_status log_begin_lead(struct log_thread *t)
{
    struct cluster_log_head head;
    log_begin_call(t);
    enum cluster_log_status status =
        t->log->engine->lead(t->log, t->node.id, 0, CLUSTER_LOG_LEASE_MS, &head);
    if (status == CLUSTER_LOG_LED)
        return CLUSTER_LOG_OK;
    if (status != CLUSTER_LOG_OK)
        return status;
    log_confirm(t, &head);
    if (!position_is(&head, &t->place.position)) /* the last leader has appended since */
        return CLUSTER_LOG_OK;
    pthread_mutex_lock(&t->lock);
    t->view.epoch = head.epoch;
    t->view.format = formats_to_write(&store_rows_formats, head.format, 0);
    pthread_mutex_unlock(&t->lock);
    log_publish(t, LOG_LEADS, "");
    return CLUSTER_LOG_OK;
}

void log_end_lead(struct log_thread *t)
{
    struct cluster_log_head head;
    if (log_state_of(t) == LOG_LEADS && renew(t, 0, &head) != CLUSTER_LOG_OK)
        log_info("the cluster: the lead ends with its lease: %s", t->log->engine->why(t->log));
}

/* ---- appending ---- */

static struct store_position after_entry(const struct log_thread *t)
{
    struct store_position p = t->place.position;
    p.sequence = t->entry.sequence;
    memcpy(p.chain, t->entry.chain, sizeof(p.chain));
    return p;
}

/* Whether the log has the entry. Retries until the log answers, or the thread must end. */
static enum outcome find_outcome(struct log_thread *t)
{
    struct cluster_log_head head;
    const struct store_position after = after_entry(t);
    enum cluster_log_status status = CLUSTER_LOG_UNKNOWN;
    while (status != CLUSTER_LOG_OK) {
        log_publish_away(t);
        if (log_is_ending(t))
            return LEAD_LOST;
        status = renew(t, CLUSTER_LOG_LEASE_MS, &head);
        if (status == CLUSTER_LOG_LED)
            return LEAD_LOST;
        if (status != CLUSTER_LOG_OK)
            log_pause(t, LOG_RETRY_MS);
    }
    if (position_is(&head, &after))
        return IN_LOG;
    return position_is(&head, &t->place.position) ? NOT_IN_LOG : LEAD_LOST;
}

/*
 * Appends the entry, and retries until the log answers whether it has it. True: it has. False: it
 * does not, because another node led since; or the thread ends without an answer.
 */
static bool append_entry(struct log_thread *t)
{
    enum outcome outcome = NOT_IN_LOG;
    while (outcome == NOT_IN_LOG && t->log->engine->append(t->log, &t->entry) != CLUSTER_LOG_OK) {
        outcome = find_outcome(t);
        if (outcome == NOT_IN_LOG)
            log_pause(t, LOG_RETRY_MS);
    }
    return outcome != LEAD_LOST;
}

static void append(struct log_thread *t)
{
    const uint64_t began_us = clock_mono_us();
    if (!append_entry(t)) {
        lose(t, "another node may lead");
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->append = APPEND_DONE;
    t->place.position = after_entry(t);
    t->view.head.sequence = t->entry.sequence;
    t->view.head.at_ms = t->entry.at_ms;
    t->view.head.format = t->entry.format;
    t->view.head.verify = t->view.head.verify && !t->entry.mark;
    memcpy(t->view.head.chain, t->entry.chain, sizeof(t->entry.chain));
    t->view.confirmed_us = began_us;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    log_publish(t, LOG_LEADS, "");
}

/* ---- the lead ---- */

/* A verification found that this node differs, or another server has its id. */
static void stop(struct log_thread *t)
{
    if (t->differs_at != 0)
        log_say_stopped(t);
    log_end_lead(t);
    lose(t, t->reason);
}

/* Reads the head. Registers the node and reads the list of nodes when it is time. */
static enum cluster_log_status read_head(struct log_thread *t, struct cluster_log_head *out)
{
    const bool note = clock_mono_ms() >= t->note_ms;
    enum cluster_log_status status = log_read_head(t, note, out);
    return status == CLUSTER_LOG_OK && note ? log_look(t, out->format) : status;
}

/* Renew it and note the node. */
static enum cluster_log_status keep(struct log_thread *t)
{
    struct cluster_log_head head;
    enum cluster_log_status status = renew(t, CLUSTER_LOG_LEASE_MS, &head);
    if (status == CLUSTER_LOG_LED ||
        (status == CLUSTER_LOG_OK && !position_is(&head, &t->place.position))) {
        lose(t, "another node leads");
        return CLUSTER_LOG_OK;
    }
    if (status == CLUSTER_LOG_OK)
        status = read_head(t, &head);
    if (status != CLUSTER_LOG_OK)
        return status;
    log_confirm(t, &head);
    log_publish(t, LOG_LEADS, "");
    log_trim(t, &head);
    status = log_judge(t, &head);
    if (t->differs_at != 0 || t->reason[0] != '\0')
        stop(t);
    return status;
}

/* An append also renews the lead, but creates no partition and does not register the node. */
enum cluster_log_status log_lead(struct log_thread *t)
{
    const uint64_t now = clock_mono_ms();
    log_rest(t, now < t->note_ms ? t->note_ms - now : 0);
    pthread_mutex_lock(&t->lock);
    bool asked = t->append == APPEND_ASKED, confirm = t->asked, ending = t->ending;
    pthread_mutex_unlock(&t->lock);
    if (ending)
        return CLUSTER_LOG_OK;
    if (confirm || clock_mono_ms() >= t->note_ms)
        return keep(t);
    if (asked)
        append(t);
    return CLUSTER_LOG_OK;
}
