/*
 * A worker process: one libh2o event loop that accepts connections, answers requests, reads the
 * store itself and sends every change to the writer. Query threads and thread pools run beside it.
 */
#ifndef ASSAY_WORKER_WORKER_H
#define ASSAY_WORKER_WORKER_H

struct process;

/* worker_run(p): the life of the process; its exit status. */
int worker_run(struct process *p);

#endif
