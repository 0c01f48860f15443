/*
 * The write transaction: one per writer process, on its loop: store_begin, store_apply…,
 * store_commit or store_abort. It keeps its first error, so that reads and puts need no checks in
 * between. What is written once is written by the commit (struct layer).
 *
 * Every key of an open store is put or deleted here. t/unit/store_rows tests that no other file
 * calls LMDB's functions for it, except for format.c, which writes the rows of a new store and the
 * id of a restored one.
 */
#ifndef ASSAY_STORE_ENGINE_TXN_H
#define ASSAY_STORE_ENGINE_TXN_H

#include "store/engine/environment.h"

/* txn_keep_file_ahead(s): make data.mdb long enough for the next transactions. preallocate.c */
void txn_keep_file_ahead(struct store *s);
void txn_free(struct store_txn *t);

/*
 * txn_complete(t): write what is written once, and check that ${t} leaves space. Nothing is written
 * afterwards.
 */
enum store_status txn_complete(struct store_txn *t);

/* txn_fail(t, rc, what): as store_fail; ${rc} 0: ${what} is damaged. The first error stays. */
enum store_status txn_fail(struct store_txn *t, int rc, const char *what);
enum store_status txn_get(struct store_txn *t, enum space space, struct key *key, MDB_val *out);
/* txn_get_copy(t, …): as txn_get, but a copy in t->copy, which later writes do not move. */
enum store_status txn_get_copy(struct store_txn *t, enum space space, struct key *key,
                               MDB_val *out);
void txn_put(struct store_txn *t, enum space space, struct key *key, const void *value, size_t n);
/*
 * txn_reserve(t, …): ${n} bytes in the page itself, to be filled before anything else is written;
 * NULL after an error.
 */
void *txn_reserve(struct store_txn *t, enum space space, struct key *key, size_t n);
/* txn_del(t, …): delete a key that must exist, else STORE_CORRUPT. txn_drop: one that may exist. */
void txn_del(struct store_txn *t, enum space space, struct key *key);
void txn_drop(struct store_txn *t, enum space space, struct key *key);

/* txn_next(t, counter): the next id of that counter. */
#define txn_next(t, counter) ((t)->counters_dirty = true, ++(t)->counters.counter)

/* txn_ulid(t, out): the next ULID; false after an error. */
bool txn_ulid(struct store_txn *t, struct ulid *out);

void txn_event(struct store_txn *t, enum store_event_kind kind, uint64_t workspace, uint64_t id,
               uint64_t value);
/*
 * txn_mark_deleting(t, workspace, project): it is being deleted from now on; project 0: all of it.
 */
bool txn_mark_deleting(struct store_txn *t, uint64_t workspace, uint64_t project);
/* txn_match(match, version): does If-Match allow a change of that version? */
bool txn_match(struct str match, uint64_t version);

#endif
