#include "core/writer/answers_thread.h"

#include "core/base/log.h"
#include "core/shm/scoreboard.h"
#include "store/answers/follower.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NICE 10             /* requests go first */
#define FAILED_WAIT_MS 500  /* until the next step, where all that is left fails */
#define QUIET_MS 10000      /* without a change of documents, before files are verified */
#define FAILED_LOG_MS 60000 /* between two lines of the log about failures */

struct answers_thread {
    struct background_thread thread;
    struct follower *follower;
    bool verified; /* each file was */
    uint64_t logged_ms;
};

static enum store_status carry_out(void *arg, const struct store_change *change)
{
    struct answers_thread *i = arg;
    if (change->fields == ANSWERS_NOTE_LOST)
        log_warn("rebuilding an answer file: %s", follower_why(i->follower));
    return (enum store_status)background_thread_carry(&i->thread, change).status;
}

static bool wanted(void *arg)
{
    struct answers_thread *i = arg;
    return background_thread_wanted(&i->thread);
}

static void log_if_failed(struct answers_thread *i, enum follower_result result)
{
    uint64_t now = clock_mono_ms();
    if (result != FOLLOWER_FAILED && result != FOLLOWER_WAIT)
        return;
    if (i->logged_ms != 0 && now - i->logged_ms < FAILED_LOG_MS)
        return;
    i->logged_ms = now;
    log_error("answers from synced content are not up to date: %s", follower_why(i->follower));
}

/* Files are verified while nobody changes documents. */
static void verify(struct answers_thread *i)
{
    enum follower_result result = FOLLOWER_MORE;
    while ((result == FOLLOWER_MORE || result == FOLLOWER_FAILED) && !wanted(i)) {
        result = follower_verify(i->follower);
        log_if_failed(i, result);
    }
    i->verified = result == FOLLOWER_IDLE;
}

static void wait_after(struct answers_thread *i, enum follower_result last)
{
    if (last == FOLLOWER_WAIT)
        background_thread_wait(&i->thread, FAILED_WAIT_MS);
    if (last != FOLLOWER_IDLE)
        return;
    bool woken = background_thread_wait(&i->thread, i->verified ? UINT64_MAX : QUIET_MS);
    if (!woken && !i->verified)
        verify(i);
}

static void work(void *arg)
{
    struct answers_thread *i = arg;
    background_thread_name("indexer", NICE);
    while (!background_thread_ends(&i->thread)) {
        enum follower_result last = follower_step(i->follower);
        log_if_failed(i, last);
        wait_after(i, last);
    }
}

struct background_thread *answers_thread_loop(struct answers_thread *i)
{
    return &i->thread;
}

struct answers_thread *answers_thread_new(struct store *store)
{
    static const char what[] = "the indexer";
    struct answers_thread *i = calloc(1, sizeof(*i));
    if (i == NULL) {
        log_error("%s cannot start: %s", what, strerror(errno));
        return NULL;
    }
    if (background_thread_open(&i->thread, store, what) &&
        (i->follower = follower_new(i->thread.store, carry_out, wanted, i)) != NULL &&
        background_thread_start(&i->thread, what, work, i))
        return i;
    answers_thread_free(i);
    return NULL;
}

bool answers_thread_end(struct answers_thread *i)
{
    return background_thread_end(&i->thread);
}

void answers_thread_free(struct answers_thread *i)
{
    if (i == NULL)
        return;
    follower_free(i->follower);
    background_thread_free(&i->thread);
    free(i);
}
