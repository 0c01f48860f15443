/*
 * The connection of a worker to the writer, on the event loop. Changes go out in order and numbered;
 * answers and events come in. When the writer is gone, the connection is made again, sends what was
 * not answered again, and looks in the store at every report that somebody waits for, since an event
 * may have been missed. One per worker.
 */
#ifndef ASSAY_ASYNC_WRITER_CLIENT_H
#define ASSAY_ASYNC_WRITER_CLIENT_H

#include "core/async/waiter.h"

/* A change that is not answered in this time is given up; it may still happen. */
#define WRITER_ANSWER_MS 30000

struct writer_client;

/* An event of the change feed that no waiter for a report is about. */
typedef void writer_event_fn(void *arg, const struct store_event *e);

/* writer_client_new(loop, on_event, arg): NULL when memory is short. */
struct writer_client *writer_client_new(struct loop *loop, writer_event_fn *on_event, void *arg);
void writer_client_free(struct writer_client *l);

bool writer_client_connected(const struct writer_client *l);

/* writer_client_flush(l): send what this turn of the loop has queued; call it once a turn. */
void writer_client_flush(struct writer_client *l);

/*
 * writer_client_tick(l): reconnect, and give up what waits too long; once a turn.
 * writer_client_wake_ms(l, most): how long the loop may sleep, at most ${most}.
 */
void writer_client_tick(struct writer_client *l);
int writer_client_wake_ms(const struct writer_client *l, int most);

/*
 * writer_client_change(l, change, w, done): send ${change} (copied); ${done} is called unless ${w}
 * leaves first. ${answer} is NULL unless ${outcome} is CHANGE_ANSWERED. False: memory is short.
 * writer_client_send(l, change): a change that nobody waits for.
 */
enum change_outcome {
    CHANGE_ANSWERED,
    CHANGE_UNCONFIRMED, /* no answer in WRITER_ANSWER_MS; it may still happen */
    CHANGE_REPEATED,    /* as above, and an earlier change has the same idempotency key */
};
typedef void change_done_fn(struct waiter *w, enum change_outcome outcome,
                            const struct store_answer *answer);
bool writer_client_change(struct writer_client *l, const struct store_change *change,
                          struct waiter *w, change_done_fn *done) __attribute__((warn_unused_result));
void writer_client_send(struct writer_client *l, const struct store_change *change);

/*
 * writer_client_await(l, workspace, report, timeout_ms, w, done): ${done} when ${report} is finished
 * or deleted, ${timeout_ms} are over, or the worker drains. False: it does not wait, since the
 * worker drains or memory is short.
 * writer_client_release(l): the worker drains: end all these waits.
 */
typedef void await_done_fn(struct waiter *w);
bool writer_client_await(struct writer_client *l, uint64_t workspace, uint64_t report,
                         unsigned timeout_ms, struct waiter *w, await_done_fn *done)
    __attribute__((warn_unused_result));
void writer_client_release(struct writer_client *l);

/* writer_client_waiting(l): how many waiters there are. */
size_t writer_client_waiting(const struct writer_client *l);

#endif
