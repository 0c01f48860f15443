/* Projects. */
#ifndef ASSAY_STORE_RECORDS_PROJECT_H
#define ASSAY_STORE_RECORDS_PROJECT_H

#include "store/records/cached_records.h"

/*
 * project_read(s, txn, workspace, id, out, counts): one that is not being deleted; ${counts},
 * unless NULL: its reports by result.
 */
enum store_status project_read(struct store *s, MDB_txn *txn, uint64_t workspace, uint64_t id,
                               struct store_project *out, struct counts *counts);

/* project_for(t, workspace, name): the project of that name, created if necessary. */
struct cached_record *project_for(struct store_txn *t, struct cached_record *workspace,
                                  struct str name);

/* project_unlist(t, p): delete its rows in name and date. */
void project_unlist(struct store_txn *t, struct cached_record *p);

/*
 * project_count(t, workspace, project, old, new): update the counters of both when the report
 * ${old} becomes ${new}; NULL: it did not exist, or is deleted. The workspace's version always
 * changes, the project's and its updated_at if its own counters do.
 */
void project_count(struct store_txn *t, struct cached_record *workspace,
                   struct cached_record *project, const struct store_report *old,
                   const struct store_report *new);

#endif
