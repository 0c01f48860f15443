/*
 * List entries: each record of the chat has an entry in every scope it belongs to: its workspace,
 * its agent, its visitor. Entries are in the order of their ids, which is the order of time. A
 * class narrows a list (conversations: status + 1); class 0 has all. Deleting a scope finds its
 * records by the entries.
 */
#ifndef ASSAY_STORE_RECORDS_LIST_ENTRIES_H
#define ASSAY_STORE_RECORDS_LIST_ENTRIES_H

#include "store/engine/cursor.h"
#include "store/engine/txn.h"

enum list_entry_kind {
    LIST_ENTRY_AGENT = 1,
    LIST_ENTRY_VISITOR, /* in the agent's scope alone */
    LIST_ENTRY_CONVERSATION,
    LIST_ENTRY_LEAD,
    LIST_ENTRY_EVENT,
    LIST_ENTRY_RATING,
    LIST_ENTRY_KINDS
};

/*
 * scope_of_workspace(id): a workspace as a scope; no ULID has this value, since ULIDs have a time.
 */
struct ulid scope_of_workspace(uint64_t workspace);

void list_entry_prefix(struct key *k, enum list_entry_kind kind, const struct ulid *scope,
                       unsigned class);
void list_entry_put(struct store_txn *t, enum list_entry_kind kind, const struct ulid *scope,
                    unsigned class, const struct ulid *id);
void list_entry_drop(struct store_txn *t, enum list_entry_kind kind, const struct ulid *scope,
                     unsigned class, const struct ulid *id);

/* list_entry_everywhere(t, put, …): write or delete its entries of class 0 in all three scopes. */
void list_entry_everywhere(struct store_txn *t, bool put, enum list_entry_kind kind,
                           uint64_t workspace, const struct ulid *agent, const struct ulid *visitor,
                           const struct ulid *id);

/* list_entry_id(w, out): the id of the cursor's entry; false: the entry is malformed. */
bool list_entry_id(const struct cursor *w, struct ulid *out);
/* list_entry_first(t, kind, scope, out): the first entry of class 0; false: there is none. */
bool list_entry_first(struct store_txn *t, enum list_entry_kind kind, const struct ulid *scope,
                      struct ulid *out);

#endif
