/*
 * Question sets of t/kit/questions: shops with pages, questions, and the pages that answer them.
 *
 *   {"language": "en", "documents": [{"id", "kind", "title", "taxonomy", "text"}],
 *    "questions": [{"q", "right": [ids, none: nothing answers], "use": "tune" | "held"}]}
 */
#ifndef ASSAY_T_ANSWERS_SETS_H
#define ASSAY_T_ANSWERS_SETS_H

#include "store/answers/answers.h"

#include <json-c/json.h>

extern const uint8_t sets_store_id[ANSWERS_STORE_ID_BYTES]; /* of the indexes made here */

struct set {
    const char *name, *language; /* borrowed from json */
    struct json_object *json, *documents, *questions;
    size_t document_count, question_count;
};

/* set_load(path, out), set_free: exits with a sentence when the file is not a set. */
void set_load(const char *path, struct set *out);
void set_free(struct set *set);

enum shop {
    SHOP_WHOLE,  /* all pages of the set */
    SHOP_PAIR,   /* two of them: the right one, if there is one, and another */
    SHOP_BURIED, /* all pages, in an index that has many others already */
};

struct tally {
    unsigned answerable, first; /* right page first */
    unsigned kept;              /* and its share says that it answers */
    unsigned unanswerable, answered;
};

/*
 * set_ask(set, use, shop, dir, verbose, tally): ask the questions of one use ("tune" or "held")
 * and add up. Indexes are made in ${dir}. SHOP_BURIED uses ${dir}/buried, made by sets_bury, and
 * leaves it as it was.
 */
void set_ask(const struct set *set, const char *use, enum shop shop, const char *dir, bool verbose,
             struct tally *tally);

/* sets_bury(dir, sets, count, documents): make ${dir}/buried with generated documents. */
void sets_bury(const char *dir, const struct set *sets, size_t count, size_t documents);

/*
 * The generated document ${id}: half of its words are common in the sets' language (a tenth of
 * their pages has them), the others are pronounceable nonsense. Without sets all are nonsense.
 */
struct vocabulary;
struct vocabulary *vocabulary_of(const struct set *sets, size_t count);
void vocabulary_free(struct vocabulary *v);
struct generated {
    char title[200], taxonomy[100], text[4000];
};
void generate(const struct vocabulary *v, uint64_t id, struct generated *out);

#endif
