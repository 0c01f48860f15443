#include "internal.h"

#include <errno.h>

/*
 * The results of a report: JSON, or, where it is longer than a page, pieces of it that LMDB keeps on a page each; what it needs several pages side
 * by side for, it looks for through all free ones. A piece begins with a byte that tells whether another follows, and which no JSON begins with.
 */
#define PIECE_BYTES 4080 /* the byte included */
enum { PIECE_LAST, PIECE_MORE };

static bool is_piece(MDB_val v)
{
    return v.mv_size != 0 && *(const uint8_t *)v.mv_data <= PIECE_MORE;
}

static bool more_follow(MDB_val v)
{
    return v.mv_size != 0 && *(const uint8_t *)v.mv_data == PIECE_MORE;
}

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
    enum store_status status = store_get(s, txn, SPACE_RESULT, &k, out);
    if (piece != 0 && (status == STORE_NOT_FOUND || (status == STORE_OK && !is_piece(*out))))
        return store_corrupt(s, "a piece of a report's results");
    return status;
}

static enum store_status join(struct store *s, MDB_txn *txn, uint64_t report, MDB_val v, struct str *out)
{
    struct buf all = {0};
    enum store_status status = STORE_OK;
    bool more = true;
    buf_reserve(&all, (size_t)3 * PIECE_BYTES);
    for (uint64_t piece = 1; more && status == STORE_OK; piece++) {
        buf_add(&all, (const char *)v.mv_data + 1, v.mv_size - 1);
        more = more_follow(v);
        if (more)
            status = piece_get(s, txn, report, piece, &v);
    }
    if (status == STORE_OK)
        return render_keep(s, &all, out);
    buf_free(&all);
    return status;
}

enum store_status result_get(struct store *s, MDB_txn *txn, uint64_t report, struct str *out)
{
    MDB_val v;
    enum store_status status = piece_get(s, txn, report, 0, &v);
    if (status == STORE_OK && is_piece(v))
        return join(s, txn, report, v, out);
    if (status == STORE_OK)
        *out = (struct str){v.mv_data, v.mv_size};
    return status == STORE_NOT_FOUND ? STORE_OK : status;
}

enum store_status result_look(struct store *s, MDB_txn *txn, uint64_t report)
{
    MDB_val v;
    enum store_status status = piece_get(s, txn, report, 0, &v);
    for (uint64_t piece = 1; status == STORE_OK && more_follow(v); piece++)
        status = piece_get(s, txn, report, piece, &v);
    return status;
}

void result_drop(struct store_txn *t, uint64_t report)
{
    struct key k;
    MDB_val v;
    bool more = true;
    for (uint64_t piece = 0; more; piece++) {
        piece_key(&k, report, piece);
        if (txn_get(t, SPACE_RESULT, &k, &v) != STORE_OK)
            return;
        more = more_follow(v);
        txn_del(t, SPACE_RESULT, &k);
    }
}

static void put_piece(struct store_txn *t, uint64_t report, uint64_t piece, struct str json)
{
    struct key k;
    bool more = json.n > PIECE_BYTES - 1;
    size_t n = more ? PIECE_BYTES - 1 : json.n;
    piece_key(&k, report, piece);
    char *to = txn_reserve(t, SPACE_RESULT, &k, n + 1);
    if (to == NULL)
        return;
    *to = more ? PIECE_MORE : PIECE_LAST;
    memcpy(to + 1, json.p, n);
}

void result_put(struct store_txn *t, uint64_t report, struct str json)
{
    struct key k;
    result_drop(t, report);
    if (json.n <= PIECE_BYTES) {
        piece_key(&k, report, 0);
        txn_put(t, SPACE_RESULT, &k, json.p, json.n);
        return;
    }
    for (uint64_t piece = 0; piece * (PIECE_BYTES - 1) < json.n; piece++)
        put_piece(t, report, piece, (struct str){json.p + piece * (PIECE_BYTES - 1), json.n - piece * (PIECE_BYTES - 1)});
}
