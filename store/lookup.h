/*
 * Look-ups: which synced documents answer a question, by the agent's answer file (answers/). Part
 * of store.h, whose rules about snapshots, borrowed values and callbacks apply. Called on query
 * threads.
 */
#ifndef ASSAY_STORE_LOOKUP_H
#define ASSAY_STORE_LOOKUP_H

#include "store/synced.h"

#define STORE_HITS_MAX 8

struct store_question {
    struct ulid agent;
    struct str text;      /* UTF-8; its first 2,000 bytes count */
    struct str language;  /* of the question: a tag such as "de", or empty */
    unsigned limit;       /* hits at most, up to STORE_HITS_MAX */
    size_t excerpt_bytes; /* maximum for each hit */
    store_stop_fn *stop;  /* true: stop, with STORE_AGAIN; may be NULL */
    void *stop_arg;
};

struct store_hit {
    struct store_synced document;
    double score;       /* rank among the hits of one question */
    double share;       /* share of the question's meaning found in the document: 0 to 1 */
    bool answers;       /* the share is enough for an answer */
    struct str excerpt; /* the passage with most of the question's words; may be empty */
};

struct store_found {
    const struct store_hit *hits; /* the best first */
    size_t count;
    /*
     * Not 0: the agent's answer file of that generation is missing or damaged, and there are no
     * hits. CHANGE_ANSWERS with ANSWERS_NOTE_LOST rebuilds it.
     */
    uint32_t lost;
};

/*
 * store_find(s, question, done, arg): documents of an agent with words of the question. STORE_OK
 * also if there are none, or no file yet. The last changes may be missing: see store_answers_get.
 */
typedef void store_found_fn(void *arg, enum store_status status, const struct store_found *found);
void store_find(struct store *s, const struct store_question *question, store_found_fn *done,
                void *arg);

/*
 * store_on_sale(s, agent, wp_id): has any of the agent's sites an existing product of that number
 * that is on sale?
 */
bool store_on_sale(struct store *s, const struct ulid *agent, uint64_t wp_id);

#endif
