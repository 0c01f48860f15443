/* Heads of reports. Their changes: apply.h; their results: result.h; their jobs: job.h. */
#ifndef ASSAY_STORE_RECORDS_REPORT_H
#define ASSAY_STORE_RECORDS_REPORT_H

#include "store/engine/txn.h"

/*
 * report_load(t, id, out): a copy that later writes do not change, also of a report whose project
 * or workspace is being deleted. report_active(t, r): neither is being deleted.
 */
enum store_status report_load(struct store_txn *t, uint64_t id, struct store_report *out);
bool report_active(struct store_txn *t, const struct store_report *r);

/* report_results(s, txn, r): set r->results; there may be none. */
enum store_status report_results(struct store *s, MDB_txn *txn, struct store_report *r);

/*
 * report_write(t, r): the head alone. report_replace(t, old, new): version, time, head, index and
 * counters of a changed report.
 */
void report_write(struct store_txn *t, const struct store_report *r);
void report_replace(struct store_txn *t, const struct store_report *old, struct store_report *new);

/* report_remove(t, r): head, results, index and job. The caller updates the counters. */
void report_remove(struct store_txn *t, const struct store_report *r);

#endif
