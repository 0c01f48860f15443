#include "synced_parts.h"

#include "text.h"

/* Documents that a complete sync did not see are in the index until they are purged: they are passed over. */
static enum store_status is_there(struct store *s, MDB_txn *txn, uint64_t id)
{
    struct store_synced d;
    return document_read(s, txn, id, &d);
}

static enum store_status find(struct store *s, MDB_txn *txn, const struct ulid *agent, const struct text_question *q, unsigned limit,
                              struct store_hit *out, size_t *count)
{
    struct text_hit hits[STORE_HITS_MAX];
    unsigned found;
    enum store_status status = text_find(s, txn, agent, q, limit < STORE_HITS_MAX ? limit : STORE_HITS_MAX, is_there, hits, &found);
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
