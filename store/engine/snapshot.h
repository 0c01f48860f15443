/*
 * Reading: the snapshot of a struct store, which is one read transaction of LMDB that is kept and
 * renewed. Any thread that has a struct store.
 */
#ifndef ASSAY_STORE_ENGINE_SNAPSHOT_H
#define ASSAY_STORE_ENGINE_SNAPSHOT_H

#include "store/engine/environment.h"

/* store_snapshot(s, out): the open snapshot, or a new one. store_read_end (store.h) ends it. */
enum store_status store_snapshot(struct store *s, MDB_txn **out);

/*
 * store_remap(s): take the size of the map from the file, after another process made it larger. No
 * transaction may be open.
 */
int store_remap(struct store *s);

/* store_get(s, txn, space, key, out): one value; STORE_NOT_FOUND. ${key} includes its tag. */
enum store_status store_get(struct store *s, MDB_txn *txn, enum space space, struct key *key,
                            MDB_val *out);

/* The same in the open snapshot, with a cache of places, for what every request reads. */
enum store_status store_get_key(struct store *s, const uint8_t *hash, MDB_val *out);
enum store_status store_get_report(struct store *s, uint64_t id, MDB_val *out);

/* store_record(value, size): the value as a packed record; NULL if it has another size. */
static inline const void *store_record(MDB_val value, size_t size)
{
    return value.mv_size == size ? value.mv_data : NULL;
}

/*
 * store_must_stop(s, stop, arg): must the work stop here, for the caller or for a change of the
 * size of the map? A reader's query then ends with STORE_AGAIN. store_query_must_stop(s, q): the
 * same for a query, which may be NULL.
 */
static inline bool store_must_stop(const struct store *s, store_stop_fn *stop, void *arg)
{
    return stop != NULL &&
           (atomic_load_explicit(&s->shared->waiting, memory_order_relaxed) != 0 || stop(arg));
}

static inline bool store_query_must_stop(const struct store *s, const struct store_list_query *q)
{
    return q != NULL && store_must_stop(s, q->stop, q->stop_arg);
}

/* store_counters(s, txn, out): the last ids given and the number of deletions. */
enum store_status store_counters(struct store *s, MDB_txn *txn, struct counters_record *out);

/*
 * store_is_deleting(s, txn, workspace, project): is that workspace, or (${project} not 0) that
 * project, being deleted? store_any_deleting(s, txn): is any?
 */
bool store_is_deleting(struct store *s, MDB_txn *txn, uint64_t workspace, uint64_t project);
bool store_any_deleting(struct store *s, MDB_txn *txn);

#endif
