/*
 * Callers that send requests in a loop while a test changes the server. Each request must get the
 * expected answer.
 */
#ifndef ASSAY_T_LOAD_KIT_H
#define ASSAY_T_LOAD_KIT_H

#include "t/kit/harness.h"

#include <pthread.h>
#include <stdatomic.h>

struct load {
    bool fresh;  /* a new connection for each request */
    bool writes; /* a report is made (202), instead of listed (200) */
    /* filled in */
    pthread_t thread;
    const struct server *server;
    atomic_uint done;
    char *failure;
};

/*
 * load_start(s, loads, count): one thread each. load_end: stop them; each must have been answered
 * at least ${least} times, all as it should.
 */
void load_start(const struct server *s, struct load *loads, size_t count);
void load_end(struct load *loads, size_t count, unsigned least);

#endif
