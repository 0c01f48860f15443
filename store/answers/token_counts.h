/*
 * How many documents of a table have each token: changes of a transaction, gathered in memory and
 * written in order. Private to store/answers; a writer's.
 */
#ifndef ASSAY_ANSWERS_TOKEN_COUNTS_H
#define ASSAY_ANSWERS_TOKEN_COUNTS_H

#include "store/answers/file.h"

struct token_counts_row {
    int64_t table;
    uint32_t at; /* of the token, in ${bytes} */
    uint16_t n;
    int16_t change;
    uint32_t document; /* so that a token counts once for each */
};

struct token_counts {
    struct buf bytes;
    struct buf rows; /* struct token_counts_row */
    uint32_t document;
};

/*
 * token_counts_add(c, t, texts, change, words): 1: a document came, -1: it goes. Adds to ${words}.
 */
int token_counts_add(struct token_counts *c, struct file_table *t, const struct str *texts,
                     int change, int64_t *words);

/* token_counts_full(c): time to flush. token_counts_flush(c, f): write and forget. */
bool token_counts_full(const struct token_counts *c);
enum store_status token_counts_flush(struct token_counts *c, struct file *f);
void token_counts_reset(struct token_counts *c);
void token_counts_free(struct token_counts *c);

#endif
