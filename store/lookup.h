/*
 * Look-ups: which of the documents that bulk sync brought answer a question, by the agent's answer
 * file (answers/). A part of store.h, which includes it; what is said there about snapshots,
 * borrowed
 * values and callbacks holds here too. The cost of a question is that of a query (core/loop/query_threads.h).
 */
#ifndef ASSAY_STORE_LOOKUP_H
#define ASSAY_STORE_LOOKUP_H

#include "store/synced.h"

#define STORE_HITS_MAX 8

struct store_question {
    struct ulid agent;
    struct str text;       /* UTF-8; its first 2,000 bytes count */
    struct str language;   /* of the question: a tag such as "de", or empty */
    unsigned limit;        /* hits at most, up to STORE_HITS_MAX */
    size_t excerpt_bytes;  /* of each hit's text, at most */
    store_pause_fn *pause; /* true: stop, with STORE_AGAIN; may be NULL */
    void *pause_arg;
};

struct store_hit {
    struct store_synced document;
    double score; /* rank among the hits of one question */
    double share; /* of the question's meaning, what the document has: 0 to 1 */
    bool answers; /* that is enough of it to answer the question */
    struct str
        excerpt; /* the passage of its text that has most of the question's words; may be empty */
};

struct store_found {
    const struct store_hit *hits; /* the best first */
    size_t count;
    /*
     * Not 0: the agent's answer file of that generation is missing or damaged, and nothing was
     * found.
     * A CHANGE_ANSWERS with ANSWERS_NOTE_LOST has it built anew.
     */
    uint32_t lost;
};

/*
 * store_find(s, question, done, arg): documents of an agent that have words of the question.
 * STORE_OK also where there is none, or no file yet. What changed within the last moments is found
 * by what it was before: see store_answers_get.
 */
typedef void store_found_fn(void *arg, enum store_status status, const struct store_found *found);
void store_find(struct store *s, const struct store_question *question, store_found_fn *done,
                void *arg);

/* store_on_sale(s, agent, wp_id): does any of the agent's sites have a product of that number that is there and on sale? */
bool store_on_sale(struct store *s, const struct ulid *agent, uint64_t wp_id);

#endif
