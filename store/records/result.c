#include "store/records/result.h"

#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/context.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

/*
 * Results of a report: JSON, compressed by zstd with result_dictionary if that is shorter, since
 * most of it is the same in all. A value that fits a page is stored whole. A longer one is split
 * into pieces of a page each: LMDB would search all free pages for several in a row. The first byte
 * tells which; no JSON begins with one of these.
 */
#define PIECE_BYTES PAGE_VALUE_BYTES /* including the first byte */
#define LEVEL 3
enum { PIECE_LAST, PIECE_MORE, PACKED_1 };

/* State of packing and unpacking, created at first use. */
struct packer {
    ZSTD_CCtx *to;
    ZSTD_CDict *like_to;
    ZSTD_DCtx *from;
    ZSTD_DDict *like_from;
};

void result_forget(struct store *s)
{
    if (s->records->packer == NULL)
        return;
    ZSTD_freeCCtx(s->records->packer->to);
    ZSTD_freeCDict(s->records->packer->like_to);
    ZSTD_freeDCtx(s->records->packer->from);
    ZSTD_freeDDict(s->records->packer->like_from);
    free(s->records->packer);
    s->records->packer = NULL;
}

static struct packer *packer_of(struct store *s)
{
    if (s->records->packer == NULL)
        s->records->packer = calloc(1, sizeof(*s->records->packer));
    return s->records->packer;
}

/* With a checksum, which is all that store_check can verify. */
static bool can_pack(struct packer *p)
{
    if (p != NULL && p->like_to == NULL)
        p->like_to = ZSTD_createCDict(result_dictionary.p, result_dictionary.n, LEVEL);
    if (p != NULL && p->to == NULL && (p->to = ZSTD_createCCtx()) != NULL) {
        ZSTD_CCtx_setParameter(p->to, ZSTD_c_checksumFlag, 1);
        ZSTD_CCtx_refCDict(p->to, p->like_to);
    }
    return p != NULL && p->to != NULL && p->like_to != NULL;
}

static bool can_unpack(struct packer *p)
{
    if (p != NULL && p->from == NULL)
        p->from = ZSTD_createDCtx();
    if (p != NULL && p->like_from == NULL)
        p->like_from = ZSTD_createDDict(result_dictionary.p, result_dictionary.n);
    return p != NULL && p->from != NULL && p->like_from != NULL;
}

/*
 * Pack into t->s->records->packed, until something else is packed; returns the JSON itself if
 * packing does not shorten it, or memory is short.
 */
static struct str pack(struct store_txn *t, struct str json)
{
    struct packer *p = packer_of(t->s);
    size_t most = ZSTD_compressBound(json.n);
    buf_reset(&t->s->records->packed);
    char *to = can_pack(p) ? buf_reserve(&t->s->records->packed, 1 + most) : NULL;
    size_t n = to == NULL ? 0 : ZSTD_compress2(p->to, to + 1, most, json.p, json.n);
    if (to == NULL || ZSTD_isError(n) || 1 + n >= json.n)
        return json;
    *to = PACKED_1;
    return (struct str){to, 1 + n};
}

/* An unpacked or joined value, until the snapshot ends. */
struct unpacked {
    struct unpacked *next;
    char bytes[];
};

void result_release(struct store *s)
{
    while (s->records->unpacked != NULL) {
        struct unpacked *u = s->records->unpacked;
        s->records->unpacked = u->next;
        free(u);
    }
}

/* ${n} bytes until the snapshot ends; NULL: out of memory. */
static char *keep_room(struct store *s, size_t n)
{
    struct unpacked *u = malloc(sizeof(*u) + n);
    if (u == NULL)
        return NULL;
    u->next = s->records->unpacked;
    s->records->unpacked = u;
    return u->bytes;
}

static enum store_status unpack(struct store *s, struct str packed, struct str *out)
{
    struct packer *p = packer_of(s);
    unsigned long long bytes = ZSTD_getFrameContentSize(packed.p + 1, packed.n - 1);
    if (bytes > STORE_RESULTS_MAX) /* or unknown */
        return store_corrupt(s, "the row with the results of a report");
    char *to = can_unpack(p) ? keep_room(s, bytes) : NULL;
    if (to == NULL)
        return store_fail(s, ENOMEM, "unpack the results of a report");
    size_t n =
        ZSTD_decompress_usingDDict(p->from, to, bytes, packed.p + 1, packed.n - 1, p->like_from);
    if (ZSTD_isError(n) || n != bytes)
        return store_corrupt(s, "the row with the results of a report");
    *out = (struct str){to, n};
    return STORE_OK;
}

static bool is_packed(struct str v)
{
    return v.n != 0 && (uint8_t)v.p[0] == PACKED_1;
}

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

static enum store_status piece_get(struct store *s, MDB_txn *txn, uint64_t report, uint64_t piece,
                                   MDB_val *out)
{
    struct key k;
    piece_key(&k, report, piece);
    enum store_status status = store_get(s, txn, SPACE_RESULT, &k, out);
    if (piece != 0 && (status == STORE_NOT_FOUND || (status == STORE_OK && !is_piece(*out))))
        return store_corrupt(s, "a piece of a report's results");
    return status;
}

static enum store_status join(struct store *s, MDB_txn *txn, uint64_t report, MDB_val v,
                              struct str *out)
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
    struct str whole = buf_view(&all);
    if (status == STORE_OK && buf_ok(&all) && is_packed(whole)) {
        status = unpack(s, whole, out);
    } else if (status == STORE_OK) {
        char *to = buf_ok(&all) && whole.p != NULL ? keep_room(s, whole.n) : NULL;
        if (to != NULL)
            memcpy(to, whole.p, whole.n);
        *out = (struct str){to, whole.n};
        status = to != NULL ? STORE_OK : store_fail(s, ENOMEM, "join the results of a report");
    }
    buf_free(&all);
    return status;
}

enum store_status result_get(struct store *s, MDB_txn *txn, uint64_t report, struct str *out)
{
    MDB_val v;
    enum store_status status = piece_get(s, txn, report, 0, &v);
    if (status != STORE_OK)
        return status == STORE_NOT_FOUND ? STORE_OK : status;
    if (is_piece(v))
        return join(s, txn, report, v, out);
    struct str whole = {v.mv_data, v.mv_size};
    if (is_packed(whole))
        return unpack(s, whole, out);
    *out = whole;
    return STORE_OK;
}

enum store_status result_look(struct store *s, MDB_txn *txn, uint64_t report)
{
    MDB_val v;
    enum store_status status = piece_get(s, txn, report, 0, &v);
    for (uint64_t piece = 1; status == STORE_OK && more_follow(v); piece++)
        status = piece_get(s, txn, report, piece, &v);
    return status;
}

bool result_piece_good(struct store *s, MDB_txn *txn, uint64_t report, uint64_t piece)
{
    MDB_val v;
    return piece != 0 && piece_get(s, txn, report, piece - 1, &v) == STORE_OK && more_follow(v);
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

static void put_piece(struct store_txn *t, uint64_t report, uint64_t piece, struct str rest)
{
    struct key k;
    bool more = rest.n > PIECE_BYTES - 1;
    size_t n = more ? PIECE_BYTES - 1 : rest.n;
    piece_key(&k, report, piece);
    char *to = txn_reserve(t, SPACE_RESULT, &k, n + 1);
    if (to == NULL)
        return;
    *to = more ? PIECE_MORE : PIECE_LAST;
    memcpy(to + 1, rest.p, n);
}

void result_put(struct store_txn *t, uint64_t report, struct str json)
{
    struct key k;
    struct str v = pack(t, json);
    result_drop(t, report);
    piece_key(&k, report, 0);
    if (v.n <= PIECE_BYTES) {
        txn_put(t, SPACE_RESULT, &k, v.p, v.n);
        return;
    }
    for (uint64_t piece = 0; v.n != 0; piece++) {
        size_t n = v.n < PIECE_BYTES - 1 ? v.n : PIECE_BYTES - 1;
        put_piece(t, report, piece, v);
        v = (struct str){v.p + n, v.n - n};
    }
}
