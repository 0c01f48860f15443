/*
 * How many documents of a table have each token: changes of a transaction, gathered in memory and
 * written in order. Private to store/answers; a writer's.
 */
#ifndef ASSAY_ANSWERS_COUNTS_H
#define ASSAY_ANSWERS_COUNTS_H

#include "store/answers/file.h"

struct counts_row {
    int64_t table;
    uint32_t at; /* of the token, in ${bytes} */
    uint16_t n;
    int16_t change;
    uint32_t document; /* so that a token counts once for each */
};

struct counts {
    struct buf bytes;
    struct buf rows; /* struct counts_row */
    uint32_t document;
};

/* counts_add(c, t, texts, change, words): 1: a document came, -1: it goes. Adds to ${words}. */
int counts_add(struct counts *c, struct file_table *t, const struct str *texts, int change,
               int64_t *words);

/* counts_full(c): time to flush. counts_flush(c, f): write and forget. */
bool counts_full(const struct counts *c);
enum store_status counts_flush(struct counts *c, struct file *f);
void counts_reset(struct counts *c);
void counts_free(struct counts *c);

#endif
