/* Changes that records carry out, one file per record type: rows of store/tables.c. */
#ifndef ASSAY_STORE_RECORDS_APPLY_H
#define ASSAY_STORE_RECORDS_APPLY_H

#include "store/engine/layers.h"

apply_fn workspace_create, workspace_delete;
apply_fn key_create, key_revoke, key_rotate, key_touch;
apply_fn report_create, report_update, report_delete, report_finish, report_died;
apply_fn project_delete;
apply_fn purge_batch, purge_deleted;
apply_fn agent_create, agent_update, agent_delete;
apply_fn visitor_init, visitor_erase;
apply_fn message_post, message_reply, note_post, conversation_set;
apply_fn lead_put, events_put, rating_put, retain_batch;
apply_fn sync_put, coupons_put, pending_coupon_add, answers_note;
apply_fn signing_keys_put;

#endif
