/*
 * Grading results that did not fit into the full store. They are held in memory and applied again
 * when there is space; nobody sends them a second time.
 */
#ifndef ASSAY_WRITER_DEFERRED_RESULTS_H
#define ASSAY_WRITER_DEFERRED_RESULTS_H

#include "core/writer/batch.h"

struct deferred_results {
    struct item *items; /* oldest first */
    size_t count, capacity, bytes;
    size_t retries;       /* how many are tried in one batch: 1 after a failure, then doubling */
    uint64_t retry_at_ms; /* not before */
};

/*
 * deferred_add(d, item): hold this result and take over its payload. False: so much is held already
 * that the result is dropped; the next sweep of the jobs grades its page again.
 */
bool deferred_add(struct deferred_results *d, const struct item *item);

/* deferred_is_due(d): is it time to retry? deferred_retry(d, batch): then add some to the batch. */
bool deferred_is_due(const struct deferred_results *d);
void deferred_retry(struct deferred_results *d, struct batch *batch);

/* deferred_settle(d, full): after a batch; ${full}: results in it did not fit. */
void deferred_settle(struct deferred_results *d, bool full);

/* deferred_has(d, report): is a result of this report held? */
bool deferred_has(const struct deferred_results *d, uint64_t report);

void deferred_free(struct deferred_results *d);

#endif
