/*
 * The event loop of a worker and the state that all parts on it share: the clock, the
 * configuration, the loop's reader of the store, and whether the worker drains. One per worker;
 * only its thread uses it.
 */
#ifndef ASSAY_LOOP_LOOP_H
#define ASSAY_LOOP_LOOP_H

#include "core/process/process.h"
#include "store/store.h"

#include <h2o.h>

#define LOOP_ID_BYTES 32

struct loop {
    struct process *process;
    const struct conf *conf;
    struct store *store;
    h2o_globalconf_t config;
    h2o_context_t ctx;
    uint64_t now_ms;        /* CLOCK_MONOTONIC, read once a turn and at the start of each request */
    bool draining;          /* no new connections; responses have Connection: close */
    bool stopping;          /* draining, and idle connections are closed soon */
    bool sent;              /* something was sent in this turn */
    char id[LOOP_ID_BYTES]; /* the last request id: a random half and a counter, in hex */
};

/* loop_read_clock(l): set now_ms; after the loop may have slept. */
static inline void loop_read_clock(struct loop *l)
{
    l->now_ms = clock_mono_ms();
}

/* loop_start_ids(l): choose the random half. False with errno. */
bool loop_start_ids(struct loop *l);

/* loop_next_id(l): a request id, unique over all workers; borrowed until the next call. */
struct str loop_next_id(struct loop *l);

#endif
