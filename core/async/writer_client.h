/*
 * The connection of a worker to the writer, on the event loop. Numbered changes go out in order;
 * answers and events come in. After a lost connection it connects again, sends unanswered changes
 * again (the writer recognizes their numbers), and looks up every awaited report in the store,
 * since an event may have been lost. One per worker.
 */
#ifndef ASSAY_ASYNC_WRITER_CLIENT_H
#define ASSAY_ASYNC_WRITER_CLIENT_H

#include "core/async/waiter.h"
#include "core/ipc/typing_notice.h"

/* A change without an answer in this time is given up; it may still be stored. */
#define WRITER_ANSWER_MS 30000

/* While unanswered changes, given up or not, occupy more memory than this, no other is taken. */
#define WRITER_UNANSWERED_BYTES (64u << 20)

struct writer_client;

/* Gets the events of the change feed that end no wait for a report. */
typedef void writer_event_fn(void *arg, const struct store_event *e);

/* writer_client_new(loop, on_event, arg): NULL when memory is short. */
struct writer_client *writer_client_new(struct loop *loop, writer_event_fn *on_event, void *arg);
void writer_client_free(struct writer_client *c);

bool writer_client_connected(const struct writer_client *c);

/* writer_client_flush(c): send what was queued in this turn of the loop; once a turn. */
void writer_client_flush(struct writer_client *c);

/*
 * writer_client_tick(c): connect again, and end overdue waits; once a turn.
 * writer_client_wake_ms(c, most): how long the loop may sleep, at most ${most}.
 */
void writer_client_tick(struct writer_client *c);
int writer_client_wake_ms(const struct writer_client *c, int most);

/*
 * writer_client_change(c, change, w, done): send ${change} (copied); ${done} is called unless ${w}
 * is cancelled first. Its ${answer} is NULL unless ${outcome} is CHANGE_ANSWERED. False: memory is
 * short, or WRITER_UNANSWERED_BYTES wait; nothing is sent.
 * writer_client_send(c, change): a change without a waiter.
 * writer_client_send_local(c, change): one about files of this server (store_change_is_local). It
 * is lost without a connection: who finds the same again sends it again.
 */
enum change_outcome {
    CHANGE_ANSWERED,
    CHANGE_UNCONFIRMED, /* it may be stored, or may still be */
    CHANGE_REPEATED,    /* as above, and an earlier change has the same idempotency key */
};
typedef void change_done_fn(struct waiter *w, enum change_outcome outcome,
                            const struct store_answer *answer);
bool writer_client_change(struct writer_client *c, const struct store_change *change,
                          struct waiter *w, change_done_fn *done)
    __attribute__((warn_unused_result));
void writer_client_send(struct writer_client *c, const struct store_change *change);
void writer_client_send_local(struct writer_client *c, const struct store_change *change);

/* writer_client_send_typing(c, notice): in a cluster; it may be lost. */
void writer_client_send_typing(struct writer_client *c, const struct typing_notice *notice);

/*
 * writer_client_await(c, workspace, report, timeout_ms, w, done): ${done} when ${report} is
 * finished or deleted, after ${timeout_ms}, or when the worker drains. False: it does not wait,
 * since the worker drains or memory is short.
 * writer_client_end_waits(c): the worker drains: end all these waits.
 */
typedef void await_done_fn(struct waiter *w);
bool writer_client_await(struct writer_client *c, uint64_t workspace, uint64_t report,
                         unsigned timeout_ms, struct waiter *w, await_done_fn *done)
    __attribute__((warn_unused_result));
void writer_client_end_waits(struct writer_client *c);

/*
 * writer_client_ask_position(c, turn, confirm): of a connected one: ask for an EVENT_POSITION when
 * the turn of cluster_score.h is not ${turn}; ${confirm}: the head of the log is read now.
 */
void writer_client_ask_position(struct writer_client *c, uint64_t turn, bool confirm);

/* writer_client_waiting(c): the number of waiters. */
size_t writer_client_waiting(const struct writer_client *c);

#endif
