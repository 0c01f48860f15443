/* Threads: their start, and conditions that are waited for with a time. */
#ifndef ASSAY_BASE_THREAD_H
#define ASSAY_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * thread_start(id, work, arg): all signals are blocked, which are the loop's, but for those that
 * the thread itself causes; 0, or an errno.
 */
int thread_start(pthread_t *id, void *(*work)(void *), void *arg);

/*
 * thread_condition(c): initialize ${c} for thread_wait, which no step of the clock changes.
 * thread_wait(c, lock, until_ms): false: ${until_ms} (CLOCK_MONOTONIC) has come.
 */
void thread_condition(pthread_cond_t *c);
bool thread_wait(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t until_ms);

#endif
