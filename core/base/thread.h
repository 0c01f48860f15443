/* Threads, and waiting for a condition with a deadline. */
#ifndef ASSAY_BASE_THREAD_H
#define ASSAY_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * thread_start(id, work, arg): start a thread that blocks all signals except those for its own
 * faults; the loop's thread handles the others. 0, or an errno.
 */
int thread_start(pthread_t *id, void *(*work)(void *), void *arg);

/*
 * thread_condition(c): initialize ${c} for thread_wait.
 * thread_wait(c, lock, until_ms): false: the deadline ${until_ms} (CLOCK_MONOTONIC) has passed.
 */
void thread_condition(pthread_cond_t *c);
bool thread_wait(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t until_ms);

#endif
