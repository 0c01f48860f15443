#include "core/writer/writer_internal.h"

#include "core/base/log.h"
#include "core/audit/audit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* a peer that does not take its answers is not read from */
#define PEER_OUT_MAX (8u << 20)

/* room for one more of a growing array; the writer cannot go on without memory */
void *writer_grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    *room = *room == 0 ? 64 : *room * 2;
    array = realloc(array, *room * size);
    if (array == NULL) {
        log_error("out of memory");
        exit(EXIT_START);
    }
    return array;
}

struct item *writer_batch_add(struct writer *w, struct client *client, uint64_t sequence)
{
    w->batch = writer_grow(w->batch, w->batch_count, &w->batch_room, sizeof(*w->batch));
    struct item *item = &w->batch[w->batch_count++];
    *item = (struct item){.client = client, .sequence = sequence};
    return item;
}

bool item_decode(struct item *item, struct str payload)
{
    item->payload = malloc(payload.n + 1);
    if (item->payload == NULL)
        return false;
    memcpy(item->payload, payload.p, payload.n);
    return change_decode((struct str){item->payload, payload.n}, &item->change);
}

/* ---- peers ---- */

static void watch(struct writer *w, struct client *p, int op)
{
    struct epoll_event ev = {.events = (p->full ? 0 : EPOLLIN) | (p->blocked ? EPOLLOUT : 0), .data.ptr = p};
    epoll_ctl(w->epoll, op, p->channel.fd, &ev);
}

static enum role role_of(const struct process *self, pid_t pid)
{
    enum role role = scoreboard_role_of(self->scoreboard, pid);
    for (size_t i = 0; role == ROLE_NONE && i < self->old_workers_count; i++)
        if (self->old_workers[i] == pid)
            role = ROLE_WORKER;
    return role != ROLE_NONE ? role : ROLE_COMMAND;
}

void clients_accept(struct writer *w)
{
    for (;;) {
        int fd = accept4(w->process->writer_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        struct ucred who = {0};
        socklen_t size = sizeof(who);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || (who.uid != geteuid() && who.uid != 0)) {
            close(fd);
            continue;
        }
        struct client *p = calloc(1, sizeof(*p));
        if (p == NULL) {
            close(fd);
            return;
        }
        channel_init(&p->channel, fd);
        p->role = role_of(w->process, who.pid);
        w->clients = writer_grow(w->clients, w->clients_count, &w->clients_room, sizeof(*w->clients));
        w->clients[w->clients_count++] = p;
        watch(w, p, EPOLL_CTL_ADD);
    }
}

void writer_drop_channel(struct writer *w, uint64_t id)
{
    w->dropped = writer_grow(w->dropped, w->dropped_count, &w->dropped_room, sizeof(*w->dropped));
    w->dropped[w->dropped_count++] = id;
}

void writer_channel_left(struct writer *w, uint64_t id)
{
    w->left = writer_grow(w->left, w->left_count, &w->left_room, sizeof(*w->left));
    w->left[w->left_count++] = (struct left){id, clock_mono_ms()};
}

void client_free(struct client *p)
{
    channel_close(&p->channel);
    buf_free(&p->kept);
    free(p);
}

void clients_flush(struct writer *w)
{
    for (size_t i = 0; i < w->clients_count; i++)
        client_flush(w, w->clients[i]);
}

bool client_is_open(const struct writer *w, uint64_t channel)
{
    for (size_t i = 0; i < w->clients_count; i++)
        if (w->clients[i]->id == channel && !w->clients[i]->gone)
            return true;
    return false;
}

/* Its place is empty, and what it had to do waits again. */
static void auditor_leaves(struct writer *w, struct client *p)
{
    const struct queue_job *guilty = queue_auditor_went(w->queue, p->index, !p->drained);
    p->greeted = false;
    if (guilty == NULL)
        return;
    log_warn("an auditor died on report %llu while it held nothing else", (unsigned long long)guilty->report);
    struct item *item = writer_batch_add(w, NULL, 0);
    item->change = (struct store_change){.kind = CHANGE_REPORT_DIED, .id = guilty->report, .attempt = guilty->attempt};
}

void clients_remove_gone(struct writer *w)
{
    bool readers = false; /* one that read the store may have died over it, and pages that it saw would stay */
    for (size_t i = 0; i < w->clients_count;) {
        struct client *p = w->clients[i];
        if (!p->gone) {
            i++;
            continue;
        }
        if (p->id != 0)
            writer_channel_left(w, p->id);
        if (p->role == ROLE_AUDITOR && p->greeted)
            auditor_leaves(w, p);
        readers = readers || p->role != ROLE_AUDITOR;
        client_free(p);
        w->clients[i] = w->clients[--w->clients_count];
    }
    if (readers)
        store_reader_check(w->store);
}

void client_flush(struct writer *w, struct client *p)
{
    if (p->gone || (channel_pending(&p->channel) == 0 && !p->blocked))
        return;
    int left = channel_flush(&p->channel);
    bool blocked = left == 1, full = channel_pending(&p->channel) > PEER_OUT_MAX;
    if (left < 0) {
        p->gone = true;
    } else if (p->blocked != blocked || p->full != full) {
        p->blocked = blocked;
        p->full = full;
        watch(w, p, EPOLL_CTL_MOD);
    }
}

/* ---- frames ---- */

/* All that it has sent comes before its end. */
static void end_peer(struct writer *w, struct client *p)
{
    size_t before = w->batch_count;
    for (bool more = !p->gone; more; before = w->batch_count) {
        client_read(w, p);
        more = !p->gone && w->batch_count > before;
    }
    p->gone = true;
}

/* A sender that comes back has closed its earlier connection, which may still be full. */
static void end_earlier(struct writer *w, const struct client *p)
{
    for (size_t i = 0; i < w->clients_count; i++)
        if (w->clients[i] != p && w->clients[i]->id == p->id)
            end_peer(w, w->clients[i]);
}

/* An auditor that comes has no other beside it in its place: one that is still known has ended, and while the writer was busy nobody saw it. */
static void end_auditor_before(struct writer *w, const struct client *p)
{
    for (size_t i = 0; i < w->clients_count; i++) {
        struct client *before = w->clients[i];
        if (before == p || before->role != ROLE_AUDITOR || !before->greeted || before->index != p->index)
            continue;
        end_peer(w, before);
        auditor_leaves(w, before);
    }
}

static void on_hello(struct writer *w, struct client *p, const struct frame *f)
{
    p->greeted = true;
    if (p->role != ROLE_AUDITOR) {
        const struct store_event begins = {.kind = EVENT_FEED_BEGINS};
        p->id = f->head.a;
        if (p->id != 0)
            end_earlier(w, p);
        if (p->role == ROLE_WORKER)
            channel_put(&p->channel, FRAME_EVENT, 0, 0, (struct str){(const char *)&begins, sizeof(begins)});
        return;
    }
    p->index = (unsigned)f->head.b % w->process->conf->auditors;
    end_auditor_before(w, p);
    queue_auditor_came(w->queue, p->index);
}

static void on_change(struct writer *w, struct client *p, const struct frame *f)
{
    struct item *item = writer_batch_add(w, p, f->head.a);
    if (!item_decode(item, f->payload) || item->change.kind == CHANGE_REPORT_FINISH || item->change.kind == CHANGE_REPORT_DIED)
        item->change.kind = 0; /* store_apply answers STORE_INVALID */
    /* what the sender has read needs no keeping */
    struct kept *kept = (struct kept *)(void *)p->kept.p;
    size_t count = p->kept.n / sizeof(*kept), known = 0;
    while (known < p->kept_committed && kept[known].sequence <= f->head.b)
        known++;
    if (known > 0) {
        memmove(kept, kept + known, (count - known) * sizeof(*kept));
        p->kept.n -= known * sizeof(*kept);
        p->kept_committed -= known;
    }
}

static struct queue_job *job_of(struct writer *w, const struct client *p, const struct frame *f)
{
    return queue_out(w->queue, p->index, f->head.a, f->head.b);
}

static void on_findings(struct writer *w, struct client *p, const struct frame *f)
{
    struct queue_job *job = job_of(w, p, f);
    if (job == NULL)
        return;
    if (job->withdrawn) { /* FINDINGS and WITHDRAW crossed */
        queue_remove(w->queue, job);
        return;
    }
    struct item *item = writer_batch_add(w, NULL, 0);
    struct store_change change = item_decode(item, f->payload) ? item->change : (struct store_change){.error_code = STR("too_complex")};
    change.kind = CHANGE_REPORT_FINISH;
    change.id = job->report;
    change.attempt = job->attempt;
    change.status = change.error_code.n > 0 ? REPORT_FAILED : REPORT_DONE;
    change.result = change.status == REPORT_DONE ? (uint32_t)audit_result(change.score, w->process->conf) : RESULT_NONE;
    item->change = change;
    item->handed_us = job->handed_us;
    queue_remove(w->queue, job);
}

static void on_back(struct writer *w, struct client *p, const struct frame *f)
{
    struct queue_job *job = job_of(w, p, f);
    p->drained = p->drained || f->head.a == 0;
    if (job != NULL)
        queue_back(w->queue, job);
}

static void on_wait(struct writer *w, struct client *p, const struct frame *f)
{
    struct store_event over = {.kind = EVENT_REPORT_FINISHED, .id = f->head.a};
    if (queue_find(w->queue, f->head.a) != NULL)
        queue_hurry(w->queue, f->head.a);
    else /* it ended before this was heard of */
        channel_put(&p->channel, FRAME_EVENT, 0, 0, (struct str){(const char *)&over, sizeof(over)});
}

/* who may send what: everything else ends the connection */
static bool dispatch(struct writer *w, struct client *p, const struct frame *f)
{
    if (f->head.type == FRAME_HELLO && !p->greeted) {
        on_hello(w, p, f);
        return true;
    }
    if (!p->greeted)
        return false;
    bool auditor = p->role == ROLE_AUDITOR;
    switch (f->head.type) {
    case FRAME_CHANGE:
        if (auditor || p->id == 0)
            return false;
        on_change(w, p, f);
        return true;
    case FRAME_WAIT:
        if (auditor)
            return false;
        on_wait(w, p, f);
        return true;
    case FRAME_FINDINGS:
        if (!auditor)
            return false;
        on_findings(w, p, f);
        return true;
    case FRAME_BACK:
        if (!auditor)
            return false;
        on_back(w, p, f);
        return true;
    case FRAME_SUSPECT:
        if (auditor)
            queue_suspect(w->queue, p->index, f->head.a);
        return auditor;
    default:
        return false;
    }
}

void client_read(struct writer *w, struct client *p)
{
    struct frame f;
    int got = channel_read(&p->channel), next;
    while ((next = channel_next(&p->channel, &f)) == 1)
        if (!dispatch(w, p, &f)) {
            next = -1;
            break;
        }
    if (next < 0)
        log_warn("a %s sent what the writer does not know: disconnected", role_name(p->role));
    if (got < 0 || next < 0)
        p->gone = true; /* what it sent before is still applied */
}
