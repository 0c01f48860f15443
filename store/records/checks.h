/* Checks of records and of the rows derived from them: rows of store/tables.c. */
#ifndef ASSAY_STORE_RECORDS_CHECKS_H
#define ASSAY_STORE_RECORDS_CHECKS_H

#include "store/engine/check.h"

check_fn check_workspace, check_workspace_name, check_key, check_key_id, check_key_workspace;
check_fn check_project, check_project_name, check_project_date, check_report, check_job;
check_fn check_result, check_grading, check_deleting, check_idem, check_idem_age, check_sender;
check_fn check_agent, check_visitor, check_visitor_secret, check_conversation, check_message;
check_fn check_note, check_once, check_lead, check_lead_email, check_event, check_rating;
check_fn check_list_entry, check_erasing;
check_fn check_collection, check_collection_name, check_generation, check_generation_id;
check_fn check_item, check_document, check_unseen, check_coupon, check_pending_coupons,
    check_sync_once;
check_fn check_answers, check_answer_file, check_answers_log;

/*
 * check_document_change(c, d): the last change of ${d} is in the log of changes, or was indexed.
 * check_unindexed_count(c): the counter of that log.
 */
void check_document_change(struct check *c, const struct store_synced *d);
enum store_status check_unindexed_count(struct check *c);

#endif
