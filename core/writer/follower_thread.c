#include "core/writer/follower_thread.h"

#include "core/base/log.h"
#include "core/shm/scoreboard.h"
#include "store/answers/follower.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NICE 10             /* below the requests */
#define FAILED_WAIT_MS 500  /* wait after a step that failed */
#define FAILED_LOG_MS 60000 /* between two lines of the log about failures */

/* files are verified after this time without changes */
#ifndef VERIFY_QUIET_MS
#define VERIFY_QUIET_MS 10000
#endif
/* least time from one verification of all files to the next */
#ifndef VERIFY_REST_MS
#define VERIFY_REST_MS 600000
#endif
/* the rest is at least so many times the CPU time of the verification */
#ifndef VERIFY_REST_TIMES
#define VERIFY_REST_TIMES 50
#endif

struct follower_thread {
    struct background_thread thread;
    struct follower *follower;
    uint64_t verify_us; /* CPU time of the current verification of all files so far */
    uint64_t verify_at_ms;
    uint64_t logged_ms;
};

static enum store_status apply_change(void *arg, const struct store_change *change)
{
    struct follower_thread *t = arg;
    if (change->fields == ANSWERS_NOTE_LOST)
        log_warn("rebuilding an answer file: %s", follower_why(t->follower));
    return (enum store_status)background_thread_apply(&t->thread, change).status;
}

static bool is_interrupted(void *arg)
{
    struct follower_thread *t = arg;
    return background_thread_interrupted(&t->thread);
}

static void log_if_failed(struct follower_thread *t, enum follower_result result)
{
    uint64_t now = clock_mono_ms();
    if (result != FOLLOWER_FAILED && result != FOLLOWER_WAIT)
        return;
    if (t->logged_ms != 0 && now - t->logged_ms < FAILED_LOG_MS)
        return;
    t->logged_ms = now;
    log_error("answers from synced content are not up to date: %s", follower_why(t->follower));
}

/* Verify files until each had its turn or there is something else to do. */
static enum follower_result verify_some(struct follower_thread *t)
{
    enum follower_result result = FOLLOWER_MORE;
    while ((result == FOLLOWER_MORE || result == FOLLOWER_FAILED) && !is_interrupted(t)) {
        result = follower_verify(t->follower);
        log_if_failed(t, result);
    }
    return result;
}

static void verify(struct follower_thread *t)
{
    const uint64_t began = clock_thread_us();
    enum follower_result result = verify_some(t);
    t->verify_us += clock_thread_us() - began;
    if (result != FOLLOWER_IDLE)
        return;
    const uint64_t rest = t->verify_us / 1000 * VERIFY_REST_TIMES;
    t->verify_at_ms = clock_mono_ms() + (rest > VERIFY_REST_MS ? rest : VERIFY_REST_MS);
    t->verify_us = 0;
}

static void wait_after(struct follower_thread *t, enum follower_result last)
{
    if (last == FOLLOWER_WAIT)
        background_thread_wait(&t->thread, FAILED_WAIT_MS);
    if (last != FOLLOWER_IDLE)
        return;
    const uint64_t now = clock_mono_ms(), quiet = now + VERIFY_QUIET_MS;
    const uint64_t at = t->verify_at_ms > quiet ? t->verify_at_ms : quiet;
    if (!background_thread_wait(&t->thread, at - now))
        verify(t);
}

static void work(void *arg)
{
    struct follower_thread *t = arg;
    background_thread_configure("follower", NICE);
    while (!background_thread_is_ending(&t->thread)) {
        enum follower_result last = follower_step(t->follower);
        log_if_failed(t, last);
        wait_after(t, last);
    }
}

struct background_thread *follower_thread_base(struct follower_thread *t)
{
    return &t->thread;
}

struct follower_thread *follower_thread_new(struct store *store)
{
    static const char what[] = "the follower";
    struct follower_thread *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        log_error("%s cannot start: %s", what, strerror(errno));
        return NULL;
    }
    if (background_thread_open(&t->thread, store, what) &&
        (t->follower = follower_new(t->thread.store, apply_change, is_interrupted, t)) != NULL &&
        background_thread_start(&t->thread, what, work, t))
        return t;
    follower_thread_free(t);
    return NULL;
}

bool follower_thread_end(struct follower_thread *t)
{
    return background_thread_end(&t->thread);
}

void follower_thread_free(struct follower_thread *t)
{
    if (t == NULL)
        return;
    follower_free(t->follower);
    background_thread_free(&t->thread);
    free(t);
}
