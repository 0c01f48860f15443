/*
 * Records of workspaces and projects that a write transaction changes: read once and written once,
 * by the commit, so that 64 creates in one project write its record once. The writer.
 */
#ifndef ASSAY_STORE_RECORDS_CACHED_RECORDS_H
#define ASSAY_STORE_RECORDS_CACHED_RECORDS_H

#include "store/engine/txn.h"

struct cached_record {
    struct cached_record *next;
    enum space space; /* SPACE_WORKSPACE or SPACE_PROJECT */
    uint64_t id;
    bool dirty, gone;
    struct workspace_record workspace;
    struct project_record project;
    struct str name;
    char name_bytes[NAME_MAX_BYTES];
};

/*
 * txn_workspace(t, id), txn_project(t, id): the cached record, also one that is being deleted;
 * NULL if there is none or after an error. The _living ones: NULL also if it is being deleted or
 * belongs to another workspace.
 */
struct cached_record *txn_workspace(struct store_txn *t, uint64_t id);
struct cached_record *txn_project(struct store_txn *t, uint64_t id);
struct cached_record *txn_workspace_active(struct store_txn *t, uint64_t id);
struct cached_record *txn_project_active(struct store_txn *t, uint64_t workspace, uint64_t id);

/* txn_made(t, space, id, name): a new record, dirty, zero except for id, name and times. */
struct cached_record *txn_made(struct store_txn *t, enum space space, uint64_t id, struct str name);

/*
 * txn_changed(t, c): the commit writes it. A project's version and updated_at change once per
 * transaction. txn_gone(t, c): delete the record.
 */
void txn_changed(struct store_txn *t, struct cached_record *c);
void txn_gone(struct store_txn *t, struct cached_record *c);

/*
 * cache_write(t): by the commit. cache_clear(t): at its end. cache_free(t): when the writer closes.
 */
void cache_write(struct store_txn *t);
void cache_clear(struct store_txn *t);
void cache_free(struct store_txn *t);

#endif
