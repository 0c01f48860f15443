/*
 * Answers to visitors, found by full text in the documents from bulk sync. An answer is a passage
 * of a document with its citations; for a product, its name, price and availability come first.
 * Greetings and thanks get a reply (phrases_internal.h).
 */
#ifndef ASSAY_API_ANSWER_H
#define ASSAY_API_ANSWER_H

#include "core/http/handler.h"

#define ANSWER_CITATIONS 3 /* at most; all but the first score at least half of it */
#define ANSWER_BYTES 600   /* of a passage */

struct answer {
    struct str content;   /* plain text */
    struct str citations; /* JSON array of {"type","wp_id","title","url","excerpt","image_url"?} */
    bool low_confidence;  /* nothing was found */
};

/*
 * answer_find(r, agent, question, done): let ${r} wait for a query thread that finds the best
 * answer to ${question}, then call ${done}. The answer is valid until ${done} returns. If the
 * search fails, an error is sent and ${done} is not called.
 */
typedef void answer_done_fn(struct request *r, const struct answer *answer);
void answer_find(struct request *r, const struct ulid *agent, struct str question,
                 answer_done_fn *done);

#endif
