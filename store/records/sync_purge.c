#include "store/records/sync_purge.h"

#include "store/engine/cursor.h"
#include "store/engine/free_space.h"
#include "store/engine/txn.h"
#include "store/records/answers_log.h"
#include "store/records/collection.h"
#include "store/records/document.h"
#include "store/records/item.h"
#include "store/records/ulid_keys.h"

/*
 * Items that a complete generation did not see are hidden at once; here they become tombstones in
 * batches, and old tombstones are deleted. Also the deletion of everything that a deleted agent's
 * shop sent.
 */

#define TOMBSTONE_MS ((int64_t)90 * 24 * 60 * 60 * 1000)
#define LOOKS_A_RECORD 16 /* items read that count as one record changed */
#define STEP 256
#define FORGET_STEP 64

/* ---- unseen items ---- */

static void unseen_key(struct key *k, uint64_t collection)
{
    key_id(k, SPACE_UNSEEN, collection);
}

static void unseen_put(struct store_txn *t, uint64_t collection, const struct unseen_record *r)
{
    struct key k;
    unseen_key(&k, collection);
    txn_put(t, SPACE_UNSEEN, &k, r, sizeof(*r));
}

static bool unseen(const struct collection_record *c, const struct item_record *item)
{
    return item->document != 0 && item->generation < c->complete;
}

void unseen_mark(struct store_txn *t, const struct collection_record *c)
{
    unseen_put(t, c->id, &(struct unseen_record){.from = 0});
}

/* Items to be changed, found before any is changed. */
struct found_items {
    uint64_t wp_ids[STEP];
    size_t count;
    uint64_t next; /* the item to continue from; UNSEEN_DONE: none is left */
};

static bool overdue(const struct store_txn *t, const struct item_record *item)
{
    return item->document == 0 && item->deleted_at < t->now - TOMBSTONE_MS;
}

static void find_items(struct store_txn *t, const struct collection_record *c, uint64_t from,
                       uint64_t most, struct found_items *found)
{
    struct cursor w = {0};
    struct key start;
    struct item_record item;
    uint64_t looks = most * LOOKS_A_RECORD, wp_id = 0;
    *found = (struct found_items){.next = UNSEEN_DONE};
    key_id(&w.prefix, SPACE_ITEM, c->id);
    item_key(&start, c->id, from);
    enum store_status status = cursor_from(t->s, t->mdb, &w, DB_WIDGET, &start);
    for (; status == STORE_OK && looks > 0 && found->count < most && found->count < STEP;
         status = cursor_next(&w), looks--) {
        if (!cursor_u64(&w, 1, &wp_id) || !schema_read_item(w.v, &item)) {
            txn_fail(t, 0, "an item's record");
            break;
        }
        if (overdue(t, &item) || unseen(c, &item))
            found->wp_ids[found->count++] = wp_id;
    }
    if (status == STORE_OK && cursor_u64(&w, 1, &wp_id))
        found->next = wp_id;
    cursor_end(&w);
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

static bool first_key(struct store_txn *t, const struct key *prefix, struct key *out,
                      MDB_val *value)
{
    struct cursor w = {0};
    memcpy(w.prefix.b, prefix->b, prefix->n);
    w.prefix.n = prefix->n;
    bool found =
        t->error == STORE_OK && cursor_prefix(t->s, t->mdb, &w, DB_WIDGET, false) == STORE_OK;
    if (found) {
        out->n = 0;
        key_bytes(out, w.k.mv_data, w.k.mv_size);
        *value = w.v;
    }
    cursor_end(&w);
    return found;
}

/* Delete a space of a collection, with the documents of items; true: nothing is left. */
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

static void remove_step(struct store_txn *t, const struct collection_record *c, uint64_t *from,
                        uint64_t *left)
{
    struct found_items found;
    find_items(t, c, *from, *left, &found);
    size_t done = 0;
    while (done<found.count && * left> 0 && t->error == STORE_OK) {
        settle_item(t, c, found.wp_ids[done++]);
        txn_spend(t, left);
    }
    *from = done < found.count ? found.wp_ids[done] : found.next;
    if (*left > 0)
        txn_spend(t, left); /* for the search */
}

/* ---- old generations ---- */

static bool long_over(const struct collection_record *c, uint64_t number)
{
    return number + STORE_SYNCS_KEPT <= c->complete ||
           number + STORE_SYNCS_KEPT <= generations_closed(c);
}

bool over_mark(struct store_txn *t, const struct collection_record *c)
{
    struct key k;
    MDB_val v;
    uint64_t closed = generations_closed(c);
    if (closed <= c->complete || closed % STORE_SYNCS_KEPT != 0)
        return false;
    unseen_key(&k, c->id);
    if (txn_get(t, SPACE_UNSEEN, &k, &v) ==
        STORE_NOT_FOUND) /* otherwise they are deleted at its end */
        unseen_put(t, c->id, &(struct unseen_record){.from = UNSEEN_DONE});
    return true;
}

/* The keys of the first such rows of a collection in ${space}. */
static size_t find_closed(struct store_txn *t, enum space space, const struct collection_record *c,
                          struct key *keys, size_t most)
{
    struct cursor w = {0};
    size_t count = 0;
    key_id(&w.prefix, space, c->id);
    enum store_status status =
        t->error != STORE_OK ? t->error : cursor_prefix(t->s, t->mdb, &w, DB_WIDGET, false);
    for (; status == STORE_OK && count < most; status = cursor_next(&w)) {
        uint64_t number = UINT64_MAX / 2;
        if (space == SPACE_GENERATION)
            cursor_u64(&w, 1, &number);
        else if (w.v.mv_size == sizeof(number))
            memcpy(&number, w.v.mv_data, sizeof(number));
        if (!long_over(c, number) && space == SPACE_GENERATION) /* they are sorted */
            break;
        keys[count].n = 0;
        key_bytes(&keys[count], w.k.mv_data, w.k.mv_size);
        count += long_over(c, number);
    }
    cursor_end(&w);
    return count;
}

/* Delete all of them in ${space}; true: none is left. */
static bool forget_space(struct store_txn *t, enum space space, const struct collection_record *c,
                         uint64_t *left)
{
    struct key keys[FORGET_STEP];
    size_t count;
    while (*left > 0 &&
           (count = find_closed(t, space, c, keys, *left < FORGET_STEP ? *left : FORGET_STEP)) > 0)
        for (size_t i = 0; i<count && * left> 0; i++) {
            txn_del(t, space, &keys[i]);
            txn_spend(t, left);
        }
    return *left > 0 && t->error == STORE_OK;
}

static bool forget_generations(struct store_txn *t, const struct collection_record *c,
                               uint64_t *left)
{
    struct key key;
    if (find_closed(t, SPACE_GENERATION, c, &key, 1) ==
        0) /* mostly there is none, and the sync_ids need not be read */
        return true;
    return forget_space(t, SPACE_GENERATION_ID, c, left) &&
           forget_space(t, SPACE_GENERATION, c, left);
}

/* True: all is done. */
static bool unseen_step(struct store_txn *t, const struct collection_record *c,
                        struct unseen_record *r, uint64_t *left)
{
    while (r->from != UNSEEN_DONE && *left > 0 && t->error == STORE_OK)
        remove_step(t, c, &r->from, left);
    return r->from == UNSEEN_DONE && forget_generations(t, c, left);
}

static bool unseen_read(MDB_val value, struct unseen_record *out)
{
    if (!unseen_well_formed(value))
        return false;
    memcpy(out, value.mv_data, sizeof(*out));
    return true;
}

bool unseen_well_formed(MDB_val value)
{
    return value.mv_size == sizeof(struct unseen_record);
}

static bool unseen_first(struct store_txn *t, uint64_t *collection, struct unseen_record *out)
{
    struct cursor w = {0};
    bool found = t->error == STORE_OK && cursor_begin(t->s, t->mdb, &w, SPACE_UNSEEN) == STORE_OK &&
                 cursor_u64(&w, 0, collection) && unseen_read(w.v, out);
    cursor_end(&w);
    return found;
}

void unseen_batch(struct store_txn *t, uint64_t *left)
{
    uint64_t collection;
    struct unseen_record r;
    struct open_collection o;
    struct key k;
    while (*left > 0 && unseen_first(t, &collection, &r) && collection_by_id(&o, t, collection)) {
        unseen_key(&k, collection);
        if (unseen_step(t, &o.record, &r, left))
            txn_del(t, SPACE_UNSEEN, &k);
        else
            unseen_put(t, collection, &r);
    }
}

/* ---- a deleted agent ---- */

static bool erase_collection(struct store_txn *t, uint64_t collection, uint64_t *left)
{
    struct key k;
    if (!erase_space(t, SPACE_ITEM, collection, left) ||
        !erase_space(t, SPACE_GENERATION_ID, collection, left) ||
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
    answers_erase(t, agent);
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
