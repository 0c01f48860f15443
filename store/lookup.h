/*
 * Look-ups: which of the documents that bulk sync brought answer a question. A part of store.h, which includes it; what is said there about
 * snapshots, borrowed values and callbacks holds here too.
 */
#ifndef ASSAY_STORE_LOOKUP_H
#define ASSAY_STORE_LOOKUP_H

#include "synced.h"

#define STORE_HITS_MAX 8

struct store_hit {
    struct store_synced document;
    double score;       /* BM25 over title, taxonomy, SKU and text; see text.h */
    double share;       /* of what the question's words weigh, those that the document has: 0 to 1 */
    struct str excerpt; /* of its text, the passage that has most of them; may be empty */
};

/*
 * store_find(s, agent, question, limit, excerpt_bytes, done, arg): the documents of ${agent} that have a word of ${question} (UTF-8; its first
 * 128 different words are looked up), the best first, at most ${limit} (up to STORE_HITS_MAX). Words that every question has ("the",
 * "how", …) are not looked for. STORE_NOT_FOUND: there is none.
 */
typedef void store_hits_fn(void *arg, enum store_status status, const struct store_hit *hits, size_t count);
void store_find(struct store *s, const struct ulid *agent, struct str question, unsigned limit, size_t excerpt_bytes, store_hits_fn *done,
                void *arg);

/* store_on_sale(s, agent, wp_id): does any of the agent's sites have a product of that number that is there and on sale? */
bool store_on_sale(struct store *s, const struct ulid *agent, uint64_t wp_id);

#endif
