#include "core/indexer.h"

#include "core/log.h"
#include "core/scoreboard.h"
#include "store/answers/follower.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NICE 10             /* requests go first */
#define FAILED_WAIT_MS 500  /* until the next step, where all that is left fails */
#define QUIET_MS 10000      /* without a change of documents, before files are verified */
#define FAILED_LOG_MS 60000 /* between two lines of the log about failures */

struct indexer {
    struct writer_thread thread;
    struct follower *follower;
    bool verified; /* each file was */
    uint64_t logged_ms;
};

static enum store_status carry_out(void *arg, const struct store_change *change)
{
    struct indexer *i = arg;
    if (change->fields == ANSWERS_NOTE_LOST)
        log_warn("rebuilding an answer file: %s", follower_why(i->follower));
    return (enum store_status)writer_thread_carry(&i->thread, change).status;
}

static bool wanted(void *arg)
{
    struct indexer *i = arg;
    return writer_thread_wanted(&i->thread);
}

static void log_if_failed(struct indexer *i, enum follower_result result)
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
static void verify(struct indexer *i)
{
    enum follower_result result = FOLLOWER_MORE;
    while ((result == FOLLOWER_MORE || result == FOLLOWER_FAILED) && !wanted(i)) {
        result = follower_verify(i->follower);
        log_if_failed(i, result);
    }
    i->verified = result == FOLLOWER_IDLE;
}

static void wait_after(struct indexer *i, enum follower_result last)
{
    if (last == FOLLOWER_WAIT)
        writer_thread_wait(&i->thread, FAILED_WAIT_MS);
    if (last != FOLLOWER_IDLE)
        return;
    bool woken = writer_thread_wait(&i->thread, i->verified ? UINT64_MAX : QUIET_MS);
    if (!woken && !i->verified)
        verify(i);
}

static void work(void *arg)
{
    struct indexer *i = arg;
    writer_thread_name("indexer", NICE);
    while (!writer_thread_ends(&i->thread)) {
        enum follower_result last = follower_step(i->follower);
        log_if_failed(i, last);
        wait_after(i, last);
    }
}

struct writer_thread *indexer_thread(struct indexer *i)
{
    return &i->thread;
}

struct indexer *indexer_new(struct store *store)
{
    static const char what[] = "the indexer";
    struct indexer *i = calloc(1, sizeof(*i));
    if (i == NULL) {
        log_error("%s cannot start: %s", what, strerror(errno));
        return NULL;
    }
    if (writer_thread_open(&i->thread, store, what) &&
        (i->follower = follower_new(i->thread.store, carry_out, wanted, i)) != NULL &&
        writer_thread_start(&i->thread, what, work, i))
        return i;
    indexer_free(i);
    return NULL;
}

bool indexer_end(struct indexer *i)
{
    return writer_thread_end(&i->thread);
}

void indexer_free(struct indexer *i)
{
    if (i == NULL)
        return;
    follower_free(i->follower);
    writer_thread_free(&i->thread);
    free(i);
}
