#include "internal.h"

#include <errno.h>

/*
 * The results of a report, in pieces that LMDB keeps on a page each: what it needs several pages side by side for, it looks for through all free
 * ones. A piece is full where another follows.
 */
#define PIECE_BYTES 4080

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

static enum store_status join(struct store *s, MDB_txn *txn, uint64_t report, MDB_val first, struct str *out)
{
    struct buf all = {0};
    MDB_val v = first;
    enum store_status status = STORE_OK;
    buf_reserve(&all, (size_t)4 * PIECE_BYTES);
    for (uint64_t piece = 1; status == STORE_OK; piece++) {
        buf_add(&all, v.mv_data, v.mv_size);
        status = v.mv_size == PIECE_BYTES ? piece_get(s, txn, report, piece, &v) : STORE_NOT_FOUND;
    }
    if (status == STORE_NOT_FOUND)
        return render_keep(s, &all, out);
    buf_free(&all);
    return status;
}

enum store_status result_get(struct store *s, MDB_txn *txn, uint64_t report, struct str *out)
{
    MDB_val v;
    enum store_status status = piece_get(s, txn, report, 0, &v);
    if (status == STORE_OK && v.mv_size == PIECE_BYTES)
        return join(s, txn, report, v, out);
    if (status == STORE_OK)
        *out = (struct str){v.mv_data, v.mv_size};
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

bool result_piece_good(struct store *s, MDB_txn *txn, uint64_t report, uint64_t piece)
{
    MDB_val before;
    return piece != 0 && piece_get(s, txn, report, piece - 1, &before) == STORE_OK && before.mv_size == PIECE_BYTES;
}

void result_touch(struct store *s, MDB_txn *txn, uint64_t report)
{
    MDB_val v = {PIECE_BYTES, NULL};
    for (uint64_t piece = 0; v.mv_size == PIECE_BYTES && piece_get(s, txn, report, piece, &v) == STORE_OK; piece++)
        (void)*(const volatile char *)v.mv_data;
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
        more = v.mv_size == PIECE_BYTES;
        txn_del(t, SPACE_RESULT, &k);
    }
}

void result_drop(struct store_txn *t, uint64_t report)
{
    drop_from(t, report, 0);
}

void result_put(struct store_txn *t, uint64_t report, struct str json)
{
    struct key k;
    uint64_t piece = 0;
    result_drop(t, report);
    do {
        size_t n = json.n < PIECE_BYTES ? json.n : PIECE_BYTES;
        piece_key(&k, report, piece++);
        txn_put(t, SPACE_RESULT, &k, json.p, n);
        json.p += n;
        json.n -= n;
    } while (json.n != 0);
}
