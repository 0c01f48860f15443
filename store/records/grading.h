/* Gradings of reports: the history that store/grading.h describes. */
#ifndef ASSAY_STORE_RECORDS_GRADING_H
#define ASSAY_STORE_RECORDS_GRADING_H

#include "store/engine/txn.h"

#define GRADING_OF_RECORD 1 /* the number of a grading that has no row */

/*
 * grading_put(t, r, c): add the row of the grading whose end is ${r}, and delete the oldest row if
 * there is one too many. ${c}: its facts and failed ids.
 * grading_keep(t, old): add a row of the grading of ${old}, if the report has a score and no rows.
 * grading_drop_all(t, report): delete all rows of a report.
 */
void grading_put(struct store_txn *t, const struct store_report *r, const struct store_change *c);
void grading_keep(struct store_txn *t, const struct store_report *old);
void grading_drop_all(struct store_txn *t, uint64_t report);

/*
 * grading_well_formed(c): are the facts and failed ids of a CHANGE_REPORT_FINISH as allowed?
 * grading_bytes(c): the most bytes that its row and that of grading_keep have.
 */
bool grading_well_formed(const struct store_change *c);
size_t grading_bytes(const struct store_change *c);

/* grading_look(k, v, out): read a row; its texts are borrowed. False: it is malformed. */
bool grading_look(MDB_val k, MDB_val v, struct store_grading *out);

#endif
