#include "store/engine/derived.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"

#define X(id, db, tag, kind, text) kind,
const uint8_t derived_kinds[SPACE_COUNT] = {SPACES(X)};
#undef X

bool derived_has_rows(enum space space)
{
    return derived_rows_of[space] != NULL;
}

/* ---- rebuilding ---- */

static void put_in_store(void *arg, enum space space, struct key *key, const void *value, size_t n)
{
    txn_put(arg, space, key, value, n);
}

static enum store_status put_all(struct store_txn *t, struct store *reader, enum space space)
{
    MDB_txn *txn;
    struct cursor w = {0};
    const struct derived_sink sink = {put_in_store, t};
    enum store_status status = store_snapshot(reader, &txn);
    if (status == STORE_OK)
        status = cursor_begin(reader, txn, &w, space);
    for (; status == STORE_OK; status = cursor_next(&w))
        if (!derived_rows_of[space](&w, &sink)) {
            status = store_corrupt(reader, "a record with derived rows");
            break;
        }
    cursor_end(&w);
    store_read_end(reader);
    return status == STORE_NOT_FOUND ? store_txn_error(t) : status;
}

static enum store_status delete_all(struct store_txn *t, enum space space)
{
    enum store_status status = STORE_OK;
    while (status == STORE_OK && t->error == STORE_OK) {
        struct cursor w = {0};
        struct key k = {.n = 0};
        key_space(&w.prefix, space);
        status = cursor_prefix(t->s, t->mdb, &w, (enum db)schema_space_db[space], false);
        if (status == STORE_OK)
            key_bytes(&k, w.k.mv_data, w.k.mv_size);
        cursor_end(&w);
        if (status == STORE_OK)
            txn_del(t, space, &k);
    }
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

enum store_status derived_rebuild(struct store *s, struct store *reader)
{
    struct store_txn *t;
    enum store_status status = store_begin(s, &t);
    if (status != STORE_OK)
        return status;
    for (unsigned space = 0; space < SPACE_COUNT && status == STORE_OK; space++)
        if (derived_kinds[space] == SPACE_IS_DERIVED)
            status = delete_all(t, (enum space)space);
    for (unsigned space = 0; space < SPACE_COUNT && status == STORE_OK; space++)
        if (derived_has_rows((enum space)space))
            status = put_all(t, reader, (enum space)space);
    if (status == STORE_OK)
        return store_commit(t);
    store_abort(t);
    return status;
}
