#include "store/engine/check.h"
#include "store/engine/cursor.h"
#include "store/records/agent.h"
#include "store/records/checks.h"
#include "store/records/collection.h"
#include "store/records/coupon.h"
#include "store/records/document.h"
#include "store/records/item.h"
#include "store/records/sync_purge.h"
#include "store/records/ulid_keys.h"

/* ---- checks of synced records ---- */

#define LL(v) ((unsigned long long)(v))

static bool key_numbers(const struct cursor *w, uint64_t *first, uint64_t *second)
{
    return cursor_u64(w, 0, first) && cursor_u64(w, 1, second);
}

/* Its agent exists, or its records are being deleted. */
static bool agent_known(struct check *c, const struct ulid *agent)
{
    struct key k;
    MDB_val v;
    key_of(&k, SPACE_AGENT, agent);
    if (check_get(c, SPACE_AGENT, &k, &v))
        return true;
    key_of(&k, SPACE_ERASING, agent);
    return check_get(c, SPACE_ERASING, &k, &v);
}

static bool collection_there(struct check *c, uint64_t id, struct store_collection *out)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_COLLECTION, id);
    return check_get(c, SPACE_COLLECTION, &k, &v) && schema_read_collection(v, out);
}

/* ---- collections ---- */

static uint64_t count_items(struct check *c, const struct store_collection *r)
{
    struct cursor w = {0};
    struct item_record item;
    uint64_t count = 0;
    key_id(&w.prefix, SPACE_ITEM, r->id);
    enum store_status status = cursor_prefix(c->s, c->txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK; status = cursor_next(&w))
        count += schema_read_item(w.v, &item) && item_there(&item, r->complete);
    cursor_end(&w);
    return count;
}

static uint64_t count_coupons(struct check *c, const struct store_collection *r)
{
    struct cursor w = {0};
    uint64_t count = 0;
    key_of(&w.prefix, SPACE_COUPON, &r->agent);
    enum store_status status = cursor_prefix(c->s, c->txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK; status = cursor_next(&w))
        count++;
    cursor_end(&w);
    return count;
}

static uint64_t count_generations(struct check *c, const struct store_collection *r)
{
    struct cursor w = {0};
    struct generation_record row;
    uint64_t count = 0, number;
    key_id(&w.prefix, SPACE_GENERATION, r->id);
    enum store_status status = cursor_prefix(c->s, c->txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        if (!cursor_u64(&w, 1, &number) || number < r->complete || w.v.mv_size != sizeof(row))
            continue;
        memcpy(&row, w.v.mv_data, sizeof(row));
        count += row.items;
    }
    cursor_end(&w);
    return count;
}

void check_collection(struct check *c, const struct cursor *w)
{
    struct store_collection r;
    uint64_t id, named;
    if (!schema_read_collection(w->v, &r) || !cursor_u64(w, 0, &id) || id != r.id) {
        check_say(c, "a collection's record is malformed");
        return;
    }
    if (!agent_known(c, &r.agent)) {
        check_say(c, "collection %llu belongs to an agent that does not exist", LL(r.id));
        return;
    }
    if (collection_named(c->s, c->txn, &r.agent, r.kind, r.site, &named) != STORE_OK ||
        named != r.id)
        check_say(c, "collection %llu cannot be found by its agent and site", LL(r.id));
    struct store_agent a;
    if (agent_read(c->s, c->txn, &r.agent, &a) != STORE_OK)
        return; /* it is being deleted */
    uint64_t count = r.kind == SYNCED_COUPON ? count_coupons(c, &r) : count_items(c, &r);
    if (count != r.count)
        check_say(c, "collection %llu counts %llu items; there are %llu", LL(r.id), LL(r.count),
                  LL(count));
    if (r.kind != SYNCED_COUPON && count_generations(c, &r) != r.count)
        check_say(c, "the generations of collection %llu count %llu items; there are %llu",
                  LL(r.id), LL(count_generations(c, &r)), LL(r.count));
    if (r.complete > r.generations)
        check_say(c, "collection %llu is complete beyond its last generation", LL(r.id));
}

void check_collection_name(struct check *c, const struct cursor *w)
{
    struct store_collection r;
    uint64_t id = 0;
    if (w->v.mv_size == sizeof(id))
        memcpy(&id, w->v.mv_data, sizeof(id));
    if (!collection_there(c, id, &r))
        check_say(c, "the index of collections names %llu, which does not exist", LL(id));
}

void check_generation(struct check *c, const struct cursor *w)
{
    struct store_collection r;
    uint64_t collection, number;
    if (!key_numbers(w, &collection, &number) || w->v.mv_size != sizeof(struct generation_record))
        check_say(c, "a generation's record is malformed");
    else if (!collection_there(c, collection, &r) || number > r.generations)
        check_say(c, "generation %llu of collection %llu was never begun", LL(number),
                  LL(collection));
}

void check_generation_id(struct check *c, const struct cursor *w)
{
    struct key k;
    MDB_val v;
    uint64_t collection, number = 0;
    bool good = cursor_u64(w, 0, &collection) && w->v.mv_size == sizeof(number);
    if (good) {
        memcpy(&number, w->v.mv_data, sizeof(number));
        key_id(&k, SPACE_GENERATION, collection);
        key_u64(&k, number);
        good = check_get(c, SPACE_GENERATION, &k, &v);
    }
    if (!good)
        check_say(c, "the index of generations names one that does not exist");
}

/* ---- items and documents ---- */

void check_item(struct check *c, const struct cursor *w)
{
    struct store_collection r;
    struct item_record item;
    struct store_synced d;
    struct key k;
    MDB_val v;
    uint64_t collection, wp_id;
    if (!schema_read_item(w->v, &item) || !key_numbers(w, &collection, &wp_id)) {
        check_say(c, "an item's record is malformed");
        return;
    }
    if (!collection_there(c, collection, &r) || item.generation > r.generations)
        check_say(c, "item %llu belongs to no collection, or to no generation of it", LL(wp_id));
    if (item.document == 0)
        return;
    key_id(&k, SPACE_DOCUMENT, item.document);
    if (!check_get(c, SPACE_DOCUMENT, &k, &v) || !schema_read_document(v, &d) ||
        d.collection != collection || d.wp_id != wp_id)
        check_say(c,
                  "item %llu of collection %llu has a document that does not exist or belongs to "
                  "another item",
                  LL(wp_id), LL(collection));
}

void check_document(struct check *c, const struct cursor *w)
{
    struct store_synced d;
    struct item_record item;
    struct key k;
    MDB_val v;
    uint64_t id, last = 0;
    if (!schema_read_document(w->v, &d) || !cursor_u64(w, 0, &id) || id != d.id) {
        check_say(c, "a document's record is malformed");
        return;
    }
    item_key(&k, d.collection, d.wp_id);
    if (!check_get(c, SPACE_ITEM, &k, &v) || !schema_read_item(v, &item) || item.document != id)
        check_say(c, "document %llu belongs to no item", LL(id));
    key_meta(&k, 'y');
    if (check_get(c, SPACE_META, &k, &v) && v.mv_size == sizeof(struct synced_counters))
        memcpy(&last, (const char *)v.mv_data + offsetof(struct synced_counters, document),
               sizeof(last));
    if (id > last)
        check_say(c, "document %llu has an id that was never given", LL(id));
    check_document_change(c, &d);
}

void check_unseen(struct check *c, const struct cursor *w)
{
    struct store_collection r;
    uint64_t collection;
    if (!cursor_u64(w, 0, &collection) || !unseen_well_formed(w->v) ||
        !collection_there(c, collection, &r))
        check_say(c, "a row of pending deletions after a sync is malformed");
}

void check_coupon(struct check *c, const struct cursor *w)
{
    struct store_coupon coupon;
    struct key k;
    if (!schema_read_coupon(w->v, &coupon) || coupon.type > COUPON_FIXED_PRODUCT) {
        check_say(c, "a coupon's record is malformed");
        return;
    }
    coupon_key(&k, &coupon.agent, coupon.code);
    if (k.n != w->k.mv_size || memcmp(k.b, w->k.mv_data, k.n) != 0)
        check_say(c, "a coupon is not where its code is");
    if (!agent_known(c, &coupon.agent))
        check_say(c, "a coupon belongs to an agent that does not exist");
}

void check_sync_once(struct check *c, const struct cursor *w)
{
    struct key k;
    MDB_val v;
    bool good = w->v.mv_size == sizeof(struct sync_once_record) && w->k.mv_size == 1 + 32;
    if (good) {
        key_space(&k, SPACE_IDEM);
        key_bytes(&k, (const char *)w->k.mv_data + 1, 32);
        good = check_get(c, SPACE_IDEM, &k, &v);
    }
    if (!good)
        check_say(c, "the stored answer to a batch is malformed, or never deleted");
}

void check_pending_coupons(struct check *c, const struct cursor *w)
{
    struct key k;
    MDB_val v;
    key_space(&k, SPACE_CONVERSATION);
    key_bytes(&k, (const char *)w->k.mv_data + 1, w->k.mv_size - 1);
    if (!pending_coupons_well_formed(w->v) || !check_get(c, SPACE_CONVERSATION, &k, &v))
        check_say(c, "the pending coupons of a conversation are malformed, or it does not exist");
}
