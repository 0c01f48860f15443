#include "internal.h"

#include <errno.h>

/*
 * The results of a report, in pieces that LMDB keeps on a page each: what it needs several pages side by side for, it looks for through all free
 * ones. A piece that another follows begins with a byte that says so and is none of JSON's: so one that was lost is missed, and results that an
 * older format has in one, however long, are a last piece.
 */
#define PIECE_BYTES 4080
#define MORE '\0'

static void piece_key(struct key *k, uint64_t report, uint64_t piece)
{
    key_id(k, SPACE_RESULT, report);
    if (piece != 0)
        key_u64(k, piece);
}

static enum store_status piece_get(struct store *s, MDB_txn *txn, uint64_t report, uint64_t piece, MDB_val *out)
{
    struct key k;
    piece_key(&k, report, piece);
    return store_get(s, txn, SPACE_RESULT, &k, out);
}

static bool has_more(MDB_val v)
{
    return v.mv_size != 0 && *(const char *)v.mv_data == MORE;
}

static enum store_status join(struct store *s, MDB_txn *txn, uint64_t report, MDB_val first, struct str *out)
{
    struct buf all = {0};
    MDB_val v = first;
    enum store_status status = STORE_OK;
    buf_reserve(&all, (size_t)4 * PIECE_BYTES);
    for (uint64_t piece = 1; status == STORE_OK && has_more(v); piece++) {
        buf_add(&all, (const char *)v.mv_data + 1, v.mv_size - 1);
        status = piece_get(s, txn, report, piece, &v);
    }
    if (status == STORE_OK) {
        buf_add(&all, v.mv_data, v.mv_size);
        return render_keep(s, &all, out);
    }
    buf_free(&all);
    return status == STORE_NOT_FOUND ? store_corrupt(s, "the results of a report") : status;
}

enum store_status result_get(struct store *s, MDB_txn *txn, uint64_t report, struct str *out)
{
    MDB_val v;
    enum store_status status = piece_get(s, txn, report, 0, &v);
    if (status == STORE_OK && has_more(v))
        return join(s, txn, report, v, out);
    if (status == STORE_OK)
        *out = (struct str){v.mv_data, v.mv_size};
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

bool result_piece_good(struct store *s, MDB_txn *txn, uint64_t report, uint64_t piece, MDB_val v)
{
    MDB_val before, behind;
    bool follows = piece == 0 || (piece_get(s, txn, report, piece - 1, &before) == STORE_OK && has_more(before));
    return follows && (!has_more(v) || piece_get(s, txn, report, piece + 1, &behind) == STORE_OK);
}

void result_touch(struct store *s, MDB_txn *txn, uint64_t report)
{
    MDB_val v;
    uint64_t piece = 0;
    while (piece_get(s, txn, report, piece, &v) == STORE_OK && has_more(v))
        piece++;
}

/* The pieces from ${piece} on. */
static void drop_from(struct store_txn *t, uint64_t report, uint64_t piece)
{
    struct key k;
    MDB_val v;
    for (bool more = true; more; piece++) {
        piece_key(&k, report, piece);
        if (txn_get(t, SPACE_RESULT, &k, &v) != STORE_OK)
            return;
        more = has_more(v);
        txn_del(t, SPACE_RESULT, &k);
    }
}

void result_drop(struct store_txn *t, uint64_t report)
{
    drop_from(t, report, 0);
}

/* As much as fits, behind the byte that says that there is more. */
static void put_full(struct store_txn *t, struct key *k, const char *json)
{
    char *to = txn_reserve(t, SPACE_RESULT, k, PIECE_BYTES);
    if (to == NULL)
        return;
    to[0] = MORE;
    memcpy(to + 1, json, PIECE_BYTES - 1);
}

void result_put(struct store_txn *t, uint64_t report, struct str json)
{
    struct key k;
    uint64_t piece = 0;
    result_drop(t, report);
    for (; json.n > PIECE_BYTES; json.p += PIECE_BYTES - 1, json.n -= PIECE_BYTES - 1) {
        piece_key(&k, report, piece++);
        put_full(t, &k, json.p);
    }
    piece_key(&k, report, piece);
    txn_put(t, SPACE_RESULT, &k, json.p, json.n);
}
