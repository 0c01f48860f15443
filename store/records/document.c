#include "store/records/document.h"

#include "store/engine/cursor.h"
#include "store/engine/errors.h"
#include "store/engine/snapshot.h"
#include "store/engine/txn.h"
#include "store/records/agent.h"
#include "store/records/answers_log.h"
#include "store/records/collection.h"
#include "store/records/item.h"
#include "store/records/sync_rows.h"
#include "store/records/ulid_keys.h"

/* Documents: the content of an existing item. */

bool schema_read_document(MDB_val value, struct store_synced *out)
{
    const struct document_record *r = value.mv_data;
    if (value.mv_size < sizeof(*r) || r->kind >= SYNCED_COUPON || r->stock > STOCK_BACKORDER)
        return false;
    const char *p = (const char *)(r + 1);
    *out = (struct store_synced){
        .id = r->id,
        .collection = r->collection,
        .wp_id = r->wp_id,
        .change = r->change,
        .agent = r->agent,
        .kind = (enum synced_kind)r->kind,
        .modified_at = r->modified_at,
        .synced_at = r->synced_at,
        .exponent = r->exponent,
        .price = r->price,
        .regular_price = r->regular_price,
        .sale_price = r->sale_price,
        .on_sale = r->on_sale,
        .stock = (enum stock_status)r->stock,
    };
    memcpy(out->currency, r->currency, sizeof(r->currency));
    const size_t lengths[] = {r->title_n,    r->taxonomy_n, r->text_n,      r->url_n,
                              r->language_n, r->type_n,     r->image_url_n, r->sku_n};
    struct str *const texts[] = {&out->title,    &out->taxonomy, &out->text,      &out->url,
                                 &out->language, &out->type,     &out->image_url, &out->sku};
    size_t left = value.mv_size - sizeof(*r);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        if (lengths[i] > left)
            return false;
        *texts[i] = (struct str){p, lengths[i]};
        p += lengths[i];
        left -= lengths[i];
    }
    return left == 0;
}

/* ---- reading ---- */

/* Does its item exist, and is this its document? */
static enum store_status document_there(struct store *s, MDB_txn *txn, const struct store_synced *d)
{
    struct key k;
    MDB_val v;
    struct item_record item;
    struct store_collection c;
    struct store_agent a;
    item_key(&k, d->collection, d->wp_id);
    enum store_status status = store_get(s, txn, SPACE_ITEM, &k, &v);
    if (status == STORE_OK && !schema_read_item(v, &item))
        status = store_corrupt(s, "an item's record");
    if (status == STORE_OK)
        status = collection_read(s, txn, d->collection, &c);
    if (status == STORE_OK && (item.document != d->id || !item_there(&item, c.complete)))
        status = STORE_NOT_FOUND;
    return status == STORE_OK ? agent_read(s, txn, &d->agent, &a) : status;
}

enum store_status document_get(struct store *s, MDB_txn *txn, uint64_t id, struct store_synced *out)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_DOCUMENT, id);
    enum store_status status = store_get(s, txn, SPACE_DOCUMENT, &k, &v);
    return status == STORE_OK && !schema_read_document(v, out)
               ? store_corrupt(s, "a document's record")
               : status;
}

enum store_status document_read(struct store *s, MDB_txn *txn, uint64_t id,
                                struct store_synced *out)
{
    enum store_status status = document_get(s, txn, id, out);
    return status == STORE_OK ? document_there(s, txn, out) : status;
}

void store_synced_get(struct store *s, uint64_t id, store_synced_fn *done, void *arg)
{
    MDB_txn *txn;
    struct store_synced d;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = document_read(s, txn, id, &d);
    done(arg, status, status == STORE_OK ? &d : NULL);
}

static enum store_status collection_documents(struct store *s, MDB_txn *txn,
                                              const struct store_collection *c,
                                              store_synced_fn *each, void *arg)
{
    struct cursor w = {0};
    struct item_record item;
    struct store_synced d;
    struct key k;
    MDB_val v;
    key_id(&w.prefix, SPACE_ITEM, c->id);
    enum store_status status = cursor_prefix(s, txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        if (!schema_read_item(w.v, &item)) {
            status = store_corrupt(s, "an item's record");
            break;
        }
        if (!item_there(&item, c->complete))
            continue;
        key_id(&k, SPACE_DOCUMENT, item.document);
        if (store_get(s, txn, SPACE_DOCUMENT, &k, &v) != STORE_OK || !schema_read_document(v, &d)) {
            status = store_corrupt(s, "a document's record");
            break;
        }
        each(arg, STORE_OK, &d);
    }
    cursor_end(&w);
    return status;
}

void store_synced_each(struct store *s, const struct ulid *agent, enum synced_kind kind,
                       store_synced_fn *each, void *arg)
{
    MDB_txn *txn;
    struct cursor w = {0};
    struct store_collection c;
    const uint8_t byte = (uint8_t)kind;
    uint64_t id;
    enum store_status status = store_snapshot(s, &txn);
    key_of(&w.prefix, SPACE_COLLECTION_NAME, agent);
    key_bytes(&w.prefix, &byte, 1);
    if (status == STORE_OK)
        status = cursor_prefix(s, txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        memcpy(&id, w.v.mv_data, w.v.mv_size == sizeof(id) ? sizeof(id) : 0);
        status = w.v.mv_size == sizeof(id) ? collection_read(s, txn, id, &c)
                                           : store_corrupt(s, "the index of collections");
        if (status == STORE_OK)
            status = collection_documents(s, txn, &c, each, arg);
        if (status != STORE_NOT_FOUND)
            break;
    }
    cursor_end(&w);
    each(arg, status, NULL);
}

/* ---- changing ---- */

/*
 * Prices and stock are not in the answer file: a document with unchanged texts keeps its change
 * number.
 */
static bool same_texts(const struct store_synced *a, const struct store_synced *b)
{
    return str_eq(a->title, b->title) && str_eq(a->taxonomy, b->taxonomy) &&
           str_eq(a->sku, b->sku) && str_eq(a->text, b->text) && str_eq(a->language, b->language);
}

/* ${was}: the stored value, borrowed until the next write; NULL: none. */
static void document_put(struct store_txn *t, const struct collection_record *c, uint64_t id,
                         const struct store_synced *was, const struct sync_row *row)
{
    struct key k;
    struct store_synced now;
    if (!schema_read_document((MDB_val){row->document.n, (void *)(uintptr_t)row->document.p},
                              &now)) {
        txn_fail(t, 0, "a document that was sent");
        return;
    }
    uint64_t before = was == NULL ? 0 : was->change;
    uint64_t change =
        was != NULL && same_texts(was, &now) ? before : answers_log(t, &c->agent, id, before);
    key_id(&k, SPACE_DOCUMENT, id);
    struct document_record *r = txn_reserve(t, SPACE_DOCUMENT, &k, row->document.n);
    if (r == NULL)
        return;
    memcpy(r, row->document.p, row->document.n);
    r->kind = c->kind;
    r->agent = c->agent;
    r->collection = c->id;
    r->id = id;
    r->wp_id = row->wp_id;
    r->change = change;
    r->synced_at = t->now;
}

/* A document that must exist. */
static bool document_load(struct store_txn *t, uint64_t id, struct store_synced *out)
{
    if (t->error == STORE_OK && document_get(t->s, t->mdb, id, out) != STORE_OK)
        txn_fail(t, 0, "an item's document");
    return t->error == STORE_OK;
}

uint64_t document_add(struct store_txn *t, const struct collection_record *c,
                      const struct sync_row *row)
{
    uint64_t id = synced_next_document(t);
    if (id != 0)
        document_put(t, c, id, NULL, row);
    return t->error == STORE_OK ? id : 0;
}

void document_replace(struct store_txn *t, const struct collection_record *c, uint64_t id,
                      const struct sync_row *row)
{
    struct store_synced was = {0};
    if (document_load(t, id, &was))
        document_put(t, c, id, &was, row);
}

void document_remove(struct store_txn *t, uint64_t id)
{
    struct key k;
    struct store_agent a;
    struct store_synced was;
    if (!document_load(t, id, &was))
        return;
    const struct ulid agent = was.agent;
    /* the answer file of a deleted agent is deleted as a whole */
    if (agent_read(t->s, t->mdb, &agent, &a) == STORE_OK)
        answers_log(t, &agent, id, was.change);
    key_id(&k, SPACE_DOCUMENT, id);
    txn_del(t, SPACE_DOCUMENT, &k);
}
