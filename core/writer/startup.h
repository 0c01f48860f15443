/* The start of the writer, before its loop. Both calls exit the process when they fail. */
#ifndef ASSAY_WRITER_STARTUP_H
#define ASSAY_WRITER_STARTUP_H

#include "core/process/process.h"

struct store;

/*
 * startup_lock(p): waits for the writer's lock in data_dir, so that two writers never run at once:
 * an earlier writer, also of another master, may still be ending. The lock ends with the process.
 */
void startup_lock(struct process *p);

/* startup_store(p): open the store for writing. */
struct store *startup_store(struct process *p);

#endif
