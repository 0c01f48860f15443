/*
 * A commit and what follows it: answers to the callers, events to the workers, jobs to the queue,
 * results that did not fit into the store to the deferred results.
 */
#ifndef ASSAY_WRITER_COMMIT_H
#define ASSAY_WRITER_COMMIT_H

#include "core/writer/change_feed.h"

struct committer {
    struct process *process;
    struct store *store;
    struct batch *batch;
    struct clients *clients;
    struct sequences *sequences;
    struct deferred_results *deferred;
    struct change_feed *change_feed;
    struct writer_maintenance *maintenance;
    const struct leading *leading;
    uint64_t full_logged_ms;
    uint64_t wait_until_ms; /* deletes of this batch wait for free pages */
};

/*
 * commit_batch(c): apply the rest of the batch, commit it and answer it; the batch is empty then.
 * When a change fails, the batch is undone and applied in smaller parts, so that a failed change
 * undoes only itself. Exits EXIT_START when the store cannot be written: what was
 * answered is durable, what was not is sent again to the next writer.
 */
void commit_batch(struct committer *c);

#endif
