#include "store/engine/free_space.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/agent.h"
#include "store/records/apply.h"
#include "store/records/collection.h"
#include "store/records/document.h"
#include "store/records/idempotency.h"
#include "store/records/item.h"
#include "store/records/sync_purge.h"
#include "store/records/sync_rows.h"

/*
 * A batch of a full sync, or single items: each row is compared with its item and keeps, changes or
 * deletes it.
 */

struct batch {
    struct open_collection o;
    uint64_t generation; /* in which its items are seen */
    bool full;           /* under a sync_id */
    struct str sync_id;
    struct known { /* the items of all rows, before any change */
        struct item_record item;
        bool is;
    } known[STORE_BATCH_MAX];
};

/* ---- items ---- */

static enum store_status item_load(struct store_txn *t, uint64_t collection, uint64_t wp_id,
                                   struct item_record *out)
{
    struct key k;
    MDB_val v;
    *out = (struct item_record){0};
    if (collection == 0)
        return STORE_NOT_FOUND;
    item_key(&k, collection, wp_id);
    enum store_status status = txn_get(t, SPACE_ITEM, &k, &v);
    return status == STORE_OK && !schema_read_item(v, out) ? txn_fail(t, 0, "an item's record")
                                                           : status;
}

static void item_put(struct batch *b, uint64_t wp_id, const struct item_record *item)
{
    struct key k;
    item_key(&k, b->o.record.id, wp_id);
    txn_put(b->o.t, SPACE_ITEM, &k, item, sizeof(*item));
}

void store_items_look(struct store *s, const struct ulid *agent, struct str site,
                      enum synced_kind kind, const uint64_t *wp_ids, size_t count,
                      struct store_item *out)
{
    MDB_txn *txn;
    uint64_t id;
    struct store_collection c;
    memset(out, 0, count * sizeof(*out));
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = collection_named(s, txn, agent, kind, site, &id);
    if (status == STORE_OK)
        status = collection_read(s, txn, id, &c);
    for (size_t i = 0; status == STORE_OK && i < count; i++) {
        struct key k;
        MDB_val v;
        struct item_record item;
        item_key(&k, id, wp_ids[i]);
        if (store_get(s, txn, SPACE_ITEM, &k, &v) != STORE_OK || !schema_read_item(v, &item) ||
            !item_there(&item, c.complete))
            continue;
        out[i] = (struct store_item){.there = true, .modified_at = item.modified_at};
        memcpy(out[i].hash, item.hash, sizeof(item.hash));
    }
}

/* ---- one row ---- */

static bool same(const struct item_record *item, const struct sync_row *row)
{
    return memcmp(item->hash, row->hash, sizeof(item->hash)) == 0;
}

/* The item exists in the shop: seen in this generation, or without one in the current one. */
static void mark_seen(struct batch *b, const struct sync_row *row, struct item_record *item)
{
    const uint64_t was = item->generation;
    bool newer =
        row->action != SYNC_SEEN && same(item, row) && row->modified_at > item->modified_at;
    if (was >= b->generation && !newer)
        return;
    if (newer)
        item->modified_at = row->modified_at;
    if (was < b->generation) {
        item->generation = b->generation;
        generation_count(&b->o, &was, &b->generation);
    }
    item_put(b, row->wp_id, item);
}

/*
 * A document last seen before the last complete generation counts as deleted: make it a tombstone.
 * Its generation stays, so that a late batch of the generation that missed it can restore it.
 */
static void make_tombstone(struct batch *b, uint64_t wp_id, struct item_record *item)
{
    document_remove(b->o.t, item->document);
    item->document = 0;
    item->deleted_at = b->o.record.completed_at;
    item_put(b, wp_id, item);
}

/*
 * Was it deleted after this row was made? A full sync begun after the deletion has the newer state,
 * whatever the dates say.
 */
static bool deleted_since(const struct batch *b, const struct sync_row *row,
                          const struct item_record *tombstone)
{
    if (b->full && b->generation > tombstone->generation)
        return false;
    return row->modified_at != 0 ? row->modified_at <= tombstone->modified_at : b->full;
}

static enum synced_mark upsert_new(struct batch *b, const struct sync_row *row,
                                   struct item_record *item, bool known)
{
    if (known && deleted_since(b, row, item))
        return SYNCED_STALE;
    *item = (struct item_record){.generation = b->generation, .modified_at = row->modified_at};
    memcpy(item->hash, row->hash, sizeof(item->hash));
    item->document = document_add(b->o.t, &b->o.record, row);
    item_put(b, row->wp_id, item);
    generation_count(&b->o, NULL, &b->generation);
    return SYNCED_QUEUED;
}

static enum synced_mark upsert(struct batch *b, const struct sync_row *row,
                               struct item_record *item, bool known)
{
    if (!item_there(item, b->o.record.complete))
        return upsert_new(b, row, item, known);
    bool stale = row->modified_at != 0 && row->modified_at < item->modified_at;
    if (same(item, row) || stale) {
        mark_seen(b, row, item);
        return same(item, row) ? SYNCED_UNCHANGED : SYNCED_STALE;
    }
    const uint64_t was = item->generation;
    if (was < b->generation) {
        item->generation = b->generation;
        generation_count(&b->o, &was, &b->generation);
    }
    if (row->modified_at != 0)
        item->modified_at = row->modified_at;
    memcpy(item->hash, row->hash, sizeof(item->hash));
    document_replace(b->o.t, &b->o.record, item->document, row);
    item_put(b, row->wp_id, item);
    return SYNCED_QUEUED;
}

static enum synced_mark delete_item(struct batch *b, const struct sync_row *row,
                                    struct item_record *item)
{
    bool there = item_there(item, b->o.record.complete);
    if (row->modified_at != 0 && row->modified_at < item->modified_at) {
        if (there)
            mark_seen(b, row, item);
        return SYNCED_STALE;
    }
    const uint64_t was = item->generation;
    if (there) {
        document_remove(b->o.t, item->document);
        generation_count(&b->o, &was, NULL);
    }
    item->document = 0;
    item->generation = b->o.record.generations;
    item->deleted_at = b->o.t->now;
    if (row->modified_at != 0)
        item->modified_at = row->modified_at;
    else if (item->modified_at < b->o.t->now)
        item->modified_at = b->o.t->now;
    memset(item->hash, 0, sizeof(item->hash));
    item_put(b, row->wp_id, item);
    return SYNCED_DELETED;
}

static enum synced_mark row_apply(struct batch *b, const struct sync_row *row,
                                  const struct known *before)
{
    struct item_record item = before->item;
    const bool known = before->is;
    if (known && item.document != 0 && !item_there(&item, b->o.record.complete))
        make_tombstone(b, row->wp_id, &item);
    switch (row->action) {
    case SYNC_DELETE:
        return delete_item(b, row, &item);
    case SYNC_SEEN:
        if (item.document != 0)
            mark_seen(b, row, &item);
        return SYNCED_FAILED;
    default:
        return upsert(b, row, &item, known);
    }
}

/* ---- the batch ---- */

/* ${upserts}: rows with new content. */
static bool rows_well_formed(struct str rows, size_t *upserts)
{
    struct sync_row row;
    size_t count = 0;
    for (*upserts = 0; sync_row_next(&rows, &row); count++)
        *upserts += row.action == SYNC_UPSERT;
    return rows.n == 0 && count <= STORE_BATCH_MAX;
}

static bool well_formed(const struct store_change *c, size_t *upserts)
{
    return c->name.n > 0 && c->name.n <= STORE_SITE_MAX && c->text.n <= SYNC_ID_MAX &&
           c->status < SYNCED_COUPON && (c->text.n != 0 || (c->fields & SYNC_COMPLETE) == 0) &&
           (c->idem_key.n == 0 || (c->idem_key.n == 32 && c->idem_body.n == 32)) &&
           rows_well_formed(c->data, upserts);
}

static bool named_before(struct str rows, size_t count, uint64_t wp_id)
{
    struct sync_row row;
    for (; count > 0 && sync_row_next(&rows, &row); count--)
        if (row.wp_id == wp_id)
            return true;
    return false;
}

/* Read every item; rows that say "unchanged" must still be right. */
static enum store_status items_load(struct batch *b, const struct str all)
{
    struct sync_row row;
    struct str rows = all;
    uint64_t highest = 0;
    for (size_t i = 0; sync_row_next(&rows, &row); i++) {
        struct known *known = &b->known[i];
        if (row.wp_id <= highest && named_before(all, i, row.wp_id))
            return STORE_INVALID;
        highest = row.wp_id > highest ? row.wp_id : highest;
        enum store_status status = item_load(b->o.t, b->o.record.id, row.wp_id, &known->item);
        if (status != STORE_OK && status != STORE_NOT_FOUND)
            return status;
        known->is = status == STORE_OK;
        if (row.action == SYNC_SAME &&
            (!item_there(&known->item, b->o.record.complete) || !same(&known->item, &row)))
            return STORE_AGAIN;
    }
    return STORE_OK;
}

static enum store_status generation_judge(struct batch *b)
{
    uint64_t known = b->full ? generation_of(&b->o, b->sync_id) : 0;
    b->generation = known != 0 ? known : b->o.record.generations + b->full;
    bool late = known < b->o.record.complete || known <= generations_closed(&b->o.record);
    return known != 0 && late ? STORE_STALE : b->o.t->error;
}

static void batch_apply(struct batch *b, const struct store_change *c, struct store_answer *answer)
{
    struct sync_row row;
    struct str rows = c->data;
    if (!collection_begin(&b->o))
        return;
    if (b->generation > b->o.record.generations) {
        generation_begin(&b->o, b->sync_id);
        if (over_mark(b->o.t, &b->o.record))
            txn_event(b->o.t, EVENT_PURGE, c->workspace, 0, 0);
    }
    for (size_t i = 0; b->o.t->error == STORE_OK && sync_row_next(&rows, &row); i++)
        synced_mark_set(answer, i, row_apply(b, &row, &b->known[i]));
    if ((c->fields & SYNC_COMPLETE) != 0) {
        answer->id = generation_complete(&b->o, b->generation, b->sync_id);
        unseen_mark(b->o.t, &b->o.record);
        txn_event(b->o.t, EVENT_PURGE, c->workspace, 0, 0);
    }
    collection_close(&b->o);
    answer->version = b->generation;
    answer->code = c->code;
}

enum store_status sync_put(struct store_txn *t, const struct store_change *c,
                           struct store_answer *answer)
{
    struct batch b;
    size_t upserts;
    if (!well_formed(c, &upserts))
        return STORE_INVALID;
    enum store_status status = agent_of_workspace(t, c);
    if (status != STORE_OK)
        return status;
    status = idempotency_look_sync(t, c, answer);
    if (status != STORE_NOT_FOUND)
        return status;
    b.full = c->text.n != 0;
    b.sync_id = c->text;
    if (!collection_open(&b.o, t, &c->agent, (enum synced_kind)c->status, c->name))
        return t->error;
    status =
        b.o.record.id == 0 && !collection_has_room(&b.o) ? STORE_TOO_MANY : generation_judge(&b);
    if (status == STORE_OK)
        status = items_load(&b, c->data);
    if (status == STORE_OK && upserts > 0 && txn_is_full(t))
        status = STORE_FULL;
    if (status != STORE_OK)
        return status;
    batch_apply(&b, c, answer);
    idempotency_put_sync(t, c, answer);
    return STORE_OK;
}
