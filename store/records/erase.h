/*
 * Erasing everything of a visitor, an agent or a workspace: a scope is marked and its records are
 * deleted in batches.
 */
#ifndef ASSAY_STORE_RECORDS_ERASE_H
#define ASSAY_STORE_RECORDS_ERASE_H

#include "store/engine/txn.h"

/* erase_mark(t, scope): delete all records listed under ${scope}, in later batches. */
void erase_mark(struct store_txn *t, const struct ulid *scope);

/*
 * At most ${*left} records each. erase_scope(t, scope, left): of one scope; true: nothing is left.
 * erase_workspace(t, workspace, left): of all agents of a workspace. erase_batch(t, left): of the
 * marked scopes.
 */
bool erase_scope(struct store_txn *t, const struct ulid *scope, uint64_t *left);
void erase_workspace(struct store_txn *t, uint64_t workspace, uint64_t *left);
void erase_batch(struct store_txn *t, uint64_t *left);

#endif
