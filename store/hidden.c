#include "synced_parts.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Documents that a complete sync did not see are in the full-text index until they are purged, which takes a second for some ten thousand.
 * Bits say of them that they are not there, by their ids, so that a look-up passes over them at the cost of a bit. A document that is not
 * there never is again (what comes back has a new id), so a bit is true for ever; where there is none the records are asked.
 */

#define BLOCK (HIDDEN_BYTES * 8) /* ids of a value */

static void hidden_key(struct key *k, uint64_t collection, uint64_t block)
{
    key_id(k, SPACE_HIDDEN, collection);
    key_u64(k, block);
}

/* ---- making them ---- */

/* Bits of one block that are not stored yet. */
struct open_block {
    uint64_t block;
    bool dirty;
    uint8_t bits[HIDDEN_BYTES];
};

static void block_store(struct store_txn *t, uint64_t collection, struct open_block *b)
{
    struct key k;
    hidden_key(&k, collection, b->block);
    if (b->dirty)
        txn_put(t, SPACE_HIDDEN, &k, b->bits, sizeof(b->bits));
    b->dirty = false;
}

static void block_load(struct store_txn *t, uint64_t collection, uint64_t block, struct open_block *b)
{
    struct key k;
    MDB_val v;
    *b = (struct open_block){.block = block};
    hidden_key(&k, collection, block);
    if (txn_get(t, SPACE_HIDDEN, &k, &v) == STORE_OK && v.mv_size == sizeof(b->bits))
        memcpy(b->bits, v.mv_data, sizeof(b->bits));
}

void hidden_add(struct store_txn *t, uint64_t collection, const uint64_t *documents, size_t count)
{
    struct open_block b = {.dirty = false};
    for (size_t i = 0; i < count && t->error == STORE_OK; i++) {
        uint64_t block = documents[i] / BLOCK, bit = documents[i] % BLOCK;
        if (!b.dirty || b.block != block) {
            block_store(t, collection, &b);
            block_load(t, collection, block, &b);
        }
        b.bits[bit / 8] |= (uint8_t)(1 << bit % 8);
        b.dirty = true;
    }
    block_store(t, collection, &b);
}

bool hidden_well_formed(MDB_val value)
{
    return value.mv_size == HIDDEN_BYTES;
}

/* ---- asking ---- */

static int by_block(const void *a, const void *b)
{
    const struct hidden_block *x = a, *y = b;
    return x->block < y->block ? -1 : x->block > y->block;
}

static enum store_status add_blocks(struct store *s, MDB_txn *txn, uint64_t collection, struct buf *blocks)
{
    struct walk w = {0};
    struct hidden_block block;
    key_id(&w.prefix, SPACE_HIDDEN, collection);
    enum store_status status = walk_prefix(s, txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK; status = walk_next(&w)) {
        if (!walk_u64(&w, 1, &block.block) || !hidden_well_formed(w.v))
            continue;
        block.bits = w.v.mv_data;
        buf_add(blocks, &block, sizeof(block));
    }
    walk_end(&w);
    return status;
}

enum store_status hidden_open(struct store *s, MDB_txn *txn, const struct ulid *agent, struct hidden *out)
{
    struct walk w = {0};
    uint64_t collection, seen = 0;
    *out = (struct hidden){.open = true};
    key_of(&w.prefix, SPACE_COLLECTION_NAME, agent);
    enum store_status status = walk_prefix(s, txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK; status = walk_next(&w), seen++) {
        memcpy(&collection, w.v.mv_data, w.v.mv_size == sizeof(collection) ? sizeof(collection) : 0);
        status = w.v.mv_size == sizeof(collection) ? add_blocks(s, txn, collection, &out->blocks) : store_corrupt(s, "the index of collections");
        if (status != STORE_NOT_FOUND)
            break;
    }
    walk_end(&w);
    if (status != STORE_NOT_FOUND)
        return status;
    out->count = out->blocks.n / sizeof(struct hidden_block);
    if (!buf_ok(&out->blocks))
        return store_fail(s, ENOMEM, "look for what is hidden");
    if (seen > 1 && out->count > 1)
        qsort(out->blocks.p, out->count, sizeof(struct hidden_block), by_block);
    return STORE_OK;
}

/* The first of the blocks of that number; there may be one of each collection. */
static size_t first_of(const struct hidden *h, uint64_t block)
{
    const struct hidden_block *blocks = (const struct hidden_block *)(const void *)h->blocks.p;
    size_t low = 0, high = h->count;
    if (h->last < h->count && blocks[h->last].block == block && (h->last == 0 || blocks[h->last - 1].block != block))
        return h->last;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (blocks[middle].block < block)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool hidden_has(struct hidden *h, uint64_t document)
{
    const struct hidden_block *blocks = (const struct hidden_block *)(const void *)h->blocks.p;
    uint64_t block = document / BLOCK, bit = document % BLOCK;
    if (h->count == 0)
        return false;
    h->last = first_of(h, block);
    for (size_t i = h->last; i < h->count && blocks[i].block == block; i++)
        if ((blocks[i].bits[bit / 8] >> bit % 8 & 1) != 0)
            return true;
    return false;
}

void hidden_close(struct hidden *h)
{
    buf_free(&h->blocks);
    h->open = false;
}
