#include "indexer.h"

#include "log.h"
#include "scoreboard.h"
#include "thread.h"
#include "../store/answers/follower.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NICE 10             /* requests go first */
#define FAILED_WAIT_MS 500  /* until the next step, where all that is left fails */
#define QUIET_MS 10000      /* without a change of documents, before files are verified */
#define FAILED_LOG_MS 60000 /* between two lines of the log about failures */

enum note_state { NOTE_NONE, NOTE_WAITS, NOTE_TAKEN, NOTE_DONE };

struct indexer {
    pthread_t id;
    struct store *store; /* a reader of the thread's own */
    struct follower *follower;
    enum follower_result last; /* of its steps */
    bool quiet, verified;      /* nothing happened for a while; each file was verified */
    uint64_t logged_ms;
    int event_fd;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    bool woken, ending;
    enum note_state state;
    struct store_change note;
    enum store_status noted;
};

/* ---- the thread ---- */

static enum store_status carry_out(void *arg, const struct store_change *change)
{
    struct indexer *i = arg;
    if (change->fields == ANSWERS_NOTE_LOST)
        log_warn("rebuilding an answer file: %s", follower_why(i->follower));
    pthread_mutex_lock(&i->lock);
    i->note = *change;
    i->state = NOTE_WAITS;
    eventfd_write(i->event_fd, 1);
    while (i->state != NOTE_DONE && !i->ending)
        pthread_cond_wait(&i->changed, &i->lock);
    enum store_status status = i->state == NOTE_DONE ? i->noted : STORE_BUSY;
    i->state = NOTE_NONE;
    pthread_mutex_unlock(&i->lock);
    return status;
}

static bool wanted(void *arg)
{
    struct indexer *i = arg;
    pthread_mutex_lock(&i->lock);
    bool yes = i->woken || i->ending;
    pthread_mutex_unlock(&i->lock);
    return yes;
}

static bool is_ending(struct indexer *i)
{
    pthread_mutex_lock(&i->lock);
    bool yes = i->ending;
    pthread_mutex_unlock(&i->lock);
    return yes;
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

/* Wait for a time or the end of the thread; with ${for_work}, for work too. */
static void wait_ms(struct indexer *i, uint64_t ms, bool for_work)
{
    uint64_t until_ms = clock_mono_ms() + ms;
    while (!i->ending && !(for_work && i->woken) && thread_wait(&i->changed, &i->lock, until_ms))
        continue;
}

static void wait_for_work(struct indexer *i)
{
    pthread_mutex_lock(&i->lock);
    if (i->last == FOLLOWER_WAIT)
        wait_ms(i, FAILED_WAIT_MS, false);
    else if (i->last == FOLLOWER_IDLE && !i->verified)
        wait_ms(i, QUIET_MS, true);
    while (i->last == FOLLOWER_IDLE && i->verified && !i->woken && !i->ending)
        pthread_cond_wait(&i->changed, &i->lock);
    i->quiet = i->last == FOLLOWER_IDLE && !i->woken;
    i->woken = false;
    pthread_mutex_unlock(&i->lock);
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

static void *work(void *arg)
{
    struct indexer *i = arg;
    pthread_setname_np(pthread_self(), "indexer");
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE); /* of this thread */
    i->last = FOLLOWER_MORE;
    while (!is_ending(i)) {
        i->last = follower_step(i->follower);
        log_if_failed(i, i->last);
        wait_for_work(i);
        if (i->quiet && !i->verified)
            verify(i);
    }
    return NULL;
}

/* ---- the writer's loop ---- */

void indexer_wake(struct indexer *i)
{
    pthread_mutex_lock(&i->lock);
    i->woken = true;
    pthread_cond_signal(&i->changed);
    pthread_mutex_unlock(&i->lock);
}

int indexer_fd(const struct indexer *i)
{
    return i->event_fd;
}

bool indexer_take(struct indexer *i, struct store_change *out)
{
    eventfd_t count;
    eventfd_read(i->event_fd, &count);
    pthread_mutex_lock(&i->lock);
    bool waits = i->state == NOTE_WAITS;
    if (waits) {
        i->state = NOTE_TAKEN;
        *out = i->note;
    }
    pthread_mutex_unlock(&i->lock);
    return waits;
}

void indexer_noted(struct indexer *i, enum store_status status)
{
    pthread_mutex_lock(&i->lock);
    i->noted = status;
    i->state = NOTE_DONE;
    pthread_cond_signal(&i->changed);
    pthread_mutex_unlock(&i->lock);
}

/* ---- life ---- */

static bool start(struct indexer *i, struct store *store)
{
    char why[512] = "out of memory";
    i->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool good = i->event_fd >= 0 && store_share(store, &i->store, why, sizeof(why)) == STORE_OK &&
                (i->follower = follower_new(i->store, carry_out, wanted, i)) != NULL;
    int failed = good ? thread_start(&i->id, work, i) : 0;
    if (good && failed == 0)
        return true;
    log_error("the indexer cannot start: %s", failed != 0 ? strerror(failed) : why);
    return false;
}

static void free_parts(struct indexer *i)
{
    follower_free(i->follower);
    store_close(i->store);
    if (i->event_fd >= 0)
        close(i->event_fd);
    pthread_cond_destroy(&i->changed);
    pthread_mutex_destroy(&i->lock);
    free(i);
}

struct indexer *indexer_new(struct store *store)
{
    struct indexer *i = calloc(1, sizeof(*i));
    if (i == NULL) {
        log_error("the indexer cannot start: %s", strerror(errno));
        return NULL;
    }
    thread_condition(&i->changed);
    pthread_mutex_init(&i->lock, NULL);
    if (start(i, store))
        return i;
    free_parts(i);
    return NULL;
}

void indexer_free(struct indexer *i)
{
    if (i == NULL)
        return;
    pthread_mutex_lock(&i->lock);
    i->ending = true;
    pthread_cond_signal(&i->changed);
    pthread_mutex_unlock(&i->lock);
    pthread_join(i->id, NULL);
    free_parts(i);
}
