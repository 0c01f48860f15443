#include "synced_parts.h"

#include "text.h"

/* Documents that a complete sync did not see are in the index until they are purged: they are passed over, and as many more asked for. */
static enum store_status find_there(struct store *s, MDB_txn *txn, const struct ulid *agent, const struct text_question *q, unsigned limit,
                                    struct store_hit *out, size_t *count)
{
    struct text_hit hits[TEXT_HITS_MAX];
    for (unsigned ask = limit;; ask = ask * 4 < TEXT_HITS_MAX ? ask * 4 : TEXT_HITS_MAX) {
        unsigned found;
        enum store_status status = text_find(s, txn, agent, q, ask, hits, &found);
        *count = 0;
        for (unsigned i = 0; i < found && *count < limit && status == STORE_OK; i++) {
            struct store_hit *hit = &out[*count];
            status = document_read(s, txn, hits[i].id, &hit->document);
            hit->score = (double)hits[i].score;
            hit->share = (double)hits[i].share;
            *count += status == STORE_OK;
            status = status == STORE_NOT_FOUND ? STORE_OK : status;
        }
        if (status != STORE_OK || *count == limit || found < ask || ask == TEXT_HITS_MAX)
            return status;
    }
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
    if (status == STORE_OK && limit > 0)
        status = find_there(s, txn, agent, &q, limit < STORE_HITS_MAX ? limit : STORE_HITS_MAX, hits, &count);
    for (size_t i = 0; i < count && status == STORE_OK; i++)
        hits[i].excerpt = excerpt(&q, hits[i].document.text, excerpt_bytes);
    if (status == STORE_OK && count == 0)
        status = STORE_NOT_FOUND;
    done(arg, status, status == STORE_OK ? hits : NULL, status == STORE_OK ? count : 0);
}
