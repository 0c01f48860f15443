#include "store/engine/cursor.h"

#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"

static bool in_prefix(const struct cursor *w)
{
    return w->k.mv_size >= w->prefix.n && memcmp(w->k.mv_data, w->prefix.b, w->prefix.n) == 0;
}

static enum store_status cursor_status(struct cursor *w, int rc)
{
    if (rc == MDB_NOTFOUND)
        return STORE_NOT_FOUND;
    if (rc != 0)
        return store_fail(w->s, rc, "walk an index");
    return in_prefix(w) ? STORE_OK : STORE_NOT_FOUND;
}

/* The last key of a prefix precedes the first key above all keys of the prefix. */
static int seek_last(struct cursor *w)
{
    struct key after = {.n = w->prefix.n};
    memcpy(after.b, w->prefix.b, w->prefix.n);
    while (after.n > 0 && after.b[after.n - 1] == 0xff)
        after.n--;
    if (after.n == 0)
        return mdb_cursor_get(w->cursor, &w->k, &w->v, MDB_LAST);
    after.b[after.n - 1]++;
    w->k = key_val(&after);
    int rc = mdb_cursor_get(w->cursor, &w->k, &w->v, MDB_SET_RANGE);
    if (rc == MDB_NOTFOUND)
        return mdb_cursor_get(w->cursor, &w->k, &w->v, MDB_LAST);
    return rc != 0 ? rc : mdb_cursor_get(w->cursor, &w->k, &w->v, MDB_PREV);
}

static enum store_status cursor_open(struct store *s, MDB_txn *txn, struct cursor *w, enum db db)
{
    w->s = s;
    w->cursor = NULL;
    int rc = mdb_cursor_open(txn, s->dbi[db], &w->cursor);
    return rc == 0 ? STORE_OK : store_fail(s, rc, "walk an index");
}

enum store_status cursor_prefix(struct store *s, MDB_txn *txn, struct cursor *w, enum db db,
                                bool backward)
{
    enum store_status status = cursor_open(s, txn, w, db);
    if (status != STORE_OK)
        return status;
    w->backward = backward;
    if (backward)
        return cursor_status(w, seek_last(w));
    w->k = key_val(&w->prefix);
    return cursor_status(w, mdb_cursor_get(w->cursor, &w->k, &w->v, MDB_SET_RANGE));
}

enum store_status cursor_from(struct store *s, MDB_txn *txn, struct cursor *w, enum db db,
                              const struct key *from)
{
    struct key start = {.n = from->n};
    memcpy(start.b, from->b, from->n);
    enum store_status status = cursor_open(s, txn, w, db);
    if (status != STORE_OK)
        return status;
    w->backward = false;
    w->k = key_val(&start);
    return cursor_status(w, mdb_cursor_get(w->cursor, &w->k, &w->v, MDB_SET_RANGE));
}

enum store_status cursor_below(struct store *s, MDB_txn *txn, struct cursor *w, enum db db,
                               const struct key *below)
{
    struct key at = {.n = below->n};
    memcpy(at.b, below->b, below->n);
    enum store_status status = cursor_open(s, txn, w, db);
    if (status != STORE_OK)
        return status;
    w->backward = true;
    w->k = key_val(&at);
    int rc = mdb_cursor_get(w->cursor, &w->k, &w->v, MDB_SET_RANGE);
    if (rc == 0 || rc == MDB_NOTFOUND)
        rc = mdb_cursor_get(w->cursor, &w->k, &w->v, rc == 0 ? MDB_PREV : MDB_LAST);
    return cursor_status(w, rc);
}

enum store_status cursor_begin(struct store *s, MDB_txn *txn, struct cursor *w, enum space space)
{
    key_space(&w->prefix, space);
    return cursor_prefix(s, txn, w, schema_space_db[space], false);
}

enum store_status cursor_next(struct cursor *w)
{
    return cursor_status(
        w, mdb_cursor_get(w->cursor, &w->k, &w->v, w->backward ? MDB_PREV : MDB_NEXT));
}

void cursor_end(struct cursor *w)
{
    if (w->cursor != NULL)
        mdb_cursor_close(w->cursor);
    w->cursor = NULL;
}

bool cursor_u64(const struct cursor *w, unsigned skip, uint64_t *out)
{
    const uint8_t *at = w->k.mv_data;
    const uint8_t *end = at + w->k.mv_size;
    at++;
    do {
        if (!key_read_u64(&at, end, out))
            return false;
    } while (skip-- > 0);
    return true;
}

enum store_status cursor_next_workspace(struct store *s, enum space space, uint64_t after,
                                        uint64_t *out)
{
    MDB_txn *txn;
    struct cursor w = {0};
    struct key from;
    *out = 0;
    enum store_status status = store_snapshot(s, &txn);
    key_id(&from, space, after + 1);
    key_space(&w.prefix, space);
    if (status == STORE_OK)
        status = cursor_from(s, txn, &w, (enum db)schema_space_db[space], &from);
    if (status == STORE_OK && !cursor_u64(&w, 0, out))
        status = store_corrupt(s, "a list of workspaces");
    cursor_end(&w);
    store_read_end(s);
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

size_t record_ids(struct store_txn *t, enum space space, uint64_t after, size_t most, uint64_t *ids)
{
    size_t count = 0;
    struct cursor w = {0};
    struct key from;
    key_id(&from, space, after + 1);
    key_space(&w.prefix, space);
    enum store_status status =
        cursor_from(t->s, t->mdb, &w, (enum db)schema_space_db[space], &from);
    for (; status == STORE_OK && count < most; status = cursor_next(&w))
        count += cursor_u64(&w, 0, &ids[count]);
    cursor_end(&w);
    return count;
}
