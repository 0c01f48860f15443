/*
 * For tests of the store: random changes of every kind, to four workspaces with an agent each. A
 * seed makes them repeatable but for the ids of agents and visitors.
 */
#ifndef ASSAY_T_STORE_RANDOM_KIT_H
#define ASSAY_T_STORE_RANDOM_KIT_H

#include "t/kit/store_widget.h"

extern uint64_t random_seed;

/* A fixture: a store with small segments, in ${kit}; at its end it must be consistent. */
void random_begin(void);
void random_end(void);

/* random_below(n): a number from 0 to n - 1. */
unsigned random_below(unsigned n);

/*
 * random_act(): a few changes of one kind. random_background(): some background work, interrupted.
 * Not within a batch.
 */
void random_act(void);
void random_background(void);

/* random_agent(i): the i-th agent; the first one's shop syncs pages. */
const struct ulid *random_agent(unsigned i);

#endif
