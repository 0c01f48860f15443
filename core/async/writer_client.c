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

/* a change on its way */
#define OP_ROOM 1024 /* bytes of one that is kept for the next change */
#define OPS_SPARE 64
struct op {
    struct pending pending;
    struct op *next;
    uint64_t sequence, given_up_at_ms;
    change_done_fn *done;
    size_t size;
    char wire[];
};

/* a request held until a report is finished */
struct wait {
    struct pending pending;
    struct wait *next;
    uint64_t workspace, report, until_ms;
    await_done_fn *done;
};

struct writer_client {
    struct loop *loop;
    writer_event_fn *on_event;
    void *arg;
    struct channel channel;
    /*
     * What the loop watches, NULL: not connected. An epoll of the channel's own stands between the two: the wake-up of a socket tells the
     * scheduler that its sender is about to sleep, so the worker would be put on the writer's processor, before the writer has told the
     * other workers. Through an epoll it comes without that hint, and goes to an idle one.
     */
    h2o_socket_t *socket;
    int epoll;
    bool writing; /* waits until the socket takes more */
    uint64_t id, sequence, answered, retry_at_ms;
    struct op *first, *last; /* sent or to be sent, not answered, in order */
    struct op *spare;
    size_t spare_count;
    struct wait *waits[WAIT_BUCKETS];
    size_t waits_count;
};

static void on_readable(h2o_socket_t *socket, const char *err);

static void hold(struct waiter *w, struct pending *pending)
{
    waiter_begin(w, pending);
    conn_watch(w->conn);
}

static void resume(struct waiter *w)
{
    waiter_end(w);
    conn_unwatch(w->conn);
}

static void disconnect(struct writer_client *l)
{
    if (l->socket != NULL)
        h2o_socket_close(l->socket); /* closes the epoll */
    l->socket = NULL;
    l->writing = false;
    channel_close(&l->channel);
    l->retry_at_ms = l->loop->now_ms + RECONNECT_MS;
}

static void put_change(struct writer_client *l, const struct op *op)
{
    channel_put(&l->channel, FRAME_CHANGE, op->sequence, l->answered, (struct str){op->wire, op->size});
}

/* ---- waiting for reports ---- */

static struct wait **bucket_of(struct writer_client *l, uint64_t report)
{
    return &l->waits[report % WAIT_BUCKETS];
}

/* take one off its list and let its request go on */
static void release(struct writer_client *l, struct wait **at)
{
    struct wait *wait = *at;
    struct waiter *w = wait->pending.waiter;
    await_done_fn *done = wait->done;
    *at = wait->next;
    l->waits_count--;
    free(wait);
    if (w == NULL)
        return;
    resume(w);
    done(w);
    store_read_end(l->loop->store);
}

static void release_report(struct writer_client *l, uint64_t report)
{
    struct wait **at = bucket_of(l, report);
    while (*at != NULL)
        if ((*at)->report == report)
            release(l, at);
        else
            at = &(*at)->next;
}

/* whoever has hung up is answered as one whose time is over: the write ends the connection, and a client that only sends no more gets it */
static bool in_vain(const struct wait *wait)
{
    return waiter_is_unwanted(wait->pending.waiter);
}

static void release_overdue(struct writer_client *l, uint64_t now_ms)
{
    for (size_t i = 0; l->waits_count > 0 && i < WAIT_BUCKETS; i++)
        for (struct wait **at = &l->waits[i]; *at != NULL;)
            if ((*at)->until_ms <= now_ms || in_vain(*at))
                release(l, at);
            else
                at = &(*at)->next;
}

void writer_client_release(struct writer_client *l)
{
    release_overdue(l, UINT64_MAX);
}

/* what has ended is let go at the next tick */
static void note_ended(void *arg, enum store_status status, const struct store_report *report)
{
    struct wait *wait = arg;
    if (status != STORE_OK || report->status != REPORT_PENDING)
        wait->until_ms = 0;
}

/* the workspace, or a project of it, was deleted: release who waits for a report of it */
static void look_again(struct writer_client *l, uint64_t workspace)
{
    for (size_t i = 0; l->waits_count > 0 && i < WAIT_BUCKETS; i++)
        for (struct wait *wait = l->waits[i]; wait != NULL; wait = wait->next)
            if (wait->pending.waiter != NULL && wait->workspace == workspace)
                store_report_get(l->loop->store, workspace, wait->report, false, note_ended,
                                 wait);
    store_read_end(l->loop->store);
}

/* after a time without events: whatever ended meanwhile is found in the store, and the new writer hears who is waited for */
static void ask_again(struct writer_client *l)
{
    for (size_t i = 0; l->waits_count > 0 && i < WAIT_BUCKETS; i++)
        for (struct wait *wait = l->waits[i]; wait != NULL; wait = wait->next)
            if (wait->pending.waiter != NULL) {
                store_report_get(l->loop->store, wait->workspace, wait->report, false, note_ended, wait);
                channel_put(&l->channel, FRAME_WAIT, wait->report, 0, (struct str){0});
            }
    store_read_end(l->loop->store);
}

bool writer_client_await(struct writer_client *l, uint64_t workspace, uint64_t report,
                         unsigned timeout_ms, struct waiter *w, await_done_fn *done)
{
    struct wait *wait = l->loop->draining ? NULL : malloc(sizeof(*wait));
    if (wait == NULL)
        return false;
    struct wait **bucket = bucket_of(l, report);
    *wait = (struct wait){.pending = {w},
                          .next = *bucket,
                          .workspace = workspace,
                          .report = report,
                          .until_ms = l->loop->now_ms + timeout_ms,
                          .done = done};
    *bucket = wait;
    hold(w, &wait->pending);
    l->waits_count++;
    if (l->socket != NULL)
        channel_put(&l->channel, FRAME_WAIT, report, 0, (struct str){0});
    return true;
}

/* ---- changes ---- */

static struct op *take_op(struct writer_client *l, size_t bytes)
{
    struct op *op = l->spare;
    if (bytes > OP_ROOM || op == NULL)
        return malloc(bytes > OP_ROOM ? bytes : OP_ROOM);
    l->spare = op->next;
    l->spare_count--;
    return op;
}

static void give_op(struct writer_client *l, struct op *op)
{
    if (l->spare_count == OPS_SPARE || sizeof(*op) + op->size > OP_ROOM) {
        free(op);
        return;
    }
    op->next = l->spare;
    l->spare = op;
    l->spare_count++;
}

static struct op *new_op(struct writer_client *l, const struct store_change *change)
{
    size_t size = change_size(change);
    struct op *op = take_op(l, sizeof(*op) + size);
    if (op == NULL)
        return NULL;
    *op = (struct op){.sequence = ++l->sequence, .size = size};
    struct buf wire = {.p = op->wire, .cap = size};
    change_encode(change, &wire);
    if (l->last != NULL)
        l->last->next = op;
    else
        l->first = op;
    l->last = op;
    return op;
}

bool writer_client_change(struct writer_client *l, const struct store_change *change,
                          struct waiter *w, change_done_fn *done)
{
    struct op *op = new_op(l, change);
    if (op == NULL)
        return false;
    op->pending.waiter = w;
    op->done = done;
    op->given_up_at_ms = l->loop->now_ms + WRITER_ANSWER_MS;
    hold(w, &op->pending);
    if (l->socket != NULL)
        put_change(l, op);
    return true;
}

void writer_client_send(struct writer_client *l, const struct store_change *change)
{
    struct op *op = new_op(l, change);
    if (op != NULL && l->socket != NULL)
        put_change(l, op);
}

static void on_answer(struct writer_client *l, const struct frame *f)
{
    struct op *op = l->first;
    struct store_answer answer;
    if (op == NULL || f->head.a != op->sequence || f->payload.n != sizeof(answer))
        return; /* asked twice around a reconnect: the first answer was it */
    memcpy(&answer, f->payload.p, sizeof(answer));
    l->answered = op->sequence;
    l->first = op->next;
    if (l->first == NULL)
        l->last = NULL;
    struct waiter *w = op->pending.waiter;
    change_done_fn *done = op->done;
    give_op(l, op);
    if (w == NULL)
        return;
    resume(w);
    done(w, CHANGE_ANSWERED, &answer);
}

static void take_event(struct writer_client *l, const struct frame *f)
{
    struct store_event e;
    if (f->payload.n != sizeof(e))
        return;
    memcpy(&e, f->payload.p, sizeof(e));
    if (e.kind == EVENT_PROJECT_DELETED || e.kind == EVENT_WORKSPACE_DELETED)
        look_again(l, e.workspace);
    if (e.kind == EVENT_REPORT_FINISHED || e.kind == EVENT_REPORT_DELETED)
        release_report(l, e.id);
    else
        l->on_event(l->arg, &e);
}

/* ---- the connection ---- */

static bool watch(struct writer_client *l, int op, bool writing)
{
    struct epoll_event ev = {.events = EPOLLIN | (writing ? EPOLLOUT : 0)};
    l->writing = writing;
    return epoll_ctl(l->epoll, op, l->channel.fd, &ev) == 0;
}

void writer_client_flush(struct writer_client *l)
{
    if (l->socket == NULL || l->writing || channel_pending(&l->channel) == 0)
        return;
    int left = channel_flush(&l->channel);
    if (left < 0 || (left == 1 && !watch(l, EPOLL_CTL_MOD, true)))
        disconnect(l);
}

static void on_readable(h2o_socket_t *socket, const char *err)
{
    struct writer_client *l = socket->data;
    struct frame f;
    loop_look_at_clock(l->loop);
    int got = err != NULL ? -1 : channel_read(&l->channel), next;
    while ((next = channel_next(&l->channel, &f)) == 1)
        if (f.head.type == FRAME_ANSWER)
            on_answer(l, &f);
        else if (f.head.type == FRAME_EVENT)
            take_event(l, &f);
    store_read_end(l->loop->store); /* what came together shares a snapshot: all of it was committed before */
    if (got < 0 || next < 0 || (l->writing && !watch(l, EPOLL_CTL_MOD, false)))
        disconnect(l);
    else
        writer_client_flush(l);
}

static void reconnect(struct writer_client *l)
{
    int fd = channel_connect(l->loop->process->writer_path);
    if (fd < 0) {
        l->retry_at_ms = l->loop->now_ms + RECONNECT_MS;
        return;
    }
    channel_init(&l->channel, fd);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll < 0 || !watch(l, EPOLL_CTL_ADD, false)) {
        if (l->epoll >= 0)
            close(l->epoll);
        disconnect(l);
        return;
    }
    l->socket = h2o_evloop_socket_create(l->loop->ctx.loop, l->epoll, H2O_SOCKET_FLAG_DONT_READ);
    l->socket->data = l;
    channel_put(&l->channel, FRAME_HELLO, l->id, 0, (struct str){0});
    for (const struct op *op = l->first; op != NULL; op = op->next)
        put_change(l, op);
    h2o_socket_read_start(l->socket, on_readable);
    ask_again(l);
}

static struct str idem_key(const struct op *op)
{
    struct store_change change;
    return change_decode((struct str){op->wire, op->size}, &change) ? change.idem_key : (struct str){NULL, 0};
}

/* an earlier request under the same Idempotency-Key is still on its way */
static bool repeats_earlier(const struct writer_client *l, const struct op *op)
{
    struct str key = idem_key(op);
    for (const struct op *earlier = l->first; key.n > 0 && earlier != op; earlier = earlier->next)
        if (str_eq(idem_key(earlier), key))
            return true;
    return false;
}

/* It stays in line: it may have been committed, and the numbers must have no gap. */
static void give_up(const struct writer_client *l, struct op *op)
{
    struct waiter *w = op->pending.waiter;
    op->pending.waiter = NULL;
    resume(w);
    op->done(w, repeats_earlier(l, op) ? CHANGE_REPEATED : CHANGE_UNCONFIRMED, NULL);
}

void writer_client_tick(struct writer_client *l)
{
    uint64_t now = l->loop->now_ms;
    if (l->socket == NULL && now >= l->retry_at_ms)
        reconnect(l);
    release_overdue(l, now);
    for (struct op *op = l->first; op != NULL; op = op->next)
        if (op->pending.waiter != NULL && op->given_up_at_ms <= now)
            give_up(l, op);
}

int writer_client_wake_ms(const struct writer_client *l, int most)
{
    return l->socket == NULL && most > RECONNECT_MS ? RECONNECT_MS : most;
}

bool writer_client_connected(const struct writer_client *l)
{
    return l->socket != NULL;
}

size_t writer_client_waiting(const struct writer_client *l)
{
    size_t count = l->waits_count;
    for (const struct op *op = l->first; op != NULL; op = op->next)
        count += op->pending.waiter != NULL;
    return count;
}

struct writer_client *writer_client_new(struct loop *loop, writer_event_fn *on_event, void *arg)
{
    struct writer_client *l = calloc(1, sizeof(*l));
    if (l == NULL || getrandom(&l->id, sizeof(l->id), 0) != sizeof(l->id)) {
        free(l);
        return NULL;
    }
    l->id |= 1; /* 0 is no channel */
    l->loop = loop;
    l->on_event = on_event;
    l->arg = arg;
    l->channel.fd = -1;
    reconnect(l);
    return l;
}

static void free_ops(struct op *op)
{
    while (op != NULL) {
        struct op *next = op->next;
        free(op);
        op = next;
    }
}

void writer_client_free(struct writer_client *l)
{
    if (l == NULL)
        return;
    disconnect(l);
    free_ops(l->first);
    free_ops(l->spare);
    for (size_t i = 0; i < WAIT_BUCKETS; i++)
        while (l->waits[i] != NULL) {
            struct wait *wait = l->waits[i];
            l->waits[i] = wait->next;
            free(wait);
        }
    free(l);
}
