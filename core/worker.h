/*
 * A worker: one event loop, its requests, its view of the store. See worker.c.
 */
#ifndef ASSAY_WORKER_H
#define ASSAY_WORKER_H

#include <stdbool.h>

struct worker;

/* worker_ready(worker): its store is open and it does not drain. */
bool worker_ready(const struct worker *worker);

#endif
