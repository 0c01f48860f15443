/*
 * The writer's parts: writer.c is its life, startup.c what comes before it, clients.c who is connected and what they send, batch.c what they
 * sent together (one transaction), change_feed.c and jobs.c what a commit sets off, maintenance.c what time brings, deferred_results.c findings without room.
 * The writer's process only; nobody else includes this.
 */
#ifndef ASSAY_WRITER_WRITER_INTERNAL_H
#define ASSAY_WRITER_WRITER_INTERNAL_H

#include "core/ipc/channel.h"
#include "core/writer/writer.h"
#include "core/writer/answers_thread.h"
#include "core/writer/merge_thread.h"
#include "core/process/process.h"
#include "core/writer/job_queue.h"
#include "store/store.h"

/* an answer the sender has not confirmed yet */
struct kept {
    uint64_t sequence;
    struct store_answer answer;
};

struct client {
    struct channel channel;
    enum role role;
    unsigned index; /* of an auditor */
    uint64_t id;    /* channel id; 0: cannot send changes */
    bool greeted, loaded, gone, drained;
    bool blocked, full; /* its socket takes no more now; so much waits that nothing more is read from it */
    uint64_t sequence, sequence_committed;
    struct buf kept; /* struct kept, oldest first */
    size_t kept_committed;
};

struct item {
    struct client *client; /* NULL: the writer's own */
    struct background_thread *thread; /* which waits for the answer; or NULL */
    uint64_t sequence;
    struct store_change change;
    char *payload; /* what the strings of ${change} point at; the item's own, since a channel's buffer moves with the next read */
    struct store_answer answer;
    uint64_t handed_us; /* findings: when their auditor got the page */
};

struct left {
    uint64_t channel, at_ms;
};

struct writer {
    struct process *process;
    struct store *store;
    struct queue *queue;
    struct answers_thread *answers_thread;
    struct merge_thread *merge_thread;
    bool threads_wait; /* one of them, for a change of its own */
    int epoll;
    struct client **clients;
    size_t clients_count, clients_room;
    struct item *batch;
    size_t batch_count, batch_room, applied; /* the first ${applied} of them are in ${txn} */
    struct store_txn *txn;                   /* of the batch, from its first change on; NULL: not begun, or it failed */
    enum store_status status;                /* of that */
    struct left *left; /* channels whose senders are gone, and may come back for a while; the earliest first */
    size_t left_count, left_room;
    uint64_t *dropped; /* those that did not */
    size_t dropped_count, dropped_room;
    struct item *held; /* findings that found no room, oldest first */
    size_t deferred_count, deferred_room, deferred_bytes;
    size_t deferred_slice; /* how many of them are tried at once */
    uint64_t deferred_at_ms;
    bool purging; /* CHANGE_PURGE may have something to do */
    struct {
        uint64_t until_us; /* when work in the background ends its transaction; where callers wait, sooner */
        size_t asked;
    } slice;
    uint32_t retaining; /* RETAIN_… bits: what may still be too old */
    uint64_t purge_at_ms, sweep_at_ms, stale_at_ms, full_said_ms;
    uint64_t commit_us, small_commit_us; /* how long the last one took, and those of few changes do */
    size_t last_size, callers;           /* changes of the last one; who lately sent some at the same time */
    const char *upkeep; /* what goes on in the background, "" for nothing, as last told */
    uint64_t maintenance_at_ms, maintenance_said_ms;
};

/* writer_grow(array, count, room, size): ${array} with room for one more; the writer cannot go on without memory, so it ends where there is none. */
void *writer_grow(void *array, size_t count, size_t *room, size_t size);

/* writer_channel_left(w, id): its sender is gone. */
void writer_channel_left(struct writer *w, uint64_t id);

/* writer_batch_add(w, peer, sequence): a new item of the batch, its change to be filled in. writer_drop_channel(w, id): its sender does not come back. */
struct item *writer_batch_add(struct writer *w, struct client *client, uint64_t sequence);
/* item_decode(item, payload): copy ${payload} and read the change in it; false where it is none. */
bool item_decode(struct item *item, struct str payload);
void writer_drop_channel(struct writer *w, uint64_t id);

/*
 * batch_apply_arrived(w): put what has come into the batch's transaction, while more is on its way. batch_apply(w): the rest of it, then
 * commit, answers, and what these set off; the batch is empty after that. Ends the process where the store cannot be written, by
 * writer_reopens(w). writer_synced(w): what PHASE_SYNCING was set for is done.
 */
void batch_apply_arrived(struct writer *w);
void batch_apply(struct writer *w);
void writer_reopens(struct writer *w) __attribute__((noreturn));
void writer_synced(struct writer *w);

/*
 * After a commit. events_tell(w): tell the workers what it changed; nothing is sent yet. events_follow(w, items, count): put what ${items} made
 * into the queue of jobs, and take out of it what ended.
 */
void events_tell(struct writer *w);
void events_follow(struct writer *w, const struct item *items, size_t items_count);

/*
 * writer_jobs_add(w, event, at, end): a job that a commit added; the change that made its report is looked for from ${at} on, which moves
 * there. writer_jobs_sweep(w): jobs are rows of the store, and whatever a crash left there is found here. writer_jobs_hand_out(w): to the
 * auditors.
 */
void writer_jobs_add(struct writer *w, const struct store_event *e, const struct item **at, const struct item *end);
void writer_jobs_sweep(struct writer *w);
void writer_jobs_hand_out(struct writer *w);
/*
 * writer_jobs_withdraw(w, job): its report is gone; tell the auditor that works on it.
 * writer_jobs_withdraw_out(w): after a project or workspace was deleted, withdraw its jobs that are
 * out. Its waiting jobs are dropped when their turn comes or when the purge reaches their report.
 */
void writer_jobs_withdraw(struct writer *w, struct queue_job *job);
void writer_jobs_withdraw_out(struct writer *w);

/*
 * writer_maintenance_begin(w): the clock starts. writer_maintenance_on_time(w): what is due by now. writer_maintenance_step(w): the
 * changes that threads hand over, and some of what time brings, in a transaction of their own, after
 * the callers' is committed and answered. writer_maintenance_is_due(w): is there more of it? writer_maintenance_bound(w):
 * work in the background in w->txn ends when it took long or callers wait. writer_maintenance_tell(w): what goes
 * on, on the scoreboard and in the log.
 */
void writer_maintenance_begin(struct writer *w);
void writer_maintenance_on_time(struct writer *w);
void writer_maintenance_step(struct writer *w);
bool writer_maintenance_is_due(const struct writer *w);
void writer_maintenance_bound(struct writer *w);
void writer_maintenance_tell(struct writer *w);

/*
 * startup_wait(p): no two writers at any moment: wait for the lock of a file in data_dir, which ends with whoever has it. The one before
 * may just be ending, or dying, and the master that made it may be another. startup_store(p): open the store.
 * Both end the process where that cannot be.
 */
void startup_wait(struct process *p);
struct store *startup_store(struct process *p);

/*
 * Grading results that did not fit into the store (deferred_results.c).
 * deferred_add(w, item): hold it until there is room, and take over its payload. False when so much is
 * held already that the result is dropped; a sweep grades its page again.
 * deferred_is_due(w): are some held, and is it time to try again? Then the writer does not wait.
 * deferred_retry(w): put some into the batch again, when it is time.
 * deferred_settle(w, full): after a batch; ${full}: results did not fit.
 * deferred_has(w, report): is one held?
 * deferred_free(w): at the writer's end.
 */
bool deferred_add(struct writer *w, const struct item *item);
bool deferred_is_due(const struct writer *w);
void deferred_retry(struct writer *w);
void deferred_settle(struct writer *w, bool full);
bool deferred_has(const struct writer *w, uint64_t report);
void deferred_free(struct writer *w);

/* clients_accept(w): let in whoever connects. client_read(w, p): take in its frames; changes go to the batch. client_flush(w, p): send what waits. */
void clients_accept(struct writer *w);
void client_read(struct writer *w, struct client *p);
void client_flush(struct writer *w, struct client *p);
void clients_flush(struct writer *w);
/* client_is_open(w, channel): is its sender connected? */
bool client_is_open(const struct writer *w, uint64_t channel);

/* clients_remove_gone(w): after the batch, which may point at them. client_free(p): at the writer's end. */
void clients_remove_gone(struct writer *w);
void client_free(struct client *p);

#endif
