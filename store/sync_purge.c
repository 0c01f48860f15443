#include "synced_parts.h"

#include "text.h"

/*
 * What a complete generation did not see is gone for everybody at once; here it becomes tombstones, some at a time, and tombstones that
 * are old go. And what a deleted agent's shop brought.
 */

#define TOMBSTONE_MS ((int64_t)90 * 24 * 60 * 60 * 1000)
#define LOOKS_A_RECORD 16 /* items that are looked at count as one record that is changed */
#define STEP 256

/* ---- not seen ---- */

static void unseen_key(struct key *k, uint64_t collection)
{
    key_id(k, SPACE_UNSEEN, collection);
}

void unseen_mark(struct store_txn *t, uint64_t collection)
{
    struct key k;
    const uint64_t from = 0;
    unseen_key(&k, collection);
    txn_put(t, SPACE_UNSEEN, &k, &from, sizeof(from));
}

/* Some items to be changed, found before any is. */
struct found_items {
    uint64_t wp_ids[STEP];
    size_t count;
    uint64_t next; /* the item to go on from; 0: none is left */
};

static bool overdue(const struct store_txn *t, const struct item_record *item)
{
    return item->document == 0 && item->deleted_at < t->now - TOMBSTONE_MS;
}

static void find_items(struct store_txn *t, const struct collection_record *c, uint64_t from, uint64_t most, struct found_items *found)
{
    struct walk w = {0};
    struct key start;
    struct item_record item;
    uint64_t looks = most * LOOKS_A_RECORD, wp_id = 0;
    *found = (struct found_items){.count = 0};
    key_id(&w.prefix, SPACE_ITEM, c->id);
    item_key(&start, c->id, from);
    enum store_status status = walk_from(t->s, t->mdb, &w, DB_WIDGET, &start);
    for (; status == STORE_OK && looks > 0 && found->count < most && found->count < STEP; status = walk_next(&w), looks--) {
        if (!walk_u64(&w, 1, &wp_id) || !schema_read_item(w.v, &item)) {
            txn_fail(t, 0, "an item's record");
            break;
        }
        if (overdue(t, &item) || (item.document != 0 && item.generation < c->complete))
            found->wp_ids[found->count++] = wp_id;
    }
    if (status == STORE_OK && walk_u64(&w, 1, &wp_id))
        found->next = wp_id;
    walk_end(&w);
}

static void settle_item(struct store_txn *t, const struct collection_record *c, uint64_t wp_id)
{
    struct key k;
    MDB_val v;
    struct item_record item;
    item_key(&k, c->id, wp_id);
    if (txn_get(t, SPACE_ITEM, &k, &v) != STORE_OK || !schema_read_item(v, &item)) {
        txn_fail(t, 0, "an item's record");
        return;
    }
    if (item.document == 0) {
        txn_del(t, SPACE_ITEM, &k);
        return;
    }
    document_remove(t, item.document);
    item.document = 0;
    item.deleted_at = c->completed_at;
    txn_put(t, SPACE_ITEM, &k, &item, sizeof(item));
}

/* Some of one collection's; *from becomes where to go on, 0 at the end. */
static void unseen_step(struct store_txn *t, uint64_t collection, uint64_t *from, uint64_t *left)
{
    struct open_collection o;
    struct found_items found;
    if (!collection_by_id(&o, t, collection))
        return;
    find_items(t, &o.record, *from, *left, &found);
    size_t done = 0;
    while (done < found.count && *left > 0 && t->error == STORE_OK) {
        settle_item(t, &o.record, found.wp_ids[done++]);
        txn_spend(t, left);
    }
    *from = done < found.count ? found.wp_ids[done] : found.next;
    if (*left > 0)
        txn_spend(t, left); /* for the look */
}

static bool unseen_first(struct store_txn *t, uint64_t *collection, uint64_t *from)
{
    struct walk w = {0};
    bool found = t->error == STORE_OK && walk_begin(t->s, t->mdb, &w, SPACE_UNSEEN) == STORE_OK && walk_u64(&w, 0, collection) &&
                 w.v.mv_size == sizeof(*from);
    if (found)
        memcpy(from, w.v.mv_data, sizeof(*from));
    walk_end(&w);
    return found;
}

void unseen_slice(struct store_txn *t, uint64_t *left)
{
    uint64_t collection, from;
    struct key k;
    while (*left > 0 && unseen_first(t, &collection, &from)) {
        do
            unseen_step(t, collection, &from, left);
        while (from != 0 && *left > 0 && t->error == STORE_OK);
        unseen_key(&k, collection);
        if (from == 0)
            txn_del(t, SPACE_UNSEEN, &k);
        else
            txn_put(t, SPACE_UNSEEN, &k, &from, sizeof(from));
    }
}

/* ---- an agent's ---- */

static bool first_key(struct store_txn *t, const struct key *prefix, struct key *out, MDB_val *value)
{
    struct walk w = {0};
    memcpy(w.prefix.b, prefix->b, prefix->n);
    w.prefix.n = prefix->n;
    bool found = t->error == STORE_OK && walk_prefix(t->s, t->mdb, &w, DB_WIDGET, false) == STORE_OK;
    if (found) {
        out->n = 0;
        key_bytes(out, w.k.mv_data, w.k.mv_size);
        *value = w.v;
    }
    walk_end(&w);
    return found;
}

/* All of one space of a collection, with the documents of items; true when nothing is left of it. */
static bool erase_space(struct store_txn *t, enum space space, uint64_t collection, uint64_t *left)
{
    struct key prefix, k;
    MDB_val v;
    struct item_record item;
    key_id(&prefix, space, collection);
    while (first_key(t, &prefix, &k, &v)) {
        if (*left == 0)
            return false;
        bool is_item = space == SPACE_ITEM && schema_read_item(v, &item);
        if (is_item && item.document != 0)
            document_remove(t, item.document);
        txn_del(t, space, &k);
        txn_spend(t, left);
    }
    return t->error == STORE_OK;
}

static bool erase_collection(struct store_txn *t, uint64_t collection, uint64_t *left)
{
    struct key k;
    if (!erase_space(t, SPACE_ITEM, collection, left) || !erase_space(t, SPACE_GENERATION_ID, collection, left) ||
        !erase_space(t, SPACE_GENERATION, collection, left) || *left == 0)
        return false;
    unseen_key(&k, collection);
    txn_drop(t, SPACE_UNSEEN, &k);
    key_id(&k, SPACE_COLLECTION, collection);
    txn_del(t, SPACE_COLLECTION, &k);
    txn_spend(t, left);
    return t->error == STORE_OK;
}

bool synced_erase(struct store_txn *t, const struct ulid *agent, uint64_t *left)
{
    struct key prefix, k;
    MDB_val v;
    uint64_t collection;
    text_erase(t, agent, left);
    if (*left == 0)
        return false;
    key_of(&prefix, SPACE_COLLECTION_NAME, agent);
    while (first_key(t, &prefix, &k, &v)) {
        if (v.mv_size != sizeof(collection)) {
            txn_fail(t, 0, "the index of collections");
            return false;
        }
        memcpy(&collection, v.mv_data, sizeof(collection));
        if (!erase_collection(t, collection, left))
            return false;
        txn_del(t, SPACE_COLLECTION_NAME, &k);
    }
    key_of(&prefix, SPACE_COUPON, agent);
    while (first_key(t, &prefix, &k, &v)) {
        if (*left == 0)
            return false;
        txn_del(t, SPACE_COUPON, &k);
        txn_spend(t, left);
    }
    return t->error == STORE_OK;
}
