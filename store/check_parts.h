/*
 * The parts of store_check. Private to store/.
 */
#ifndef ASSAY_STORE_CHECK_PARTS_H
#define ASSAY_STORE_CHECK_PARTS_H

#include "store/index/view.h"

struct check {
    struct store *s;
    MDB_txn *txn; /* the snapshot of the present slice: everything in it must agree */
    struct counters_record counters;
    store_progress_fn *progress;
    store_problem_fn *problem;
    void *arg;
    uint64_t done, total, problems;
    bool stopped, records_only;
    uint64_t log_workspace,
        log_next; /* of the record of a log that should come next, and what the log has held before it */
    struct log_head log_head;
    uint64_t unreadable; /* the workspace whose index could not be read last */
};

void check_say(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* check_get(c, space, key, out): false when it is not there; a failure of the disk is said as a problem. */
bool check_get(struct check *c, enum space space, struct key *key, MDB_val *out);
/* check_step(c, n): ${n} more records were looked at. */
void check_step(struct check *c, uint64_t n);

/* Each looks at the record the walk stands on. */
typedef void check_fn(struct check *c, const struct walk *w);
check_fn check_workspace, check_workspace_name, check_key, check_key_id, check_key_workspace,
    check_project, check_project_name, check_project_date;
check_fn check_report, check_job, check_result, check_log, check_index_record, check_segment_row,
    check_base, check_index_due, check_dying, check_idem, check_idem_age, check_channel;
check_fn check_agent, check_visitor, check_visitor_secret, check_conversation, check_message,
    check_note, check_once, check_lead, check_lead_email, check_event, check_rating,
    check_listed_row, check_erasing;
check_fn check_collection, check_collection_name, check_generation, check_generation_id, check_item,
    check_document, check_unseen, check_coupon, check_staged, check_sync_once, check_answers,
    check_answers_log;

/*
 * check_document_change(c, d): its last change is in the log or was indexed.
 * check_unindexed_count(c): the counter against the log.
 */
struct store_synced;
void check_document_change(struct check *c, const struct store_synced *d);
enum store_status check_unindexed_count(struct check *c);

/* check_renew(c): a new snapshot. check_view(c, workspace): its index there; NULL when it cannot be read, which is said once, or is being rebuilt. */
enum store_status check_renew(struct check *c);
struct view *check_view(struct check *c, uint64_t workspace);

/* check_index(c): each row of each workspace's index against its head, and each segment in itself. In slices of its own. */
enum store_status check_index(struct check *c);

/* report_at(c, id, out): a report's head. */
bool check_report_at(struct check *c, uint64_t id, struct store_report *out);

#endif
