/*
 * A thread of the writer's process, which reads the store beside the loop. The loop alone changes
 * the store, so the thread hands its changes over, one at a time, and waits.
 *
 *   thread: background_thread_carry -> background_thread_fd is readable
 *     -> loop: background_thread_take, a transaction, background_thread_done -> the thread goes on
 *
 * The writer's process only.
 */
#ifndef ASSAY_WRITER_BACKGROUND_THREAD_H
#define ASSAY_WRITER_BACKGROUND_THREAD_H

#include "store/store.h"

#include <pthread.h>

enum carry_state { CARRY_NONE, CARRY_WAITS, CARRY_TAKEN, CARRY_DONE };

struct background_thread {
    struct store *store; /* a reader of the thread's own */
    pthread_t id;
    int event_fd;
    bool running;
    void (*work)(void *);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    bool woken, ending, ended;
    enum carry_state state;
    struct store_change change; /* what it borrows is the thread's */
    struct store_answer answer;
};

/*
 * background_thread_open(t, store, what): ${t} is zeroed; t->store is there then.
 * background_thread_start(t, what, work, arg): after it. False: it cannot start, and the log says why,
 * of ${what}. background_thread_end(t): the thread ends after its step. False: not within 2 s, since a
 * thread of low priority may find no core for long; the process is to end without it, with _exit.
 * background_thread_free(t): after it has ended; t->store is closed. Also after either failed.
 */
bool background_thread_open(struct background_thread *t, struct store *store, const char *what);
bool background_thread_start(struct background_thread *t, const char *what, void (*work)(void *),
                         void *arg);
bool background_thread_end(struct background_thread *t);
void background_thread_free(struct background_thread *t);

/*
 * In the thread. background_thread_name(name, nice): of the thread.
 * background_thread_carry(t, change): STORE_BUSY: the thread is to end, and nothing was done.
 * background_thread_wait(t, ms): until it is woken, ${ms} pass or it is to end; UINT64_MAX: no time.
 * Was it woken? background_thread_ends(t), background_thread_wanted(t): is it to end; or woken?
 */
void background_thread_name(const char *name, int nice);
struct store_answer background_thread_carry(struct background_thread *t, const struct store_change *change);
bool background_thread_wait(struct background_thread *t, uint64_t ms);
bool background_thread_ends(struct background_thread *t);
bool background_thread_wanted(struct background_thread *t);

/*
 * In the loop. background_thread_wake(t): there is work. background_thread_take(t, out): the change that
 * waits; false: there is none. background_thread_done(t, answer): once for each that was taken.
 */
void background_thread_wake(struct background_thread *t);
bool background_thread_take(struct background_thread *t, struct store_change *out);
void background_thread_done(struct background_thread *t, const struct store_answer *answer);

#endif
