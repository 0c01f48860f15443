/* The writer process: the only process that changes the store. */
#ifndef ASSAY_WRITER_WRITER_H
#define ASSAY_WRITER_WRITER_H

struct process;

/* writer_run(p): the life of the process; its exit status. */
int writer_run(struct process *p);

#endif
