/*
 * A thread of the writer's process, which reads the store beside the loop. The loop alone changes
 * the store, so the thread hands its changes over, one at a time, and waits.
 *
 *   thread: writer_thread_carry -> writer_thread_fd is readable
 *     -> loop: writer_thread_take, a transaction, writer_thread_done -> the thread goes on
 *
 * The writer's process only.
 */
#ifndef ASSAY_WRITER_THREAD_H
#define ASSAY_WRITER_THREAD_H

#include "store/store.h"

#include <pthread.h>

enum carry_state { CARRY_NONE, CARRY_WAITS, CARRY_TAKEN, CARRY_DONE };

struct writer_thread {
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
 * writer_thread_open(t, store, what): ${t} is zeroed; t->store is there then.
 * writer_thread_start(t, what, work, arg): after it. False: it cannot start, and the log says why,
 * of ${what}. writer_thread_end(t): the thread ends after its step. False: not within 2 s, since a
 * thread of low priority may find no core for long; the process is to end without it, with _exit.
 * writer_thread_free(t): after it has ended; t->store is closed. Also after either failed.
 */
bool writer_thread_open(struct writer_thread *t, struct store *store, const char *what);
bool writer_thread_start(struct writer_thread *t, const char *what, void (*work)(void *),
                         void *arg);
bool writer_thread_end(struct writer_thread *t);
void writer_thread_free(struct writer_thread *t);

/*
 * In the thread. writer_thread_name(name, nice): of the thread.
 * writer_thread_carry(t, change): STORE_BUSY: the thread is to end, and nothing was done.
 * writer_thread_wait(t, ms): until it is woken, ${ms} pass or it is to end; UINT64_MAX: no time.
 * Was it woken? writer_thread_ends(t), writer_thread_wanted(t): is it to end; or woken?
 */
void writer_thread_name(const char *name, int nice);
struct store_answer writer_thread_carry(struct writer_thread *t, const struct store_change *change);
bool writer_thread_wait(struct writer_thread *t, uint64_t ms);
bool writer_thread_ends(struct writer_thread *t);
bool writer_thread_wanted(struct writer_thread *t);

/*
 * In the loop. writer_thread_wake(t): there is work. writer_thread_take(t, out): the change that
 * waits; false: there is none. writer_thread_done(t, answer): once for each that was taken.
 */
void writer_thread_wake(struct writer_thread *t);
bool writer_thread_take(struct writer_thread *t, struct store_change *out);
void writer_thread_done(struct writer_thread *t, const struct store_answer *answer);

#endif
