/*
 * Number of documents of a table that have each token: changes of a transaction, gathered in memory
 * and written in order. For a writer.
 */
#ifndef ASSAY_STORE_ANSWERS_TOKEN_COUNTS_INTERNAL_H
#define ASSAY_STORE_ANSWERS_TOKEN_COUNTS_INTERNAL_H

#include "store/answers/file_internal.h"

struct token_counts_row {
    int64_t table;
    uint32_t at; /* of the token, in ${bytes} */
    uint16_t n;
    int16_t change;
    uint32_t document; /* so that a token counts once per document */
};

struct token_counts {
    struct buf bytes;
    struct buf rows; /* struct token_counts_row */
    uint32_t document;
};

/*
 * token_counts_add(c, t, texts, change, words): ${change} 1: a new document, -1: a deleted one.
 * Adds to ${words}.
 */
int token_counts_add(struct token_counts *c, struct file_table *t, const struct str *texts,
                     int change, int64_t *words);

/* token_counts_full(c): is it time to flush? token_counts_flush(c, f): write and forget. */
bool token_counts_full(const struct token_counts *c);
enum store_status token_counts_flush(struct token_counts *c, struct file *f);
void token_counts_reset(struct token_counts *c);
void token_counts_free(struct token_counts *c);

#endif
