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
    bool writes; /* creates a report (202) instead of listing (200) */
    /* filled in by load_start */
    pthread_t thread;
    const struct server *server;
    atomic_uint done;
    char *failure;
};

/*
 * load_start(s, loads, count): starts one thread each. load_end: stops them; each must have at
 * least ${least} answers, all as expected.
 */
void load_start(const struct server *s, struct load *loads, size_t count);
void load_end(struct load *loads, size_t count, unsigned least);

#endif
