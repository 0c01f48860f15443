/*
 * A background thread of the writer. It reads the store itself. Only the writer's loop changes the
 * store, so the thread hands its changes over to the loop, one at a time, and waits for the answer.
 *
 *   thread: background_thread_apply -> event_fd becomes readable
 *     -> loop: background_thread_take, a transaction, background_thread_done -> the thread
 * continues
 */
#ifndef ASSAY_WRITER_BACKGROUND_THREAD_H
#define ASSAY_WRITER_BACKGROUND_THREAD_H

#include "store/store.h"

#include <pthread.h>

enum handover_state { HANDOVER_NONE, HANDOVER_WAITS, HANDOVER_TAKEN, HANDOVER_DONE };

struct background_thread {
    struct store *store; /* the thread's own reader */
    pthread_t id;
    int event_fd;
    bool running;
    void (*work)(void *);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    bool woken, ending, ended;
    enum handover_state state;
    struct store_change change; /* its strings are the thread's */
    struct store_answer answer;
};

/*
 * background_thread_open(t, store, what): ${t} is zeroed; it sets t->store.
 * background_thread_start(t, what, work, arg): after it. Both: false: the thread cannot start, and
 * the log says why; ${what} is its name there.
 * background_thread_end(t): end it after its current step. False: not within 2 s, since a thread of
 * low priority may wait long for a core; then the process must _exit.
 * background_thread_free(t): after the end, or after a failure.
 */
bool background_thread_open(struct background_thread *t, struct store *store, const char *what);
bool background_thread_start(struct background_thread *t, const char *what, void (*work)(void *),
                             void *arg);
bool background_thread_end(struct background_thread *t);
void background_thread_free(struct background_thread *t);

/*
 * In the thread. background_thread_configure(name, nice): its name and priority.
 * background_thread_apply(t, change): STORE_BUSY: the thread is to end; nothing was changed.
 * background_thread_wait(t, ms): until it is woken or is to end, or ${ms} pass; UINT64_MAX: no
 * limit. True: it was woken. background_thread_is_ending(t): is it to end?
 * background_thread_interrupted(t): is it to end, or woken?
 */
void background_thread_configure(const char *name, int nice);
struct store_answer background_thread_apply(struct background_thread *t,
                                            const struct store_change *change);
bool background_thread_wait(struct background_thread *t, uint64_t ms);
bool background_thread_is_ending(struct background_thread *t);
bool background_thread_interrupted(struct background_thread *t);

/*
 * In the loop. background_thread_wake(t): there is work. background_thread_take(t, out): the change
 * that waits; false: none. background_thread_done(t, answer): once for each change taken.
 */
void background_thread_wake(struct background_thread *t);
bool background_thread_take(struct background_thread *t, struct store_change *out);
void background_thread_done(struct background_thread *t, const struct store_answer *answer);

#endif
