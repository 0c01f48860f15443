/*
 * The copy of a store on its way from a node to one that joins, over a channel (FRAME_COPY). Both
 * sides block; neither is called in a loop. The source reads a snapshot, and has one piece at a
 * time in memory.
 *
 *   joiner: COPY ->                           source: PIECE, PIECE, … COPIED ->
 */
#ifndef ASSAY_CLUSTER_STORE_COPY_H
#define ASSAY_CLUSTER_STORE_COPY_H

#include "core/ipc/channel_tls.h"
#include "store/store.h"

#define STORE_COPY_SILENCE_MS 30000 /* a side that waits longer for the other one gives up */
#define STORE_COPY_WHY 512

/* ${done} and ${total} bytes. False: stop. Called at least ten times a second. */
typedef bool store_copy_step_fn(void *arg, uint64_t done, uint64_t total);

/*
 * store_copy_send(c, s, step, arg, why): the whole store, after COPY has arrived.
 * store_copy_receive(c, fd, step, arg, why): send COPY, and write what comes to ${fd}, with fsync.
 * True: it is complete: its length and its hash are those of the source.
 * Both: false: ${why} says why, a sentence without its full stop; "": ${step} returned false.
 */
bool store_copy_send(struct channel *c, struct store *s, store_copy_step_fn *step, void *arg,
                     char why[STORE_COPY_WHY]);
bool store_copy_receive(struct channel *c, int fd, store_copy_step_fn *step, void *arg,
                        char why[STORE_COPY_WHY]);

/* store_copy_refuse(c, why): the source has a reason not to send. */
void store_copy_refuse(struct channel *c, const char *why);

#endif
