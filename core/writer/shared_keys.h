/*
 * The signing keys of a cluster: a sealed row of the store, which all nodes have. Each node keeps
 * them as the file that its workers read (core/auth/signing_keys.h). The first node that leads puts
 * its own file into the store. What fails is logged once and tried again every second.
 */
#ifndef ASSAY_WRITER_SHARED_KEYS_H
#define ASSAY_WRITER_SHARED_KEYS_H

#include "core/auth/signing_keys.h"
#include "core/writer/batch.h"

#define SHARED_KEYS_WHY (SECRETS_PATH + 256)

struct shared_keys {
    struct process *process;
    struct store *store;
    struct batch *batch;
    bool changed; /* the row may be another one than the file */
    bool offers;  /* there may be no row */
    uint64_t install_at_ms, offer_at_ms;
    char logged[SHARED_KEYS_WHY]; /* what the log says; "": nothing is wrong */
};

/*
 * shared_keys_offer(k): this node leads from now on: it makes the row if there is none.
 * shared_keys_step(k): what is to be done; once a turn.
 */
void shared_keys_offer(struct shared_keys *k);
void shared_keys_step(struct shared_keys *k);

#endif
