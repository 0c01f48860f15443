#include "core/writer/frames.h"

#include "core/audit/audit.h"
#include "core/base/log.h"

/* ---- disconnected clients ---- */

/* its jobs wait again */
static void auditor_left(struct frames *f, struct client *client)
{
    const bool blame = client->remote ? client->died : !client->draining;
    const struct grading_job *guilty = job_queue_auditor_lost(f->queue, client->index, blame);
    client->has_hello = false;
    remote_auditors_left(f->remote_auditors, client);
    if (guilty == NULL)
        return;
    log_warn("an auditor died while it graded report %llu and nothing else",
             (unsigned long long)guilty->report);
    struct item *item = batch_add(f->batch, NULL, 0);
    item->change = (struct store_change){
        .kind = CHANGE_REPORT_DIED, .id = guilty->report, .attempt = guilty->attempt};
}

void frames_remove_gone(struct frames *f)
{
    bool readers = false;
    deferred_changes_forget(&f->deferred);
    relays_remove_gone(f->relays);
    for (size_t i = 0; i < f->clients->count;) {
        struct client *client = f->clients->list[i];
        if (!client->gone) {
            i++;
            continue;
        }
        if (client->id != 0)
            sequences_depart(f->sequences, client->id);
        if (client->role == ROLE_AUDITOR && client->has_hello)
            auditor_left(f, client);
        readers = readers || client->role != ROLE_AUDITOR;
        clients_remove(f->clients, i);
    }
    if (readers) /* it may have died within a read transaction, which keeps pages in use */
        store_reader_check(f->store);
}

/* ---- frames of all ---- */

/* It sent an invalid frame. */
static void refuse(struct client *client)
{
    if (!client->gone)
        log_warn("disconnected a %s: it sent an invalid frame", role_name(client->role));
    client->gone = true;
}

/* read the rest of what it sent, then drop it */
static void end_client(struct frames *f, struct client *client)
{
    size_t before = f->batch->count;
    for (bool more = !client->gone; more; before = f->batch->count) {
        frames_read(f, client);
        more = !client->gone && f->batch->count > before;
    }
    client->gone = true;
}

/* A sender that comes back has closed its earlier connection, which may still hold frames. */
static void end_earlier_sender(struct frames *f, const struct client *client)
{
    for (size_t i = 0; i < f->clients->count; i++)
        if (f->clients->list[i] != client && f->clients->list[i]->id == client->id)
            end_client(f, f->clients->list[i]);
}

/* An auditor of the same index that is still connected has ended, unnoticed so far. */
static void end_earlier_auditor(struct frames *f, const struct client *client)
{
    for (size_t i = 0; i < f->clients->count; i++) {
        struct client *other = f->clients->list[i];
        if (other == client || other->role != ROLE_AUDITOR || !other->has_hello || other->remote ||
            other->index != client->index)
            continue;
        end_client(f, other);
        auditor_left(f, other);
    }
}

static void put_event(struct client *client, struct store_event event)
{
    channel_put(&client->channel, FRAME_EVENT, 0, 0,
                (struct str){(const char *)&event, sizeof(event)});
}

static void on_hello(struct frames *f, struct client *client, const struct frame *frame)
{
    client->has_hello = true;
    if (client->role == ROLE_AUDITOR) {
        client->index = (unsigned)frame->head.b % f->process->conf->auditors;
        end_earlier_auditor(f, client);
        job_queue_auditor_connected(f->queue, client->index);
        return;
    }
    client->id = frame->head.a;
    if (frame->payload.n == sizeof(client->repeats))
        memcpy(&client->repeats, frame->payload.p, sizeof(client->repeats));
    if (client->id != 0)
        end_earlier_sender(f, client);
    if (client->role == ROLE_WORKER)
        put_event(client, (struct store_event){.kind = EVENT_FEED_BEGINS});
}

/* ---- frames of workers and commands ---- */

static void put_away(struct client *client, uint64_t sequence)
{
    client_answer(client, sequence, 0, &(struct store_answer){.status = STORE_AWAY});
}

static void execute(struct frames *f, struct client *client, const struct frame *frame)
{
    struct item *item = batch_add(f->batch, client, frame->head.a);
    if (!item_decode(item, frame->payload) || item->change.kind == CHANGE_REPORT_FINISH ||
        item->change.kind == CHANGE_REPORT_DIED)
        item->change.kind = 0; /* store_apply answers STORE_INVALID */
    f->batch->bytes += sizeof(*item) + frame->payload.n;
    sequence_confirm(client, frame->head.b);
}

/* False: no node leads. */
static bool send_change(struct frames *f, struct client *client, const struct frame *frame)
{
    if (!f->leading->leads)
        return relays_put(f->relays, client, frame);
    execute(f, client, frame);
    return true;
}

static bool is_in_window(const struct client *client, const struct frame_head *head)
{
    return client->unanswered < CHANNEL_WINDOW && head->b < head->a &&
           head->a - head->b <= CHANNEL_WINDOW;
}

static void on_change(struct frames *f, struct client *client, const struct frame *frame)
{
    if (!is_in_window(client, &frame->head)) {
        refuse(client);
        return;
    }
    client->unanswered++;
    /* those deferred before go first */
    if (f->deferred.count > 0 || !send_change(f, client, frame))
        deferred_changes_add(&f->deferred, client, frame);
}

void frames_release_deferred(struct frames *f)
{
    const uint64_t now = clock_mono_ms();
    size_t done = 0;
    for (; done < f->deferred.count; done++) {
        const struct deferred_change *c = &f->deferred.list[done];
        const struct frame frame = deferred_change_frame(c);
        if (!deferred_change_is_refused(c) && send_change(f, c->client, &frame))
            continue;
        if (!deferred_change_is_refused(c) && now < c->until_ms)
            break;
        put_away(c->client, c->head.a);
    }
    deferred_changes_drop(&f->deferred, done);
}

static void on_wait(struct frames *f, struct client *client, const struct frame *frame)
{
    struct store_job job;
    if (!f->leading->leads && store_job_get(f->store, frame->head.a, &job))
        relays_put(f->relays, client, frame);
    else if (job_queue_find(f->queue, frame->head.a) != NULL)
        job_queue_prioritize(f->queue, frame->head.a);
    else /* the job ended before this frame arrived */
        put_event(client, (struct store_event){.kind = EVENT_REPORT_FINISHED, .id = frame->head.a});
    store_read_end(f->store);
}

/* Not from a sender with numbers, whose answers are replicated. */
static void on_local(struct frames *f, struct client *client, const struct frame *frame)
{
    struct item *item = batch_add(f->batch, NULL, 0);
    if (!item_decode(item, frame->payload) || !store_change_is_local(item->change.kind) ||
        (client->role != ROLE_WORKER && client->role != ROLE_COMMAND))
        item->change.kind = 0; /* store_apply answers STORE_INVALID */
}

static void on_position(struct frames *f, struct client *client, const struct frame *frame)
{
    client->awaits_position = true;
    client->position_turn = frame->head.a;
    if (frame->head.b != 0 && f->leading->thread != NULL)
        log_thread_confirm(f->leading->thread);
}

/* In a cluster. A worker has changed the table itself. */
static void on_typing(struct frames *f, struct client *client, const struct frame *frame)
{
    const uint64_t now = clock_mono_ms();
    struct typing_notice notice;
    if (!typing_notices_get(client, frame, &notice)) {
        refuse(client);
        return;
    }
    if (!typing_notices_count(client, now))
        return;
    if (client->wants_notices)
        typing_notices_show(f->process, &notice, now);
    if (f->leading->leads)
        typing_notices_tell(f->clients, client, &notice);
    else
        relays_tell(f->relays, &notice);
}

/* ---- frames of auditors ---- */

static struct grading_job *job_of(struct frames *f, const struct client *client,
                                  const struct frame *frame)
{
    return job_queue_find_running(f->queue, client->index, frame->head.a, frame->head.b);
}

static void on_result(struct frames *f, struct client *client, const struct frame *frame)
{
    struct grading_job *job = job_of(f, client, frame);
    if (job == NULL)
        return;
    if (job->withdrawn) { /* RESULT and WITHDRAW crossed */
        job_queue_remove(f->queue, job);
        return;
    }
    struct item *item = batch_add(f->batch, NULL, 0);
    struct store_change change = item_decode(item, frame->payload)
                                     ? item->change
                                     : (struct store_change){.error_code = STR("too_complex")};
    change.kind = CHANGE_REPORT_FINISH;
    change.id = job->report;
    change.attempt = job->attempt;
    change.status = change.error_code.n > 0 ? REPORT_FAILED : REPORT_DONE;
    change.result = change.status == REPORT_DONE
                        ? (uint32_t)audit_result(change.score, f->process->conf)
                        : RESULT_NONE;
    item->change = change;
    item->handed_us = job->handed_us;
    job_queue_remove(f->queue, job);
}

static void on_returned(struct frames *f, struct client *client, const struct frame *frame)
{
    struct grading_job *job = job_of(f, client, frame);
    client->draining = client->draining || frame->head.a == 0;
    if (job != NULL)
        job_queue_return(f->queue, job);
}

static void on_take_slot(struct frames *f, struct client *client, const struct frame *frame)
{
    remote_auditors_take_slot(f->remote_auditors, client, frame);
}

static void on_free_slot(struct frames *f, struct client *client, const struct frame *frame)
{
    remote_auditors_free_slot(f->remote_auditors, client, frame);
}

/* Repeated by the node: every frame shows that the auditor is connected. */
static void on_auditor(struct frames *f, struct client *client, const struct frame *frame)
{
    (void)f, (void)client, (void)frame;
}

static void on_ended(struct frames *f, struct client *client, const struct frame *frame)
{
    (void)f;
    client->died = frame->head.a != 0;
    client->gone = true;
}

static void on_suspect(struct frames *f, struct client *client, const struct frame *frame)
{
    job_queue_suspect(f->queue, client->index, frame->head.a);
}

/* ---- all frames ---- */

/*
 * Columns: what to do; whether auditors send it, or everybody else; whether it needs a sender id;
 * whether it comes from another node only.
 */
static const struct rule {
    void (*handle)(struct frames *f, struct client *client, const struct frame *frame);
    bool from_auditor, needs_id, from_node;
} rules[FRAME_TYPES] = {
    [FRAME_CHANGE] = {on_change, false, true, false},
    [FRAME_WAIT] = {on_wait, false, false, false},
    [FRAME_RESULT] = {on_result, true, false, false},
    [FRAME_RETURNED] = {on_returned, true, false, false},
    [FRAME_SUSPECT] = {on_suspect, true, false, false},
    [FRAME_POSITION] = {on_position, false, false, false},
    [FRAME_LOCAL] = {on_local, false, false, false},
    [FRAME_TYPING] = {on_typing, false, false, false},
    [FRAME_TAKE_SLOT] = {on_take_slot, true, false, false},
    [FRAME_FREE_SLOT] = {on_free_slot, true, false, false},
    [FRAME_AUDITOR] = {on_auditor, true, false, true},
    [FRAME_ENDED] = {on_ended, true, false, true},
};

/* From another node: it joins; or it takes this one for the leader, which it is not. */
static bool from_node(struct frames *f, struct client *client, const struct frame *frame)
{
    bool joins = frame->head.type == FRAME_COPY && !client->has_hello;
    if (joins)
        copies_start(f->copies, client);
    else if (!f->leading->leads)
        client->gone = true;
    return joins || client->gone;
}

/* The first frame. */
static bool on_first_frame(struct frames *f, struct client *client, const struct frame *frame)
{
    const bool is_node = client->role == ROLE_NODE;
    if (frame->head.type == FRAME_HELLO)
        on_hello(f, client, frame);
    else if (frame->head.type == FRAME_AUDITOR && is_node)
        remote_auditors_joined(f->remote_auditors, client, frame);
    else if (frame->head.type == FRAME_NOTICES && is_node)
        client->has_hello = client->wants_notices = true;
    else
        return false;
    return true;
}

/* false: this client may not send this frame */
static bool handle(struct frames *f, struct client *client, const struct frame *frame)
{
    const struct rule *rule = &rules[frame->head.type];
    if (client->role == ROLE_NODE && from_node(f, client, frame))
        return true;
    if (!client->has_hello)
        return on_first_frame(f, client, frame);
    if (rule->handle == NULL || rule->from_auditor != (client->role == ROLE_AUDITOR) ||
        (rule->needs_id && client->id == 0) || (rule->from_node && !client->remote))
        return false;
    if (rule->from_auditor && client->relay != NULL)
        relays_pass(client, frame);
    else
        rule->handle(f, client, frame);
    return true;
}

void frames_read(struct frames *f, struct client *client)
{
    struct frame frame;
    int got = channel_read(&client->channel), next;
    if (client->remote)
        client->heard_ms = clock_mono_ms();
    while ((next = channel_next(&client->channel, &frame)) == 1)
        if (!handle(f, client, &frame)) {
            next = -1;
            break;
        }
    if (next < 0)
        refuse(client);
    if (got < 0 && !client->has_hello && channel_tls_why(&client->channel)[0] != '\0')
        nodes_say_refused(f->relays->nodes, client, channel_tls_why(&client->channel));
    if (got < 0)
        client->gone = true; /* what it sent before is still applied */
}
