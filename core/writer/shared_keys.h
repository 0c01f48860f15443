/*
 * The signing keys of a cluster: a sealed row of the store, which all nodes have. Each node keeps
 * them as the file that its workers read (core/auth/signing_keys.h). The first node that leads puts
 * its own file into the store.
 */
#ifndef ASSAY_WRITER_SHARED_KEYS_H
#define ASSAY_WRITER_SHARED_KEYS_H

#include "core/writer/batch.h"

struct shared_keys {
    struct process *process;
    struct store *store;
    struct batch *batch;
    bool changed; /* the row may be another one than the file */
};

/*
 * shared_keys_offer(k): this node leads: if there is no row, add the change that makes it.
 * shared_keys_follow(k): if the row has changed, make it the file.
 */
void shared_keys_offer(struct shared_keys *k);
void shared_keys_follow(struct shared_keys *k);

#endif
