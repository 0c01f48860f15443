/*
 * Re-rating: a report's result follows from its score by the thresholds of the configuration. When
 * they change, the writer reads every head once more, a batch per transaction. The position is
 * stored with the thresholds, so that the work continues after a restart.
 */
#ifndef ASSAY_STORE_RECORDS_THRESHOLDS_H
#define ASSAY_STORE_RECORDS_THRESHOLDS_H

#include "store/engine/txn.h"

/*
 * thresholds_step(t): re-rate one batch; false: all results follow the thresholds, or it must wait.
 */
bool thresholds_step(struct store_txn *t);

/* thresholds_result(s, score, sent): the result; ${sent}, if the store has no thresholds. */
enum report_result thresholds_result(const struct store *s, int score, enum report_result sent);

/* thresholds_progress(s, txn, after): the last id that was re-rated; false: all are. */
bool thresholds_progress(struct store *s, MDB_txn *txn, uint64_t *after);

/* thresholds_failed(t): a transaction that re-rated failed: wait for a minute. */
void thresholds_failed(struct store_txn *t);

#endif
