#include "core/async/writer_client.h"

#include "core/ipc/channel.h"
#include "core/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#define WAIT_BUCKETS 1024
#define RECONNECT_MS 20

#define OP_BYTES 1024 /* of a pooled op; a larger change has an allocation of its own */
#define OPS_POOLED_MAX 64

/* A change that the writer has not answered. */
struct op {
    struct pending pending;
    struct op *next;
    uint64_t sequence, deadline_ms;
    uint64_t key_start; /* of the idempotency key, to compare thousands that time out at once */
    uint64_t dropped;   /* struct frame_repeats */
    unsigned sent;      /* how often */
    change_done_fn *done;
    size_t size;
    char wire[];
};

/* A request that waits for a report. */
struct wait {
    struct pending pending;
    struct wait *next;
    uint64_t workspace, report, deadline_ms;
    await_done_fn *done;
};

struct writer_client {
    struct loop *loop;
    writer_event_fn *on_event;
    void *arg;
    struct channel channel;
    /*
     * NULL: not connected. The loop watches an epoll that watches the channel's socket. A direct
     * wake-up by a socket hints to the scheduler that the sender is about to sleep, which would put
     * the worker on the writer's processor before the writer has told the other workers. A wake-up
     * through an epoll has no such hint, and the worker runs on an idle processor.
     */
    h2o_socket_t *socket;
    int epoll;
    bool writing; /* the socket is full; wait for EPOLLOUT */
    uint64_t id, sequence, last_sent, retry_at_ms;
    struct op *first, *last; /* unanswered, in order */
    struct op *unsent;       /* the first one that is not on this channel; NULL: none */
    size_t op_bytes;         /* memory of the unanswered ones */
    struct op *free_ops;
    size_t free_ops_count;
    struct wait *waits[WAIT_BUCKETS];
    size_t waits_count;
};

static void on_readable(h2o_socket_t *socket, const char *err);

static void disconnect(struct writer_client *c)
{
    if (c->socket != NULL)
        h2o_socket_close(c->socket); /* and the epoll */
    c->socket = NULL;
    c->writing = false;
    channel_close(&c->channel);
    c->retry_at_ms = c->loop->now_ms + RECONNECT_MS;
}

/* Those in the window; others wait for answers. */
static void put_changes(struct writer_client *c)
{
    struct op *op;
    while ((op = c->unsent) != NULL && op->sequence - c->first->sequence < CHANNEL_WINDOW) {
        c->unsent = op->next;
        c->last_sent = op->sequence > c->last_sent ? op->sequence : c->last_sent;
        op->sent++;
        channel_put(&c->channel, FRAME_CHANGE, op->sequence, c->first->sequence - 1,
                    (struct str){op->wire, op->size});
    }
}

/* ---- waiting for reports ---- */

static struct wait **bucket_of(struct writer_client *c, uint64_t report)
{
    return &c->waits[report % WAIT_BUCKETS];
}

/* Remove it and resume its request. */
static void end_wait(struct writer_client *c, struct wait **at)
{
    struct wait *wait = *at;
    struct waiter *w = wait->pending.waiter;
    await_done_fn *done = wait->done;
    *at = wait->next;
    c->waits_count--;
    free(wait);
    if (w == NULL)
        return;
    waiter_resume(w);
    done(w);
    store_read_end(c->loop->store);
}

static void end_waits_for(struct writer_client *c, uint64_t report)
{
    struct wait **at = bucket_of(c, report);
    while (*at != NULL)
        if ((*at)->report == report)
            end_wait(c, at);
        else
            at = &(*at)->next;
}

/*
 * A client that hung up is answered as after the timeout: it may only have closed its sending side.
 */
static bool is_unwanted(const struct wait *wait)
{
    return waiter_is_unwanted(wait->pending.waiter);
}

static void end_overdue_waits(struct writer_client *c, uint64_t now_ms)
{
    for (size_t i = 0; c->waits_count > 0 && i < WAIT_BUCKETS; i++)
        for (struct wait **at = &c->waits[i]; *at != NULL;)
            if ((*at)->deadline_ms <= now_ms || is_unwanted(*at))
                end_wait(c, at);
            else
                at = &(*at)->next;
}

void writer_client_end_waits(struct writer_client *c)
{
    end_overdue_waits(c, UINT64_MAX);
}

/* The next tick ends the wait. */
static void note_if_ended(void *arg, enum store_status status, const struct store_report *report)
{
    struct wait *wait = arg;
    if (status != STORE_OK || report->status != REPORT_PENDING)
        wait->deadline_ms = 0;
}

/* The workspace, or a project of it, was deleted: its reports may be gone. */
static void recheck_workspace(struct writer_client *c, uint64_t workspace)
{
    for (size_t i = 0; c->waits_count > 0 && i < WAIT_BUCKETS; i++)
        for (struct wait *wait = c->waits[i]; wait != NULL; wait = wait->next)
            if (wait->pending.waiter != NULL && wait->workspace == workspace)
                store_report_get(c->loop->store, workspace, wait->report, false, note_if_ended,
                                 wait);
    store_read_end(c->loop->store);
}

/* After a reconnect: find what ended in between in the store, and tell the new writer all waits. */
static void recheck_all(struct writer_client *c)
{
    for (size_t i = 0; c->waits_count > 0 && i < WAIT_BUCKETS; i++)
        for (struct wait *wait = c->waits[i]; wait != NULL; wait = wait->next)
            if (wait->pending.waiter != NULL) {
                store_report_get(c->loop->store, wait->workspace, wait->report, false,
                                 note_if_ended, wait);
                channel_put(&c->channel, FRAME_WAIT, wait->report, 0, (struct str){0});
            }
    store_read_end(c->loop->store);
}

bool writer_client_await(struct writer_client *c, uint64_t workspace, uint64_t report,
                         unsigned timeout_ms, struct waiter *w, await_done_fn *done)
{
    struct wait *wait = c->loop->draining ? NULL : malloc(sizeof(*wait));
    if (wait == NULL)
        return false;
    struct wait **bucket = bucket_of(c, report);
    *wait = (struct wait){.pending = {w},
                          .next = *bucket,
                          .workspace = workspace,
                          .report = report,
                          .deadline_ms = c->loop->now_ms + timeout_ms,
                          .done = done};
    *bucket = wait;
    waiter_suspend(w, &wait->pending);
    c->waits_count++;
    if (c->socket != NULL)
        channel_put(&c->channel, FRAME_WAIT, report, 0, (struct str){0});
    return true;
}

/* ---- changes ---- */

/* What the op of a change of ${size} bytes occupies. */
static size_t op_bytes(size_t size)
{
    const size_t bytes = sizeof(struct op) + size;
    return bytes > OP_BYTES ? bytes : OP_BYTES;
}

static struct op *op_alloc(struct writer_client *c, size_t bytes)
{
    struct op *op = c->free_ops;
    if (c->op_bytes > WRITER_UNANSWERED_BYTES)
        return NULL;
    if (bytes > OP_BYTES || op == NULL)
        return malloc(bytes);
    c->free_ops = op->next;
    c->free_ops_count--;
    return op;
}

static void op_free(struct writer_client *c, struct op *op)
{
    const size_t bytes = op_bytes(op->size);
    c->op_bytes -= bytes;
    if (c->free_ops_count == OPS_POOLED_MAX || bytes > OP_BYTES) {
        free(op);
        return;
    }
    op->next = c->free_ops;
    c->free_ops = op;
    c->free_ops_count++;
}

/* A key is a hash. */
static uint64_t start_of(struct str key)
{
    uint64_t start = 0;
    if (key.n >= sizeof(start))
        memcpy(&start, key.p, sizeof(start));
    return start;
}

static struct op *op_new(struct writer_client *c, const struct store_change *change)
{
    const size_t size = change_size(change), bytes = op_bytes(size);
    struct op *op = op_alloc(c, bytes);
    if (op == NULL)
        return NULL;
    c->op_bytes += bytes;
    *op = (struct op){.sequence = ++c->sequence,
                      .size = size,
                      .key_start = start_of(change->idem_key),
                      .dropped = score_get(c->loop->process->scoreboard->senders_dropped),
                      .deadline_ms = c->loop->now_ms + WRITER_ANSWER_MS};
    struct buf wire = {.p = op->wire, .cap = size};
    change_encode(change, &wire);
    if (c->last != NULL)
        c->last->next = op;
    else
        c->first = op;
    c->last = op;
    if (c->unsent == NULL)
        c->unsent = op;
    return op;
}

bool writer_client_change(struct writer_client *c, const struct store_change *change,
                          struct waiter *w, change_done_fn *done)
{
    struct op *op = op_new(c, change);
    if (op == NULL)
        return false;
    op->pending.waiter = w;
    op->done = done;
    waiter_suspend(w, &op->pending);
    if (c->socket != NULL)
        put_changes(c);
    return true;
}

void writer_client_send(struct writer_client *c, const struct store_change *change)
{
    if (op_new(c, change) != NULL && c->socket != NULL)
        put_changes(c);
}

void writer_client_send_local(struct writer_client *c, const struct store_change *change)
{
    struct buf wire = {0};
    change_encode(change, &wire);
    if (c->socket != NULL && buf_ok(&wire))
        channel_put(&c->channel, FRAME_LOCAL, 0, 0, buf_view(&wire));
    buf_free(&wire);
}

void writer_client_send_typing(struct writer_client *c, const struct typing_notice *notice)
{
    if (c->socket != NULL)
        typing_notice_put(&c->channel, notice);
}

void writer_client_ask_position(struct writer_client *c, uint64_t turn, bool confirm)
{
    channel_put(&c->channel, FRAME_POSITION, turn, confirm, (struct str){0});
}

static void on_answer(struct writer_client *c, const struct frame *f)
{
    struct op *op = c->first;
    struct store_answer answer;
    if (op == NULL || op == c->unsent || f->head.a != op->sequence ||
        f->payload.n != sizeof(answer))
        return; /* the second answer to a change that was sent twice */
    memcpy(&answer, f->payload.p, sizeof(answer));
    c->first = op->next;
    if (c->first == NULL)
        c->last = NULL;
    put_changes(c);
    struct waiter *w = op->pending.waiter;
    change_done_fn *done = op->done;
    /* the leader of before may have executed it */
    bool unknown = answer.status == STORE_AWAY && op->sent > 1;
    op_free(c, op);
    if (w == NULL)
        return;
    waiter_resume(w);
    done(w, unknown ? CHANGE_UNCONFIRMED : CHANGE_ANSWERED, unknown ? NULL : &answer);
}

static void on_event_frame(struct writer_client *c, const struct frame *f)
{
    struct store_event e;
    if (f->payload.n != sizeof(e))
        return;
    memcpy(&e, f->payload.p, sizeof(e));
    if (e.kind == EVENT_PROJECT_DELETED || e.kind == EVENT_WORKSPACE_DELETED)
        recheck_workspace(c, e.workspace);
    if (e.kind == EVENT_REPORT_FINISHED || e.kind == EVENT_REPORT_DELETED)
        end_waits_for(c, e.id);
    else
        c->on_event(c->arg, &e);
}

/* ---- the connection ---- */

static bool watch(struct writer_client *c, int op, bool writing)
{
    struct epoll_event ev = {.events = EPOLLIN | (writing ? EPOLLOUT : 0)};
    c->writing = writing;
    return epoll_ctl(c->epoll, op, c->channel.fd, &ev) == 0;
}

void writer_client_flush(struct writer_client *c)
{
    if (c->socket == NULL || c->writing || channel_pending(&c->channel) == 0)
        return;
    int left = channel_flush(&c->channel);
    if (left < 0 || (left == 1 && !watch(c, EPOLL_CTL_MOD, true)))
        disconnect(c);
}

static void on_readable(h2o_socket_t *socket, const char *err)
{
    struct writer_client *c = socket->data;
    struct frame f;
    loop_read_clock(c->loop);
    int got = err != NULL ? -1 : channel_read(&c->channel), next;
    while ((next = channel_next(&c->channel, &f)) == 1)
        if (f.head.type == FRAME_ANSWER)
            on_answer(c, &f);
        else if (f.head.type == FRAME_EVENT)
            on_event_frame(c, &f);
    /* frames of one read share a snapshot: all of it was committed before they were sent */
    store_read_end(c->loop->store);
    if (got < 0 || next < 0 || (c->writing && !watch(c, EPOLL_CTL_MOD, false)))
        disconnect(c);
    else
        writer_client_flush(c);
}

/*
 * Changes that were given up are not sent again: after a minute without its sender the store
 * forgets which of them were executed.
 */
static void forget_overdue(struct writer_client *c)
{
    struct op **at = &c->first;
    c->last = NULL;
    while (*at != NULL) {
        struct op *op = *at;
        if (op->pending.waiter != NULL || op->deadline_ms > c->loop->now_ms) {
            c->last = op;
            at = &op->next;
            continue;
        }
        *at = op->next;
        op_free(c, op);
    }
}

static void say_hello(struct writer_client *c)
{
    const struct frame_repeats repeats = {c->last_sent, c->first == NULL ? 0 : c->first->dropped};
    channel_put(&c->channel, FRAME_HELLO, c->id, 0,
                (struct str){(const char *)&repeats, sizeof(repeats)});
}

static void reconnect(struct writer_client *c)
{
    int fd = channel_connect(c->loop->process->writer_path);
    if (fd < 0) {
        c->retry_at_ms = c->loop->now_ms + RECONNECT_MS;
        return;
    }
    channel_init(&c->channel, fd);
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (c->epoll < 0 || !watch(c, EPOLL_CTL_ADD, false)) {
        if (c->epoll >= 0)
            close(c->epoll);
        disconnect(c);
        return;
    }
    c->socket = h2o_evloop_socket_create(c->loop->ctx.loop, c->epoll, H2O_SOCKET_FLAG_DONT_READ);
    c->socket->data = c;
    forget_overdue(c);
    say_hello(c);
    c->unsent = c->first;
    put_changes(c);
    h2o_socket_read_start(c->socket, on_readable);
    recheck_all(c);
}

static struct str idem_key(const struct op *op)
{
    struct store_change change;
    return change_decode((struct str){op->wire, op->size}, &change) ? change.idem_key
                                                                    : (struct str){NULL, 0};
}

/* An earlier unanswered change has the same idempotency key. */
static bool repeats_earlier(const struct writer_client *c, const struct op *op)
{
    struct str key = idem_key(op);
    for (const struct op *earlier = c->first; key.n > 0 && earlier != op; earlier = earlier->next)
        if (earlier->key_start == op->key_start && str_eq(idem_key(earlier), key))
            return true;
    return false;
}

/* The op stays in the list until the next connection: its answer may still come. */
static void time_out(const struct writer_client *c, struct op *op)
{
    struct waiter *w = op->pending.waiter;
    op->pending.waiter = NULL;
    waiter_resume(w);
    op->done(w, repeats_earlier(c, op) ? CHANGE_REPEATED : CHANGE_UNCONFIRMED, NULL);
}

void writer_client_tick(struct writer_client *c)
{
    uint64_t now = c->loop->now_ms;
    end_overdue_waits(c, now);
    for (struct op *op = c->first; op != NULL && op->deadline_ms <= now; op = op->next)
        if (op->pending.waiter != NULL)
            time_out(c, op);
    if (c->socket == NULL && now >= c->retry_at_ms)
        reconnect(c); /* last: it does not send what was given up */
}

int writer_client_wake_ms(const struct writer_client *c, int most)
{
    return c->socket == NULL && most > RECONNECT_MS ? RECONNECT_MS : most;
}

bool writer_client_connected(const struct writer_client *c)
{
    return c->socket != NULL;
}

size_t writer_client_waiting(const struct writer_client *c)
{
    size_t count = c->waits_count;
    for (const struct op *op = c->first; op != NULL; op = op->next)
        count += op->pending.waiter != NULL;
    return count;
}

struct writer_client *writer_client_new(struct loop *loop, writer_event_fn *on_event, void *arg)
{
    struct writer_client *c = calloc(1, sizeof(*c));
    if (c == NULL || getrandom(&c->id, sizeof(c->id), 0) != sizeof(c->id)) {
        free(c);
        return NULL;
    }
    c->id |= 1; /* 0 means none */
    c->loop = loop;
    c->on_event = on_event;
    c->arg = arg;
    c->channel.fd = -1;
    reconnect(c);
    return c;
}

static void free_op_list(struct op *op)
{
    while (op != NULL) {
        struct op *next = op->next;
        free(op);
        op = next;
    }
}

void writer_client_free(struct writer_client *c)
{
    if (c == NULL)
        return;
    disconnect(c);
    free_op_list(c->first);
    free_op_list(c->free_ops);
    for (size_t i = 0; i < WAIT_BUCKETS; i++)
        while (c->waits[i] != NULL) {
            struct wait *wait = c->waits[i];
            c->waits[i] = wait->next;
            free(wait);
        }
    free(c);
}
