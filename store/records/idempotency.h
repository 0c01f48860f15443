/* Idempotency-Keys of requests, kept until they expire. */
#ifndef ASSAY_STORE_RECORDS_IDEMPOTENCY_H
#define ASSAY_STORE_RECORDS_IDEMPOTENCY_H

#include "store/engine/txn.h"

/*
 * idempotency_look(t, c, answer): STORE_NOT_FOUND: a new key. Otherwise the first answer again
 * (answer->replayed is set), or STORE_KEY_REUSED. idempotency_put(t, c, report): remember the key.
 * The _sync ones: for a batch, whose whole answer is kept.
 */
enum store_status idempotency_look(struct store_txn *t, const struct store_change *c,
                                   struct store_answer *answer);
void idempotency_put(struct store_txn *t, const struct store_change *c, uint64_t report);
enum store_status idempotency_look_sync(struct store_txn *t, const struct store_change *c,
                                        struct store_answer *answer);
void idempotency_put_sync(struct store_txn *t, const struct store_change *c,
                          const struct store_answer *answer);

/* idempotency_purge(t, left): delete expired keys, at most ${*left}. */
void idempotency_purge(struct store_txn *t, uint64_t *left);

#endif
