/* Leads: addresses that visitors left. */
#ifndef ASSAY_STORE_RECORDS_LEAD_H
#define ASSAY_STORE_RECORDS_LEAD_H

#include "store/engine/txn.h"

#define LEAD_HASH_BYTES 32
#define LEAD_SENDERS_MAX 8

/* Columns of a lead. ${visitor}: its first sender. ${hash}: of the lower-cased address. */
struct lead_at {
    struct ulid id, agent, visitor;
    uint64_t workspace;
    uint8_t hash[LEAD_HASH_BYTES];
};
bool lead_look(MDB_val value, struct lead_at *out);

/* lead_read(value, senders, out): the whole record; false: it is malformed. */
bool lead_read(MDB_val value, struct store_sender senders[LEAD_SENDERS_MAX],
               struct store_lead *out);

/* lead_said(value, visitor, email, name): what that sender said; false: malformed, or no sender. */
bool lead_said(MDB_val value, const struct ulid *visitor, struct str *email, struct str *name);

/*
 * lead_remove(t, id, scope): what the visitor ${scope} said, and the lead with its last sender;
 * any other scope: the whole lead.
 */
void lead_remove(struct store_txn *t, const struct ulid *id, const struct ulid *scope);

#endif
