/*
 * Where answers to visitors come from: what bulk sync brought of the site, looked up by full text
 * (api.md §8). An answer is a passage of a document, with where that stands,
 * and of a product its name, price and availability before it. Greetings and thanks get a reply
 * (phrases.h).
 */
#ifndef ASSAY_API_ANSWER_H
#define ASSAY_API_ANSWER_H

#include "core/http/request.h"

#define ANSWER_CITATIONS 3 /* at most; but for the first, those that score half of it or more */
#define ANSWER_BYTES 600   /* of a passage */

struct answer {
    struct str content;   /* for people */
    struct str citations; /* JSON array of {"type","wp_id","title","url","excerpt","image_url"?} */
    bool low_confidence;  /* nothing fits */
};

/*
 * answer_find(r, agent, question, done): ${r} waits for a query thread that looks for the best
 * answer
 * to ${question}; then ${done} is called, with an answer that is borrowed until it returns. Where
 * the look-up fails, the request is replied to, and ${done} is not called.
 */
typedef void answer_done_fn(struct request *r, const struct answer *answer);
void answer_find(struct request *r, const struct ulid *agent, struct str question,
                 answer_done_fn *done);

#endif
