#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/format.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"

static void position_key(struct key *k)
{
    key_local(k, 'p');
}

enum store_status store_position_get(struct store *s, struct store_position *out)
{
    struct key k;
    MDB_val v;
    MDB_txn *txn;
    enum store_status status = store_snapshot(s, &txn);
    position_key(&k);
    if (status == STORE_OK)
        status = store_get(s, txn, SPACE_LOCAL, &k, &v);
    if (status == STORE_OK && v.mv_size != sizeof(*out))
        return store_corrupt(s, "the store's position in the log");
    if (status == STORE_OK)
        memcpy(out, v.mv_data, sizeof(*out));
    return status;
}

void store_position_set(struct store_txn *t, const struct store_position *position)
{
    struct key k;
    position_key(&k);
    txn_put(t, SPACE_LOCAL, &k, position, sizeof(*position));
}

void store_mark_in_log(struct store_txn *t)
{
    t->in_log = true;
}

void store_position_forget(struct store_txn *t)
{
    struct key k;
    position_key(&k);
    txn_drop(t, SPACE_LOCAL, &k);
}

/* The counters of a store that gave no id. */
static bool no_id_was_given(MDB_val v)
{
    const struct counters_record none = {0};
    return v.mv_size == sizeof(none) && memcmp(v.mv_data, &none, sizeof(none)) == 0;
}

bool store_is_empty(struct store *s)
{
    struct key k;
    MDB_val v;
    MDB_txn *txn;
    MDB_stat stat;
    if (store_snapshot(s, &txn) != STORE_OK)
        return false;
    key_meta(&k, 'c');
    if (store_get(s, txn, SPACE_META, &k, &v) != STORE_OK || !no_id_was_given(v))
        return false;
    for (size_t db = 0; db < DB_COUNT; db++)
        if (db != DB_BASE && (mdb_stat(txn, s->dbi[db], &stat) != 0 || stat.ms_entries != 0))
            return false;
    return true;
}

void store_follow(struct store *s, bool follow)
{
    s->shared->follows = follow;
}

enum store_status store_id(struct store *s, uint8_t out[STORE_ID_BYTES])
{
    return format_id(s, out);
}
