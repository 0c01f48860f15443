/*
 * The verifier: a thread that hashes the rows of the store after an entry without rows, to compare
 * nodes. The loop waits some microseconds, until the thread has its snapshot.
 *
 *   loop:   commits the entry, calls verifier_start, continues when the snapshot is taken
 *   thread: hashes the snapshot, calls log_thread_hash
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
 * verifier_start(v, log, position): hashes the store, which is at ${position}. Does nothing while
 * an
 * earlier hash is computed. verifier_step(v): frees an ended thread; call it once a turn.
 * verifier_end(v): ends the thread. False: it did not end in time; call _exit.
 */
void verifier_start(struct verifier *v, struct log_thread *log,
                    const struct store_position *position);
void verifier_step(struct verifier *v);
bool verifier_end(struct verifier *v);

#endif
