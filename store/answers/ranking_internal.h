/*
 * From a question to documents, in one table.
 *
 *   candidates.c  FTS5 finds documents with the question's rarest words, at most CANDIDATES rows,
 *                 and keeps the FINALISTS best ones
 *   ranking.c     reads their texts and scores them by all words of the question
 */
#ifndef ASSAY_STORE_ANSWERS_RANKING_INTERNAL_H
#define ASSAY_STORE_ANSWERS_RANKING_INTERNAL_H

#include "store/answers/question_internal.h"

#define CANDIDATES 4000 /* rows that FTS5 scores */
#define FINALISTS 40
#define PAGE_SCORE 1.4  /* factor of pages before products: most questions are about the shop */
#define HEAD_WEIGHT 2.2 /* of a word in the title or the taxonomy, in the text 1 */
#define SATURATION 3.3  /* k1 of BM25 */
#define RARITY_FLOOR 0.28
#define ENOUGH_ELSEWHERE 0.65      /* struct language: enough, where it was not measured */
#define RANKING_BYTES (256 * 1024) /* maximum of finalists' texts that are read */

struct candidate {
    int64_t id;
    double score;
    uint64_t version;
    bool page; /* not a product */
};

/* State of assay_score(), a function in FTS5's queries, for the running query. */
struct scoring {
    const struct question *q;
    unsigned words[QUESTION_PHRASES]; /* the word number of each phrase */
    double parts[QUESTION_PHRASES];   /* and the part of the word that it stands for */
    unsigned count;
};

struct candidates {
    struct file *f;
    struct file_table *t;
    const struct question *q;
    struct scoring *scoring;
    const struct answers_question *asked;
    struct candidate best[FINALISTS]; /* best first */
    unsigned count;
};

int candidates_register(fts5_api *api, struct scoring *scoring);

/* candidates_find(c): fill ${c}->best. */
enum store_status candidates_find(struct candidates *c);

/* ranking_score(t, q, texts, hit): score and share of a document. SQLite codes. */
int ranking_score(const struct file_table *t, const struct question *q, const struct str *texts,
                  struct answers_hit *hit);

#endif
