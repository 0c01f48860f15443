/*
 * List entries: each record of the chat has an entry in every scope it belongs to: its workspace,
 * its agent, its visitor. Entries are in the order of their ids, which is the order of time. A
 * class narrows a list (conversations: status + 1); class 0 has all. Deleting a scope finds its
 * records by the entries.
 */
#ifndef ASSAY_STORE_LIST_ENTRIES_H
#define ASSAY_STORE_LIST_ENTRIES_H

#include "store/engine/cursor.h"
#include "store/engine/txn.h"

enum listed_kind {
    LISTED_AGENT = 1,
    LISTED_VISITOR, /* in the agent's scope alone */
    LISTED_CONVERSATION,
    LISTED_LEAD,
    LISTED_EVENT,
    LISTED_RATING,
    LISTED_KINDS
};

/* scope_of_workspace(id): a workspace as a scope; no ULID has this value, since ULIDs have a time. */
struct ulid scope_of_workspace(uint64_t workspace);

void listed_prefix(struct key *k, enum listed_kind kind, const struct ulid *scope, unsigned class);
void listed_put(struct store_txn *t, enum listed_kind kind, const struct ulid *scope,
                unsigned class, const struct ulid *id);
void listed_drop(struct store_txn *t, enum listed_kind kind, const struct ulid *scope,
                 unsigned class, const struct ulid *id);

/* listed_everywhere(t, put, …): write or delete its entries of class 0 in all three scopes. */
void listed_everywhere(struct store_txn *t, bool put, enum listed_kind kind, uint64_t workspace,
                       const struct ulid *agent, const struct ulid *visitor,
                       const struct ulid *id);

/* listed_id(w, out): the id of the cursor's entry; false: the entry is malformed. */
bool listed_id(const struct walk *w, struct ulid *out);
/* listed_first(t, kind, scope, out): the first entry of class 0; false: there is none. */
bool listed_first(struct store_txn *t, enum listed_kind kind, const struct ulid *scope,
                  struct ulid *out);

#endif
