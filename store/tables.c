#include "store/engine/check.h"
#include "store/engine/layers.h"
#include "store/index/apply.h"
#include "store/index/check.h"
#include "store/records/apply.h"
#include "store/records/checks.h"
#include "store/records/records.h"

/*
 * Tables that the engine reads: the layers that stand on it, changes and checks. Adding a change or
 * a check is adding a line.
 */

extern const struct layer index_layer, records_layer, answers_layer;

/* In the order in which they write at a commit. */
const struct layer *const layers[] = {&index_layer, &records_layer, &answers_layer, NULL};

const struct change_row change_rows[CHANGE_KINDS] = {
    [CHANGE_WORKSPACE_CREATE] = {workspace_create, false, false, false},
    [CHANGE_WORKSPACE_DELETE] = {workspace_delete, false, false, false},
    [CHANGE_KEY_CREATE] = {key_create, false, false, false},
    [CHANGE_KEY_REVOKE] = {key_revoke, false, false, false},
    [CHANGE_KEY_ROTATE] = {key_rotate, false, false, false},
    [CHANGE_KEY_TOUCH] = {key_touch, false, false, false},
    [CHANGE_REPORT_CREATE] = {report_create, false, false, false},
    [CHANGE_REPORT_UPDATE] = {report_update, false, false, false},
    [CHANGE_REPORT_DELETE] = {report_delete, false, false, false},
    [CHANGE_REPORT_FINISH] = {report_finish, false, false, false},
    [CHANGE_REPORT_DIED] = {report_died, false, false, false},
    [CHANGE_PROJECT_DELETE] = {project_delete, false, false, false},
    [CHANGE_PURGE] = {purge_batch, true, true, false},
    [CHANGE_AGENT_CREATE] = {agent_create, false, false, false},
    [CHANGE_AGENT_UPDATE] = {agent_update, false, false, false},
    [CHANGE_AGENT_DELETE] = {agent_delete, false, false, false},
    [CHANGE_VISITOR_INIT] = {visitor_init, false, false, false},
    [CHANGE_VISITOR_ERASE] = {visitor_erase, false, false, false},
    [CHANGE_MESSAGE_POST] = {message_post, false, false, false},
    [CHANGE_MESSAGE_REPLY] = {message_reply, false, false, false},
    [CHANGE_NOTE] = {note_post, false, false, false},
    [CHANGE_CONVERSATION_SET] = {conversation_set, false, false, false},
    [CHANGE_LEAD] = {lead_put, false, false, false},
    [CHANGE_EVENTS] = {events_put, false, false, false},
    [CHANGE_RATING] = {rating_put, false, false, false},
    [CHANGE_RETAIN] = {retain_batch, true, true, false},
    [CHANGE_SYNC] = {sync_put, false, false, false},
    [CHANGE_COUPONS] = {coupons_put, false, false, false},
    [CHANGE_COUPON_PENDING] = {pending_coupon_add, false, false, false},
    [CHANGE_SIGNING_KEYS] = {signing_keys_put, false, false, false},
    [CHANGE_ANSWERS] = {answers_note, false, true, true},
    [CHANGE_PURGE_DELETED] = {purge_deleted, true, true, false},
    [CHANGE_INDEX_INSTALL] = {index_install, false, false, true},
    [CHANGE_INDEX_LOST] = {index_lost, false, false, true},
    [CHANGE_INDEX_SWEEP] = {index_sweep, true, true, true},
};

const struct check_row check_rows[] = {
    {SPACE_WORKSPACE, check_workspace, "the workspaces"},
    {SPACE_WORKSPACE_NAME, check_workspace_name, "the names of workspaces"},
    {SPACE_KEY, check_key, "the keys"},
    {SPACE_KEY_ID, check_key_id, "the ids of keys"},
    {SPACE_KEY_WORKSPACE, check_key_workspace, "the keys of workspaces"},
    {SPACE_PROJECT, check_project, "the projects"},
    {SPACE_PROJECT_NAME, check_project_name, "the names of projects"},
    {SPACE_PROJECT_DATE, check_project_date, "the dates of projects"},
    {SPACE_REPORT, check_report, "the reports"},
    {SPACE_JOB, check_job, "the jobs"},
    {SPACE_RESULT, check_result, "the results"},
    {SPACE_GRADING, check_grading, "the gradings"},
    {SPACE_LOG, check_log, "the logs of indexes"},
    {SPACE_INDEX, check_index_record, "the manifests of indexes"},
    {SPACE_SEGMENT, check_segment_row, "the segments of indexes"},
    {SPACE_BASE, check_base, "the bases of indexes"},
    {SPACE_INDEX_DUE, check_index_due, "the list of due indexes"},
    {SPACE_DELETING, check_deleting, "the pending deletions"},
    {SPACE_IDEM, check_idem, "the Idempotency-Keys"},
    {SPACE_IDEM_AGE, check_idem_age, "the ages of Idempotency-Keys"},
    {SPACE_SENDER, check_sender, "the answers of senders"},
    {SPACE_AGENT, check_agent, "the agents"},
    {SPACE_VISITOR, check_visitor, "the visitors"},
    {SPACE_VISITOR_SECRET, check_visitor_secret, "the secrets of visitors"},
    {SPACE_CONVERSATION, check_conversation, "the conversations"},
    {SPACE_MESSAGE, check_message, "the messages"},
    {SPACE_NOTE, check_note, "the notes"},
    {SPACE_ONCE, check_once, "the client keys"},
    {SPACE_LEAD, check_lead, "the leads"},
    {SPACE_LEAD_EMAIL, check_lead_email, "the addresses of leads"},
    {SPACE_EVENT, check_event, "the events"},
    {SPACE_RATING, check_rating, "the ratings"},
    {SPACE_LIST_ENTRY, check_list_entry, "the lists of chat records"},
    {SPACE_ERASING, check_erasing, "the pending erasures"},
    {SPACE_COLLECTION, check_collection, "the collections"},
    {SPACE_COLLECTION_NAME, check_collection_name, "the names of collections"},
    {SPACE_GENERATION, check_generation, "the generations of syncs"},
    {SPACE_GENERATION_ID, check_generation_id, "the ids of generations"},
    {SPACE_ITEM, check_item, "the synced items"},
    {SPACE_DOCUMENT, check_document, "the documents"},
    {SPACE_ANSWERS, check_answers, "the last changes of documents"},
    {SPACE_ANSWER_FILE, check_answer_file, "the records of answer files"},
    {SPACE_ANSWERS_LOG, check_answers_log, "the log of changed documents"},
    {SPACE_UNSEEN, check_unseen, "the pending deletions of syncs"},
    {SPACE_COUPON, check_coupon, "the coupons"},
    {SPACE_PENDING_COUPONS, check_pending_coupons, "the pending coupons"},
    {SPACE_SYNC_ONCE, check_sync_once, "the keys of syncs"},
    {0},
};

const struct check_stage check_stages[] = {
    {check_index, "the indexes of reports"},
    {check_unindexed_count, NULL},
    {NULL, NULL},
};
