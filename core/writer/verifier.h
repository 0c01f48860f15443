/*
 * The verifier: hashes the rows of the store after an entry without rows, for the comparison of
 * nodes. The loop waits until the thread has its snapshot, some microseconds.
 *
 *   loop:   commits the entry, verifier_start, goes on when the snapshot is taken
 *   thread: hash of the snapshot -> log_thread_hash
 */
#ifndef ASSAY_WRITER_VERIFIER_H
#define ASSAY_WRITER_VERIFIER_H

#include "core/writer/log_thread.h"
#include "store/store.h"

struct verifier {
    struct store *store; /* of the loop */
    struct verifying *running;
};

/*
 * verifier_start(v, log, position): the store is at ${position}. While an earlier hash is made,
 * none is. verifier_step(v): free one that has ended; once a turn.
 * verifier_end(v): false: the thread did not end in time, and the process must _exit.
 */
void verifier_start(struct verifier *v, struct log_thread *log,
                    const struct store_position *position);
void verifier_step(struct verifier *v);
bool verifier_end(struct verifier *v);

#endif
