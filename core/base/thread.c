#include "core/base/thread.h"

#include <signal.h>
#include <time.h>

int thread_start(pthread_t *id, void *(*work)(void *), void *arg)
{
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(id, NULL, work, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

void thread_condition(pthread_cond_t *c)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(c, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool thread_wait(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t until_ms)
{
    const struct timespec until = {(time_t)(until_ms / 1000), (long)(until_ms % 1000) * 1000000};
    return pthread_cond_timedwait(c, lock, &until) == 0;
}
