/*
 * Where answers to visitors come from: what bulk sync brought of the site, looked up by full text (api.md §8). It never invents.
 */
#ifndef ASSAY_API_ANSWER_H
#define ASSAY_API_ANSWER_H

#include "../../store/store.h"

struct answer {
    struct str content;   /* for people */
    struct str citations; /* JSON array */
    bool low_confidence;  /* nothing fits */
};

/* answer_find(store, agent, question, out): the best answer for ${question}; borrowed from the open snapshot, or static. */
void answer_find(struct store *store, const struct ulid *agent, struct str question, struct answer *out);

#endif
