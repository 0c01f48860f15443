/* Chat agents. */
#ifndef ASSAY_STORE_RECORDS_AGENT_H
#define ASSAY_STORE_RECORDS_AGENT_H

#include "store/engine/txn.h"

bool schema_read_agent(MDB_val value, struct store_agent *out);

/* agent_read(s, txn, id, out): one whose workspace is not being deleted; borrowed. */
enum store_status agent_read(struct store *s, MDB_txn *txn, const struct ulid *id,
                             struct store_agent *out);

/* agent_of_workspace(t, c): does the agent of a change exist, in the change's workspace? */
enum store_status agent_of_workspace(struct store_txn *t, const struct store_change *c);

/* agent_language(a): the tag of its default language, borrowed from ${a}; empty: none. */
struct str agent_language(const struct store_agent *a);

#endif
