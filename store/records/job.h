/* Pending jobs: one for each report that waits for grading. */
#ifndef ASSAY_STORE_RECORDS_JOB_H
#define ASSAY_STORE_RECORDS_JOB_H

#include "store/engine/txn.h"

void job_put(struct store_txn *t, uint64_t report, const struct job_record *job);
enum store_status job_load(struct store_txn *t, uint64_t report, struct job_record *out);
void job_drop(struct store_txn *t, uint64_t report);

#endif
