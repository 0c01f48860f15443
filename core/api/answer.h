/*
 * Where answers to visitors come from: what bulk sync brought of the site, looked up by full text
 * (api.md §8). It never invents: what it says is a passage of a document, with where that stands,
 * and of a product its name, price and availability before it. Greetings and thanks get a reply
 * (phrases.h).
 */
#ifndef ASSAY_API_ANSWER_H
#define ASSAY_API_ANSWER_H

#include "../http/request.h"

/*
 * A document fits where it has at least this share of what the question's words weigh (rare words
 * weigh most, words nobody uses as much as the rarest); less is a word in common, not an answer.
 */
#define ANSWER_SHARE 0.34
#define ANSWER_CITATIONS 3 /* at most; but for the first, those that score half of it or more */
#define ANSWER_BYTES 600   /* of a passage */

struct answer {
    struct str content;   /* for people */
    struct str citations; /* JSON array of {"type","wp_id","title","url","excerpt","image_url"?} */
    bool low_confidence;  /* nothing fits */
};

/*
 * answer_find(r, agent, question, out): the best answer for ${question}, in the request's memory,
 * or static. STORE_OK, also where nothing fits; else it could not be looked up.
 */
enum store_status answer_find(struct request *r, const struct ulid *agent, struct str question,
                              struct answer *out);

#endif
