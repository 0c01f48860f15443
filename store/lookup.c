#include "synced_parts.h"

#include "text.h"

struct looking {
    const struct ulid *agent;
    struct hidden hidden;
};

/* Documents that a complete sync did not see are in the index until they are purged: they are passed over. */
static enum store_status is_there(struct store *s, MDB_txn *txn, void *arg, uint64_t id)
{
    struct looking *l = arg;
    struct store_synced d;
    enum store_status status = l->hidden.open ? STORE_OK : hidden_open(s, txn, l->agent, &l->hidden);
    if (status != STORE_OK)
        return status;
    return hidden_has(&l->hidden, id) ? STORE_NOT_FOUND : document_read(s, txn, id, &d);
}

static enum store_status find(struct store *s, MDB_txn *txn, const struct ulid *agent, const struct text_question *q, unsigned limit,
                              struct store_hit *out, size_t *count)
{
    struct text_hit hits[STORE_HITS_MAX];
    struct looking l = {.agent = agent};
    unsigned found;
    enum store_status status = text_find(s, txn, agent, q, limit < STORE_HITS_MAX ? limit : STORE_HITS_MAX, is_there, &l, hits, &found);
    hidden_close(&l.hidden);
    for (*count = 0; *count < found && status == STORE_OK; ++*count) {
        struct store_hit *hit = &out[*count];
        status = document_read(s, txn, hits[*count].id, &hit->document);
        hit->score = (double)hits[*count].score;
        hit->share = (double)hits[*count].share;
    }
    return status;
}

void store_find(struct store *s, const struct ulid *agent, struct str question, unsigned limit, size_t excerpt_bytes, store_hits_fn *done,
                void *arg)
{
    MDB_txn *txn;
    struct text_question q;
    struct store_agent a;
    struct store_hit hits[STORE_HITS_MAX];
    size_t count = 0;
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = agent_read(s, txn, agent, &a);
    if (status == STORE_OK)
        status = text_ask(s, txn, agent, question, &q);
    if (status == STORE_OK)
        status = find(s, txn, agent, &q, limit, hits, &count);
    for (size_t i = 0; i < count && status == STORE_OK; i++)
        hits[i].excerpt = excerpt(&q, hits[i].document.text, excerpt_bytes);
    if (status == STORE_OK && count == 0)
        status = STORE_NOT_FOUND;
    done(arg, status, status == STORE_OK ? hits : NULL, status == STORE_OK ? count : 0);
}

static bool item_on_sale(struct store *s, MDB_txn *txn, uint64_t collection, uint64_t wp_id)
{
    struct key k;
    MDB_val v;
    struct item_record item;
    struct store_synced d;
    item_key(&k, collection, wp_id);
    return store_get(s, txn, SPACE_ITEM, &k, &v) == STORE_OK && schema_read_item(v, &item) && item.document != 0 &&
           document_read(s, txn, item.document, &d) == STORE_OK && d.on_sale;
}

bool store_on_sale(struct store *s, const struct ulid *agent, uint64_t wp_id)
{
    MDB_txn *txn;
    struct walk w = {0};
    const uint8_t kind = SYNCED_PRODUCT;
    uint64_t collection;
    bool found = false;
    enum store_status status = store_snapshot(s, &txn);
    key_of(&w.prefix, SPACE_COLLECTION_NAME, agent);
    key_bytes(&w.prefix, &kind, 1);
    if (status == STORE_OK)
        status = walk_prefix(s, txn, &w, DB_WIDGET, false);
    for (; status == STORE_OK && !found; status = walk_next(&w)) {
        if (w.v.mv_size != sizeof(collection))
            continue;
        memcpy(&collection, w.v.mv_data, sizeof(collection));
        found = item_on_sale(s, txn, collection, wp_id);
    }
    walk_end(&w);
    return found;
}
