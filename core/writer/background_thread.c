#include "core/writer/background_thread.h"

#include "core/base/log.h"
#include "core/shm/scoreboard.h"
#include "core/base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define END_MS 2000 /* for the end of a step */

/* ---- in the thread ---- */

void background_thread_configure(const char *name, int nice)
{
    pthread_setname_np(pthread_self(), name);
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), nice); /* of this thread alone */
}

struct store_answer background_thread_apply(struct background_thread *t,
                                            const struct store_change *change)
{
    struct store_answer answer = {.status = STORE_BUSY};
    pthread_mutex_lock(&t->lock);
    t->change = *change;
    t->state = HANDOVER_WAITS;
    eventfd_write(t->event_fd, 1);
    while (t->state != HANDOVER_DONE && !(t->ending && t->state == HANDOVER_WAITS))
        pthread_cond_wait(&t->changed, &t->lock);
    if (t->state == HANDOVER_DONE)
        answer = t->answer;
    t->state = HANDOVER_NONE;
    pthread_mutex_unlock(&t->lock);
    return answer;
}

bool background_thread_wait(struct background_thread *t, uint64_t ms)
{
    uint64_t until_ms = ms == UINT64_MAX ? ms : clock_mono_ms() + ms;
    bool in_time = true;
    pthread_mutex_lock(&t->lock);
    while (!t->ending && !t->woken && in_time) {
        if (ms == UINT64_MAX)
            pthread_cond_wait(&t->changed, &t->lock);
        else
            in_time = thread_wait(&t->changed, &t->lock, until_ms);
    }
    bool woken = t->woken;
    t->woken = false;
    pthread_mutex_unlock(&t->lock);
    return woken;
}

bool background_thread_is_ending(struct background_thread *t)
{
    pthread_mutex_lock(&t->lock);
    bool yes = t->ending;
    pthread_mutex_unlock(&t->lock);
    return yes;
}

bool background_thread_interrupted(struct background_thread *t)
{
    pthread_mutex_lock(&t->lock);
    bool yes = t->woken || t->ending;
    pthread_mutex_unlock(&t->lock);
    return yes;
}

/* ---- in the loop ---- */

void background_thread_wake(struct background_thread *t)
{
    pthread_mutex_lock(&t->lock);
    t->woken = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

bool background_thread_take(struct background_thread *t, struct store_change *out)
{
    eventfd_t count;
    eventfd_read(t->event_fd, &count);
    pthread_mutex_lock(&t->lock);
    bool waits = t->state == HANDOVER_WAITS;
    if (waits) {
        t->state = HANDOVER_TAKEN;
        *out = t->change;
    }
    pthread_mutex_unlock(&t->lock);
    return waits;
}

void background_thread_done(struct background_thread *t, const struct store_answer *answer)
{
    pthread_mutex_lock(&t->lock);
    t->answer = *answer;
    t->state = HANDOVER_DONE;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* ---- life ---- */

bool background_thread_open(struct background_thread *t, struct store *store, const char *what)
{
    char why[512];
    thread_condition(&t->changed);
    pthread_mutex_init(&t->lock, NULL);
    t->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    snprintf(why, sizeof(why), "%s", strerror(errno));
    if (t->event_fd >= 0 && store_share(store, &t->store, why, sizeof(why)) == STORE_OK)
        return true;
    log_error("%s cannot start: %s", what, why);
    return false;
}

static void *run(void *arg)
{
    struct background_thread *t = arg;
    t->work(t->arg);
    pthread_mutex_lock(&t->lock);
    t->ended = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

bool background_thread_start(struct background_thread *t, const char *what, void (*work)(void *),
                             void *arg)
{
    t->work = work;
    t->arg = arg;
    int failed = thread_start(&t->id, run, t);
    t->running = failed == 0;
    if (failed != 0)
        log_error("%s cannot start: %s", what, strerror(failed));
    return t->running;
}

bool background_thread_end(struct background_thread *t)
{
    uint64_t until_ms = clock_mono_ms() + END_MS;
    if (!t->running)
        return true;
    pthread_mutex_lock(&t->lock);
    t->ending = true;
    pthread_cond_signal(&t->changed);
    while (!t->ended && thread_wait(&t->changed, &t->lock, until_ms))
        continue;
    bool ended = t->ended;
    pthread_mutex_unlock(&t->lock);
    if (ended)
        pthread_join(t->id, NULL);
    t->running = !ended;
    return ended;
}

void background_thread_free(struct background_thread *t)
{
    store_close(t->store);
    if (t->event_fd >= 0)
        close(t->event_fd);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
}
