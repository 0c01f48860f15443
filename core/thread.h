/* The start of a thread. */
#ifndef ASSAY_THREAD_H
#define ASSAY_THREAD_H

#include <pthread.h>

/* thread_start(id, work, arg): with all signals blocked, which are the loop's; 0, or an errno. */
int thread_start(pthread_t *id, void *(*work)(void *), void *arg);

#endif
