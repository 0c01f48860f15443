#include "store/records/result.h"

#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/context.h"

#include <endian.h>
#include <errno.h>
#include <lz4.h>
#include <lz4hc.h>
#include <stdlib.h>
#include <xxhash.h>

/*
 * Results of a report: JSON, compressed by LZ4 with result_dictionary if that is shorter, since
 * most of it is the same in all. A value that fits a page is stored whole. A longer one is split
 * into pieces of a page each: LMDB would search all free pages for several in a row. The first byte
 * tells which; no JSON begins with one of these.
 */
#define PIECE_BYTES PAGE_VALUE_BYTES /* including the first byte */
#define LEVEL LZ4HC_CLEVEL_MIN
enum { PIECE_LAST, PIECE_MORE, COMPRESSED };

/* What is in front of a compressed block. */
struct PACKED block_head {
    uint8_t kind;         /* COMPRESSED */
    uint32_t bytes_le;    /* of the JSON */
    uint64_t checksum_le; /* of the block */
};

void result_forget(struct store *s)
{
    LZ4_freeStreamHC(s->records->compressor);
    s->records->compressor = NULL;
}

/*
 * The size of the compressed block at ${to}, which has room for LZ4_compressBound bytes; 0: it was
 * not made.
 */
static size_t compress(struct store *s, char *to, struct str json)
{
    LZ4_streamHC_t *stream = s->records->compressor;
    if (stream == NULL)
        stream = s->records->compressor = LZ4_createStreamHC();
    if (stream == NULL)
        return 0;
    LZ4_resetStreamHC_fast(stream, LEVEL);
    LZ4_loadDictHC(stream, result_dictionary.p, (int)result_dictionary.n);
    int n =
        LZ4_compress_HC_continue(stream, json.p, to, (int)json.n, LZ4_compressBound((int)json.n));
    return n > 0 ? (size_t)n : 0;
}

/*
 * The compressed JSON in t->s->records->compressed, until the next call; the JSON itself if that is
 * not longer, or memory is short.
 */
static struct str compressed(struct store_txn *t, struct str json)
{
    struct block_head head = {.kind = COMPRESSED, .bytes_le = htole32((uint32_t)json.n)};
    buf_reset(&t->s->records->compressed);
    char *to = buf_reserve(&t->s->records->compressed,
                           sizeof(head) + (size_t)LZ4_compressBound((int)json.n));
    size_t n = to == NULL ? 0 : compress(t->s, to + sizeof(head), json);
    if (n == 0 || sizeof(head) + n >= json.n)
        return json;
    head.checksum_le = htole64(XXH3_64bits(to + sizeof(head), n));
    memcpy(to, &head, sizeof(head));
    return (struct str){to, sizeof(head) + n};
}

/* A decompressed or joined value, until the snapshot ends. */
struct plain_results {
    struct plain_results *next;
    char bytes[];
};

void result_release(struct store *s)
{
    while (s->records->plain_results != NULL) {
        struct plain_results *u = s->records->plain_results;
        s->records->plain_results = u->next;
        free(u);
    }
}

/* ${n} bytes until the snapshot ends; NULL: out of memory. */
static char *keep_room(struct store *s, size_t n)
{
    struct plain_results *u = malloc(sizeof(*u) + n);
    if (u == NULL)
        return NULL;
    u->next = s->records->plain_results;
    s->records->plain_results = u;
    return u->bytes;
}

static enum store_status decompress(struct store *s, struct str row, struct str *out)
{
    struct block_head head = {0};
    memcpy(&head, row.p, row.n < sizeof(head) ? row.n : sizeof(head));
    struct str block = {row.p + sizeof(head), row.n - sizeof(head)};
    size_t bytes = le32toh(head.bytes_le);
    if (row.n < sizeof(head) || bytes > STORE_RESULTS_MAX ||
        XXH3_64bits(block.p, block.n) != le64toh(head.checksum_le))
        return store_corrupt(s, "the row with the results of a report");
    char *to = keep_room(s, bytes);
    if (to == NULL)
        return store_fail(s, ENOMEM, "decompress the results of a report");
    int n = LZ4_decompress_safe_usingDict(block.p, to, (int)block.n, (int)bytes,
                                          result_dictionary.p, (int)result_dictionary.n);
    if (n < 0 || (size_t)n != bytes)
        return store_corrupt(s, "the row with the results of a report");
    *out = (struct str){to, bytes};
    return STORE_OK;
}

static bool is_compressed(struct str v)
{
    return v.n != 0 && (uint8_t)v.p[0] == COMPRESSED;
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
    if (status == STORE_OK && buf_ok(&all) && is_compressed(whole)) {
        status = decompress(s, whole, out);
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
    if (is_compressed(whole))
        return decompress(s, whole, out);
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
    struct str v = compressed(t, json);
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
