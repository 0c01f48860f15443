/* Checks of the index of reports. For records/ and store/tables.c. */
#ifndef ASSAY_STORE_INDEX_CHECK_H
#define ASSAY_STORE_INDEX_CHECK_H

#include "store/engine/check.h"

check_fn check_log, check_index_record, check_segment_row, check_base, check_index_due;

/*
 * check_index_snapshot(c, workspace): the index of a workspace; NULL: it cannot be read, which is
 * reported once, or it is being rebuilt.
 */
struct index_snapshot *check_index_snapshot(struct check *c, uint64_t workspace);

/* check_index_row(c, r): the index has the head ${r}, with the same columns. */
void check_index_row(struct check *c, const struct store_report *r);

/* check_index(c): each row of each index against its head, and each segment in itself. */
enum store_status check_index(struct check *c);

#endif
