#include "store/engine/snapshot.h"

#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/engine/layers.h"

#include <errno.h>

/* The map may have moved: forget the places in it. */
static void forget_map(struct store *s)
{
    memset(s->key_places, 0, sizeof(s->key_places));
    memset(s->report_places, 0, sizeof(s->report_places));
}

int store_remap(struct store *s)
{
    forget_map(s);
    atomic_fetch_add(&s->shared->waiting, 1);
    pthread_rwlock_wrlock(&s->shared->map);
    atomic_fetch_sub(&s->shared->waiting, 1);
    int rc = mdb_env_set_mapsize(s->env, 0);
    s->maps = atomic_fetch_add(&s->shared->maps, 1) + 1;
    pthread_rwlock_unlock(&s->shared->map);
    return rc;
}

unsigned store_reader_check(struct store *s)
{
    int dead = 0;
    mdb_reader_check(s->env, &dead);
    return (unsigned)dead;
}

/* Renew the kept transaction, or begin the first one. */
static int snapshot_once(struct store *s)
{
    if (s->read != NULL)
        return mdb_txn_renew(s->read);
    return mdb_txn_begin(s->env, NULL, MDB_RDONLY, &s->read);
}

/*
 * LMDB reads the transaction's number first and then the roots, from a page that the second commit
 * after it overwrites: a delayed reader can get later roots under an earlier number. Caches by
 * number (index snapshots, places) must never meet that, so a snapshot is accepted only if its
 * number is still the last one after its roots were read.
 */
#define TRIES 16

static int snapshot_look(struct store *s)
{
    MDB_envinfo info;
    for (int tries = 1;; tries++) {
        int rc = snapshot_once(s);
        if (rc != 0 || tries == TRIES || mdb_env_info(s->env, &info) != 0 ||
            info.me_last_txnid == mdb_txn_id(s->read))
            return rc;
        mdb_txn_reset(s->read);
    }
}

/* The size of the map stays until store_read_end. */
static int snapshot_try(struct store *s)
{
    pthread_rwlock_rdlock(&s->shared->map);
    int rc = snapshot_look(s);
    if (rc != 0)
        pthread_rwlock_unlock(&s->shared->map);
    return rc;
}

/*
 * The size of the map changes only between two write transactions, so the writer's thread changes
 * it.
 */
static bool is_beside_writer(const struct store *s)
{
    return s->shared->writes && s->mode == STORE_READ;
}

static enum store_status snapshot_begin(struct store *s)
{
    int rc = snapshot_try(s);
    if (rc == MDB_READERS_FULL) {
        store_reader_check(s);
        rc = snapshot_try(s);
    }
    /*
     * Another process grew the map: take its size. An open write transaction would keep the old
     * one; the read then waits for its end.
     */
    for (int tries = 0; rc == MDB_MAP_RESIZED && tries < 3; tries++) {
        rc = s->txn.mdb != NULL || is_beside_writer(s) ? EBUSY : store_remap(s);
        if (rc == 0)
            rc = snapshot_try(s);
    }
    if (rc != 0)
        return store_fail(s, rc, "read the store");
    s->reading = true;
    s->snapshot = mdb_txn_id(s->read);
    unsigned maps = atomic_load_explicit(&s->shared->maps, memory_order_relaxed);
    if (s->maps != maps)
        forget_map(s);
    s->maps = maps;
    return STORE_OK;
}

enum store_status store_snapshot(struct store *s, MDB_txn **out)
{
    enum store_status status = s->reading ? STORE_OK : snapshot_begin(s);
    *out = s->read;
    return status;
}

void store_read_end(struct store *s)
{
    if (!s->reading)
        return;
    mdb_txn_reset(s->read);
    pthread_rwlock_unlock(&s->shared->map);
    s->reading = false;
    for (size_t i = 0; layers[i] != NULL; i++)
        if (layers[i]->snapshot_end != NULL)
            layers[i]->snapshot_end(s);
}

enum store_status store_get(struct store *s, MDB_txn *txn, enum space space, struct key *key,
                            MDB_val *out)
{
    MDB_val k = key_val(key);
    int rc = mdb_get(txn, s->dbi[schema_space_db[space]], &k, out);
    if (rc == 0)
        return STORE_OK;
    return rc == MDB_NOTFOUND ? STORE_NOT_FOUND : store_fail(s, rc, "read a record");
}

enum store_status store_get_key(struct store *s, const uint8_t *hash, MDB_val *out)
{
    struct key_place *seen = &s->key_places[hash[0] % KEY_PLACES];
    if (seen->snapshot == s->snapshot && memcmp(seen->hash, hash, sizeof(seen->hash)) == 0) {
        *out = seen->value;
        return STORE_OK;
    }
    struct key k;
    key_space(&k, SPACE_KEY);
    key_bytes(&k, hash, sizeof(seen->hash));
    enum store_status status = store_get(s, s->read, SPACE_KEY, &k, out);
    if (status == STORE_OK) {
        *seen = (struct key_place){.snapshot = s->snapshot, .value = *out};
        memcpy(seen->hash, hash, sizeof(seen->hash));
    }
    return status;
}

enum store_status store_get_report(struct store *s, uint64_t id, MDB_val *out)
{
    struct report_place *seen = &s->report_places[id % REPORT_PLACES];
    if (seen->snapshot == s->snapshot && seen->id == id) {
        *out = seen->value;
        return STORE_OK;
    }
    struct key k;
    key_id(&k, SPACE_REPORT, id);
    enum store_status status = store_get(s, s->read, SPACE_REPORT, &k, out);
    if (status == STORE_OK)
        *seen = (struct report_place){s->snapshot, id, *out};
    return status;
}

uint64_t store_version(struct store *s)
{
    MDB_envinfo info;
    if (!s->reading)
        pthread_rwlock_rdlock(&s->shared->map);
    uint64_t version = mdb_env_info(s->env, &info) == 0 ? info.me_last_txnid : 0;
    if (!s->reading)
        pthread_rwlock_unlock(&s->shared->map);
    return version;
}

uint64_t store_snapshot_version(const struct store *s)
{
    return s->reading ? s->snapshot : 0;
}

enum store_status store_counters(struct store *s, MDB_txn *txn, struct counters_record *out)
{
    struct key k;
    MDB_val v;
    key_meta(&k, 'c');
    enum store_status status = store_get(s, txn, SPACE_META, &k, &v);
    const void *counters = status == STORE_OK ? store_record(v, sizeof(*out)) : NULL;
    if (counters == NULL)
        return store_corrupt(s, "the record of counters");
    memcpy(out, counters, sizeof(*out));
    return STORE_OK;
}

/*
 * The number of deletions is read once for each snapshot. It is nearly always 0, and then further
 * questions are free.
 */
static uint64_t deleting_count(struct store *s, MDB_txn *txn)
{
    size_t id = mdb_txn_id(txn);
    if (txn == s->txn.mdb)
        return s->txn.counters.deleting;
    if (id != s->deleting_snapshot) {
        struct counters_record counters = {0};
        s->deleting = store_counters(s, txn, &counters) == STORE_OK ? counters.deleting : 0;
        s->deleting_snapshot = id;
    }
    return s->deleting;
}

bool store_any_deleting(struct store *s, MDB_txn *txn)
{
    return deleting_count(s, txn) != 0;
}

bool store_is_deleting(struct store *s, MDB_txn *txn, uint64_t workspace, uint64_t project)
{
    if (deleting_count(s, txn) == 0)
        return false;
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_DELETING, workspace);
    key_u64(&k, 0);
    if (store_get(s, txn, SPACE_DELETING, &k, &v) == STORE_OK)
        return true;
    if (project == 0)
        return false;
    key_id(&k, SPACE_DELETING, workspace);
    key_u64(&k, project);
    return store_get(s, txn, SPACE_DELETING, &k, &v) == STORE_OK;
}
