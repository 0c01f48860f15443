/*
 * A worker process: one libh2o event loop that accepts connections, answers requests, reads the
 * store and sends every change to the writer. Query threads and thread pools run beside the loop.
 */
#ifndef ASSAY_WORKER_WORKER_H
#define ASSAY_WORKER_WORKER_H

struct process;

/* worker_run(p): run until the worker is drained; the exit status. */
int worker_run(struct process *p);

#endif
